//! The sequences of a journal count from 1 without a gap.

use crate::world::World;

pub(super) fn holds(now: &World, _before: &World) {
    for (id, history) in &now.entities {
        let counted = history.journal.iter().map(|entry| entry.seq).eq(1..=history.journal.len() as u64);
        assert!(counted, "the journal of {id} has a gap: {:?}", history.journal);
    }
}
