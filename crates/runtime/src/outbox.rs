//! The outbox relay: what entities have told each other and is not settled, in order per (sender, receiver).
//!
//! ```text
//!   add --> in line --first of its pair--> under way --heard, durable--> to be settled --settled, durable--> gone
//!                        ^                    |
//!                        +--- not heard ------+
//! ```
//!
//! The rows in the store are the truth. A message is settled only after its receiver has made what came of it durable, and the next of its pair is
//! delivered only after that: so a message may come twice, but never after a later one of its pair.
//!
//! Tested by `crates/sdk/tests/it/outbox.rs`.

use std::collections::BTreeMap;
use steadfast_kernel::{EntityId, Envelope};

/// Who speaks to whom.
type Pair = (EntityId, EntityId);

/// The messages that are not settled. Pure: it tells what to deliver, and hears what became of it.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    lines: BTreeMap<Pair, Line>,
    /// Nothing is delivered until the store has said what there is.
    held: bool,
}

#[derive(Debug, Default)]
struct Line {
    messages: BTreeMap<u64, Envelope>,
    under_way: bool,
}

impl Outbox {
    /// Puts a message in line. It may be delivered at once if it is the first of its pair.
    #[must_use]
    pub(crate) fn add(&mut self, envelope: Envelope) -> Option<Envelope> {
        let pair = (envelope.from.clone(), envelope.to.clone());
        let line = self.lines.entry(pair).or_default();
        line.messages.insert(envelope.seq, envelope);
        line.next().filter(|_| !self.held)
    }

    /// It is settled: the next of its pair.
    #[must_use]
    pub(crate) fn settled(&mut self, from: &EntityId, to: &EntityId, seq: u64) -> Option<Envelope> {
        let pair = (from.clone(), to.clone());
        let line = self.lines.get_mut(&pair)?;
        if line.messages.remove(&seq).is_some() {
            line.under_way = false;
        }
        let next = line.next().filter(|_| !self.held);
        if line.messages.is_empty() {
            self.lines.remove(&pair);
        }
        next
    }

    /// Nobody knows what was heard and what there is: nothing is delivered until the store has said so.
    pub(crate) fn hold(&mut self) {
        self.held = true;
    }

    /// That is what there is, perhaps beside what was added meanwhile: everything that is first in its line is to be delivered, again or for the first time.
    #[must_use]
    pub(crate) fn go_on(&mut self, unsettled: Vec<Envelope>) -> Vec<Envelope> {
        for envelope in unsettled {
            let _held = self.add(envelope);
        }
        self.held = false;
        self.lines
            .values_mut()
            .filter_map(|line| {
                line.under_way = false;
                line.next()
            })
            .collect()
    }
}

impl Line {
    fn next(&mut self) -> Option<Envelope> {
        if self.under_way {
            return None;
        }
        let first = self.messages.values().next().cloned();
        self.under_way = first.is_some();
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::{Message, RunId};

    fn entity(id: &str) -> EntityId {
        EntityId::Run(RunId::new(id).unwrap())
    }

    fn message(from: &str, seq: u64, to: &str) -> Envelope {
        Envelope { from: entity(from), seq, to: entity(to), message: Message::GrantSlot { epoch: 1 } }
    }

    #[test]
    fn the_next_of_a_pair_comes_after_the_one_before_it_is_settled() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.add(message("a", 1, "b")), Some(message("a", 1, "b")));
        assert_eq!(outbox.add(message("a", 3, "b")), None);
        assert_eq!(outbox.settled(&entity("a"), &entity("b"), 1), Some(message("a", 3, "b")));
        assert_eq!(outbox.settled(&entity("a"), &entity("b"), 3), None);
        assert!(outbox.lines.is_empty(), "nothing is kept of who has nothing to say");
    }

    #[test]
    fn pairs_do_not_wait_for_each_other() {
        let mut outbox = Outbox::default();
        for envelope in [message("a", 1, "b"), message("a", 2, "c"), message("c", 1, "b")] {
            assert_eq!(outbox.add(envelope.clone()), Some(envelope));
        }
    }

    #[test]
    fn what_was_not_heard_is_delivered_again_and_in_order() {
        let mut outbox = Outbox::default();
        let _under_way = outbox.add(message("a", 2, "b"));
        outbox.hold();
        assert_eq!(outbox.add(message("c", 1, "b")), None, "nothing is delivered meanwhile");
        let first = outbox.go_on(vec![message("a", 1, "b"), message("a", 2, "b")]);
        assert_eq!(first, [message("a", 1, "b"), message("c", 1, "b")], "the store knows of one that was not heard of here");
        assert_eq!(outbox.settled(&entity("a"), &entity("b"), 7), None, "not the one that is under way");
        assert_eq!(outbox.settled(&entity("a"), &entity("b"), 1), Some(message("a", 2, "b")));
    }
}
