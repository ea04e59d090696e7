//! Places among the connections of a node, from before the other side has said hello until the connection is over.

use super::Inner;
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
    /// A place for a connection that this side makes, or for one from that address.
    ///
    /// # Errors
    /// If there are too many, or too many from there, or the node has ended.
    pub(super) fn take(node: &Inner, from: Option<&str>) -> Result<Self, Failure> {
        if node.closed.is_cancelled() {
            return Err(node.is_ending());
        }
        let too_many = |full: Full| {
            let what = if full == Full::All { "" } else { " from where this one comes" };
            let message = format!("there are too many connections to {}{what}", node.name);
            Failure::new(Code::ResourceExhausted, message).retry_after(RETRY_AFTER)
        };
        let place = node.seats.take(from.map(|address| host(address).into())).map_err(too_many)?;
        Ok(Seat { _place: place })
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
