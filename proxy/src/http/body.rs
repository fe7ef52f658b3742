//! A response body that holds a guard until it is sent, and may end when its token is revoked.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{tokens::Revocation, weight::Weight};

pub(super) struct HeldBody<T> {
    inner: Body,
    /// Only streams end with their token; an answer is always completed.
    ends: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Arc<Revocation>)>,
    weight: Option<Weight>,
    _until_sent: T,
}

impl<T> HeldBody<T> {
    pub(super) fn holding(inner: Body, until_sent: T) -> HeldBody<T> {
        HeldBody { inner, ends: None, weight: None, _until_sent: until_sent }
    }

    pub(super) fn with_weight(mut self, weight: Weight) -> HeldBody<T> {
        self.weight = Some(weight);
        self
    }

    /// Ends the body when the token is revoked.
    pub(super) fn until(mut self, revoked: Option<Arc<Revocation>>) -> HeldBody<T> {
        self.ends = revoked.map(|revoked| (Box::pin(revoked.signal().cancelled_owned()), revoked));
        self
    }
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Some((revoked, _)) = &mut this.ends
            && revoked.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(None);
        }
        let inner = Pin::new(&mut this.inner);
        match &this.weight {
            Some(weight) => weight.step(|| inner.poll_frame(context)),
            None => inner.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
