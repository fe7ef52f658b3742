//! The open connections: their number, their timeouts, and which one is evicted to make room.
//!
//! One periodic sweep checks all timeouts, which is cheaper than a timer for each request.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::Version;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::forwarded::limited_by;
use crate::{config::DoorLimits, metrics::Metrics};

pub(super) struct Connections {
    limits: DoorLimits,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<u64, Arc<Connection>>,
    of_address: HashMap<IpAddr, usize>,
    last_id: u64,
}

/// An open connection.
pub(super) struct Connection {
    id: u64,
    /// The address that it counts for, if there is a limit by address.
    counted_as: Option<IpAddr>,
    activity: Mutex<Activity>,
    /// Cancelled when it must be closed at once.
    closed: CancellationToken,
}

struct Activity {
    waits_for: WaitsFor,
    since: Instant,
    /// Requests whose answers aren't completely sent.
    requests: usize,
    is_http2: bool,
    /// Whether a request on it passed the guard.
    is_let_in: bool,
    /// Since when the client reads nothing.
    blocked: Option<Instant>,
}

/// What a connection without a running request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    Handshake,
    Head,
    NextRequest,
}

/// Why a connection isn't accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    InAll,
    Address,
}

impl Full {
    pub(super) fn label(self) -> &'static str {
        match self {
            Full::InAll => "connections",
            Full::Address => "address",
        }
    }
}

impl Connections {
    pub(super) fn new(limits: DoorLimits, metrics: Arc<Metrics>) -> Arc<Connections> {
        Arc::new(Connections { limits, metrics, state: Mutex::default() })
    }

    pub(super) fn count(&self) -> usize {
        self.lock().open.len()
    }

    /// A slot for a new connection; if there is none, an idle connection is evicted. A trusted proxy stands for many clients.
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        is_proxy: bool,
        has_handshake: bool,
    ) -> Result<Admitted, Full> {
        let limit = self.limits.connections_per_address.filter(|_| !is_proxy);
        let counted_as = limit.map(|_| limited_by(peer));
        let mut state = self.lock();
        if let (Some(limit), Some(address)) = (limit, counted_as)
            && state.of_address.get(&address).is_some_and(|own| *own >= limit)
            && !self.evict(&mut state, |connection| connection.counted_as == counted_as)
        {
            return Err(Full::Address);
        }
        if state.open.len() >= self.limits.connections && !self.evict(&mut state, |_| true) {
            return Err(Full::InAll);
        }
        state.last_id += 1;
        let connection = Arc::new(Connection {
            id: state.last_id,
            counted_as,
            activity: Mutex::new(Activity {
                waits_for: if has_handshake { WaitsFor::Handshake } else { WaitsFor::Head },
                since: Instant::now(),
                requests: 0,
                is_http2: false,
                is_let_in: false,
                blocked: None,
            }),
            closed: CancellationToken::new(),
        });
        state.open.insert(connection.id, connection.clone());
        if let Some(address) = counted_as {
            *state.of_address.entry(address).or_default() += 1;
        }
        Ok(Admitted { connection, connections: self.clone() })
    }

    /// Evicts a connection because the system has run out of files.
    pub(super) fn make_room(&self) {
        self.evict(&mut self.lock(), |_| true);
    }

    /// Closes the connection that has been idle longest, first among those on which no request passed the guard.
    fn evict(&self, state: &mut State, may_go: impl Fn(&Connection) -> bool) -> bool {
        let candidates = state.open.values().filter(|connection| may_go(connection));
        let waiting = candidates.filter_map(|connection| {
            let activity = connection.lock();
            (activity.requests == 0).then_some(((activity.is_let_in, activity.since), connection.id))
        });
        let Some((_, id)) = waiting.min() else { return false };
        if let Some(connection) = state.remove(id) {
            connection.closed.cancel();
            self.metrics.connection_closed("evicted");
        }
        true
    }

    /// Closes connections that timed out, until `stop`.
    pub(super) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        let limits = &self.limits;
        let shortest = limits.header_timeout.min(limits.idle_timeout).min(limits.send_timeout);
        let mut pause =
            tokio::time::interval((shortest / 8).clamp(Duration::from_millis(20), Duration::from_secs(1)));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = pause.tick() => self.close_overdue(Instant::now()),
            }
        }
    }

    fn close_overdue(&self, now: Instant) {
        let mut state = self.lock();
        let overdue = |connection: &Arc<Connection>| Some((connection.id, self.overdue(connection, now)?));
        let found: Vec<(u64, &'static str)> = state.open.values().filter_map(overdue).collect();
        for (id, reason) in found {
            if let Some(connection) = state.remove(id) {
                connection.closed.cancel();
                self.metrics.connection_closed(reason);
            }
        }
    }

    fn overdue(&self, connection: &Connection, now: Instant) -> Option<&'static str> {
        let limits = &self.limits;
        let activity = connection.lock();
        let is_over = |since: Instant, limit: Duration| now.saturating_duration_since(since) > limit;
        if activity.blocked.is_some_and(|since| is_over(since, limits.send_timeout)) {
            return Some("send");
        }
        if activity.requests > 0 {
            return None;
        }
        let (limit, reason) = match activity.waits_for {
            WaitsFor::Handshake => (limits.header_timeout, "handshake"),
            WaitsFor::Head => (limits.header_timeout, "head"),
            WaitsFor::NextRequest => (limits.idle_timeout, "idle"),
        };
        is_over(activity.since, limit).then_some(reason)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn remove(&mut self, id: u64) -> Option<Arc<Connection>> {
        let connection = self.open.remove(&id)?;
        if let Some(address) = connection.counted_as
            && let Some(own) = self.of_address.get_mut(&address)
        {
            *own -= 1;
            if *own == 0 {
                self.of_address.remove(&address);
            }
        }
        Some(connection)
    }
}

