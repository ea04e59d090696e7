//! Records covered cases, and lists those that a comparison still has to cover.

use std::collections::BTreeSet;
use steadfast_store::{
    Batch, CallbackChange, CallbackFilter, Error, KeyChange, LetterChange, LockChange, OutboxChange, Position, Store, TimerChange,
};

/// What has happened, in words.
#[derive(Default)]
pub(super) struct Seen(BTreeSet<String>);

/// What must have happened beside every read, with an answer and without.
const MUST: [&str; 63] = [
    "claim: done",
    "claim: again",
    "commit: applied",
    "commit: fenced",
    "commit: a gap",
    "commit: an event is there already",
    "commit: applied, of both shards",
    "commit: fenced, of both shards",
    "commit: a gap, of both shards",
    "commit: applied, in line",
    "commit: a gap, in line",
    "commit: fenced, in line behind a claim",
    "commit: nobody listens",
    "events: appended",
    "runs put: new",
    "runs put: replaced",
    "timer: armed",
    "timer: replaced",
    "timer: disarmed",
    "timer: disarmed, was not there",
    "message: added",
    "message: replaced",
    "message: settled",
    "message: settled, was not there",
    "letter: put",
    "letter: replaced",
    "letter: failed again",
    "letter: failed, was not there",
    "letter: removed",
    "letter: removed, was not there",
    "key: put",
    "key: replaced",
    "key: removed",
    "key: removed, was not there",
    "callback: put",
    "callback: replaced",
    "callback: removed",
    "callback: removed, was not there",
    "plan: put",
    "plan: replaced",
    "task: put",
    "task: changed",
    "task: of another plan",
    "task: is none any more",
    "task_counts: several",
    "lock: put",
    "lock: replaced",
    "lock: removed",
    "lock: removed, was not there",
    "forgotten: nothing",
    "forgotten: the beginning",
    "forgotten: all",
    "forgotten: the last place",
    "snapshots put: new",
    "snapshots put: replaced",
    "sweep: Gone",
    "sweep: Kept",
    "sweep: fenced",
    "sweep of a plan: Gone",
    "sweep of a plan: Kept",
    "half_swept: nothing",
    "reopened: after a commit",
    "reopened: after a claim",
];

