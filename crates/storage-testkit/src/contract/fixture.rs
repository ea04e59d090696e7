//! Builds small test data, and a writer that tracks the sequence of its shard.

use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{
    EntityId, Envelope, Failure, Held, KeyName, Lease, LetterAbout, LetterHome, LetterId, Message, Payload, PlanId, PlanStatus, Record,
    Revision, RunId, Seq, Snapshot, Status, StepId, TaskStatus, TenantId, Timer, TimerName, Timestamp, WorkflowName,
};
use steadfast_store::{
    Append, Batch, CallbackChange, CallbackFilter, CallbackRow, Commit, Error, Fence, Forgotten, Head, KeyChange, KeyRow, LetterChange,
    LetterFilter, LetterRow, LockChange, LockRow, OutboxChange, PlanFilter, PlanRow, RunRow, ShardId, Store, TaskRow, TimerChange,
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
    pub(super) fn fenced(&mut self, mut batch: Batch) -> Batch {
        let after = self.head.seq;
        self.head.seq += 1;
        batch.events.iter_mut().for_each(|append| append.shard = self.shard);
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
    Append { shard: 0, entity: entity(id), record: record(seq) }
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
        task: None,
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

pub(super) fn key(name: &str) -> KeyName {
    KeyName::new(name).unwrap()
}

/// The row of a key in shard 0 that is there.
pub(super) fn key_row(name: &str) -> KeyRow {
    let held = Held {
        revision: 3,
        value: Payload::json("{\"n\":1}"),
        ttl: Duration::from_secs(5),
        expires_at: time(5_000_007),
        owner: None,
        directory: false,
        on_expire: None,
        put_at: time(7),
    };
    KeyRow { shard: 0, key: key(name), held, ended_at: None, ended_below: None }
}

pub(super) fn put_key(row: &KeyRow) -> KeyChange {
    KeyChange::Put(Box::new(row.clone()))
}

pub(super) fn keys(keys: impl IntoIterator<Item = KeyChange>) -> Batch {
    Batch { keys: keys.into_iter().collect(), ..Batch::default() }
}

/// The end of a key in shard 0 at that time, of which nobody was told yet.
pub(super) fn callback(name: &str, revision: Revision, ended_at: i64) -> CallbackRow {
    CallbackRow {
        shard: 0,
        key: key(name),
        revision,
        ended_at: time(ended_at),
        target: "handler".into(),
        attempt: 1,
        next_at: None,
        of: None,
        failure: None,
    }
}

pub(super) fn put_callback(row: &CallbackRow) -> CallbackChange {
    CallbackChange::Put(Box::new(row.clone()))
}

pub(super) fn callbacks(callbacks: impl IntoIterator<Item = CallbackChange>) -> Batch {
    Batch { callbacks: callbacks.into_iter().collect(), ..Batch::default() }
}

pub(super) fn plan_id(id: &str) -> PlanId {
    PlanId::new(id).unwrap()
}

/// The row of a plan in shard 0 that is under way and was created at that time.
pub(super) fn plan_row(id: &str, created_at: i64) -> PlanRow {
    PlanRow {
        shard: 0,
        plan: plan_id(id),
        definition: "switch".into(),
        status: PlanStatus::Running,
        why: None,
        created_at: time(created_at),
        started_at: None,
        ended_at: None,
    }
}

pub(super) fn plans(plans: impl IntoIterator<Item = PlanRow>) -> Batch {
    Batch { plans: plans.into_iter().collect(), ..Batch::default() }
}

/// The row of a run that is a task of that plan, and that has not begun.
pub(super) fn task_row(id: &str, plan: &str) -> RunRow {
    let task = TaskRow {
        plan: plan_id(plan),
        status: TaskStatus::Pending,
        stage: None,
        completed: 0,
        checkpoint: None,
        pause_requested: false,
        started_at: None,
    };
    RunRow { status: Status::Ready, recover: None, tenant: Some("acme".into()), task: Some(task), ..row(id) }
}

pub(super) fn tenant(id: &str) -> TenantId {
    TenantId::new(id).unwrap()
}

/// The lock of that tenant, which a task has, in shard 0.
pub(super) fn lock_row(id: &str) -> LockRow {
    let lease = Lease {
        plan: plan_id("p"),
        task: run("p/a"),
        epoch: 1,
        fence: 3,
        lease: Duration::from_secs(9_000),
        expires_at: time(9_000_000_007),
    };
    LockRow { shard: 0, tenant: tenant(id), lease, since: time(7), waiting: 0 }
}

pub(super) fn put_lock(row: &LockRow) -> LockChange {
    LockChange::Put(Box::new(row.clone()))
}

pub(super) fn locks(locks: impl IntoIterator<Item = LockChange>) -> Batch {
    Batch { locks: locks.into_iter().collect(), ..Batch::default() }
}

/// That journal, by its stored id, need not be kept: all of it, or what is before that entry.
pub(super) fn forgotten(id: &str, before: Option<Seq>) -> Forgotten {
    Forgotten { entity: EntityId::from_stored(id).unwrap(), before }
}

pub(super) fn forget(forgotten: impl IntoIterator<Item = Forgotten>) -> Batch {
    Batch { forgotten: forgotten.into_iter().collect(), ..Batch::default() }
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
    store.letters(&LetterFilter::default(), None, usize::MAX).await.unwrap()
}

pub(super) async fn all_keys(store: &impl Store) -> Vec<KeyRow> {
    store.keys_below("", None, usize::MAX).await.unwrap()
}

pub(super) async fn all_callbacks(store: &impl Store) -> Vec<CallbackRow> {
    store.callbacks(&CallbackFilter::default(), None, usize::MAX).await.unwrap()
}

pub(super) async fn all_plans(store: &impl Store) -> Vec<PlanRow> {
    store.plans(&PlanFilter::default(), None, usize::MAX).await.unwrap()
}

/// The tasks of that plan.
pub(super) async fn all_tasks(store: &impl Store, plan: &str) -> Vec<RunRow> {
    store.tasks(&plan_id(plan), None, usize::MAX).await.unwrap()
}

pub(super) async fn all_locks(store: &impl Store) -> Vec<LockRow> {
    store.locks(None, usize::MAX).await.unwrap()
}