/// A connection's slot, freed when dropped.
pub(super) struct Admitted {
    pub connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.lock().remove(self.connection.id);
    }
}

impl Connection {
    /// Waits until it must be closed at once.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn shook_hands(&self) {
        let mut activity = self.lock();
        activity.waits_for = WaitsFor::Head;
        activity.since = Instant::now();
    }

    /// Bytes have arrived. In HTTP/2 they needn't belong to a request, so only the idle timeout counts there.
    pub(super) fn received(&self) {
        let mut activity = self.lock();
        if activity.requests == 0 && activity.waits_for == WaitsFor::NextRequest && !activity.is_http2 {
            activity.waits_for = WaitsFor::Head;
            activity.since = Instant::now();
        }
    }

    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.lock().blocked = is_blocked.then(Instant::now);
    }

    /// A request on it passed the guard: it is evicted last.
    pub(super) fn let_in(&self) {
        self.lock().is_let_in = true;
    }

    /// Counts a request until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>, version: Version) -> RequestGuard {
        let mut activity = self.lock();
        activity.requests += 1;
        activity.is_http2 = version == Version::HTTP_2;
        RequestGuard(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock()
    }
}

pub(super) struct RequestGuard(Arc<Connection>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut activity = self.0.lock();
        activity.requests -= 1;
        activity.waits_for = WaitsFor::NextRequest;
        activity.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        num::NonZeroU64,
        sync::Arc,
        time::{Duration, Instant},
    };

    use http::Version;

    use super::{Admitted, Connections, Full};
    use crate::{config::DoorLimits, metrics::Metrics};

    fn connections(all: usize, each: Option<usize>) -> Arc<Connections> {
        let limits = DoorLimits {
            connections: all,
            connections_per_address: each,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            body_rate: NonZeroU64::MIN,
            idle_timeout: Duration::from_secs(100),
            send_timeout: Duration::from_secs(30),
        };
        Connections::new(limits, Arc::new(Metrics::default()))
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn is_closed(admitted: &Admitted) -> bool {
        admitted.connection.closed.is_cancelled()
    }

    #[test]
    fn idle_connections_make_room_for_new_ones() {
        let connections = connections(3, None);
        let admit = |last| connections.admit(address(last), false, false);
        let (silent, works, idle) = (admit(1).unwrap(), admit(2).unwrap(), admit(3).unwrap());
        let _call = works.connection.begin_request(Version::HTTP_11);
        drop(idle.connection.begin_request(Version::HTTP_11));
        idle.connection.let_in();
        let fourth = admit(4).unwrap();
        assert!(is_closed(&silent) && !is_closed(&idle), "a silent connection is evicted first");
        let _its_call = fourth.connection.begin_request(Version::HTTP_11);
        let fifth = admit(5).unwrap();
        assert!(is_closed(&idle));
        let _call_too = fifth.connection.begin_request(Version::HTTP_11);
        assert_eq!(admit(6).err(), Some(Full::InAll));
        assert!(!is_closed(&works) && connections.count() == 3);
        drop((silent, idle));
        assert_eq!(connections.count(), 3, "their slots are taken already");
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let connections = connections(100, Some(2));
        let admit = |last, is_proxy| connections.admit(address(last), is_proxy, false);
        let held: Vec<_> = (0..2).map(|_| admit(1, false).unwrap()).collect();
        let busy: Vec<_> = held.iter().map(|one| one.connection.begin_request(Version::HTTP_11)).collect();
        assert_eq!(admit(1, false).err(), Some(Full::Address));
        assert!(admit(2, false).is_ok() && admit(1, true).is_ok());
        drop(busy);
        let _third = admit(1, false).unwrap();
        assert!(
            is_closed(&held[0]) && !is_closed(&held[1]),
            "the one of this address that is idle longest is evicted"
        );
        drop(held);
        assert!(connections.lock().of_address.len() == 1);
    }

    #[test]
    fn each_state_has_its_timeout() {
        let connections = connections(100, None);
        let admitted = connections.admit(address(1), false, true).unwrap();
        let connection = &admitted.connection;
        let later = |seconds| Instant::now() + Duration::from_secs(seconds);
        let overdue = |seconds| connections.overdue(connection, later(seconds));
        assert_eq!((overdue(9), overdue(11)), (None, Some("handshake")));
        connection.shook_hands();
        assert_eq!((overdue(9), overdue(11)), (None, Some("head")));
        let call = connection.begin_request(Version::HTTP_11);
        assert_eq!(overdue(100_000), None, "a stream may last");
        connection.set_blocked(true);
        assert_eq!((overdue(29), overdue(31)), (None, Some("send")));
        connection.set_blocked(false);
        drop(call);
        assert_eq!((overdue(99), overdue(101)), (None, Some("idle")));
        connection.received();
        assert_eq!(overdue(11), Some("head"));
        drop(connection.begin_request(Version::HTTP_2));
        connection.received();
        assert_eq!((overdue(99), overdue(101)), (None, Some("idle")), "HTTP/2 has more than requests");
    }
}