impl Seen {
    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.0.insert(what.into());
    }

    /// A read with an answer, or without.
    pub(super) fn either(&mut self, read: &str, found: bool) {
        self.note(format!("{read}: {}", if found { "found" } else { "nothing" }));
    }

    /// A list, and whether it goes on after its first page.
    pub(super) fn pages<T>(&mut self, read: &str, [first, second]: &[Vec<T>; 2]) {
        self.either(read, !first.is_empty());
        if !second.is_empty() {
            self.note(format!("{read}: another page"));
        }
    }

    /// What came of a commit. What it changes is noted before it is applied.
    pub(super) fn outcome(&mut self, outcome: &Result<(), Error>, how: &str) {
        let what = match outcome {
            Ok(()) => "applied",
            Err(Error::Fenced { .. }) => "fenced",
            Err(Error::Gap { .. }) => "a gap",
            Err(Error::Unavailable { .. }) => "an event is there already",
            Err(error) => panic!("no outcome of a commit: {error}"),
        };
        self.note(format!("commit: {what}{how}"));
    }

    /// What a batch that was applied has changed, in a store that is as it was before it.
    pub(super) async fn changes(&mut self, batch: &Batch, before: &impl Store) {
        if !batch.events.is_empty() {
            self.note("events: appended");
        }
        for row in &batch.runs {
            let there = before.run(&row.run).await.unwrap().is_some();
            self.note(if there { "runs put: replaced" } else { "runs put: new" });
        }
        let timers = [before.timers(0, None, 99).await.unwrap(), before.timers(1, None, 99).await.unwrap()].concat();
        for change in &batch.timers {
            let (entity, name, words) = match change {
                TimerChange::Arm { timer, .. } => (&timer.entity, &timer.name, ["timer: armed", "timer: replaced"]),
                TimerChange::Disarm { entity, name } => (entity, name, ["timer: disarmed, was not there", "timer: disarmed"]),
            };
            self.note(words[usize::from(timers.iter().any(|timer| timer.entity == *entity && timer.name == *name))]);
        }
        let messages = [before.outbox(0, None, 99).await.unwrap(), before.outbox(1, None, 99).await.unwrap()].concat();
        for change in &batch.outbox {
            let (from, seq, words) = match change {
                OutboxChange::Add { envelope, .. } => (&envelope.from, envelope.seq, ["message: added", "message: replaced"]),
                OutboxChange::Settle { from, seq } => (from, *seq, ["message: settled, was not there", "message: settled"]),
            };
            self.note(words[usize::from(messages.iter().any(|message| message.from == *from && message.seq == seq))]);
        }
        for change in &batch.letters {
            let (letter, words) = match change {
                LetterChange::Put(row) => (&row.letter, ["letter: put", "letter: replaced"]),
                LetterChange::Fail(letter, _) => (letter, ["letter: failed, was not there", "letter: failed again"]),
                LetterChange::Remove(letter) => (letter, ["letter: removed, was not there", "letter: removed"]),
            };
            self.note(words[usize::from(before.letter(letter).await.unwrap().is_some())]);
        }
        self.changed_keys(batch, before).await;
        self.changed_plans(batch, before).await;
        self.forgotten(batch, before).await;
        for snapshot in &batch.snapshots {
            let there = before.snapshot(&snapshot.entity).await.unwrap().is_some();
            self.note(if there { "snapshots put: replaced" } else { "snapshots put: new" });
        }
    }

    async fn changed_keys(&mut self, batch: &Batch, before: &impl Store) {
        for change in &batch.keys {
            let (key, words) = match change {
                KeyChange::Put(row) => (&row.key, ["key: put", "key: replaced"]),
                KeyChange::Remove(key) => (key, ["key: removed, was not there", "key: removed"]),
            };
            let there = !before.keys(std::slice::from_ref(key)).await.unwrap().is_empty();
            self.note(words[usize::from(there)]);
        }
        let callbacks = before.callbacks(&CallbackFilter::default(), None, 99).await.unwrap();
        for change in &batch.callbacks {
            let (key, revision, words) = match change {
                CallbackChange::Put(row) => (&row.key, row.revision, ["callback: put", "callback: replaced"]),
                CallbackChange::Remove(key, revision) => (key, *revision, ["callback: removed, was not there", "callback: removed"]),
            };
            self.note(words[usize::from(callbacks.iter().any(|row| row.key == *key && row.revision == revision))]);
        }
    }

    async fn changed_plans(&mut self, batch: &Batch, before: &impl Store) {
        for row in &batch.plans {
            let there = before.plan(&row.plan).await.unwrap().is_some();
            self.note(if there { "plan: replaced" } else { "plan: put" });
        }
        for row in &batch.runs {
            let was = before.run(&row.run).await.unwrap().and_then(|row| row.task);
            match (was, &row.task) {
                (None, Some(_)) => self.note("task: put"),
                (Some(was), Some(is)) if was.plan == is.plan => self.note("task: changed"),
                (Some(_), Some(_)) => self.note("task: of another plan"),
                (Some(_), None) => self.note("task: is none any more"),
                (None, None) => {}
            }
        }
        for change in &batch.locks {
            let (tenant, words) = match change {
                LockChange::Put(row) => (&row.tenant, ["lock: put", "lock: replaced"]),
                LockChange::Remove(tenant) => (tenant, ["lock: removed, was not there", "lock: removed"]),
            };
            let there = !before.locks_of(std::slice::from_ref(tenant)).await.unwrap().is_empty();
            self.note(words[usize::from(there)]);
        }
    }

    async fn forgotten(&mut self, batch: &Batch, before: &impl Store) {
        let last = before.last().await.unwrap();
        for forgotten in &batch.forgotten {
            let there = before.feed(&Position::default(), Some(&forgotten.entity), 99).await.unwrap();
            let gone = |seq| forgotten.before.is_none_or(|before| seq < before);
            self.note(match there.iter().filter(|fed| gone(fed.record.seq)).count() {
                0 => "forgotten: nothing",
                count if count == there.len() => "forgotten: all",
                _ => "forgotten: the beginning",
            });
            if batch.events.is_empty() && there.iter().any(|fed| fed.place.number == last.number(fed.place.shard) && gone(fed.record.seq)) {
                self.note("forgotten: the last place");
            }
        }
    }

    /// What has not happened yet. An operation of the trait that nobody compares is among it.
    pub(super) fn missing(&self) -> Vec<String> {
        let source = include_str!("../../../store/src/lib.rs");
        let operations = source.split("pub trait Store").nth(1).unwrap().split("\n}").next().unwrap();
        let operations = operations.lines().filter_map(|line| line.split_once("fn ")?.1.split('(').next());
        let lists = [
            "runs",
            "oldest",
            "to_recover",
            "timers",
            "outbox",
            "letters",
            "oldest_letters",
            "keys_below",
            "callbacks",
            "plans",
            "tasks",
            "locks",
        ]
        .map(|list| format!("{list}: another page"));
        let mut must: BTreeSet<String> = MUST.into_iter().map(String::from).chain(lists).collect();
        let not_read = ["shards", "commit", "claim", "sweep", "half_swept"]; // how many shards there are is each store's own
        for operation in operations.filter(|operation| !not_read.contains(operation)) {
            must.extend([format!("{operation}: found"), format!("{operation}: nothing")]);
        }
        must.difference(&self.0).cloned().collect()
    }
}
