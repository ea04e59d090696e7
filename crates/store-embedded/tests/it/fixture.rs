//! What the tests write, and how they look at the files.

use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_kernel::{
    Code, EntityId, Envelope, Failure, Held, KeyName, Lease, LetterAbout, LetterHome, LetterId, LimitKey, Message, Payload, PlanId,
    PlanStatus, Record, RunId, Seq, Snapshot, Status, StepId, Target, TaskStatus, TenantId, Timer, TimerName, Timestamp, WorkflowName,
};
use steadfast_store::{
    Append, Batch, CallbackChange, CallbackRow, Fence, KeyChange, KeyRow, LetterChange, LetterRow, LockChange, LockRow, OutboxChange,
    PlanRow, RunRow, Store, TaskRow, TimerChange,
};
use steadfast_store_embedded::Embedded;

/// 2026-01-02T03:04:05.000678Z.
pub(crate) const AT: i64 = 1_767_323_045_000_678;

/// The database file of a folder.
pub(crate) fn database(dir: &Path) -> PathBuf {
    dir.join("steadfast.db")
}

/// The log of the database file of a folder.
pub(crate) fn log(dir: &Path) -> PathBuf {
    dir.join("steadfast.db-wal")
}

pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A connection as a person with `sqlite3` has it.
pub(crate) fn person(dir: &Path) -> Connection {
    Connection::open(database(dir)).unwrap()
}

pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// A batch of one event of run `order-17` with that payload, as commit number `seq` of shard 0.
pub(crate) fn event(seq: Seq, payload: impl Into<Vec<u8>>) -> Batch {
    let record = Record {
        seq,
        epoch: 1,
        kind: "RETRY_SCHEDULED".into(),
        at: Timestamp::from_micros(AT),
        subject: Some("charge#1".into()),
        attempt: Some(2),
        backoff_ms: Some(1_200),
        reason: Some("the card service is away".into()),
        payload: Some(Payload::json(payload.into())),
        body: vec![8, 1].into(),
    };
    let fences = vec![Fence { shard: 0, term: 1, after: seq - 1, upto: seq }];
    Batch { fences, events: vec![Append { shard: 0, entity: run("order-17").into(), record }], ..Batch::default() }
}

/// A batch with an event, a row, a task, a timer, a message, a dead letter, a key, an end of another key that is to be told, a plan, a lock, and a snapshot.
pub(crate) fn everything(seq: Seq) -> Batch {
    let row = RunRow {
        shard: 0,
        run: run("order-17"),
        workflow: WorkflowName::new("bill").unwrap(),
        tenant: Some("acme".into()),
        status: Status::Waiting,
        wait: Some("BACKOFF".into()),
        text: Some("charging".into()),
        recover: None,
        started_at: Timestamp::from_micros(AT),
        ended_at: None,
        task: None,
    };
    let name = TimerName::Retry(StepId::new("", "charge", 1).unwrap());
    let timer = Timer { entity: run("order-17").into(), name, due: Timestamp::from_micros(AT + 1_200_000), revision: seq };
    Batch {
        runs: vec![row, task()],
        timers: vec![TimerChange::Arm { shard: 0, timer }],
        outbox: vec![OutboxChange::Add { shard: 0, envelope: envelope() }],
        letters: vec![LetterChange::Put(letter())],
        keys: vec![KeyChange::Put(Box::new(key("session/17")))],
        callbacks: vec![CallbackChange::Put(Box::new(callback()))],
        plans: vec![plan()],
        locks: vec![LockChange::Put(Box::new(lock()))],
        snapshots: vec![Snapshot { entity: run("order-17").into(), seq, fold: 1, state: "{}".into() }],
        ..event(seq, "{\"amount\":12}")
    }
}

fn envelope() -> Envelope {
    let to = EntityId::Limit(LimitKey::of_key("card").unwrap());
    Envelope { from: run("order-17").into(), seq: 1, to, message: Message::RequestSlot { epoch: 1, slots: 2 } }
}

