//! A process that is killed in the middle of its commits.

use crate::fixture::{event, events};
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use steadfast_kernel::code;
use steadfast_store::Store;
use steadfast_store_embedded::Embedded;
use tempfile::tempdir;

/// The folder of the child process, which is this test again.
const CHILD: &str = "STEADFAST_TEST_KILLED";

#[tokio::test]
async fn a_killed_process_has_lost_nothing_that_it_announced() {
    if let Some(dir) = env::var_os(CHILD) {
        return write_for_ever(Path::new(&dir)).await;
    }
    let dir = tempdir().unwrap();
    for round in 1..=5 {
        let mut child = start(dir.path());
        let mut announced = announcements(&mut child);
        let first = announced.nth(round * 23).unwrap();
        assert_eq!(Embedded::open(dir.path()).unwrap_err().code(), code::STORE_LOCKED);
        child.kill().unwrap();
        child.wait().unwrap();
        let last = announced.last().unwrap_or(first);
        let store = Embedded::open(dir.path()).unwrap();
        let head = store.head(0).await.unwrap();
        assert!(head.seq >= last, "{last} was announced, {head:?} is there");
        assert_eq!((events(&store).await as u64, head.term), (head.seq, round as u64), "whole or absent");
    }
}

/// Commits one event after the other and says so.
async fn write_for_ever(dir: &Path) {
    let store = Embedded::open(dir).unwrap();
    let head = store.claim(0).await.unwrap();
    let mut out = io::stdout();
    for seq in head.seq + 1.. {
        let mut batch = event(seq, vec![b'1'; 3_000]);
        batch.fences[0].term = head.term;
        store.commit(batch).await.unwrap();
        writeln!(out, "{seq}").unwrap();
    }
}

fn start(dir: &Path) -> Child {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "killed::a_killed_process_has_lost_nothing_that_it_announced", "--nocapture"]);
    child.env(CHILD, dir).stdout(Stdio::piped()).spawn().unwrap()
}

/// The numbers that the child has written, among what the test harness writes.
fn announcements(child: &mut Child) -> impl Iterator<Item = u64> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.split(' ').next_back()?.parse().ok())
}
