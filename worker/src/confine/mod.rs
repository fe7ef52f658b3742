//! Confines the process for good: no files, no network, no child processes. Done before any code arrives.

pub(crate) mod doors;
mod seccomp;

use std::fmt;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
};
use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, set_dumpable_behavior, set_parent_process_death_signal,
        setrlimit,
    },
    thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs},
};

/// Kernel features that may be missing. The rest (rlimits, `no_new_privs`, closed descriptors) every kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Landlock,
    Seccomp,
}

impl Layer {
    pub(crate) fn from_name(name: &str) -> Option<Layer> {
        [Layer::Landlock, Layer::Seccomp].into_iter().find(|layer| layer.to_string() == name)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Landlock => "landlock",
            Layer::Seccomp => "seccomp",
        })
    }
}

/// How the process is to be confined.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The most that the engine's heap may ever be, in bytes.
    pub(crate) memory_ceiling: u64,
    /// Layers that may be missing.
    pub(crate) allow_missing: Vec<Layer>,
    /// Layers to skip, to test the others.
    pub(crate) pretend_missing: Vec<Layer>,
}

/// Why the process can't be confined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error("{what}: {error}")]
    Kernel { what: &'static str, error: Errno },
    #[error("the system call filter can't be made: {0}")]
    Filter(#[from] seccompiler::BackendError),
    #[error("Landlock: {0}")]
    Landlock(#[from] landlock::RulesetError),
    #[error(
        "this kernel has no {0}, which keeps the sandboxed code away from {what}. Use a kernel that has it (Linux 5.13 \
         or later, with {0} switched on), or allow the worker to run without: --allow-missing {0}, \
         PoolConfig::allow_missing",
        what = if *.0 == Layer::Landlock { "files" } else { "the network, processes and the rest of the kernel" }
    )]
    Missing(Layer),
}

fn kernel(what: &'static str) -> impl Fn(Errno) -> ConfineError {
    move |error| ConfineError::Kernel { what, error }
}

/// Memory for the program, its buffers and the stack beyond the engine's heap, in bytes.
const BESIDE_THE_HEAP: u64 = 128 * 1024 * 1024;
const STACK: u64 = 8 * 1024 * 1024;

/// Confines the process for good; returns the layers that are missing.
pub(crate) fn confine(plan: &Plan) -> Result<Vec<Layer>, ConfineError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(kernel("PR_SET_PDEATHSIG"))?;
    close_descriptors();
    settle_clock();
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(kernel("PR_SET_DUMPABLE"))?;
    let none = CapabilitySet::empty();
    let no_capabilities = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, no_capabilities).map_err(kernel("capset"))?;
    set_no_new_privs(true).map_err(kernel("PR_SET_NO_NEW_PRIVS"))?;

    let mut missing = Vec::new();
    let mut apply = |layer, applied: Result<bool, ConfineError>| {
        if applied? {
            return Ok(());
        }
        if !plan.allow_missing.contains(&layer) {
            return Err(ConfineError::Missing(layer));
        }
        missing.push(layer);
        Ok(())
    };
    let pretended = |layer| plan.pretend_missing.contains(&layer);
    apply(Layer::Landlock, if pretended(Layer::Landlock) { Ok(false) } else { landlock() })?;
    // Landlock needs a descriptor, so these come after it.
    set_rlimits(plan.memory_ceiling)?;
    apply(Layer::Seccomp, if pretended(Layer::Seccomp) { Ok(false) } else { seccomp::apply() })?;
    Ok(missing)
}

/// Everything but the socket. Standard error goes too: it may be the parent's terminal.
fn close_descriptors() {
    const FIRST: libc::c_uint = 1;
    // SAFETY: nothing in this process uses a descriptor above 0 from here on.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, 0) } == 0;
    if !closed {
        // Before Linux 5.9: one by one.
        for descriptor in 1..65536 {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Warms up both clocks, which open something on first use: the vDSO and the time zone file.
#[expect(clippy::disallowed_methods, reason = "the process has one thread")]
fn settle_clock() {
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    // SAFETY: the process has one thread, and nothing else reads the environment.
    unsafe {
        std::env::set_var("TZ", "UTC0");
        let (now, mut broken_down) = (0, std::mem::zeroed());
        libc::localtime_r(&raw const now, &raw mut broken_down);
        libc::clearenv();
    }
}

/// False if the kernel has no Landlock.
fn landlock() -> Result<bool, ConfineError> {
    // Asks for the newest rules; an older kernel enforces the subset that it knows.
    let abi = ABI::V7;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn set_rlimits(memory_ceiling: u64) -> Result<(), ConfineError> {
    let limits = [
        (Resource::As, memory_ceiling + BESIDE_THE_HEAP),
        (Resource::Stack, STACK),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nproc, 0),
        // poll() counts the socket against it.
        (Resource::Nofile, 1),
    ];
    for (resource, most) in limits {
        let allowed = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| most.min(maximum));
        let limit = Rlimit { current: Some(allowed), maximum: Some(allowed) };
        setrlimit(resource, limit).map_err(kernel("setrlimit"))?;
    }
    Ok(())
}
