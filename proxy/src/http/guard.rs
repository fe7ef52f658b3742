//! The checks of every MCP request over HTTP: host and origin, credentials, limits, and the owner of the session.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{Extension, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};

use super::{
    body::HeldBody,
    door::HttpPeer,
    forwarded::limited_by,
    incoming::BodyLimits,
    limits::{HttpLimits, Key, Load, SESSIONS, TooMuch},
    passthrough::Passthrough,
    refused::{Reason, Refused},
    session::{OwnedSessions, PROTOCOL_VERSION, REQUESTER, SESSION_ID},
    whole,
};
use crate::{
    app::App,
    presence::Presence,
    rebinding::{HostPattern, OriginPattern, is_allowed_host, is_allowed_origin, requested_host},
    scope::{Caller, Identity, new_request_id},
    tokens::Accepted,
    weight::Weight,
};

/// How long a refusal for the rate limit is held back.
const SLOW_REFUSAL: Duration = Duration::from_millis(200);
const REQUEST_ID: &str = "x-request-id";
const METHOD: &str = "mcp-method";
/// The first version without sessions; versions are dates and sort as text.
const WITHOUT_SESSIONS: &str = "2026-07-28";

pub(super) struct Gate {
    pub app: Arc<App>,
    pub limits: HttpLimits,
    pub sessions: Arc<OwnedSessions>,
    pub passthrough: Option<Passthrough>,
    pub bodies: BodyLimits,
    /// Allowed hosts.
    pub hosts: Vec<HostPattern>,
    /// Allowed web origins.
    pub origins: Vec<OriginPattern>,
    pub require_token: bool,
}

