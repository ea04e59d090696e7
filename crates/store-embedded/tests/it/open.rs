//! What is found at opening is used, made, or refused and left as it is.

use crate::fixture::{claimed, database, event, events, everything, key, lock, log, make, person, plan, run, task};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use steadfast_kernel::{Status, Timestamp, WorkflowName, code};
use steadfast_store::{Batch, Error, PlanFilter, RunRow, Store};
use steadfast_store_embedded::Embedded;
use tempfile::tempdir;

/// Opens what must not be opened, and asserts that it was not touched.
fn refused(dir: &Path) -> Error {
    let files = || [fs::read(database(dir)).ok(), fs::read(log(dir)).ok().filter(|log| !log.is_empty())];
    let before = files();
    let error = Embedded::open(dir).unwrap_err();
    assert!(files() == before, "{error}: the files were touched");
    let again = Embedded::open(dir).unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "a second look finds the same");
    error
}

/// Changes bytes of the database file.
fn damage(dir: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(database(dir)).unwrap();
    change(&mut bytes);
    fs::write(database(dir), bytes).unwrap();
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_made() {
    let dir = tempdir().unwrap();
    let nested = dir.path().join("data/here");
    make(&nested, 1).await;
    let mut names: Vec<_> = fs::read_dir(&nested).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["steadfast.db", "steadfast.lock"]);
}

