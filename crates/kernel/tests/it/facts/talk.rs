//! Entities that talk: what one says to another waits until it is heard, and is all that a crash leaves beside the journals.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::machine::{advance, decide};
use steadfast_kernel::{Command, Decision, Entity, EntityId, Entry, Envelope, Message, Record, Refusal, Run, RunId, Timestamp};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Talk {
    pub(super) now: Timestamp,
    pub(super) entities: BTreeMap<EntityId, Entity>,
    pub(crate) journals: BTreeMap<EntityId, Vec<Entry>>,
    /// What was said and is not settled, by sender.
    pub(super) outbox: BTreeMap<EntityId, Vec<Envelope>>,
    /// How much each has said.
    sent: BTreeMap<EntityId, u64>,
}

impl Talk {
    pub(super) fn new(now: Timestamp) -> Self {
        let (entities, journals, outbox, sent) = Default::default();
        Talk { now, entities, journals, outbox, sent }
    }

    pub(super) fn run(&self, id: &RunId) -> Option<&Run> {
        self.entities.get(&EntityId::from(id))?.run()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.entities.values().filter_map(Entity::run)
    }

    /// What can be delivered: the first that each has said to each other.
    pub(super) fn heads(&self) -> Vec<Envelope> {
        let firsts = self.outbox.values().flat_map(|said| {
            let mut seen = BTreeSet::new();
            said.iter().filter(move |envelope| seen.insert(&envelope.to))
        });
        firsts.cloned().collect()
    }

    /// Decides, commits and folds, as the shard of that entity would.
    pub(super) fn tell(&mut self, id: &EntityId, command: Command) -> Result<Result<Decision, Refusal>, TestCaseError> {
        let decided = decide(id, self.entities.get(id), command, self.now);
        if let Ok(Decision { entries, .. }) = &decided {
            for entry in entries {
                let (entity, said) =
                    advance(id, self.entities.remove(id), entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
                prop_assert_eq!(entity.seq(), entry.seq);
                let first = numbered_from(&entity);
                let sent = self.sent.entry(id.clone()).or_default();
                for envelope in &said {
                    *sent += 1;
                    prop_assert_eq!((&envelope.from, envelope.seq), (id, first + *sent), "what is said is counted");
                }
                self.outbox.entry(id.clone()).or_default().extend(said);
                self.journals.entry(id.clone()).or_default().push(entry.clone());
                self.entities.insert(id.clone(), entity);
            }
        }
        Ok(decided)
    }

    /// It was heard, and is not said again.
    pub(super) fn settle(&mut self, from: &EntityId, seq: u64) {
        self.outbox.entry(from.clone()).or_default().retain(|other| other.seq != seq);
    }

    /// All that is known is what the journals say, and what was said and not settled is said again.
    pub(super) fn crash(&mut self) -> TestCaseResult {
        let entities = std::mem::take(&mut self.entities);
        for (id, journal) in &self.journals {
            let mut state = None;
            for entry in journal {
                let entry = Entry::try_from(&Record::from(entry)).map_err(|unreadable| TestCaseError::fail(unreadable.to_string()))?;
                state = Some(advance(id, state, &entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?.0);
            }
            self.entities.extend(state.map(|state| (id.clone(), state)));
        }
        prop_assert_eq!(&self.entities, &entities, "state is the fold of its entries");
        for envelope in self.outbox.values_mut().flatten() {
            let message = Message::decode(envelope.message.kind(), &envelope.message.encode());
            prop_assert_eq!(message.as_ref(), Some(&envelope.message), "the store keeps every message as it is");
        }
        Ok(())
    }
}

/// Where the counting of what an entity says begins.
fn numbered_from(entity: &Entity) -> u64 {
    match entity {
        Entity::Run(run) => run.numbered_from(),
        Entity::Plan(plan) => u64::try_from(plan.created_at.as_micros()).unwrap_or_default(),
        _ => 0,
    }
}
