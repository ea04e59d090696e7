//! What one commit makes durable: whole, or absent.

use crate::{CallbackChange, KeyChange, LockChange, PlanRow, ShardId, TaskRow, text};
use std::collections::BTreeSet;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{
    EntityId, Entry, Envelope, Event, Failure, LetterAbout, LetterHome, LetterId, Record, Run, RunId, Seq, Snapshot, Status, Timer,
    TimerName, Timestamp, Wait, WorkflowName,
};

/// One durable commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// One per shard concerned.
    pub fences: Vec<Fence>,
    /// Journal entries; those of one entity are in order.
    pub events: Vec<Append>,
    /// Rows put; a later one of the same run replaces an earlier one.
    pub runs: Vec<RunRow>,
    /// Timers armed and disarmed, applied in order.
    pub timers: Vec<TimerChange>,
    /// Messages added and settled, applied in order.
    pub outbox: Vec<OutboxChange>,
    /// Dead letters put and removed, applied in order.
    pub letters: Vec<LetterChange>,
    /// Keys put and removed, applied in order.
    pub keys: Vec<KeyChange>,
    /// Ends of keys that are to be told put and removed, applied in order.
    pub callbacks: Vec<CallbackChange>,
    /// Rows of plans put; a later one of the same plan replaces an earlier one.
    pub plans: Vec<PlanRow>,
    /// Locks put and removed, applied in order.
    pub locks: Vec<LockChange>,
    /// Saved folds; a later one of the same entity replaces an earlier one.
    pub snapshots: Vec<Snapshot>,
    /// Journals that need not be kept, removed after everything else of the batch was applied.
    pub forgotten: Vec<Forgotten>,
    /// Texts of definitions; one that is there already stays as it is. They belong to no shard: a batch that has nothing else needs no fence.
    pub definitions: Vec<Definition>,
}

/// The text of a definition, kept for as long as the store so that a run can go on with the version that it began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What tells it from all others: SHA-256 of the text, in hexadecimal.
    pub hash: String,
    /// The workflow that it defines.
    pub workflow: WorkflowName,
    /// As it came.
    pub text: String,
    /// When it was first seen.
    pub kept_at: Timestamp,
}

/// A journal, or the beginning of one, that need not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// Whose.
    pub entity: EntityId,
    /// The entries before that one; all of them, and what was saved of it, if there is none.
    pub before: Option<Seq>,
}

/// Who writes a shard, and which of its batches these are: applied only if the shard stands at (`term`, `after`), which then is (`term`, `upto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The shard.
    pub shard: ShardId,
    /// The writer's claim.
    pub term: u64,
    /// The number of the shard's batch before this one.
    pub after: u64,
    /// The number of the last batch in this one.
    pub upto: u64,
}

/// A journal entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    /// The shard of its entity.
    pub shard: ShardId,
    /// Whose journal.
    pub entity: EntityId,
    /// The entry.
    pub record: Record,
}

/// What lists and recovery need to know of a run without reading its journal. Put when it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// The shard it lives in.
    pub shard: ShardId,
    /// Its id.
    pub run: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Its status.
    pub status: Status,
    /// The reason of its primary wait, if nothing of it moves now.
    pub wait: Option<String>,
    /// What people look for: why it, or a step that is tried again, failed, and what it said last of how far it has come;
    /// [`TEXT_MAX`](crate::TEXT_MAX) bytes of it at most.
    pub text: Option<String>,
    /// What a restart has to do with it; with one that is RUNNING it always has something to do.
    pub recover: Option<Recover>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What else is known of it if it is a task.
    pub task: Option<TaskRow>,
}

impl RunRow {
    /// The row of a run in that state.
    pub fn of(shard: ShardId, run: &Run) -> Self {
        let waits = if run.is_waiting() { run.waits() } else { Vec::new() };
        let failed = run.ended().and_then(|ended| ended.outcome.as_ref().err());
        let tried_again = waits
            .iter()
            .filter_map(|wait| if let Wait::Backoff { failure, .. } = wait { Some(failure) } else { None });
        let failures = failed.into_iter().chain(tried_again).map(|failure| failure.message.as_str());
        let note = run.note.as_deref().filter(|_| failed.is_none());
        RunRow {
            shard,
            run: run.id.clone(),
            workflow: run.workflow.clone(),
            tenant: run.options.tenant.clone(),
            status: run.status(),
            wait: waits.first().map(|wait| wait.reason().to_string()),
            text: text::of(failures, note),
            recover: run.recover(),
            started_at: run.started_at,
            ended_at: run.ended().map(|ended| ended.at),
            task: TaskRow::of(run),
        }
    }
}

/// A message added or settled.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "none lives longer than its commit")]
pub enum OutboxChange {
    /// It is to be delivered; it replaces one of the same sender and sequence.
    Add {
        /// The shard of its sender.
        shard: ShardId,
        /// The message.
        envelope: Envelope,
    },
    /// It was heard: it is removed, if it is there. The shard of its sender settles it, under its own fence.
    Settle {
        /// Who said it.
        from: EntityId,
        /// Its place in the sender's outbox.
        seq: u64,
    },
}

