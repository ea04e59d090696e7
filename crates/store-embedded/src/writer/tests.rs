//! What is left of a transaction that failed: nothing.

use super::*;
use crate::open;
use crate::schema;
use bytes::Bytes;
use steadfast_kernel::{Payload, Record, RunId, Timestamp, code};
use steadfast_store::Forgotten;

fn desk() -> Desk {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::create(&mut connection).unwrap();
    let mut desk = Desk {
        path: Path::new("x.db").into(),
        connection,
        log: Log::default(),
        bell: None,
        vacuum: Vacuum::new(),
        commits: Arc::default(),
    };
    desk.claim(0).unwrap();
    desk
}

fn batch(upto: u64, payload: usize) -> Batch {
    let record = Record {
        seq: upto,
        epoch: 1,
        kind: "STEP_COMPLETED".into(),
        at: Timestamp::EPOCH,
        subject: None,
        attempt: None,
        backoff_ms: None,
        reason: None,
        payload: Some(Payload::json(vec![b'1'; payload])),
        body: Bytes::new(),
    };
    let fences = vec![Fence { shard: 0, term: 1, after: upto - 1, upto }];
    Batch { fences, events: vec![Append { shard: 0, entity: RunId::new("a").unwrap().into(), record }], ..Batch::default() }
}

fn seq(desk: &Desk) -> u64 {
    shards::head(&desk.connection, 0).unwrap().seq
}

#[test]
fn a_full_disk_fails_the_commit_and_room_brings_it_back() {
    let mut desk = desk();
    desk.commit(&batch(1, 10)).unwrap();
    let pages: i64 = desk.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    desk.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    for _ in 0..3 {
        let error = desk.commit(&batch(2, 100_000)).unwrap_err();
        assert_eq!(error.code(), code::STORE_FULL, "{error}");
    }
    assert_eq!(seq(&desk), 1);
    desk.connection.pragma_update_and_check(None, "max_page_count", pages + 100, |_| Ok(())).unwrap();
    desk.commit(&batch(2, 100_000)).unwrap();
    assert_eq!((seq(&desk), desk.commits.load(Ordering::SeqCst)), (2, 2));
}

#[test]
fn what_may_only_be_read_refuses_commits_until_it_may_be_written() {
    let mut desk = desk();
    desk.connection.pragma_update(None, "query_only", true).unwrap();
    let error = desk.commit(&batch(1, 10)).unwrap_err();
    assert_eq!(error.code(), code::STORE_READ_ONLY, "{error}");
    desk.connection.pragma_update(None, "query_only", false).unwrap();
    desk.commit(&batch(1, 10)).unwrap();
    assert_eq!(seq(&desk), 1);
}

#[test]
fn a_log_that_cannot_start_over_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let open::Opened { path, mut connection, lock: _lock } = open::open(dir.path()).unwrap();
    let log = Log::bounded(100);
    checkpointer::watch(&mut connection, None, &log).unwrap();
    let mut desk = Desk { path: Arc::clone(&path), connection, log, bell: None, vacuum: Vacuum::new(), commits: Arc::default() };
    desk.claim(0).unwrap();
    let reader = open::connect(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM shards").unwrap(); // an old state that somebody looks at
    let mut upto = 0;
    let error = loop {
        match desk.commit(&batch(upto + 1, 10_000)) {
            Ok(()) => upto += 1,
            Err(error) => break error,
        }
        assert!(upto < 100, "the log grows without a bound");
    };
    assert_eq!(error.code(), code::STORE_FULL, "{error}");
    assert!(upto > 10, "{upto}");
    reader.execute_batch("ROLLBACK").unwrap();
    desk.commit(&batch(upto + 1, 10)).unwrap();
    assert_eq!(seq(&desk), upto + 1);
}

#[test]
fn a_commit_that_fails_at_its_end_leaves_nothing() {
    let mut desk = desk();
    desk.connection.commit_hook(Some(|| true)).unwrap();
    assert_eq!(desk.commit(&batch(1, 10)).unwrap_err().code(), code::STORE_UNAVAILABLE);
    assert_eq!(seq(&desk), 0);
    desk.connection.commit_hook(None::<fn() -> bool>).unwrap();
    desk.commit(&batch(1, 10)).unwrap();
}

#[test]
fn a_transaction_that_was_left_open_is_rolled_back() {
    let mut desk = desk();
    desk.connection.execute_batch("BEGIN IMMEDIATE; UPDATE shards SET seq = 9").unwrap();
    desk.commit(&batch(1, 10)).unwrap();
    assert_eq!(seq(&desk), 1);
}

#[test]
fn an_event_that_is_there_already_is_named_without_its_content() {
    let mut desk = desk();
    desk.commit(&batch(1, 10)).unwrap();
    let again = Batch { fences: vec![], ..batch(1, 10) };
    let error = desk.commit(&again).unwrap_err();
    assert!(error.to_string().contains("event 1 of a is there already"), "{error}");
    assert!(!format!("{error:?}").contains("111"), "{error:?}");
}

#[test]
fn free_pages_are_looked_for_after_something_was_forgotten() {
    let mut desk = desk();
    let is_due = |desk: &mut Desk| desk.vacuum.when_quiet(&desk.connection) || desk.vacuum.is_due();
    assert!(!is_due(&mut desk), "there are none");
    desk.commit(&batch(1, 10)).unwrap();
    assert!(!desk.vacuum.is_due());
    let entity = batch(1, 10).events[0].entity.clone();
    desk.commit(&Batch { forgotten: vec![Forgotten { entity, before: Some(2) }], ..Batch::default() })
        .unwrap();
    assert!(desk.vacuum.is_due());
    assert!(!is_due(&mut desk), "they were looked for");
}

#[test]
fn callers_of_a_writer_that_is_gone_are_told() {
    let (line, requests) = channel();
    let writer = Writer { line: Some(line), thread: None, commits: Arc::default() };
    let waiting = writer.commit(batch(1, 10));
    drop(requests); // what a panic of the thread does
    let told = |outcome: Option<Result<(), Error>>| outcome.unwrap().unwrap_err().to_string();
    assert!(told(waiting.now_or_never()).contains("the writer has stopped"));
    assert!(told(writer.commit(batch(1, 10)).now_or_never()).contains("the writer has stopped"));
    assert!(writer.claim(0).now_or_never().unwrap().is_err());
}
