//! What the cases write: small records, rows, timers, messages and letters, and a writer that keeps the numbers of its shard.

use crate::{Append, Batch, Commit, Error, Fence, Head, LetterChange, LetterRow, OutboxChange, RunRow, ShardId, Store, TimerChange};
use bytes::Bytes;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{
    EntityId, Envelope, Failure, LetterAbout, LetterHome, LetterId, Message, Payload, Record, RunId, Seq, Snapshot, Status, StepId, Timer,
    TimerName, Timestamp, WorkflowName,
};

/// A holder of a shard, whose batches follow on from each other.
pub(super) struct Writer<'a, S> {
    store: &'a S,
    pub(super) shard: ShardId,
    pub(super) head: Head,
}

impl<'a, S: Store> Writer<'a, S> {
    pub(super) async fn claim(store: &'a S, shard: ShardId) -> Self {
        let head = store.claim(shard).await.unwrap();
        Writer { store, shard, head }
    }

    /// The holder that a claim has made.
    pub(super) fn claimed(store: &'a S, shard: ShardId, head: Head) -> Self {
        Writer { store, shard, head }
    }

    /// The batch with the fence that is next in line.
    pub(super) fn fenced(&mut self, batch: Batch) -> Batch {
        let after = self.head.seq;
        self.head.seq += 1;
        Batch { fences: vec![Fence { shard: self.shard, term: self.head.term, after, upto: self.head.seq }], ..batch }
    }

    /// Puts the batch in line.
    pub(super) fn send(&mut self, batch: Batch) -> Commit {
        let batch = self.fenced(batch);
        self.store.commit(batch)
    }

    /// Sends the batch and waits until it is durable.
    pub(super) async fn write(&mut self, batch: Batch) {
        self.send(batch).await.unwrap();
    }

    /// Sends a batch that will fail; the next one takes its place.
    pub(super) async fn fail(&mut self, batch: Batch) -> Error {
        let error = self.send(batch).await.unwrap_err();
        self.head.seq -= 1;
        error
    }
}

pub(super) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

pub(super) fn entity(id: &str) -> EntityId {
    run(id).into()
}

pub(super) fn step(name: &str) -> StepId {
    StepId::new("", name, 1).unwrap()
}

pub(super) fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(super) fn record(seq: Seq) -> Record {
    Record {
        seq,
        epoch: 1,
        kind: "STEP_COMPLETED".into(),
        at: time(1_000_000 + seq.cast_signed()),
        subject: Some(format!("add#{seq}")),
        attempt: Some(1),
        backoff_ms: None,
        reason: None,
        payload: Some(Payload::json(format!("{{\"n\":{seq}}}"))),
        body: Bytes::from(vec![8, 0]),
    }
}

pub(super) fn event(id: &str, seq: Seq) -> Append {
    Append { entity: entity(id), record: record(seq) }
}

pub(super) fn workflow(name: &str) -> WorkflowName {
    WorkflowName::new(name).unwrap()
}

/// The row of a run that is under way, in shard 0.
pub(super) fn row(id: &str) -> RunRow {
    RunRow {
        shard: 0,
        run: run(id),
        workflow: workflow("orders/bill"),
        tenant: None,
        status: Status::Running,
        wait: None,
        text: None,
        recover: Some(Recover::Host),
        started_at: time(7),
        ended_at: None,
    }
}

pub(super) fn ended(id: &str, status: Status) -> RunRow {
    RunRow { status, recover: None, ended_at: Some(time(9)), ..row(id) }
}

pub(super) fn timer(id: &str, name: TimerName, due: i64) -> Timer {
    Timer { entity: run(id).into(), name, due: time(due), revision: 3 }
}

pub(super) fn arm(shard: ShardId, timer: &Timer) -> TimerChange {
    TimerChange::Arm { shard, timer: timer.clone() }
}

pub(super) fn disarm(timer: &Timer) -> TimerChange {
    TimerChange::Disarm { entity: timer.entity.clone(), name: timer.name.clone() }
}

/// A message of that sender, by its stored id.
pub(super) fn envelope(from: &str, seq: u64) -> Envelope {
    let from = EntityId::from_stored(from).unwrap();
    Envelope { from, seq, to: entity("hearer"), message: Message::GrantSlot { epoch: 1 } }
}

pub(super) fn add(envelope: &Envelope) -> OutboxChange {
    OutboxChange::Add { shard: 0, envelope: envelope.clone() }
}

pub(super) fn settle(envelope: &Envelope) -> OutboxChange {
    OutboxChange::Settle { from: envelope.from.clone(), seq: envelope.seq }
}

pub(super) fn letter_id(name: &str, seq: Seq) -> LetterId {
    LetterId { home: LetterHome::Workflow(workflow(name)), seq }
}

/// The row of a dead letter in the box of that workflow, which arrived at that time.
pub(super) fn letter(name: &str, seq: Seq, added_at: i64) -> LetterRow {
    LetterRow {
        shard: 0,
        letter: letter_id(name, seq),
        about: LetterAbout::Step { run: run("a"), step: step("read") },
        tenant: None,
        failure: Failure::poison("not a number"),
        added_at: time(added_at),
    }
}

pub(super) fn events(events: impl IntoIterator<Item = Append>) -> Batch {
    Batch { events: events.into_iter().collect(), ..Batch::default() }
}

pub(super) fn rows(runs: impl IntoIterator<Item = RunRow>) -> Batch {
    Batch { runs: runs.into_iter().collect(), ..Batch::default() }
}

pub(super) fn messages(outbox: impl IntoIterator<Item = OutboxChange>) -> Batch {
    Batch { outbox: outbox.into_iter().collect(), ..Batch::default() }
}

pub(super) fn letters(letters: impl IntoIterator<Item = LetterChange>) -> Batch {
    Batch { letters: letters.into_iter().collect(), ..Batch::default() }
}

/// A saved fold of that entity, by its stored id.
pub(super) fn snapshot(id: &str, seq: Seq) -> Snapshot {
    let state = format!("{{\"seq\":{seq}}}");
    Snapshot { entity: EntityId::from_stored(id).unwrap(), seq, fold: 1, state: state.into() }
}

pub(super) fn snapshots(snapshots: impl IntoIterator<Item = Snapshot>) -> Batch {
    Batch { snapshots: snapshots.into_iter().collect(), ..Batch::default() }
}

pub(super) fn changes(timers: impl IntoIterator<Item = TimerChange>) -> Batch {
    Batch { timers: timers.into_iter().collect(), ..Batch::default() }
}

/// The sequences of a run's journal.
pub(super) async fn seqs(store: &impl Store, id: &str) -> Vec<Seq> {
    let journal = store.journal(&entity(id), 0, usize::MAX).await.unwrap();
    journal.iter().map(|record| record.seq).collect()
}

/// The ids of a shard's runs that a restart has something to do with.
pub(super) async fn recover_ids(store: &impl Store, shard: ShardId) -> Vec<String> {
    let rows = store.to_recover(shard, None, usize::MAX).await.unwrap();
    rows.iter().map(|row| row.run.to_string()).collect()
}

pub(super) async fn all_timers(store: &impl Store, shard: ShardId) -> Vec<Timer> {
    store.timers(shard, None, usize::MAX).await.unwrap()
}

pub(super) async fn all_messages(store: &impl Store, shard: ShardId) -> Vec<Envelope> {
    store.outbox(shard, None, usize::MAX).await.unwrap()
}

pub(super) async fn all_letters(store: &impl Store) -> Vec<LetterRow> {
    store.letters(None, usize::MAX).await.unwrap()
}
