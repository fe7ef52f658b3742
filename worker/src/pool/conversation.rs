//! One run from the parent's side: messages in, answers out. Everything that a worker sends is validated.

use std::{
    collections::{HashMap, VecDeque},
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::AsyncWriteExt,
    net::{UnixStream, unix::WriteHalf},
    time,
};
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};

use super::{Run, process::Process, seat::Seat};
use crate::{
    Answer, Call, CallError, CallHandler, CallRecord, Clock, Failure, Json, LimitKind, LogEntry, MissedCall,
    Outcome, Trace, TraceEvent, Unawaited, Usage, aside_if_large,
    protocol::{
        AnswerError, FRAME_SLACK, FromWorker, HEADER, LONGEST_NAME, LONGEST_TEXT, MOST_MISSED, ToWorker,
        WorkerFailure, append_frame, parse_frame,
    },
};

/// Grace period after the wall time in which a worker can report the limit itself, with the whole trace.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a worker may take to tear down the engine of the previous run.
const CLEARING: Duration = Duration::from_secs(2);

/// How long to wait for the exit status of a process that was just killed.
const REAPING: Duration = Duration::from_secs(5);

/// A run that has used more CPU time than this continues at low priority.
const IN_FOREGROUND: Duration = Duration::from_millis(8);

/// Pause before retrying a priority change that the kernel rate-limited.
const PRIORITY_RETRY: Duration = Duration::from_millis(100);

/// Runs `run` in `process`; also returns whether the process can be reused. `None` if the process was gone or still busy
/// with the previous run, so that this one can be retried in another.
pub(super) async fn converse<H: CallHandler>(
    process: &mut Process,
    run: &Run,
    seat: &mut Seat<'_>,
    handler: &H,
) -> Option<(Outcome, bool)> {
    let mut record = Record::new(run);
    let ended = record.hold(process, seat, handler).await;
    let sound = matches!(ended, Ended::Done(_));
    let result = match ended {
        Ended::Done(result) | Ended::DoneBut(result) => result,
        Ended::Killed(failure) => {
            process.kill();
            Err(failure)
        }
        Ended::Gone => {
            process.kill();
            Err(record.death(exit_of(process).await))
        }
        Ended::NeverBegan => return None,
    };
    Some((record.into_outcome(result), sound))
}

/// When to check the CPU time again; `None` if the run has used up its time at normal priority.
fn time_in_foreground(process: &Process) -> Option<Duration> {
    if process.in_background {
        return None;
    }
    let left = IN_FOREGROUND.checked_sub(process.cpu_time_of_run().unwrap_or_default());
    // Not less, so that a run is checked a bounded number of times.
    left.filter(|left| !left.is_zero()).map(|left| left.max(IN_FOREGROUND / 2))
}

async fn exit_of(process: &mut Process) -> Option<ExitStatus> {
    let exit = time::timeout(REAPING, process.exit.wait_for(Option::is_some)).await;
    *exit.ok()?.ok()?
}

/// How a conversation ended.
enum Ended {
    /// The worker reported the result.
    Done(Result<Json, Failure>),
    /// The same, but it doesn't read the remaining messages and can't be reused.
    DoneBut(Result<Json, Failure>),
    /// It must be killed because of this failure.
    Killed(Failure),
    /// It closed the socket.
    Gone,
    /// It closed the socket, or timed out, before it was ready for this run.
    NeverBegan,
}

struct Record<'r> {
    run: &'r Run,
    started: Instant,
    /// Includes the grace period.
    clock: Clock,
    trace: Trace,
    /// Index in the trace of each call that has no answer yet, by id.
    open_calls: HashMap<u32, usize>,
    logs: Vec<LogEntry>,
    usage: Usage,
    unawaited: Vec<Unawaited>,
    missed: Vec<MissedCall>,
}

