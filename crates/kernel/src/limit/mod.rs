//! The limit machine: so many slots, and a line of runs that wait for one.
//!
//! ```text
//!   –, open --RequestSlot--> open    SLOT_REQUESTED, SLOT_GRANTED for whom there is a slot
//!   open    --ReleaseSlot--> open    SLOT_RELEASED, SLOT_GRANTED for who is next
//!   any     --anything else, or heard before--> unchanged
//! ```
//!
//! First come, first served. A run is a member from its request to its release. What a member has said is remembered; a sender's next message comes only
//! after the one before it is settled, so that of who has left nothing but the release can come again, and that changes nothing.
//!
//! Tested by `crates/sdk/tests/it/slots.rs`.
//! Tested by `crates/crash-test/tests/it/facts/no_more_holders_than_slots.rs`.

use crate::machine::{Decision, IllegalTransition, envelopes, illegal};
use crate::{Answer, Command, Effect, EntityId, Entry, Envelope, Epoch, Event, Heard, LimitKey, Message, RunId, Seq, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A limit: the fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// Its key.
    pub key: LimitKey,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// How many messages it has sent.
    pub sent: u64,
    /// How many may hold a slot at once.
    pub slots: u32,
    /// Who holds a slot or waits for one.
    pub members: BTreeMap<RunId, Member>,
    /// Who waits, by the place of the request.
    pub line: BTreeMap<Seq, RunId>,
}

/// A run that holds a slot or waits for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The epoch in which it asked.
    pub epoch: Epoch,
    /// The last message of it that was heard.
    pub heard: u64,
    /// Its place in line; nothing if it holds a slot.
    pub place: Option<Seq>,
}

impl Limit {
    /// How many hold a slot.
    pub fn held(&self) -> usize {
        self.members.len() - self.line.len()
    }

    /// How many are to have a slot before that run, itself included; nothing if it does not wait.
    pub fn position(&self, run: &RunId) -> Option<usize> {
        let place = self.members.get(run)?.place?;
        Some(self.line.range(..=place).count())
    }

    /// The run that is next, if there is a slot for it.
    fn next(&self) -> Option<&RunId> {
        let free = self.held() < self.slots as usize;
        self.line.values().next().filter(|_| free)
    }
}

/// Decides on what a run says.
pub fn decide(state: Option<&Limit>, command: &Command, now: Timestamp) -> Decision {
    let Command::Hear(envelope) = command else { return Decision::answer(Answer::Heard) };
    let EntityId::Run(run) = &envelope.from else { return Decision::answer(Answer::Heard) };
    let member = state.and_then(|limit| limit.members.get(run));
    let event = match &envelope.message {
        Message::RequestSlot { epoch, slots } if member.is_none() => {
            Event::SlotRequested { run: run.clone(), epoch: *epoch, slots: (*slots).max(1) }
        }
        Message::ReleaseSlot { epoch } if member.is_some_and(|member| member.epoch == *epoch && member.heard < envelope.seq) => {
            Event::SlotReleased { run: run.clone() }
        }
        _ => return Decision::answer(Answer::Heard),
    };
    let next = state.map_or(0, |limit| limit.seq) + 1;
    let granted: Vec<_> = granted(state, &event).into_iter().map(|run| Event::SlotGranted { run }).collect();
    let mut entries: Vec<_> = (next..)
        .zip([event].into_iter().chain(granted))
        .map(|(seq, event)| Entry::new(seq, 1, now, event))
        .collect();
    entries[0].heard = Some(Heard { from: envelope.from.clone(), seq: envelope.seq });
    Decision { entries, effects: vec![Effect::Answer(Answer::Heard)] }
}

/// Who gets a slot after that event, in the order of the line.
fn granted(state: Option<&Limit>, event: &Event) -> Vec<RunId> {
    let (held, line) = state.map_or((0, Vec::new()), |limit| (limit.held(), limit.line.values().collect::<Vec<_>>()));
    let holds = |run: &RunId| state.and_then(|limit| limit.members.get(run)).is_some_and(|member| member.place.is_none());
    let (slots, held, comes, goes) = match event {
        Event::SlotRequested { run, slots, .. } => (*slots, held, Some(run), None),
        Event::SlotReleased { run } => (state.map_or(0, |limit| limit.slots), held - usize::from(holds(run)), None, Some(run)),
        _ => return Vec::new(),
    };
    let waiting = line.into_iter().filter(|run| Some(*run) != goes).chain(comes);
    waiting.take((slots as usize).saturating_sub(held)).cloned().collect()
}

/// Folds one entry into the state, and tells what it says to runs.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn advance(key: &LimitKey, state: Option<Limit>, entry: &Entry) -> Result<(Limit, Vec<Envelope>), IllegalTransition> {
    let granted = match (&entry.event, &state) {
        (Event::SlotGranted { run }, Some(limit)) => limit.members.get(run).map(|member| (run.clone(), member.epoch)),
        _ => None,
    };
    let sent = state.as_ref().map_or(0, |limit| limit.sent);
    let said = granted.map(|(run, epoch)| (EntityId::Run(run), Message::GrantSlot { epoch }));
    let said = envelopes(&EntityId::Limit(key.clone()), sent, said.into_iter().collect());
    Ok((evolve(key, state, entry)?, said))
}

/// Folds one entry into the state.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn evolve(key: &LimitKey, state: Option<Limit>, entry: &Entry) -> Result<Limit, IllegalTransition> {
    let wrong = |why: &str| illegal(&EntityId::Limit(key.clone()), entry, why);
    let mut limit =
        state.unwrap_or_else(|| Limit { key: key.clone(), seq: 0, sent: 0, slots: 0, members: BTreeMap::new(), line: BTreeMap::new() });
    if entry.seq != limit.seq + 1 {
        return Err(wrong("an event is missing"));
    }
    match &entry.event {
        Event::SlotRequested { run, epoch, slots } => {
            let heard = entry.heard.as_ref().map_or(0, |heard| heard.seq);
            let member = Member { epoch: *epoch, heard, place: Some(entry.seq) };
            if limit.members.insert(run.clone(), member).is_some() {
                return Err(wrong("the run is a member already"));
            }
            limit.line.insert(entry.seq, run.clone());
            limit.slots = *slots;
        }
        Event::SlotGranted { run } => {
            if limit.next() != Some(run) {
                return Err(wrong("it is not the run's turn"));
            }
            let place = limit.members.get_mut(run).and_then(|member| member.place.take());
            place.and_then(|place| limit.line.remove(&place));
            limit.sent += 1;
        }
        Event::SlotReleased { run } => match limit.members.remove(run) {
            Some(member) => drop(member.place.and_then(|place| limit.line.remove(&place))),
            None => return Err(wrong("the run is no member")),
        },
        _ => return Err(wrong("no such event can happen to a limit")),
    }
    limit.seq = entry.seq;
    Ok(limit)
}