pub(super) async fn guard(
    State(gate): State<Arc<Gate>>,
    Extension(peer): Extension<HttpPeer>,
    request: Request,
    next: Next,
) -> Response {
    let request_id = request_id(request.headers());
    let mut response = match gate.let_in(&peer, request, next, &request_id).await {
        Ok(response) => response,
        Err(refused) => {
            gate.app.metrics.refused(refused.reason.label());
            if refused.reason == Reason::Overload(Load::Rate) {
                // Slows down clients that retry without a pause.
                tokio::time::sleep(SLOW_REFUSAL).await;
            }
            tracing::info!(
                request_id,
                client = %peer.sender.address,
                encrypted = peer.sender.is_encrypted,
                status = refused.status.as_u16(),
                reason = refused.reason.label(),
                "refused"
            );
            refused.into_response()
        }
    };
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

impl Gate {
    async fn let_in(
        &self,
        peer: &HttpPeer,
        request: Request,
        next: Next,
        request_id: &str,
    ) -> Result<Response, Refused> {
        self.check_names(&request)?;
        let address = limited_by(peer.sender.address);
        let accepted = self.authenticate(address, request.headers()).await?;
        peer.connection.let_in();
        let identity = accepted.principal.identity.clone();
        let key = match &identity {
            Identity::Configured => Key::Address(address),
            token @ Identity::Token(_) => Key::Identity(token.clone()),
        };
        self.limits.check_rate(&key)?;
        self.check_session(&request, &identity)?;
        let streams = is_stream(&request);
        let (head, body) = request.into_parts();
        // Read first, so that a slow body holds no permit.
        let body = match head.method {
            Method::POST => self.bodies.read(body, &key, &self.limits).await?,
            _ => Bytes::new(),
        };
        let permit = if streams { self.limits.begin_stream(key)? } else { self.limits.begin_request(key)? };
        let presence = head
            .headers
            .get(SESSION_ID)
            .and_then(|id| id.to_str().ok())
            .and_then(|id| self.sessions.presence(id));
        let here = presence.as_ref().map(Presence::here);
        let caller = Caller { principal: accepted.principal, request_id: request_id.to_owned() };
        if let Some(passthrough) = &self.passthrough
            && let Some(response) = passthrough.answer(&head, &body, &caller).await
        {
            return Ok(response.map(|body| Body::new(HeldBody::holding(body, (permit, here)))));
        }
        let sent = body.clone();
        let mut request = Request::from_parts(head, Body::from(body));
        let weight = Weight::default();
        request.extensions_mut().insert(weight.clone());
        request.extensions_mut().insert(caller);
        if let Some(presence) = presence {
            request.extensions_mut().insert(presence);
        }
        let ends_session = request.method() == Method::DELETE;
        let is_json = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json"));
        let mut response = REQUESTER.scope(identity, weight.drive(next.run(request))).await;
        // The session is closed, not only accepted; the Python SDKs warn of anything but 200 and 204.
        if ends_session && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        // rmcp answers 415 if the content is invalid, too.
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return Err(Refused::not_a_message(&sent));
        }
        if !streams {
            response = weight.drive(whole::at_once(response)).await;
        }
        // A running call may finish; a stream must not continue.
        let ends_with = streams.then_some(accepted.revoked);
        let held = |body| HeldBody::holding(body, (permit, here)).with_weight(weight).until(ends_with);
        Ok(response.map(|body| Body::new(held(body))))
    }

    /// Protects against DNS rebinding: a page whose name resolves to this machine still sends its own name.
    fn check_names(&self, request: &Request) -> Result<(), Refused> {
        let host = requested_host(request.uri(), request.version(), request.headers());
        let forbidden = |message| Err(Refused::new(StatusCode::FORBIDDEN, Reason::Host, message));
        if !is_allowed_host(host.ok().flatten(), &self.hosts) {
            return forbidden("The Host isn't allowed; add it to allowed_hosts (--allowed-hosts).");
        }
        if !is_allowed_origin(request.headers(), &self.origins) {
            return forbidden("The Origin isn't allowed; add it to allowed_origins (--allowed-origins).");
        }
        Ok(())
    }

    async fn authenticate(&self, address: IpAddr, headers: &HeaderMap) -> Result<Accepted, Refused> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            if self.require_token {
                return Err(Refused::unauthorized(
                    "A bearer token is required. Create one with: pml token create",
                ));
            }
            let principal = self.app.configured.clone();
            return Ok(Accepted { principal, revoked: Arc::default() });
        };
        let token = header.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(token) = token else {
            return Err(Refused::unauthorized("The Authorization header must be: Bearer <token>"));
        };
        match self.app.tokens.check(token).await {
            Ok(Some(accepted)) => Ok(accepted),
            Ok(None) => {
                self.limits.wrong_token(address)?;
                Err(Refused::unauthorized("The token isn't valid: it is wrong, revoked or expired."))
            }
            Err(error) => Err(Refused {
                retry_after: Some(Duration::from_secs(2)),
                ..Refused::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    Reason::Database,
                    format!("Can't check the token: {error}"),
                )
            }),
        }
    }

    /// Another token's session and an unknown one get the same answer.
    fn check_session(&self, request: &Request, identity: &Identity) -> Result<(), Refused> {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        match header(SESSION_ID) {
            Some(id) if self.sessions.is_of(id, identity) => Ok(()),
            Some(_) => {
                let message = "Session not found; send an initialize request to open a new one.";
                Err(Refused::new(StatusCode::NOT_FOUND, Reason::Session, message))
            }
            None => {
                let opens = request.method() == Method::POST
                    && header(PROTOCOL_VERSION).is_none_or(|version| version < WITHOUT_SESSIONS);
                if opens && self.sessions.count_of(identity) >= SESSIONS {
                    let too_much = TooMuch { load: Load::Sessions, retry_after: Duration::from_secs(60) };
                    return Err(too_much.into());
                }
                Ok(())
            }
        }
    }
}

impl From<TooMuch> for Refused {
    fn from(too_much: TooMuch) -> Refused {
        let (status, message) = match too_much.load {
            Load::Rate => (StatusCode::TOO_MANY_REQUESTS, "Too many requests a second."),
            Load::WrongTokens => (StatusCode::TOO_MANY_REQUESTS, "Too many wrong tokens from this address."),
            Load::Sessions => (StatusCode::SERVICE_UNAVAILABLE, "Too many open sessions; close some."),
            Load::Bodies => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many unfinished request bodies; send them faster or one by one.",
            ),
            Load::Streams => (StatusCode::SERVICE_UNAVAILABLE, "Too many open streams; close some."),
            Load::Requests => (StatusCode::SERVICE_UNAVAILABLE, "Too many concurrent requests."),
        };
        Refused {
            retry_after: Some(too_much.retry_after),
            ..Refused::new(status, Reason::Overload(too_much.load), message)
        }
    }
}

/// Streams stay open as long as the client wants, so they have their own limit.
fn is_stream(request: &Request) -> bool {
    let listens = request.headers().get(METHOD).is_some_and(|method| method == "subscriptions/listen");
    request.method() == Method::GET || listens
}

/// The client's own id if it is safe to log, otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let is_safe = |id: &&str| {
        (1..=48).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_safe);
    given.map_or_else(new_request_id, str::to_owned)
}
