//! Errors as Postgres reports them: each kind with its own SQLSTATE.

use std::{
    backtrace::Backtrace,
    env,
    ffi::{CString, c_char, c_int},
    ptr,
};

use pgrx::{PgLogLevel, pg_sys};

/// Keeps backtraces out of errors that pass through Rust, which pgrx adds to their DETAIL if RUST_BACKTRACE is set. Whether to
/// capture any is decided at the first attempt, for this library only.
#[expect(clippy::disallowed_methods, reason = "a backend has one thread")]
pub(crate) fn without_backtraces() {
    const DECIDES: &str = "RUST_LIB_BACKTRACE";
    let before = env::var_os(DECIDES);
    // SAFETY: a backend has one thread.
    unsafe {
        env::set_var(DECIDES, "0");
        drop(Backtrace::capture());
        match before {
            Some(before) => env::set_var(DECIDES, before),
            None => env::remove_var(DECIDES),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    NotFound,
    VersionNotFound,
    InvalidName,
    InvalidCode,
    InvalidArgument,
    /// The compiler was interrupted by a query cancel.
    Interrupted,
    NotPermitted,
    /// An object that CREATE EXTENSION made is missing.
    Broken,
    DeprecatedAlias,
}

impl Kind {
    fn sqlstate(self) -> &'static [u8; 5] {
        match self {
            Kind::NotFound => b"PM001",
            Kind::VersionNotFound => b"PM002",
            Kind::InvalidName => b"PM004",
            Kind::InvalidCode => b"PM005",
            Kind::InvalidArgument => b"22023",
            Kind::Interrupted => b"57014",
            Kind::NotPermitted => b"PM006",
            Kind::Broken => b"55000",
            Kind::DeprecatedAlias => b"01P01",
        }
    }

    /// As MAKE_SQLSTATE does: six bits for each character.
    fn packed(self) -> c_int {
        self.sqlstate()
            .iter()
            .rev()
            .fold(0, |packed, byte| (packed << 6) | ((c_int::from(*byte) - 0x30) & 0x3F))
    }
}

/// A log level of Postgres that pgrx has no name for.
const WARNING_CLIENT_ONLY: c_int = 20;

pub(crate) struct Report {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, Report>;

impl From<pml_core::Error> for Report {
    fn from(error: pml_core::Error) -> Self {
        Report {
            kind: Kind::InvalidName,
            message: error.to_string(),
            detail: error.detail().map(str::to_owned),
            hint: Some(error.hint().to_owned()),
        }
    }
}

// pgrx reports only the SQLSTATEs that Postgres defines, so ours go through the functions behind ereport.
unsafe extern "C-unwind" {
    fn message_level_is_interesting(level: c_int) -> bool;
    fn errstart(level: c_int, domain: *const c_char) -> bool;
    fn errcode(sqlstate: c_int) -> c_int;
    fn errmsg_internal(format: *const c_char, ...) -> c_int;
    fn errdetail_internal(format: *const c_char, ...) -> c_int;
    fn errhint(format: *const c_char, ...) -> c_int;
    fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
    fn pq_beginmessage(message: pg_sys::StringInfo, kind: c_char);
    fn pq_sendbytes(message: pg_sys::StringInfo, bytes: *const c_char, count: c_int);
    fn pq_sendstring(message: pg_sys::StringInfo, text: *const c_char);
    fn pq_endmessage(message: pg_sys::StringInfo);
}

impl Report {
    /// Unwraps the value or raises the error.
    pub(crate) fn or_raise<T>(result: Result<T>) -> T {
        match result {
            Ok(value) => value,
            Err(report) => {
                report.emit(PgLogLevel::ERROR as c_int);
                unreachable!("an ERROR does not return")
            }
        }
    }

    /// A WARNING to the client only, built only if client_min_messages lets it through: logging it would cost more than the
    /// call.
    pub(crate) fn warn_client(report: impl FnOnce() -> Report) {
        // SAFETY: compares the level with the session's settings.
        if unsafe { message_level_is_interesting(WARNING_CLIENT_ONLY) } {
            let report = report();
            // SAFETY: both are variables of the session.
            let has_client = unsafe {
                pg_sys::whereToSendOutput == pg_sys::CommandDest::DestRemote
                    && pg_sys::ParallelWorkerNumber < 0
            };
            if has_client { report.send_with_result() } else { report.emit(WARNING_CLIENT_ONLY) }
        }
    }

    /// A notice that is buffered with the result. ereport would flush it at once, which wakes the client twice and costs more
    /// than the lookup.
    fn send_with_result(self) {
        let sqlstate = String::from_utf8_lossy(self.kind.sqlstate()).into_owned();
        let fields = [
            (b'S', Some("WARNING".to_owned())),
            (b'V', Some("WARNING".to_owned())),
            (b'C', Some(sqlstate)),
            (b'M', Some(self.message)),
            (b'D', self.detail),
            (b'H', self.hint),
        ];
        // SAFETY: a NoticeResponse as the protocol has it: fields of one byte and a text that ends with a zero, then a zero.
        unsafe {
            let mut message: pg_sys::StringInfoData = std::mem::zeroed();
            pq_beginmessage(&raw mut message, b'N' as c_char);
            for (name, text) in fields {
                let text = in_postgres_memory(text);
                if !text.is_null() {
                    pq_sendbytes(&raw mut message, (&raw const name).cast(), 1);
                    pq_sendstring(&raw mut message, text);
                }
            }
            pq_sendbytes(&raw mut message, c"".as_ptr(), 1);
            pq_endmessage(&raw mut message);
        }
    }

    /// An ERROR is a longjmp that skips destructors, so the texts are first copied to Postgres' memory. (As a panic through
    /// pgrx it would lose its SQLSTATE.)
    fn emit(self, level: c_int) {
        let packed = self.kind.packed();
        let message = in_postgres_memory(Some(self.message));
        let detail = in_postgres_memory(self.detail);
        let hint = in_postgres_memory(self.hint);
        // SAFETY: the texts end with a zero and go to a "%s".
        unsafe {
            if errstart(level, ptr::null()) {
                errcode(packed);
                errmsg_internal(c"%s".as_ptr(), message);
                if !detail.is_null() {
                    errdetail_internal(c"%s".as_ptr(), detail);
                }
                if !hint.is_null() {
                    errhint(c"%s".as_ptr(), hint);
                }
                errfinish(c"pml".as_ptr(), 0, c"pml".as_ptr());
            }
        }
    }
}

fn in_postgres_memory(text: Option<String>) -> *const c_char {
    let Some(text) = text else { return ptr::null() };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: copies a C string.
    unsafe { pg_sys::pstrdup(text.as_ptr()) }
}