impl<'r> Record<'r> {
    fn new(run: &'r Run) -> Record<'r> {
        Record {
            run,
            started: Instant::now(),
            clock: clock_of(run),
            trace: Trace::default(),
            open_calls: HashMap::new(),
            logs: Vec::new(),
            usage: Usage::default(),
            unawaited: Vec::new(),
            missed: Vec::new(),
        }
    }

    async fn hold<H: CallHandler>(
        &mut self,
        process: &mut Process,
        seat: &mut Seat<'_>,
        handler: &H,
    ) -> Ended {
        let limits = &self.run.limits;
        let begin = ToWorker::Run {
            code: &self.run.code,
            args: self.run.args.get(),
            names: self.run.names.iter().map(|(target, name)| (target.as_str(), name.as_str())).collect(),
            limits: limits.clone(),
        };
        let mut outbox = VecDeque::new();
        if let Err(error) = post(&mut outbox, &begin) {
            return Ended::Killed(Failure::Invalid { why: error });
        }
        let mut socket = match process.socket.try_clone().and_then(UnixStream::from_std) {
            Ok(socket) => socket,
            Err(error) => return Ended::Killed(Failure::Unavailable { why: error.to_string() }),
        };
        // Not `into_split`, whose halves shut the socket down when they are dropped; it has more runs to serve.
        let (reader, mut writer) = socket.split();
        let longest = limits.output.max(limits.logs) as usize + FRAME_SLACK;
        let codec = LengthDelimitedCodec::builder()
            .little_endian()
            .length_field_length(HEADER)
            .max_frame_length(longest)
            .new_codec();
        let mut frames = FramedRead::new(reader, codec);
        let mut answers = FuturesUnordered::new();
        let clearing = time::sleep(CLEARING);
        tokio::pin!(clearing);
        let clock = self.clock.clone();
        let late = clock.ran_out();
        tokio::pin!(late);
        let mut paused = false;
        // Answers held back until the run has a slot again.
        let mut unheard = VecDeque::new();
        let look = time::sleep(IN_FOREGROUND);
        tokio::pin!(look);
        process.run_begins();
        loop {
            let clock_changed = clock.changed();
            seat.follow(&clock);
            if !seat.is_coming_back() {
                for (id, answer) in unheard.drain(..) {
                    if let Err(failure) = self.answered(id, answer, &mut outbox) {
                        return Ended::Killed(failure);
                    }
                }
            }
            if clock.is_paused() != paused {
                paused = !paused;
                let told = if paused { ToWorker::Pause } else { ToWorker::Resume { left: self.left() } };
                if let Err(what) = post(&mut outbox, &told) {
                    return Ended::Killed(Failure::Protocol { what });
                }
            }
            tokio::select! {
                biased;
                frame = frames.next() => match frame {
                    Some(Ok(frame)) if !process.ready => {
                        if !is_ready(&frame) {
                            return Ended::NeverBegan;
                        }
                        process.ready = true;
                        process.run_begins();
                        self.started = Instant::now();
                        clock.restart(limits.wall_time + PATIENCE);
                    }
                    Some(Ok(frame)) => match self.message(&frame) {
                        Ok(Heard::Noted) => {}
                        Ok(Heard::Call(id, call)) => answers.push(async move { (id, handler.call(call).await) }),
                        Ok(Heard::Done(result)) => {
                            // The worker may already be ready for the next run; any other message is a violation.
                            process.ready = match frames.read_buffer().get(HEADER..) {
                                None if frames.read_buffer().is_empty() => false,
                                Some(frame) if is_ready(frame) => true,
                                _ => return Ended::Killed(Failure::Protocol { what: "a message after the last".into() }),
                            };
                            // The worker skips answers to calls of a finished run.
                            let rest = time::timeout(PATIENCE, async {
                                while !outbox.is_empty() {
                                    write_some(&mut writer, &mut outbox).await?;
                                }
                                std::io::Result::Ok(())
                            });
                            return match rest.await {
                                Ok(Ok(())) => Ended::Done(result),
                                _ => Ended::DoneBut(result),
                            };
                        }
                        Err(failure) => return Ended::Killed(failure),
                    },
                    Some(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                        let what = format!("a message longer than {longest} bytes");
                        return Ended::Killed(Failure::Protocol { what });
                    }
                    Some(Err(_)) | None if process.ready => return Ended::Gone,
                    Some(Err(_)) | None => return Ended::NeverBegan,
                },
                Some((id, answer)) = answers.next(), if !answers.is_empty() => {
                    // If the call waited for a person, its answer ends the pause.
                    seat.follow(&clock);
                    unheard.push_back((id, answer));
                }
                written = write_some(&mut writer, &mut outbox), if !outbox.is_empty() => {
                    if written.is_err() {
                        return if process.ready { Ended::Gone } else { Ended::NeverBegan };
                    }
                }
                () = &mut late, if process.ready => return Ended::Killed(self.limit(LimitKind::WallTime)),
                () = &mut clearing, if !process.ready => return Ended::NeverBegan,
                () = clock_changed => {}
                () = seat.back(), if seat.is_coming_back() => {}
                () = &mut look, if process.ready && !(process.in_background && process.is_settled()) => {
                    let next = time_in_foreground(process).unwrap_or_else(|| {
                        process.move_to_background();
                        PRIORITY_RETRY
                    });
                    look.as_mut().reset(time::Instant::now() + next);
                }
            }
        }
    }

    /// The wall time left, without the grace period.
    fn left(&self) -> Duration {
        self.clock.left().saturating_sub(PATIENCE)
    }

    fn message(&mut self, frame: &[u8]) -> Result<Heard, Failure> {
        let broken = |what: &str| Failure::Protocol { what: what.to_owned() };
        let message = parse_frame(frame).map_err(|error| broken(&error.to_string()))?;
        match message {
            FromWorker::Call { id, node, kind, target, args } => {
                self.check_names(&[node.unwrap_or_default(), target])?;
                if u64::from(id) != self.usage.calls {
                    return Err(broken("a call out of order"));
                }
                self.usage.calls += 1;
                self.within(LimitKind::Calls, self.usage.calls, self.run.limits.calls)?;
                self.within(
                    LimitKind::CallsInFlight,
                    self.open_calls.len() as u64 + 1,
                    self.run.limits.calls_in_flight,
                )?;
                let args = self.outgoing(args)?;
                self.open_calls.insert(id, self.trace.events.len());
                self.trace.events.push(TraceEvent::Call(CallRecord {
                    node: node.map(str::to_owned),
                    kind,
                    target: target.to_owned(),
                    args: args.clone(),
                    start: self.started.elapsed(),
                    duration: Duration::ZERO,
                    answer: Answer::Unfinished,
                }));
                let mut limits = self.run.limits.clone();
                limits.wall_time = self.left();
                Ok(Heard::Call(
                    id,
                    Call {
                        number: id,
                        node: node.map(str::to_owned),
                        kind,
                        target: target.to_owned(),
                        args,
                        tenant: self.run.tenant.clone(),
                        depth: self.run.depth,
                        limits,
                        names: self.run.names.clone(),
                        clock: self.clock.clone(),
                        cpu: self.run.cpu.clone(),
                    },
                ))
            }
            FromWorker::Visit { node } => {
                self.check_names(&[node])?;
                self.event(TraceEvent::Visit { node: node.to_owned() })
            }
            FromWorker::Decision { node, outcome } => {
                self.check_names(&[node, outcome])?;
                self.event(TraceEvent::Decision { node: node.to_owned(), outcome: outcome.to_owned() })
            }
            FromWorker::Log { level, text } => {
                self.usage.logs += text.len() as u64;
                self.within(LimitKind::Logs, self.usage.logs, self.run.limits.logs)?;
                self.logs.push(LogEntry { level, text: text.to_owned() });
                // An empty line still costs memory in the parent.
                self.within(LimitKind::Logs, self.logs.len() as u64, self.run.limits.logs)?;
                Ok(Heard::Noted)
            }
            FromWorker::Done { result, unawaited, missed, cpu_time, memory_peak, dropped_events } => {
                self.usage.cpu_time = cpu_time;
                self.usage.memory_peak = memory_peak;
                self.trace.dropped = dropped_events;
                if !unawaited.is_sorted_by(|one, next| one.call < next.call)
                    || unawaited.last().is_some_and(|last| u64::from(last.call) >= self.usage.calls)
                {
                    return Err(broken("a call that it never made"));
                }
                if missed.len() > MOST_MISSED {
                    return Err(broken("more missed calls than a worker reports"));
                }
                for call in &missed {
                    self.check_names(&[&call.target])?;
                }
                self.unawaited = unawaited;
                self.missed = missed;
                let result = match result {
                    Ok(text) => Ok(self.outgoing(text)?),
                    Err(WorkerFailure::Limit { limit, node }) => {
                        Err(Failure::limit(limit, &self.run.limits, node))
                    }
                    Err(WorkerFailure::Thrown(thrown)) => {
                        let longest =
                            [&thrown.name, &thrown.message, &thrown.stack].map(String::len).into_iter().max();
                        // The worker adds to a message that it has cut, hence the factor.
                        if longest > Some(2 * LONGEST_TEXT) {
                            return Err(broken("an error longer than a worker sends"));
                        }
                        Err(Failure::Thrown(thrown))
                    }
                };
                Ok(Heard::Done(result))
            }
            FromWorker::Ready { .. } | FromWorker::Refused { .. } => Err(broken("a greeting during a run")),
        }
    }

    fn answered(
        &mut self,
        id: u32,
        answer: Result<Json, CallError>,
        outbox: &mut VecDeque<Bytes>,
    ) -> Result<(), Failure> {
        let length = answer.as_ref().map_or_else(|error| error.message.len(), |value| value.get().len());
        if length as u64 > self.run.limits.memory {
            return Err(self.limit(LimitKind::Memory));
        }
        let message = ToWorker::Answer {
            id,
            answer: answer.as_ref().map(Json::get).map_err(|error| AnswerError {
                message: &error.message,
                data: error.data.as_ref().map(Json::get),
            }),
        };
        let posted = post(outbox, &message);
        if let Some(index) = self.open_calls.remove(&id)
            && let Some(TraceEvent::Call(call)) = self.trace.events.get_mut(index)
        {
            call.duration = self.started.elapsed().saturating_sub(call.start);
            call.answer = match answer {
                Ok(value) => Answer::Result(value),
                Err(error) => Answer::Error(error),
            };
        }
        posted.map_err(|_| self.limit(LimitKind::Memory))
    }

    fn event(&mut self, event: TraceEvent) -> Result<Heard, Failure> {
        let kept = (self.trace.events.len() as u64).saturating_sub(self.usage.calls);
        if kept >= self.run.limits.trace_events {
            return Err(Failure::Protocol { what: "more trace events than the limit".into() });
        }
        self.trace.events.push(event);
        Ok(Heard::Noted)
    }

    fn check_names(&self, names: &[&str]) -> Result<(), Failure> {
        match names.iter().find(|name| name.len() > LONGEST_NAME) {
            Some(name) => Err(Failure::Protocol { what: format!("a name of {} bytes", name.len()) }),
            None => Ok(()),
        }
    }

    /// Counts and validates JSON that the run sends out.
    fn outgoing(&mut self, text: &str) -> Result<Json, Failure> {
        self.usage.output += text.len() as u64;
        self.within(LimitKind::Output, self.usage.output, self.run.limits.output)?;
        aside_if_large(text.len(), || Json::from_text(text))
            .map_err(|error| Failure::Protocol { what: format!("invalid JSON: {error}") })
    }

    fn within(&self, limit: LimitKind, used: u64, most: u64) -> Result<(), Failure> {
        if used > most { Err(self.limit(limit)) } else { Ok(()) }
    }

    fn limit(&self, limit: LimitKind) -> Failure {
        Failure::limit(limit, &self.run.limits, self.trace.path().last().map(str::to_owned))
    }

    /// The failure to report when the process exited during the run.
    fn death(&self, status: Option<ExitStatus>) -> Failure {
        match status.and_then(|status| status.signal()) {
            Some(libc::SIGPROF | libc::SIGXCPU) => self.limit(LimitKind::CpuTime),
            Some(libc::SIGALRM) => self.limit(LimitKind::WallTime),
            Some(libc::SIGSYS) => Failure::Crashed { how: "it made a forbidden system call".into() },
            _ => {
                Failure::Crashed { how: status.map_or_else(|| "unknown".into(), |status| status.to_string()) }
            }
        }
    }

    fn into_outcome(mut self, result: Result<Json, Failure>) -> Outcome {
        self.usage.wall_time = self.started.elapsed();
        for index in self.open_calls.into_values() {
            if let Some(TraceEvent::Call(call)) = self.trace.events.get_mut(index) {
                call.duration = self.usage.wall_time.saturating_sub(call.start);
            }
        }
        Outcome {
            result,
            trace: self.trace,
            logs: self.logs,
            usage: self.usage,
            unawaited: self.unawaited,
            missed: self.missed,
        }
    }
}

fn clock_of(run: &Run) -> Clock {
    let limit = run.limits.wall_time + PATIENCE;
    run.around.as_ref().map_or_else(|| Clock::new(limit), |around| around.part(limit))
}

fn is_ready(frame: &[u8]) -> bool {
    matches!(parse_frame(frame), Ok(FromWorker::Ready { .. }))
}

enum Heard {
    Noted,
    Call(u32, Call),
    Done(Result<Json, Failure>),
}

fn post(outbox: &mut VecDeque<Bytes>, message: &ToWorker<'_>) -> Result<(), String> {
    let mut frame = Vec::new();
    append_frame(&mut frame, message).map_err(|error| error.to_string())?;
    outbox.push_back(frame.into());
    Ok(())
}

async fn write_some(writer: &mut WriteHalf<'_>, outbox: &mut VecDeque<Bytes>) -> std::io::Result<()> {
    if let Some(front) = outbox.front_mut() {
        writer.write_buf(front).await?;
        if front.is_empty() {
            outbox.pop_front();
        }
    }
    Ok(())
}
