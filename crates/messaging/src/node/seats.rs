//! Places among the connections of a node, from before the other side has said hello until the connection is over.

use super::Inner;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Code, Failure};

/// What one address may have, as a multiple of what is free: alone it gets four fifths, and whoever comes from elsewhere always finds some.
const SHARE: usize = 4;

/// How long somebody waits who was refused because there are too many.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The places that are taken.
#[derive(Default)]
pub(super) struct Seats(Mutex<State>);

#[derive(Default)]
struct State {
    all: usize,
    /// Those that others have taken, by where they come from.
    hosts: HashMap<Arc<str>, usize>,
}

/// A place among the connections; free again when it is dropped.
pub(super) struct Seat {
    node: Weak<Inner>,
    host: Option<Arc<str>>,
}

impl Seat {
    /// A place for a connection that this side makes, or for one from that address.
    ///
    /// # Errors
    /// If there are too many, or too many from there, or the node has ended.
    pub(super) fn take(node: &Arc<Inner>, from: Option<&str>) -> Result<Self, Failure> {
        if node.closed.is_cancelled() {
            return Err(node.is_ending());
        }
        let host: Option<Arc<str>> = from.map(|address| host(address).into());
        let mut state = node.seats.0.lock();
        let free = node.limits.connections_max.saturating_sub(state.all);
        let mine = host.as_ref().and_then(|host| state.hosts.get(host).copied()).unwrap_or(0);
        if free == 0 || mine >= SHARE * free {
            let what = if free == 0 { "" } else { " from where this one comes" };
            let message = format!("there are too many connections to {}{what}", node.name);
            return Err(Failure::new(Code::ResourceExhausted, message).retry_after(RETRY_AFTER));
        }
        state.all += 1;
        if let Some(host) = &host {
            *state.hosts.entry(Arc::clone(host)).or_default() += 1;
        }
        Ok(Seat { node: Arc::downgrade(node), host })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(node) = self.node.upgrade() else { return };
        let mut state = node.seats.0.lock();
        state.all -= 1;
        if let Some(host) = &self.host
            && let Some(mine) = state.hosts.get_mut(host)
        {
            *mine -= 1;
            if *mine == 0 {
                state.hosts.remove(host);
            }
        }
    }
}

/// An address without its port.
fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Node};

    #[test]
    fn one_address_leaves_a_fifth_to_others_and_what_is_given_back_is_free() {
        let limits = Limits { connections_max: 10, ..Limits::default() };
        let node = Node::builder().limits(limits).build().unwrap().inner;
        let take = |from: &str| Seat::take(&node, Some(from));
        let many: Vec<_> = (1..).map(|port| take(&format!("10.0.0.1:{port}"))).take_while(Result::is_ok).collect();
        assert_eq!(many.len(), 8);
        let failure = take("10.0.0.1:9").err().unwrap();
        assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(RETRY_AFTER)));
        let (other, mine) = (take("[::1]:1").ok().unwrap(), Seat::take(&node, None).ok().unwrap());
        assert!(take("10.0.0.3:1").is_err() && Seat::take(&node, None).is_err(), "all are taken");
        drop((many, other));
        let counts = || {
            let state = node.seats.0.lock();
            (state.all, state.hosts.len())
        };
        assert_eq!(counts(), (1, 0));
        drop(mine);
        assert_eq!(counts(), (0, 0));
    }
}
