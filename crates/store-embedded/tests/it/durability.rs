//! What was announced is on disk, and a disk that cannot write fails commits and nothing else.

use crate::fixture::{claimed, database, event, events, everything, length, log, make, person, run};
use futures_util::FutureExt;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{self, Command};
use steadfast_kernel::code;
use steadfast_store::{Head, Store};
use steadfast_store_embedded::Embedded;
use tempfile::tempdir;

#[tokio::test]
async fn a_killed_store_has_everything_that_was_announced() {
    let (dir, copy) = (tempdir().unwrap(), tempdir().unwrap());
    let store = claimed(dir.path()).await;
    store.commit(everything(1)).await.unwrap();
    for seq in 2..=30 {
        store.commit(event(seq, "1")).await.unwrap();
    }
    assert_eq!(store.commits(), 30);
    fs::copy(database(dir.path()), database(copy.path())).unwrap(); // what a kill leaves, while the store is still open
    fs::copy(log(dir.path()), log(copy.path())).unwrap();
    let found = Embedded::open(copy.path()).unwrap();
    assert_eq!(events(&found).await, 30);
    assert_eq!(found.head(0).await.unwrap(), Head { term: 1, seq: 30 });
    assert_eq!(found.run(&run("order-17")).await.unwrap(), store.run(&run("order-17")).await.unwrap());
    assert_eq!(found.timers(0, None, 9).await.unwrap(), store.timers(0, None, 9).await.unwrap());
    assert_eq!(found.outbox(0, None, 9).await.unwrap().len(), 1);
    assert_eq!(found.letters(&steadfast_store::LetterFilter::default(), None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn half_a_commit_in_the_log_is_no_commit() {
    let (dir, copy) = (tempdir().unwrap(), tempdir().unwrap());
    let store = claimed(dir.path()).await;
    store.commit(event(1, "1")).await.unwrap();
    store.commit(event(2, vec![b'1'; 50_000])).await.unwrap();
    fs::copy(database(dir.path()), database(copy.path())).unwrap();
    let bytes = fs::read(log(dir.path())).unwrap();
    fs::write(log(copy.path()), &bytes[..bytes.len() - 20_000]).unwrap();
    let found = Embedded::open(copy.path()).unwrap();
    assert_eq!((events(&found).await, found.head(0).await.unwrap().seq), (1, 1));
}

#[tokio::test]
async fn closing_leaves_one_complete_file() {
    let (dir, copy) = (tempdir().unwrap(), tempdir().unwrap());
    make(dir.path(), 30).await;
    assert_eq!(length(&log(dir.path())), 0);
    fs::copy(database(dir.path()), database(copy.path())).unwrap();
    assert_eq!(events(&Embedded::open(copy.path()).unwrap()).await, 30);
}

#[tokio::test]
async fn closing_commits_what_is_in_line() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let outcomes: Vec<_> = (1..=50).map(|seq| store.commit(event(seq, "1"))).collect();
    drop(store);
    for outcome in outcomes {
        outcome.now_or_never().unwrap().unwrap();
    }
    assert_eq!(events(&Embedded::open(dir.path()).unwrap()).await, 50);
}

#[tokio::test]
async fn the_log_is_moved_into_the_main_file_while_commits_go_on() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let mut seq = 0;
    while length(&database(dir.path())) < 2_000_000 {
        seq += 1;
        assert!(seq <= 1_000, "the main file does not grow"); // about 10,000 pages, far from where the writer would do it itself
        store.commit(event(seq, vec![b'1'; 20_000])).await.unwrap();
    }
    assert_eq!(events(&store).await as u64, seq);
}

#[tokio::test]
async fn reads_do_not_wait_for_a_commit() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    store.commit(event(1, "1")).await.unwrap();
    let person = person(dir.path());
    person.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = store.commit(event(2, "2"));
    assert_eq!(events(&store).await, 1);
    assert!((&mut waiting).now_or_never().is_none());
    person.execute_batch("ROLLBACK").unwrap();
    waiting.await.unwrap();
    assert_eq!(events(&store).await, 2);
}

#[tokio::test]
async fn commits_fail_while_somebody_has_the_file_and_succeed_afterwards() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let person = person(dir.path());
    person.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.commit(event(1, "1")).await.unwrap_err();
    assert_eq!(error.code(), code::STORE_UNAVAILABLE);
    assert!(error.is_retryable());
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 0 });
    person.execute_batch("ROLLBACK").unwrap();
    store.commit(event(1, "1")).await.unwrap();
    assert_eq!((events(&store).await, store.commits()), (1, 1));
}

/// The folder of the child process of the next test.
const CHILD: &str = "STEADFAST_TEST_FULL_DISK";

/// A process of its own, because the limit on file sizes is one of the process. Writing beyond it fails inside `COMMIT`, as on a full disk.
#[tokio::test]
async fn a_disk_that_takes_no_more_fails_commits_until_it_does() {
    if let Some(dir) = env::var_os(CHILD) {
        return fill_the_disk(Path::new(&dir)).await;
    }
    let dir = tempdir().unwrap();
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(env::current_exe().unwrap());
    child
        .args(["--exact", "durability::a_disk_that_takes_no_more_fails_commits_until_it_does"])
        .env(CHILD, dir.path());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(events(&Embedded::open(dir.path()).unwrap()).await, 11, "the child has done it");
}

async fn fill_the_disk(dir: &Path) {
    let store = claimed(dir).await;
    for seq in 1..=9 {
        store.commit(event(seq, "1")).await.unwrap();
    }
    limit_file_size(&length(&log(dir)).to_string());
    for _ in 0..3 {
        let error = store.commit(event(10, vec![b'1'; 100_000])).await.unwrap_err();
        assert_eq!(error.code(), code::STORE_FULL, "{error:?}");
        assert_eq!((events(&store).await, store.head(0).await.unwrap().seq), (9, 9));
    }
    limit_file_size("unlimited");
    store.commit(event(10, vec![b'1'; 100_000])).await.unwrap();
    store.commit(event(11, "1")).await.unwrap();
    assert_eq!(store.commits(), 11);
}

/// Sets the largest size of a file that this process may write.
fn limit_file_size(bytes: &str) {
    let limit = format!("--fsize={bytes}:");
    let status = Command::new("prlimit").args(["--pid", &process::id().to_string(), &limit]).status();
    assert!(status.unwrap().success(), "prlimit is part of util-linux");
}
