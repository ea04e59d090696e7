//! What one entity tells another is kept until it is heard, and counts once. The outbox holds the last messages of each pair, as they were said; of those
//! before them nothing more can come.
//!
//! Subject: `crates/runtime/src/shard/relay.rs`.

use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::{Command, EntityId, Envelope, Message, Timestamp, machine};

pub(super) fn holds(now: &World, _before: &World) {
    let unsettled: BTreeMap<(&EntityId, u64), &Envelope> =
        now.outbox.iter().map(|envelope| ((&envelope.from, envelope.seq), envelope)).collect();
    let mut said = BTreeSet::new();
    for history in now.entities.values() {
        let mut in_line: BTreeSet<&EntityId> = BTreeSet::new();
        for envelope in &history.said {
            said.insert((&envelope.from, envelope.seq));
            match unsettled.get(&(&envelope.from, envelope.seq)) {
                Some(kept) => {
                    assert_eq!(*kept, envelope, "it is kept as it was said");
                    in_line.insert(&envelope.to);
                }
                None => {
                    assert!(!in_line.contains(&envelope.to), "{envelope:?} is settled before the one that was said before it");
                    assert!(was_heard(now, envelope), "{envelope:?} is settled and was not heard");
                }
            }
        }
    }
    for envelope in &now.outbox {
        assert!(said.contains(&(&envelope.from, envelope.seq)), "nobody has said {envelope:?}");
    }
    for (id, history) in &now.entities {
        let mut heard = BTreeSet::new();
        for entry in history.journal.iter().filter(|entry| entry.seq == 1 || entry.heard.is_some()) {
            let Some(message) = &entry.heard else { continue };
            assert!(heard.insert((&message.from, message.seq)), "{id} has heard {message:?} twice");
            assert!(said.contains(&(&message.from, message.seq)), "{id} has heard {message:?}, and nobody said it");
        }
    }
}

/// Whether nothing would come of it if it were said again. A limit forgets who has left it; there its journal tells.
fn was_heard(now: &World, envelope: &Envelope) -> bool {
    let history = now.entities.get(&envelope.to);
    let on_record = |seq: u64| {
        let heard = history.iter().flat_map(|history| &history.journal).filter_map(|entry| entry.heard.as_ref());
        heard.into_iter().any(|heard| heard.from == envelope.from && heard.seq == seq)
    };
    match &envelope.message {
        Message::RequestSlot { .. } | Message::ReleaseSlot { .. } | Message::PostLetter(_) => on_record(envelope.seq),
        _ => {
            let command = Command::Hear(Box::new(envelope.clone()));
            let decision = machine::decide(&envelope.to, history.map(|history| &history.state), command, Timestamp::MAX);
            decision.is_ok_and(|decision| decision.entries.is_empty())
        }
    }
}

pub(super) fn holds_at_the_end(world: &World) {
    assert_eq!(world.outbox, [], "everything is heard");
}