fn letter() -> LetterRow {
    LetterRow {
        shard: 0,
        letter: LetterId { home: LetterHome::Workflow(WorkflowName::new("bill").unwrap()), seq: 4 },
        about: LetterAbout::Step { run: run("order-16"), step: StepId::new("", "read", 1).unwrap() },
        tenant: Some("acme".into()),
        failure: Failure::poison("not a number"),
        added_at: Timestamp::from_micros(AT),
    }
}

pub(crate) fn key(name: &str) -> KeyRow {
    let held = Held {
        revision: 12,
        value: Payload::json("{\"user\":\"ada\"}"),
        ttl: Duration::from_secs(60),
        expires_at: Timestamp::from_micros(AT + 60_000_000),
        owner: Some("web-1".into()),
        directory: false,
        on_expire: Some(Target::Url("https://example.com/hook?token=secret".into())),
        put_at: Timestamp::from_micros(AT),
    };
    KeyRow { shard: 0, key: KeyName::new(name).unwrap(), held, ended_at: None, ended_below: None }
}

pub(crate) fn plan() -> PlanRow {
    PlanRow {
        shard: 0,
        plan: PlanId::new("switch-17").unwrap(),
        definition: "switch".into(),
        status: PlanStatus::Paused,
        why: Some("the line is down".into()),
        created_at: Timestamp::from_micros(AT),
        started_at: Some(Timestamp::from_micros(AT + 1_000_000)),
        ended_at: None,
    }
}

/// A task of the plan. It began after the run.
pub(crate) fn task() -> RunRow {
    RunRow {
        shard: 0,
        run: run("switch-17/acme"),
        workflow: WorkflowName::new("switch").unwrap(),
        tenant: Some("acme".into()),
        status: Status::Paused,
        wait: None,
        text: None,
        recover: None,
        started_at: Timestamp::from_micros(AT + 1_000_000),
        ended_at: None,
        task: Some(TaskRow {
            plan: plan().plan,
            status: TaskStatus::Paused,
            stage: Some(2),
            completed: 2,
            checkpoint: Some(1),
            pause_requested: true,
            started_at: Some(Timestamp::from_micros(AT + 2_000_000)),
        }),
    }
}

/// The lock that the task has.
pub(crate) fn lock() -> LockRow {
    let lease = Lease {
        plan: plan().plan,
        task: task().run,
        epoch: 1,
        fence: 3,
        lease: Duration::from_secs(9_000),
        expires_at: Timestamp::from_micros(AT + 9_000_000_000),
    };
    LockRow { shard: 0, tenant: TenantId::new("acme").unwrap(), lease, since: Timestamp::from_micros(AT), waiting: 1 }
}

fn callback() -> CallbackRow {
    CallbackRow {
        shard: 0,
        key: KeyName::new("session/16").unwrap(),
        revision: 11,
        ended_at: Timestamp::from_micros(AT),
        target: "https://example.com/hook".into(),
        attempt: 2,
        next_at: Some(Timestamp::from_micros(AT + 1_200_000)),
        of: Some(5),
        failure: Some(Failure::new(Code::Unavailable, "the hook is away")),
    }
}

/// A store whose shard 0 is claimed with term 1, or with a later one if it was there before.
pub(crate) async fn claimed(dir: &Path) -> Embedded {
    let store = Embedded::open(dir).unwrap();
    store.claim(0).await.unwrap();
    store
}

/// Makes a store with `events` events and closes it.
pub(crate) async fn make(dir: &Path, events: u64) {
    let store = claimed(dir).await;
    for seq in 1..=events {
        store.commit(event(seq, vec![b'1'; 1_000])).await.unwrap();
    }
}

/// How many events the journal of the run has.
pub(crate) async fn events(store: &Embedded) -> usize {
    store.journal(&run("order-17").into(), 0, usize::MAX).await.unwrap().len()
}
