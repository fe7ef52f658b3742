//! Reads a request's whole body, within its timeout and size limit, before anything else is done for it.

use std::{error::Error, io, time::Duration};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use http::StatusCode;
use tokio::time::{Instant, timeout_at};

use super::{
    limits::{HttpLimits, Key},
    refused::{Reason, Refused},
};
use crate::config::HttpConfig;

pub(super) struct BodyLimits {
    largest: usize,
    time: Duration,
    /// Bytes that extend the timeout by a second.
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

    /// The whole body. Its bytes count against the limit of unfinished bodies of `key`.
    pub(super) async fn read(&self, body: Body, key: &Key, limits: &HttpLimits) -> Result<Bytes, Refused> {
        if body.size_hint().lower() > self.largest as u64 {
            return Err(self.too_large());
        }
        let mut body = body.into_data_stream();
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

    async fn next(
        &self,
        body: &mut BodyDataStream,
        begun: Instant,
        came: usize,
    ) -> Result<Option<Bytes>, Refused> {
        let deadline = begun + self.time + Duration::from_secs(came as u64 / self.rate);
        match timeout_at(deadline, body.next()).await {
            Ok(Some(data)) => data.map(Some).map_err(|error| unreadable(&error)),
            Ok(None) => Ok(None),
            Err(_) => {
                let message = "The request's body is too slow; send it at once.";
                Err(Refused::new(StatusCode::REQUEST_TIMEOUT, Reason::SlowBody, message))
            }
        }
    }

    fn too_large(&self) -> Refused {
        let message = format!("The request's body is larger than {} bytes (max_body).", self.largest);
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::LargeBody, message)
    }
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
            "The request's body has malformed chunks."
        }
        _ => "The request's body ended early.",
    };
    Refused::bad_request(Reason::Body, message)
}
