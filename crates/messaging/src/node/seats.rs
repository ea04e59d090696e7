//! Places among the connections of a node, from before the other side has said hello until the connection is over.

use super::{Connection, Inner, Peer};
use crate::limits::RETRY_AFTER;
use crate::places::{Full, Place, Places};
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};

/// The places that there are, by where those come from who have them.
pub(super) type Seats = Places<Arc<str>>;

/// A place among the connections; free again when it is dropped.
pub(crate) struct Seat {
    _place: Place<Arc<str>>,
}

impl Seat {
    /// A place for a connection that this side makes, or for one from that address. If there is none, a connection of its own that nobody uses makes room.
    ///
    /// # Errors
    /// If there are too many, or too many from there, or the node has ended.
    pub(super) fn take(node: &Inner, from: Option<&str>) -> Result<Self, Failure> {
        if node.is_closed() {
            return Err(node.is_ending());
        }
        let host: Option<Arc<str>> = from.map(|address| host(address).into());
        loop {
            match node.seats.take(host.clone()) {
                Ok(place) => return Ok(Seat { _place: place }),
                Err(full) if (full == Full::All || from.is_none()) && node.give_up_unused() => {}
                Err(full) => return Err(too_many(node, full, from)),
            }
        }
    }
}

fn too_many(node: &Inner, full: Full, from: Option<&str>) -> Failure {
    let name = &node.name;
    let message = match (full, from) {
        (_, None) => format!("{name} has too many connections, and those of its own are all in use"),
        (Full::All, Some(_)) => format!("there are too many connections to {name}"),
        (Full::ForOthers, Some(_)) => format!("there are too many connections to {name} from where this one comes"),
    };
    Failure::new(Code::ResourceExhausted, message).retry_after(RETRY_AFTER)
}

impl Inner {
    /// Gives up the connection of its own that was not used for longest. False if all are in use.
    fn give_up_unused(&self) -> bool {
        let own = |connection: &&Arc<Connection>| matches!(connection.known.peer, Peer::At(_));
        let mut connections: Vec<_> = self.connections.lock().values().filter(own).cloned().collect();
        connections.sort_by_cached_key(|connection| connection.used_at());
        connections.iter().any(|connection| connection.give_up_if_unused())
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
    fn one_address_leaves_some_to_others_and_is_told_when_to_come_again() {
        let limits = Limits { connections_max: 10, ..Limits::default() };
        let node = Node::builder().limits(limits).build().unwrap().inner;
        let take = |from: &str| Seat::take(&node, Some(from));
        let many: Vec<_> = (1..).map(|port| take(&format!("10.0.0.1:{port}"))).take_while(Result::is_ok).collect();
        assert_eq!(many.len(), 8);
        let failure = take("10.0.0.1:9").err().unwrap();
        assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(RETRY_AFTER)));
        let _both = (take("[::1]:1").ok().unwrap(), Seat::take(&node, None).ok().unwrap());
        assert!(take("10.0.0.3:1").is_err() && Seat::take(&node, None).is_err(), "all are taken");
    }
}