#[tokio::test]
async fn a_store_is_opened_again_at_once() {
    let dir = tempdir().unwrap();
    make(dir.path(), 3).await;
    for _ in 0..10 {
        assert_eq!(events(&Embedded::open(dir.path()).unwrap()).await, 3);
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let dir = tempdir().unwrap();
    fs::write(database(dir.path()), "").unwrap();
    make(dir.path(), 1).await;
    assert_eq!(events(&Embedded::open(dir.path()).unwrap()).await, 1);
}

#[tokio::test]
async fn what_a_killed_creation_left_is_cleared() {
    let dir = tempdir().unwrap();
    for leftover in ["steadfast.db.new", "steadfast.db.new-journal", "steadfast.db.new-wal"] {
        fs::write(dir.path().join(leftover), "half of something").unwrap();
    }
    make(dir.path(), 1).await;
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn a_second_opener_is_refused_until_the_last_handle_is_dropped() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let clone = store.clone();
    let error = Embedded::open(dir.path()).unwrap_err();
    assert_eq!(error.code(), code::STORE_LOCKED);
    assert!(error.to_string().contains("steadfast.lock is in use"), "{error}");
    drop(store);
    clone.commit(event(1, "1")).await.unwrap();
    assert_eq!(Embedded::open(dir.path()).unwrap_err().code(), code::STORE_LOCKED);
    drop(clone);
    assert_eq!(events(&Embedded::open(dir.path()).unwrap()).await, 1);
}

#[test]
fn a_text_file_is_foreign() {
    let dir = tempdir().unwrap();
    fs::write(database(dir.path()), "notes of somebody\n".repeat(20)).unwrap();
    let error = refused(dir.path());
    assert_eq!(error.code(), code::STORE_FOREIGN);
    assert!(error.to_string().contains("no SQLite database"), "{error}");
}

#[test]
fn a_short_file_is_foreign() {
    let dir = tempdir().unwrap();
    fs::write(database(dir.path()), "x").unwrap();
    assert_eq!(refused(dir.path()).code(), code::STORE_FOREIGN);
}

#[test]
fn the_database_of_another_program_is_foreign() {
    let dir = tempdir().unwrap();
    person(dir.path())
        .execute_batch("CREATE TABLE recipes (name TEXT); PRAGMA user_version = 7")
        .unwrap();
    let error = refused(dir.path());
    assert_eq!(error.code(), code::STORE_FOREIGN);
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn a_newer_store_is_refused() {
    let dir = tempdir().unwrap();
    make(dir.path(), 1).await;
    person(dir.path()).execute_batch("PRAGMA user_version = 6").unwrap();
    let error = refused(dir.path());
    assert_eq!(error.code(), code::STORE_NEWER);
    assert!(error.to_string().contains("schema version 6"), "{error}");
}

/// What came with the fifth version of the schema.
const OF_5: &str = "DROP INDEX runs_ended; DROP INDEX runs_ended_tasks;";

/// What came with the fourth.
const OF_4: &str = "DROP VIEW open_plans; DROP VIEW open_tasks; DROP VIEW held_locks; DROP TABLE plans; DROP TABLE locks;
DROP INDEX runs_plan; DROP INDEX runs_task_status; DROP INDEX runs_task_tenant;
ALTER TABLE runs DROP COLUMN begun_at; ALTER TABLE runs DROP COLUMN pause_requested; ALTER TABLE runs DROP COLUMN checkpoint; ALTER TABLE runs DROP COLUMN completed;
ALTER TABLE runs DROP COLUMN stage; ALTER TABLE runs DROP COLUMN task_status; ALTER TABLE runs DROP COLUMN plan;";

/// What came with the third.
const OF_3: &str = "DROP VIEW live_keys; DROP VIEW pending_callbacks; DROP TABLE keys; DROP TABLE callbacks;";

/// What came with the second.
const OF_2: &str = "DROP TABLE definitions; DROP TABLE places;";

/// What earlier versions of the schema did not have is added, and what was there stays.
#[tokio::test]
async fn an_older_store_is_brought_up_to_date() {
    for (version, lacks) in [
        (1, format!("{OF_5}{OF_4}{OF_3}{OF_2}")),
        (2, format!("{OF_5}{OF_4}{OF_3}")),
        (3, format!("{OF_5}{OF_4}")),
        (4, format!("{OF_5} DELETE FROM plans; DELETE FROM keys;")),
    ] {
        let dir = tempdir().unwrap();
        make(dir.path(), 3).await;
        let old = old_run(dir.path());
        person(dir.path()).execute_batch(&format!("{lacks} PRAGMA user_version = {version}")).unwrap();
        let store = claimed(dir.path()).await;
        assert_eq!(events(&store).await, 3);
        assert_eq!(store.definitions().await.unwrap(), []);
        assert_eq!(store.last().await.unwrap().number(0), 3);
        assert_eq!(store.keys_below("", None, 9).await.unwrap(), []);
        assert_eq!(store.callbacks_count(&[0]).await.unwrap(), 0);
        assert_eq!(store.run(&old.run).await.unwrap(), Some(old.clone()));
        assert_eq!(store.plans(&PlanFilter::default(), None, 9).await.unwrap(), []);
        assert_eq!(store.locks(None, 9).await.unwrap(), []);
        let mut next = everything(4);
        next.fences[0].term = 2;
        store.commit(next).await.unwrap();
        assert_eq!(store.keys_below("", None, 9).await.unwrap(), [key("session/17")]);
        assert_eq!(store.plan(&plan().plan).await.unwrap(), Some(plan()));
        assert_eq!(store.tasks(&plan().plan, None, 9).await.unwrap(), [task()]);
        assert_eq!(store.locks(None, 9).await.unwrap(), [lock()]);
        let ended = RunRow { status: Status::Completed, ended_at: Some(Timestamp::from_micros(9)), ..old.clone() };
        store.commit(Batch { runs: vec![ended.clone()], ..Batch::default() }).await.unwrap();
        assert_eq!(store.run(&old.run).await.unwrap(), Some(ended));
        drop(store);
        let found: u32 = person(dir.path()).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(found, 5, "from version {version}");
        assert_eq!(events(&Embedded::open(dir.path()).unwrap()).await, 4);
    }
}

/// The row of a run as the first program wrote it.
fn old_run(dir: &Path) -> RunRow {
    person(dir)
        .execute_batch(
            "INSERT INTO runs (run, shard, workflow, tenant, status, started_at) VALUES ('old', 0, 'bill', 'acme', 'WAITING', 7)",
        )
        .unwrap();
    RunRow {
        shard: 0,
        run: run("old"),
        workflow: WorkflowName::new("bill").unwrap(),
        tenant: Some("acme".into()),
        status: Status::Waiting,
        wait: None,
        text: None,
        recover: None,
        started_at: Timestamp::from_micros(7),
        ended_at: None,
        task: None,
    }
}

/// A version is added as a whole: a store that says it is older than it is is not touched.
#[tokio::test]
async fn a_store_that_is_newer_than_it_says_is_refused() {
    let dir = tempdir().unwrap();
    make(dir.path(), 1).await;
    person(dir.path()).execute_batch("DROP TABLE keys; PRAGMA user_version = 2").unwrap();
    let tables = || -> i64 { person(dir.path()).query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap() };
    let before = tables();
    Embedded::open(dir.path()).unwrap_err();
    assert_eq!(tables(), before);
    let version: u32 = person(dir.path()).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
}

#[tokio::test]
async fn a_newer_version_that_stands_only_in_the_log_is_refused() {
    let (dir, copy) = (tempdir().unwrap(), tempdir().unwrap());
    let store = claimed(dir.path()).await;
    person(dir.path()).execute_batch("PRAGMA user_version = 6").unwrap();
    fs::copy(database(dir.path()), database(copy.path())).unwrap();
    fs::copy(log(dir.path()), log(copy.path())).unwrap();
    drop(store);
    assert_eq!(refused(copy.path()).code(), code::STORE_NEWER);
}

#[tokio::test]
async fn a_truncated_store_is_damaged() {
    let dir = tempdir().unwrap();
    make(dir.path(), 20).await;
    damage(dir.path(), |bytes| bytes.truncate(bytes.len() - 5_000));
    let error = refused(dir.path());
    assert_eq!(error.code(), code::STORE_CORRUPT);
    assert!(error.to_string().contains(" bytes"), "{error}");
}

#[tokio::test]
async fn garbage_in_the_middle_is_damage() {
    let dir = tempdir().unwrap();
    make(dir.path(), 50).await;
    let pages = fs::read(database(dir.path())).unwrap().len() / 4096;
    for page in [1, pages / 2, pages - 1] {
        let copy = tempdir().unwrap();
        fs::copy(database(dir.path()), database(copy.path())).unwrap();
        damage(copy.path(), |bytes| bytes[page * 4096..][..2_000].fill(0xa5));
        assert_eq!(refused(copy.path()).code(), code::STORE_CORRUPT, "page {page} of {pages}");
    }
}

#[tokio::test]
async fn a_damaged_header_is_damage() {
    let dir = tempdir().unwrap();
    make(dir.path(), 1).await;
    damage(dir.path(), |bytes| bytes[16..18].fill(0xff));
    assert_eq!(refused(dir.path()).code(), code::STORE_CORRUPT);
}

#[tokio::test]
async fn a_missing_table_is_damage() {
    let dir = tempdir().unwrap();
    make(dir.path(), 1).await;
    person(dir.path()).execute_batch("DROP TABLE timers").unwrap();
    let error = refused(dir.path());
    assert_eq!(error.code(), code::STORE_CORRUPT);
    assert!(error.to_string().contains("CREATE TABLE timers"), "{error}");
}

#[tokio::test]
async fn a_log_without_its_database_is_damage() {
    let (dir, copy) = (tempdir().unwrap(), tempdir().unwrap());
    let store = claimed(dir.path()).await;
    fs::copy(log(dir.path()), log(copy.path())).unwrap();
    drop(store);
    assert_eq!(refused(copy.path()).code(), code::STORE_CORRUPT);
    fs::write(database(copy.path()), "").unwrap();
    assert_eq!(refused(copy.path()).code(), code::STORE_CORRUPT);
}

#[tokio::test]
async fn a_journal_mode_that_somebody_changed_is_set_right() {
    let dir = tempdir().unwrap();
    make(dir.path(), 1).await;
    let mode = |connection: &Connection, pragma| connection.query_row(pragma, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(mode(&person(dir.path()), "PRAGMA journal_mode = delete"), "delete");
    let store = Embedded::open(dir.path()).unwrap();
    assert_eq!(mode(&person(dir.path()), "PRAGMA journal_mode"), "wal");
    assert_eq!(events(&store).await, 1);
}

#[test]
fn a_folder_that_is_a_file_cannot_be_opened() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("data");
    fs::write(&file, "x").unwrap();
    assert_eq!(Embedded::open(&file).unwrap_err().code(), code::STORE_UNAVAILABLE);
}

/// Between being forked and beginning its own program a process holds whatever was open in this one, the lock too.
#[test]
fn processes_that_are_being_started_do_not_keep_the_folder_locked() {
    let (dir, done) = (tempdir().unwrap(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                let _ended = std::process::Command::new("true").status();
            }
        });
        let opened = (0..150).map(|_| Embedded::open(dir.path())).find_map(Result::err);
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(opened.is_none(), "{opened:?}");
    });
}
