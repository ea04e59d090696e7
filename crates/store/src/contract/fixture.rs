//! What the cases write: small records, rows and timers, and a writer that keeps the numbers of its shard.

use crate::{Append, Batch, Commit, Error, Fence, Head, RunRow, ShardId, Store, TimerChange};
use bytes::Bytes;
use steadfast_kernel::{Payload, Record, RunId, Seq, Status, StepId, Timer, TimerName, Timestamp, WorkflowName};

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
    Append { run: run(id), record: record(seq) }
}

/// The row of a run that is under way, in shard 0.
pub(super) fn row(id: &str) -> RunRow {
    RunRow {
        shard: 0,
        run: run(id),
        workflow: WorkflowName::new("orders/bill").unwrap(),
        status: Status::Running,
        wait: None,
        started_at: time(7),
        ended_at: None,
    }
}

pub(super) fn ended(id: &str, status: Status) -> RunRow {
    RunRow { status, ended_at: Some(time(9)), ..row(id) }
}

pub(super) fn timer(id: &str, name: TimerName, due: i64) -> Timer {
    Timer { run: run(id), name, due: time(due), revision: 3 }
}

pub(super) fn arm(shard: ShardId, timer: &Timer) -> TimerChange {
    TimerChange::Arm { shard, timer: timer.clone() }
}

pub(super) fn disarm(timer: &Timer) -> TimerChange {
    TimerChange::Disarm { run: timer.run.clone(), name: timer.name.clone() }
}

pub(super) fn events(events: impl IntoIterator<Item = Append>) -> Batch {
    Batch { events: events.into_iter().collect(), ..Batch::default() }
}

pub(super) fn rows(runs: impl IntoIterator<Item = RunRow>) -> Batch {
    Batch { runs: runs.into_iter().collect(), ..Batch::default() }
}

pub(super) fn changes(timers: impl IntoIterator<Item = TimerChange>) -> Batch {
    Batch { timers: timers.into_iter().collect(), ..Batch::default() }
}

/// The sequences of a run's journal.
pub(super) async fn seqs(store: &impl Store, id: &str) -> Vec<Seq> {
    let journal = store.journal(&run(id), 0, usize::MAX).await.unwrap();
    journal.iter().map(|record| record.seq).collect()
}

/// The ids of a shard's open runs.
pub(super) async fn open_ids(store: &impl Store, shard: ShardId) -> Vec<String> {
    let rows = store.open_runs(shard, None, usize::MAX).await.unwrap();
    rows.iter().map(|row| row.run.to_string()).collect()
}

pub(super) async fn all_timers(store: &impl Store, shard: ShardId) -> Vec<Timer> {
    store.timers(shard, None, usize::MAX).await.unwrap()
}