/// What lists need to know of a dead letter; its bytes are in the journal of its box, route or key.
#[derive(Clone, Debug, PartialEq)]
pub struct LetterRow {
    /// The shard of its box, route or key.
    pub shard: ShardId,
    /// Its id.
    pub letter: LetterId,
    /// What it is about.
    pub about: LetterAbout,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Why.
    pub failure: Failure,
    /// Since when.
    pub added_at: Timestamp,
}

/// A dead letter put or removed.
#[derive(Clone, Debug, PartialEq)]
pub enum LetterChange {
    /// It is there.
    Put(LetterRow),
    /// If it is there, that is why now.
    Fail(LetterId, Failure),
    /// It is gone.
    Remove(LetterId),
}

impl LetterChange {
    /// What an entry of a letter box, a route or a key changes.
    pub fn of(shard: ShardId, entity: &EntityId, entry: &Entry) -> Option<Self> {
        let home = LetterHome::of(entity)?;
        let id = |seq| LetterId { home: home.clone(), seq };
        match &entry.event {
            Event::LetterAdded(letter) => Some(LetterChange::Put(LetterRow {
                shard,
                letter: id(entry.seq),
                about: letter.about.clone(),
                tenant: letter.tenant.clone(),
                failure: letter.failure.clone(),
                added_at: entry.at,
            })),
            Event::LetterRedriven { letter, .. } | Event::LetterDropped { letter, .. } => Some(LetterChange::Remove(id(*letter))),
            Event::LetterFailed { letter, failure, .. } => Some(LetterChange::Fail(id(*letter), failure.clone())),
            _ => None,
        }
    }
}

/// A timer armed or disarmed.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerChange {
    /// Put it; it replaces one of the same entity and name.
    Arm {
        /// The shard of its entity.
        shard: ShardId,
        /// The timer.
        timer: Timer,
    },
    /// Remove it, if it is there.
    Disarm {
        /// Whose it is.
        entity: EntityId,
        /// Which one.
        name: TimerName,
    },
}

impl Batch {
    /// Whether that batch can be merged into this one: not if it goes on with a journal that this one removes.
    pub fn takes(&self, next: &Batch) -> bool {
        let mut removed = self.forgotten.iter().filter(|forgotten| forgotten.before.is_none()).peekable();
        if removed.peek().is_none() {
            return true;
        }
        let goes_on: BTreeSet<_> = next.events.iter().map(|append| &append.entity).collect();
        !removed.any(|forgotten| goes_on.contains(&forgotten.entity))
    }

    /// Adds a batch that follows on from this one and that it [`takes`](Self::takes). Batches of one shard are merged in their order.
    pub fn merge(&mut self, next: Batch) {
        for fence in next.fences {
            match self.fences.iter_mut().find(|mine| mine.shard == fence.shard && mine.term == fence.term) {
                Some(mine) if mine.upto == fence.after => mine.upto = fence.upto,
                _ => self.fences.push(fence),
            }
        }
        self.events.extend(next.events);
        self.runs.extend(next.runs);
        self.timers.extend(next.timers);
        self.outbox.extend(next.outbox);
        self.letters.extend(next.letters);
        self.keys.extend(next.keys);
        self.callbacks.extend(next.callbacks);
        self.plans.extend(next.plans);
        self.locks.extend(next.locks);
        self.snapshots.extend(next.snapshots);
        self.forgotten.extend(next.forgotten);
        self.definitions.extend(next.definitions);
    }

    /// A rough number of bytes, for bounding how much is merged.
    pub fn size(&self) -> usize {
        let event = |append: &Append| 128 + append.record.body.len() + append.record.payload.as_ref().map_or(0, |payload| payload.len());
        let message = |change: &OutboxChange| match change {
            OutboxChange::Add { envelope, .. } => 128 + envelope.message.size(),
            OutboxChange::Settle { .. } => 128,
        };
        let rows = 128 * (self.timers.len() + self.forgotten.len() + self.locks.len());
        let texts = |texts: &[Option<&str>]| 128 + texts.iter().flatten().map(|text| text.len()).sum::<usize>();
        let runs = self.runs.iter().map(|row| texts(&[row.text.as_deref(), row.tenant.as_deref()])).sum::<usize>();
        let plans = self.plans.iter().map(|row| texts(&[row.why.as_deref(), Some(&row.definition)])).sum::<usize>();
        let letters = self.letters.iter().map(|change| match change {
            LetterChange::Put(row) => texts(&[Some(&row.failure.message), row.tenant.as_deref()]),
            LetterChange::Fail(_, failure) => texts(&[Some(&failure.message)]),
            LetterChange::Remove(_) => texts(&[]),
        });
        let callbacks = self.callbacks.iter().map(|change| match change {
            CallbackChange::Put(row) => texts(&[row.failure.as_ref().map(|failure| failure.message.as_str()), Some(&row.target)]),
            CallbackChange::Remove(..) => texts(&[]),
        });
        let rows = rows + runs + plans + letters.sum::<usize>() + callbacks.sum::<usize>();
        let keys = self.keys.iter().map(|change| 128 + change.size()).sum::<usize>();
        let saved = self.snapshots.iter().map(|snapshot| 128 + snapshot.state.len()).sum::<usize>();
        let definitions = self.definitions.iter().map(|definition| 128 + definition.text.len()).sum::<usize>();
        self.events.iter().map(event).sum::<usize>() + self.outbox.iter().map(message).sum::<usize>() + rows + keys + saved + definitions
    }
}
