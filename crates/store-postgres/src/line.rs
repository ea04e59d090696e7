//! Batches that wait, as far as they can be one transaction.

use std::collections::BTreeSet;
use steadfast_kernel::EntityId;
use steadfast_store::{Batch, Error};
use tokio::sync::oneshot;

/// How much one transaction has at most, about.
const BYTES_MAX: usize = 8 << 20;
/// How many batches it has at most: if one of them is refused, they are tried one by one.
const BATCHES_MAX: usize = 512;

/// Tells whoever waits what became of a batch.
pub(crate) type Answer = oneshot::Sender<Result<(), Error>>;

/// Batches for one transaction, in their order.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) batches: Vec<Batch>,
    pub(crate) answers: Vec<Answer>,
    bytes: usize,
    /// Journals of which something is removed after all else.
    forgotten: BTreeSet<EntityId>,
}

impl Group {
    /// Whether that one can be in the same transaction: not if it goes on with something that is removed only at the end of it.
    pub(crate) fn takes(&self, next: &Batch) -> bool {
        let goes_on = || {
            let appended = next.events.iter().map(|append| &append.entity);
            appended
                .chain(next.snapshots.iter().map(|snapshot| &snapshot.entity))
                .any(|entity| self.forgotten.contains(entity))
        };
        let has_room = self.bytes < BYTES_MAX && self.batches.len() < BATCHES_MAX;
        has_room && (self.forgotten.is_empty() || !goes_on())
    }

    pub(crate) fn add(&mut self, batch: Box<Batch>, answer: Answer) {
        self.bytes += batch.size();
        self.forgotten.extend(batch.forgotten.iter().map(|forgotten| forgotten.entity.clone()));
        self.batches.push(*batch);
        self.answers.push(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::Snapshot;
    use steadfast_store::Forgotten;

    #[test]
    fn what_goes_on_with_a_forgotten_journal_waits_for_another_transaction() {
        let entity = |id: &str| EntityId::from_stored(id).unwrap();
        let saved = |id: &str| Snapshot { entity: entity(id), seq: 1, fold: 1, state: vec![].into() };
        let mut group = Group::default();
        let forgotten = vec![Forgotten { entity: entity("key:a"), before: Some(3) }];
        group.add(Box::new(Batch { forgotten, ..Batch::default() }), oneshot::channel().0);
        let of = |id: &str| Batch { snapshots: vec![saved(id)], ..Batch::default() };
        assert!(group.takes(&of("key:b")) && !group.takes(&of("key:a")));
    }
}
