//! The system calls that the process may make. Anything else kills it.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Compare,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::ConfineError;

const SOCKET: u64 = 0;

/// Allowed whatever their arguments.
const PLAIN: &[i64] = &[
    // memory
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // time and random numbers
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_gettimeofday,
    libc::SYS_setitimer,
    // waiting for the parent
    libc::SYS_futex,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_restart_syscall,
    // ending, in order or not
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
];

/// False if the kernel has no seccomp filters.
pub(super) fn apply() -> Result<bool, ConfineError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = PLAIN.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_read, vec![rule(&[equals(0, SOCKET)?])?]);
    rules.insert(libc::SYS_write, vec![rule(&[equals(0, SOCKET)?])?]);
    // Memory is never backed by a file and never executable.
    let not_executable = || has_bits(2, libc::PROT_EXEC, 0);
    let anonymous = has_bits(3, libc::MAP_ANONYMOUS, libc::MAP_ANONYMOUS)?;
    rules.insert(libc::SYS_mmap, vec![rule(&[not_executable()?, anonymous])?]);
    rules.insert(libc::SYS_mprotect, vec![rule(&[not_executable()?])?]);
    // abort() signals the process itself.
    rules.insert(libc::SYS_tgkill, vec![rule(&[equals(0, std::process::id().into())?])?]);

    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program).is_ok())
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.to_vec())
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, Width::Dword, Compare::Eq, value)
}

fn has_bits(argument: u8, mask: libc::c_int, value: libc::c_int) -> Result<SeccompCondition, BackendError> {
    let (mask, value) = (u64::from(mask.cast_unsigned()), u64::from(value.cast_unsigned()));
    SeccompCondition::new(argument, Width::Qword, Compare::MaskedEq(mask), value)
}
