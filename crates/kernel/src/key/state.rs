//! What is known of a key: the fold of its journal.

use super::{OWED_BYTES_MAX, OWED_MAX};
use crate::{
    Attempt, Effect, Entry, Event, Failure, KeyName, Payload, Refusal, Revision, Seq, Timer, TimerName, Timestamp, WorkflowName, backoff,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A key: the fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Its name.
    pub name: KeyName,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// The last revision that it has had; the next one is higher, also if it is gone.
    pub revision: Revision,
    /// What it holds; nothing if it is gone.
    pub held: Option<Held>,
    /// Ends that are still to be told, by the revision that ended.
    pub callbacks: BTreeMap<Revision, Callback>,
    /// Ends that nobody will tell by itself, by the sequence of the letter.
    pub letters: BTreeMap<Seq, Callback>,
    /// An entry that says all there was to be known: the journal may begin here.
    pub base: Seq,
    /// The commands on letters that were carried out, with the letter and what was done, as long as what they came with is kept.
    pub commands: Vec<String>,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Which change of it.
    pub revision: Revision,
    /// Its value.
    pub value: Payload,
    /// For how long it lives.
    pub ttl: Duration,
    /// Until then.
    pub expires_at: Timestamp,
    /// Who may change it; everybody if there is none.
    pub owner: Option<String>,
    /// The keys below it end with it.
    pub directory: bool,
    /// Who is told of its expiry.
    pub on_expire: Option<Target>,
    /// When it was put.
    pub put_at: Timestamp,
}

/// Who is told of an expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// Whoever answers there.
    Url(String),
    /// A run that is started for it.
    StartRun {
        /// The code it executes.
        workflow: WorkflowName,
        /// What the code is given.
        input: Payload,
    },
    /// A handler of the process.
    Handler,
}

impl Target {
    fn size(&self) -> usize {
        match self {
            Target::Url(url) => url.len(),
            Target::StartRun { input, .. } => input.len(),
            Target::Handler => 0,
        }
    }
}

/// An end that is to be told: item `KEY/REVISION` of the outbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Callback {
    /// The revision that ended.
    pub revision: Revision,
    /// The value that it had.
    pub value: Payload,
    /// The owner that it had.
    pub owner: Option<String>,
    /// When its time was over.
    pub ended_at: Timestamp,
    /// Who is told; nobody if only the keys below it have to end.
    pub target: Option<Target>,
    /// What happens to the keys below it first.
    pub below: Option<Below>,
    /// The attempt to come, or in flight.
    pub attempt: Attempt,
    /// What came of the attempt before it, and when the next one is due.
    pub failed: Option<Failed>,
}

/// What happens to the keys below a directory that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Below {
    /// They expire, too.
    Expire,
    /// They are removed, too.
    Delete,
}

/// A failed attempt to tell of an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// Why.
    pub failure: Failure,
    /// When the next attempt is due.
    pub due_at: Timestamp,
    /// The sequence of the entry that says so.
    pub seq: Seq,
    /// How many attempts there are in all.
    pub of: Attempt,
}

impl Held {
    /// A rough number of bytes beyond the fixed ones.
    pub fn size(&self) -> usize {
        self.value.len() + self.on_expire.as_ref().map_or(0, Target::size)
    }

    /// Its time is over, whether or not that is on record.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Whether that owner may change it.
    pub(super) fn check_owner(&self, key: &KeyName, owner: Option<&str>) -> Result<(), Refusal> {
        match self.owner.as_deref() {
            None => Ok(()),
            mine if mine == owner => Ok(()),
            Some(_) => Err(Refusal::KeyOwned { key: key.clone() }),
        }
    }

    /// Whether that is the revision that somebody expects.
    pub(super) fn check_revision(&self, key: &KeyName, expected: Option<Revision>) -> Result<(), Refusal> {
        match expected {
            Some(expected) if expected != self.revision => Err(Refusal::KeyChanged { key: key.clone(), revision: Some(self.revision) }),
            _ => Ok(()),
        }
    }
}

impl Key {
    /// What it holds, if its time is not over.
    pub fn live(&self, now: Timestamp) -> Option<&Held> {
        self.held.as_ref().filter(|held| !held.is_over(now))
    }

    /// What it holds, if its time is not over.
    pub(super) fn live_of<'a>(name: &KeyName, key: Option<&'a Key>, now: Timestamp) -> Result<(&'a Key, &'a Held), Refusal> {
        key.and_then(|key| Some((key, key.live(now)?)))
            .ok_or_else(|| Refusal::KeyNotFound { key: name.clone() })
    }

    /// Nothing of it has to be known any more.
    pub(super) fn is_spent(&self) -> bool {
        self.held.is_none() && self.has_told_all()
    }

    /// So much is to be told of earlier ends that it takes no other value.
    pub(super) fn owes_too_much(&self) -> bool {
        let bytes: usize = self.callbacks.values().chain(self.letters.values()).map(|owed| owed.value.len()).sum();
        self.callbacks.len() + self.letters.len() >= OWED_MAX || bytes > OWED_BYTES_MAX
    }

    /// There is nothing to be told of earlier ends.
    pub(super) fn has_told_all(&self) -> bool {
        self.callbacks.is_empty() && self.letters.is_empty()
    }

    /// The entry after the last one and `after` more.
    pub(super) fn entry(&self, after: u64, now: Timestamp, event: Event) -> Entry {
        Entry::new(self.seq + 1 + after, 1, now, event)
    }

    /// What is told of the end of what it holds, if anything is.
    pub(super) fn callback(held: &Held, ended_at: Timestamp, target: Option<Target>, below: Below) -> Option<Callback> {
        let below = held.directory.then_some(below);
        (target.is_some() || below.is_some()).then(|| Callback {
            revision: held.revision,
            value: held.value.clone(),
            owner: held.owner.clone(),
            ended_at,
            target,
            below,
            attempt: 1,
            failed: None,
        })
    }

    /// That what it holds has expired.
    pub(super) fn expired(held: &Held, ended_at: Timestamp, handled: bool) -> Option<Callback> {
        let target = held.on_expire.clone().or_else(|| handled.then_some(Target::Handler));
        Key::callback(held, ended_at, target, Below::Expire)
    }

    /// That what it holds was removed.
    pub(super) fn deleted(held: &Held, ended_at: Timestamp) -> Option<Callback> {
        Key::callback(held, ended_at, None, Below::Delete)
    }
}

/// A time to live as the journal keeps it, so that the fold knows the same one live and at recovery.
pub(super) fn whole(ttl: Duration) -> Duration {
    Duration::from_micros(backoff::micros(ttl))
}

/// The timer of a key's end.
pub(super) fn expiry(name: &KeyName, due: Timestamp, revision: Revision) -> Effect {
    Effect::Arm(Timer { entity: crate::EntityId::Key(name.clone()), name: TimerName::Expiry, due, revision })
}
