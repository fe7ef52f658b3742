//! The configuration of a pool and of a run.

use std::{collections::HashMap, path::PathBuf, sync::Arc, thread};

use crate::{Clock, CpuMeter, Json, Limits, Shares, Tenant};

/// A part of the confinement that a kernel may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// Keeps the code away from files.
    Landlock,
    /// Keeps the code away from the network, processes and the rest of the kernel.
    Seccomp,
}

impl Layer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Layer::Landlock => "landlock",
            Layer::Seccomp => "seccomp",
        }
    }
}

/// How a pool is set up.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The `pml-worker` program. Default: beside the running program.
    pub program: PathBuf,
    /// Runs at the same time, and processes kept ready. Default: two for each core, at least four.
    pub slots: usize,
    /// Extra slots for tenants below their share while the others are taken. Default three times the slots.
    pub reserve: usize,
    /// Processes kept ready beyond those in use, so that an extra run needn't wait for one to start. Default 2.
    pub spare: usize,
    /// Runs that may wait for a slot. Default 1,024.
    pub queue: usize,
    /// Runs of one tenant that may wait for a slot. Default 256.
    pub queue_per_tenant: usize,
    /// Bytes of code and arguments that waiting runs may hold. Default 64 MiB.
    pub queue_bytes: usize,
    /// Bytes of code and arguments that waiting runs of one tenant may hold. Default 16 MiB.
    pub queue_bytes_per_tenant: usize,
    /// A process is replaced after this many runs. Default 1,000; 1 gives every run a process of its own.
    pub runs_per_process: u32,
    /// How deep runs may be nested: a run that a call handler starts for another run. Every level has its own slots,
    /// so that runs which wait for nested ones can't block them. Default 8.
    pub deepest: u32,
    /// The largest memory limit that a run may ask for, in bytes; the kernel enforces it for the process. Default 256 MiB.
    pub memory_ceiling: u64,
    /// Layers of the confinement that the kernel may lack. Default none.
    pub allow_missing: Vec<Layer>,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        let beside = std::env::current_exe()
            .ok()
            .and_then(|program| program.parent().map(|dir| dir.join("pml-worker")));
        let slots = thread::available_parallelism().map_or(4, |cores| (2 * cores.get()).max(4));
        PoolConfig {
            program: beside.unwrap_or_else(|| "pml-worker".into()),
            slots,
            reserve: 3 * slots,
            spare: 2,
            queue: 1024,
            queue_per_tenant: 256,
            queue_bytes: 64 * 1024 * 1024,
            queue_bytes_per_tenant: 16 * 1024 * 1024,
            runs_per_process: 1000,
            deepest: 8,
            memory_ceiling: 256 * 1024 * 1024,
            allow_missing: Vec::new(),
        }
    }
}

impl PoolConfig {
    /// How the runs of one level share their slots.
    pub(super) fn shares(&self) -> Shares {
        Shares {
            slots: self.slots,
            reserve: self.reserve,
            // A run that waits for a tool uses no CPU; one that computes is moved to low priority.
            in_company: usize::MAX,
            queue: self.queue,
            queue_per_tenant: self.queue_per_tenant,
            queue_bytes: self.queue_bytes,
            queue_bytes_per_tenant: self.queue_bytes_per_tenant,
        }
    }
}

/// A piece of code to run, and for whom.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// Whose it is; slots are shared fairly between tenants.
    pub tenant: Tenant,
    /// Plain JavaScript: the body of an async function with `args`, `mcp` and `capabilities` in scope.
    pub code: String,
    /// What the code sees as `args`.
    pub args: Json,
    /// Its limits.
    pub limits: Limits,
    /// Display names of targets whose key in the code differs.
    pub names: Arc<HashMap<String, String>>,
    /// Nesting depth: 0, or one more than the calling run's; see [`crate::Call::nested_run`].
    pub depth: u32,
    /// Counts CPU time however the run ends, nested runs included.
    pub cpu: CpuMeter,
    /// The clock of the calling run.
    pub(crate) around: Option<Clock>,
}

impl Run {
    /// A run with no arguments and the default limits.
    pub fn new(tenant: impl Into<Tenant>, code: impl Into<String>) -> Run {
        Run {
            tenant: tenant.into(),
            code: code.into(),
            args: Json::from(serde_json::json!({})),
            limits: Limits::default(),
            names: Arc::default(),
            depth: 0,
            cpu: CpuMeter::default(),
            around: None,
        }
    }

    /// The same run with these arguments.
    #[must_use]
    pub fn with_args(mut self, args: impl Into<Json>) -> Run {
        self.args = args.into();
        self
    }

    /// The same run, with its CPU time counted by this meter.
    #[must_use]
    pub fn with_cpu_meter(mut self, meter: CpuMeter) -> Run {
        self.cpu = meter;
        self
    }

    /// The same run with these display names for targets, also for nested runs.
    #[must_use]
    pub fn with_names(mut self, names: impl Into<Arc<HashMap<String, String>>>) -> Run {
        self.names = names.into();
        self
    }

    /// The same run with these limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Run {
        self.limits = limits;
        self
    }
}
