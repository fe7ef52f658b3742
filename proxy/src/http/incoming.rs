//! A request's body, read whole before anything else is done for it: in time, within its size, and as HTTP has it.

use std::{error::Error, io, pin::Pin, time::Duration};

use axum::body::{Body, Bytes, HttpBody};
use bytes::BytesMut;
use http::StatusCode;
use http_body::Frame;
use tokio::time::{Instant, timeout_at};

use super::{
    limits::{HttpLimits, Key},
    refused::Refused,
};
use crate::config::HttpConfig;

pub(super) struct BodyLimits {
    largest: usize,
    time: Duration,
    /// Bytes that buy another second.
    rate: u64,
}

impl BodyLimits {
    pub(super) fn new(config: &HttpConfig) -> BodyLimits {
        BodyLimits {
            largest: config.max_body,
            time: config.door.body_timeout,
            rate: config.door.body_rate.get(),
        }
    }

    /// The whole body. What has come counts against the room that `key` has for unfinished bodies.
    pub(super) async fn read(
        &self,
        mut body: Body,
        key: &Key,
        limits: &HttpLimits,
    ) -> Result<Bytes, Refused> {
        if body.size_hint().lower() > self.largest as u64 {
            return Err(self.too_large());
        }
        let begun = Instant::now();
        let Some(first) = self.next(&mut body, begun, 0).await? else { return Ok(Bytes::new()) };
        if body.is_end_stream() {
            return if first.len() > self.largest { Err(self.too_large()) } else { Ok(first) };
        }
        let mut room = limits.room_for_body(key.clone());
        room.grow(first.len())?;
        let mut whole = BytesMut::from(first);
        while let Some(more) = self.next(&mut body, begun, whole.len()).await? {
            if whole.len() + more.len() > self.largest {
                return Err(self.too_large());
            }
            room.grow(more.len())?;
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }

    async fn next(&self, body: &mut Body, begun: Instant, came: usize) -> Result<Option<Bytes>, Refused> {
        let deadline = begun + self.time + Duration::from_secs(came as u64 / self.rate);
        loop {
            match timeout_at(deadline, next_frame(body)).await {
                Ok(Some(Ok(frame))) => {
                    // Trailers say nothing to us.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Ok(Some(Err(error))) => return Err(unreadable(&error)),
                Ok(None) => return Ok(None),
                Err(_) => {
                    let message = "The request's body comes too slowly; send it at once.";
                    return Err(Refused::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message));
                }
            }
        }
    }

    fn too_large(&self) -> Refused {
        let message = format!("The request's body is larger than {} bytes (max_body).", self.largest);
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "large_body", message)
    }
}

async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, axum::Error>> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

fn unreadable(error: &axum::Error) -> Refused {
    let mut kind = None;
    let mut cause = error.source();
    while let Some(error) = cause {
        kind = error.downcast_ref::<io::Error>().map(io::Error::kind).or(kind);
        cause = error.source();
    }
    let message = match kind {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            "The request's body is malformed: its chunks aren't as HTTP has them."
        }
        _ => "The request's body ended early.",
    };
    Refused::bad_request("body", message)
}
