//! The wire protocol between pool and worker: frames of a 32-bit little-endian length and a postcard message.
//!
//! JSON travels as text inside the messages. The parent trusts nothing that a worker sends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CallKind, LimitKind, Limits, LogLevel, MissedCall, Thrown, Unawaited};

/// The length in front of every frame, in bytes.
pub const HEADER: usize = 4;

/// Room in a frame for what surrounds the JSON and the logs: names, ids and error texts.
pub const FRAME_SLACK: usize = 256 * 1024;

/// The longest error message or stack that a worker sends, in bytes.
pub const LONGEST_TEXT: usize = 16 * 1024;

/// The longest node id, outcome or target, in bytes.
pub const LONGEST_NAME: usize = 1024;

/// The most missed calls that a run reports.
pub const MOST_MISSED: usize = 20;

/// From the pool to the process.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker<'a> {
    /// Run this code now.
    Run {
        /// The body of an async function.
        code: &'a str,
        /// JSON.
        args: &'a str,
        /// Display names of targets whose key in the code differs.
        names: Vec<(&'a str, &'a str)>,
        /// Its limits.
        limits: Limits,
    },
    /// The answer to a call.
    Answer {
        /// The id that the worker gave the call.
        id: u32,
        /// JSON, or what went wrong.
        answer: Result<&'a str, AnswerError<'a>>,
    },
    /// Stop the run's clock.
    Pause,
    /// Start it again.
    Resume {
        /// How much wall time is left.
        left: Duration,
    },
}

/// A failed call, on its way into the code.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerError<'a> {
    /// For people and models.
    pub message: &'a str,
    /// JSON for the code.
    pub data: Option<&'a str>,
}

/// From the process to the pool.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker<'a> {
    /// Confined and ready for a run. `missing` names the layers that the kernel lacks.
    Ready {
        /// Empty unless the pool allows a weaker confinement.
        missing: &'a str,
    },
    /// The process can't be confined as configured, and exits.
    Refused {
        /// Why, and what to do.
        why: &'a str,
    },
    /// The code calls a tool or capability.
    Call {
        /// Counts up from 0 in each run.
        id: u32,
        /// The node that called.
        node: Option<&'a str>,
        /// Tool or capability.
        kind: CallKind,
        /// What is called.
        target: &'a str,
        /// JSON.
        args: &'a str,
    },
    /// A node was reached.
    Visit {
        /// Its id.
        node: &'a str,
    },
    /// A decision was taken.
    Decision {
        /// Its id.
        node: &'a str,
        /// Its outcome.
        outcome: &'a str,
    },
    /// The code wrote to `console`.
    Log {
        /// The console method.
        level: LogLevel,
        /// The text.
        text: &'a str,
    },
    /// The run is over.
    Done {
        /// The result as JSON, or why there is none.
        result: Result<&'a str, WorkerFailure>,
        /// The calls that the code didn't await.
        unawaited: Vec<Unawaited>,
        /// The calls of pending timers, at most [`MOST_MISSED`].
        missed: Vec<MissedCall>,
        /// Computing time of the run.
        cpu_time: Duration,
        /// The largest heap of the run, in bytes.
        memory_peak: u64,
        /// Visits and decisions past the limit.
        dropped_events: u64,
    },
}

/// Why the worker has no result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WorkerFailure {
    /// The code threw.
    Thrown(Box<Thrown>),
    /// A limit was reached.
    Limit {
        /// Which.
        limit: LimitKind,
        /// The node that was running.
        node: Option<String>,
    },
}

/// Appends `message` to `buffer` as one frame.
pub fn append_frame(buffer: &mut Vec<u8>, message: &impl Serialize) -> Result<(), FrameError> {
    let start = buffer.len();
    buffer.extend([0; HEADER]);
    *buffer = postcard::to_extend(message, std::mem::take(buffer))?;
    let length = u32::try_from(buffer.len() - start - HEADER).map_err(|_| FrameError::TooLong)?;
    buffer[start..start + HEADER].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Parses the message in a frame; trailing bytes are an error.
pub fn parse_frame<'a, T: Deserialize<'a>>(frame: &'a [u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(frame)? {
        (message, []) => Ok(message),
        (_, rest) => Err(FrameError::Trailing(rest.len())),
    }
}

/// A frame that can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The message doesn't encode or decode.
    #[error("not a message: {0}")]
    Malformed(#[from] postcard::Error),
    /// Bytes follow the message.
    #[error("{0} bytes after the message")]
    Trailing(usize),
    /// 4 GiB or more.
    #[error("the message is 4 GiB or longer")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::{FromWorker, HEADER, ToWorker, append_frame, parse_frame};

    #[test]
    fn a_message_comes_back_as_it_was() {
        let mut buffer = b"before".to_vec();
        append_frame(&mut buffer, &ToWorker::Answer { id: 7, answer: Ok("[1]") }).unwrap();
        let frame = &buffer["before".len()..];
        let length = u32::from_le_bytes(frame[..HEADER].try_into().unwrap());
        assert_eq!(length as usize, frame.len() - HEADER);
        let ToWorker::Answer { id: 7, answer: Ok("[1]") } = parse_frame(&frame[HEADER..]).unwrap() else {
            panic!("another message")
        };
    }

    #[test]
    fn garbage_is_an_error_not_a_panic() {
        for length in 0..64 {
            for byte in [0x00, 0x01, 0x07, 0x7f, 0x80, 0xff] {
                let _ = parse_frame::<FromWorker<'_>>(&vec![byte; length]);
            }
        }
        assert!(parse_frame::<FromWorker<'_>>(&[0xff; 8]).is_err());
        assert!(parse_frame::<FromWorker<'_>>(&[0, 0, 0]).is_err(), "bytes after the message");
    }
}
