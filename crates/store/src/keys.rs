//! The rows of keys, and of their ends that are to be told: folds of their journals.

use crate::ShardId;
use steadfast_kernel::key::Below;
use steadfast_kernel::{Attempt, Callback, Failure, Held, Key, KeyName, Revision, Target, Timestamp};

/// A key as reads and lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRow {
    /// The shard it lives in.
    pub shard: ShardId,
    /// Its name.
    pub key: KeyName,
    /// What it holds, or held.
    pub held: Held,
    /// It is gone since then, and the row is left for the sake of keys below it. Lists do not show it.
    pub ended_at: Option<Timestamp>,
    /// A directory of that name, this one or one before it, has ended, and keys below it may still be there.
    pub ended_below: Option<EndedBelow>,
}

/// The end of a directory. Of several the last counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedBelow {
    /// When.
    pub at: Timestamp,
    /// It was deleted; it expired if not.
    pub deleted: bool,
}

impl KeyRow {
    /// Whether it may be shown, as far as it depends on itself.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && !self.held.is_over(now)
    }

    /// Whether that key has ended with this one, or with one of its name before it, though it may not be on record yet.
    pub fn ends(&self, other: &KeyRow, now: Timestamp) -> bool {
        self.end_of(other, now).is_some()
    }

    /// The end that a key has had with this one, or with one of its name before it, though it may not be on record yet.
    pub fn end_of(&self, other: &KeyRow, now: Timestamp) -> Option<EndedBelow> {
        let is_over = self.ended_at.is_none() && self.held.directory && self.held.is_over(now);
        let over = is_over.then_some(EndedBelow { at: self.held.expires_at, deleted: false });
        self.ended_below.max(over).filter(|ended| other.held.put_at <= ended.at)
    }
}

/// A key put or removed.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyChange {
    /// It is there; it replaces one of the same name.
    Put(Box<KeyRow>),
    /// It is gone.
    Remove(KeyName),
}

impl KeyChange {
    /// A rough number of bytes beyond the fixed ones.
    pub(crate) fn size(&self) -> usize {
        match self {
            KeyChange::Put(row) => row.held.size(),
            KeyChange::Remove(_) => 0,
        }
    }
}

/// An end that is to be told, as lists show it. Its bytes are in the journal of its key.
#[derive(Clone, Debug, PartialEq)]
pub struct CallbackRow {
    /// The shard of its key.
    pub shard: ShardId,
    /// The key.
    pub key: KeyName,
    /// The revision that ended.
    pub revision: Revision,
    /// When its time was over.
    pub ended_at: Timestamp,
    /// Who is told, for people: an address without its query, `run WORKFLOW`, `handler`, or `keys below`, which may be followed by one of these.
    pub target: String,
    /// The attempt to come, or in flight.
    pub attempt: Attempt,
    /// When it is due; nothing if it is the first one, which is due at once.
    pub next_at: Option<Timestamp>,
    /// How many attempts there are in all, once one has failed.
    pub of: Option<Attempt>,
    /// What came of the attempt before it.
    pub failure: Option<Failure>,
}

impl CallbackRow {
    fn of(shard: ShardId, key: &KeyName, callback: &Callback) -> Self {
        let failed = callback.failed.as_ref();
        CallbackRow {
            shard,
            key: key.clone(),
            revision: callback.revision,
            ended_at: callback.ended_at,
            target: shown(callback),
            attempt: callback.attempt,
            next_at: failed.map(|failed| failed.due_at),
            of: failed.map(|failed| failed.of),
            failure: failed.map(|failed| failed.failure.clone()),
        }
    }
}

/// An address may have a secret in its query.
fn shown(callback: &Callback) -> String {
    let target = match &callback.target {
        Some(Target::Url(url)) => url.split(['?', '#']).next().unwrap_or_default().to_string(),
        Some(Target::StartRun { workflow, .. }) => format!("run {workflow}"),
        Some(Target::Handler) => "handler".into(),
        None => return "keys below".into(),
    };
    if callback.below.is_some() { format!("keys below, then {target}") } else { target }
}

