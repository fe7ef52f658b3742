//! A request that waits for its answer. Dropping it before that cancels the request.

use rmcp::{
    ServiceError,
    service::{RequestHandle, ServiceRole},
};

pub(super) struct PendingRequest<R: ServiceRole>(Option<RequestHandle<R>>);

impl<R: ServiceRole> PendingRequest<R> {
    pub(super) fn new(handle: RequestHandle<R>) -> PendingRequest<R> {
        PendingRequest(Some(handle))
    }

    pub(super) async fn answer(&mut self) -> Result<R::PeerResp, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }

    pub(super) fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let reason = Some(reason.to_owned());
            // Not awaited: a peer that hangs doesn't read it.
            runtime.spawn(async move { drop(handle.cancel(reason).await) });
        }
    }
}

impl<R: ServiceRole> Drop for PendingRequest<R> {
    fn drop(&mut self) {
        self.cancel("the caller is gone");
    }
}
