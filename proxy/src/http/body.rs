//! A response body that holds a permit until it has been sent, and ends when its token is revoked.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::limits::Permit;
use crate::tokens::Revocation;
use crate::{presence::Here, weight::Weight};

pub(super) struct HeldBody {
    inner: Body,
    /// Only a stream ends with its token; an answer goes out whole.
    ends: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Arc<Revocation>)>,
    weight: Weight,
    _permit: Permit,
    /// The client is there as long as it waits for this.
    _here: Option<Here>,
}

impl HeldBody {
    pub(super) fn around(
        inner: Body,
        permit: Permit,
        here: Option<Here>,
        ends_with: Option<Arc<Revocation>>,
    ) -> HeldBody {
        let ends = ends_with.map(|revoked| (Box::pin(revoked.signal().cancelled_owned()), revoked));
        HeldBody { inner, ends, weight: Weight::default(), _permit: permit, _here: here }
    }

    /// The same, whose answer has this weight.
    pub(super) fn of(mut self, weight: Weight) -> HeldBody {
        self.weight = weight;
        self
    }
}

impl From<HeldBody> for Body {
    fn from(body: HeldBody) -> Body {
        Body::new(body)
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some((revoked, _)) = &mut self.ends
            && revoked.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        this.weight.step(|| Pin::new(&mut this.inner).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