/// An end that is to be told put or removed.
#[derive(Clone, Debug, PartialEq)]
pub enum CallbackChange {
    /// It is there; it replaces one of the same key and revision.
    Put(Box<CallbackRow>),
    /// It is told, or a dead letter.
    Remove(KeyName, Revision),
}

/// Which ends of keys a list shows: those to which all of it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallbackFilter {
    /// Of keys of that shard.
    pub shard: Option<ShardId>,
    /// Of keys whose names begin so; of all if it is empty.
    pub prefix: String,
    /// Only those whose first attempt is due at once: nobody else remembers them.
    pub first: bool,
}

impl CallbackFilter {
    /// Whether it lets that one through. What a store answers must agree with this.
    pub fn lets_through(&self, row: &CallbackRow) -> bool {
        self.shard.is_none_or(|shard| row.shard == shard)
            && row.key.as_str().starts_with(&self.prefix)
            && (!self.first || row.next_at.is_none())
    }
}

/// The place of an end in lists: those that have waited for longest come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallbackCursor {
    /// When its time was over.
    pub ended_at: Timestamp,
    /// The key.
    pub key: KeyName,
    /// The revision.
    pub revision: Revision,
}

impl From<&CallbackRow> for CallbackCursor {
    fn from(row: &CallbackRow) -> Self {
        CallbackCursor { ended_at: row.ended_at, key: row.key.clone(), revision: row.revision }
    }
}

/// What of the rows changes when a key goes from one state to another.
pub fn key_changes(shard: ShardId, before: Option<&Key>, after: &Key) -> (Vec<KeyChange>, Vec<CallbackChange>) {
    (key_change(shard, before, after).into_iter().collect(), callback_changes(shard, before, after))
}

/// A row is there while the key is, and while keys below it may be that have ended with it.
fn key_change(shard: ShardId, before: Option<&Key>, after: &Key) -> Option<KeyChange> {
    let held = before.and_then(|key| key.held.as_ref());
    let (was_ending, ended_below) = (before.and_then(ended_below), ended_below(after));
    let put = |held: &Held, ended_at| {
        KeyChange::Put(Box::new(KeyRow { shard, key: after.name.clone(), held: held.clone(), ended_at, ended_below }))
    };
    match (held, &after.held) {
        (before, Some(after)) => (before != Some(after) || was_ending != ended_below).then(|| put(after, None)),
        (Some(held), None) if ended_below.is_some() => {
            let ended_at = after.callbacks.get(&held.revision).map(|callback| callback.ended_at);
            Some(put(held, ended_at.or_else(|| ended_below.map(|ended| ended.at))))
        }
        (None, None) if ended_below.is_some() || was_ending.is_none() => None, // what it held is not known any more, and the row says enough
        (_, None) => Some(KeyChange::Remove(after.name.clone())),
    }
}

/// When the last directory of that name ended of those below which keys may still be there.
fn ended_below(key: &Key) -> Option<EndedBelow> {
    let ended = |callback: &Callback| Some(EndedBelow { at: callback.ended_at, deleted: callback.below? == Below::Delete });
    key.callbacks.values().filter_map(ended).max()
}

fn callback_changes(shard: ShardId, before: Option<&Key>, after: &Key) -> Vec<CallbackChange> {
    let earlier = |revision| before.and_then(|key| key.callbacks.get(revision));
    let gone = before
        .into_iter()
        .flat_map(|key| key.callbacks.keys())
        .filter(|revision| !after.callbacks.contains_key(revision));
    let gone = gone.map(|revision| CallbackChange::Remove(after.name.clone(), *revision));
    let put = after.callbacks.values().filter(|callback| earlier(&callback.revision) != Some(callback));
    let put = put.map(|callback| CallbackChange::Put(Box::new(CallbackRow::of(shard, &after.name, callback))));
    gone.chain(put).collect()
}
