//! A process that answers calls by runs, killed again and again while others call it: every call gets its answer, and each is one run.
//!
//! Subject: `crates/sdk/src/messages/durable.rs`.

use crate::{Repeat, kills, setting};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steadfast::messages::wire::http2::{Http2, Settings};
use steadfast::messages::{Node, Peer};
use steadfast::{Policy, Status};
use steadfast_crash_test::log;
use steadfast_store::{RunFilter, Store};
use steadfast_store_embedded::Embedded;
use tokio::task::JoinSet;

const SIDE_BY_SIDE: u32 = 30;

fn bank(folder: &Path, process: u32, port: u16) -> Child {
    Command::new(env!("CARGO_BIN_EXE_steadfast-crash-test"))
        .arg(folder.join("data"))
        .arg(folder.join("log"))
        .args([process.to_string(), format!("messages:{port}")])
        .stdout(Stdio::null())
        .spawn()
        .expect("the bank can be started")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_killed_again_and_again_answers_every_call_with_one_run() {
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let wanted = setting("CRASH_KILLS").map_or(12, |kills| kills.min(50));
    let _repeat = Repeat(format!("CRASH_SEED={seed} CRASH_KILLS={wanted}"));
    let mut chance = kills(seed);
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

    let shop = Node::builder().name("shop").wire(Arc::new(Http2::new(Settings::default()))).build().unwrap();
    let peer = Peer::at(format!("http://127.0.0.1:{port}"));
    let enough = Arc::new(AtomicBool::new(false));
    let mut calls = JoinSet::new();
    for first in 0..SIDE_BY_SIDE {
        let (shop, peer, enough) = (shop.clone(), peer.clone(), Arc::clone(&enough));
        calls.spawn(async move {
            let mut answers = Vec::new();
            for number in (first..).step_by(SIDE_BY_SIDE as usize).take_while(|_| !enough.load(Ordering::Relaxed)) {
                let policy = Policy::transient()
                    .max_attempts(1000)
                    .max_delay(Duration::from_millis(300))
                    .attempt_timeout(Duration::from_secs(2));
                let call = || shop.call(&peer, "transfer", number.to_string()).id(format!("t-{number}")).policy(policy.clone());
                answers.push((number, call().timeout(Duration::from_secs(300)).await.unwrap()));
            }
            answers
        });
    }
    let mut answers: BTreeMap<u32, bytes::Bytes> = BTreeMap::new();
    let mut process = 0;
    while !calls.is_empty() {
        process += 1;
        let mut child = bank(folder.path(), process, port);
        let last = u64::from(process) > wanted;
        enough.store(last, Ordering::Relaxed);
        let life = Duration::from_millis(if last { 60_000 } else { 150 + chance.next_u64() % 500 });
        let over = async {
            while let Some(done) = calls.join_next().await {
                answers.extend(done.unwrap());
            }
        };
        let _it_is_killed_now = tokio::time::timeout(life, over).await;
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
    }
    println!("{} kills, {} answers", process - 1, answers.len());

    // Whoever asks again after all this gets the same receipt.
    let mut child = bank(folder.path(), process + 1, port);
    for number in [0, 1, *answers.keys().last().unwrap()] {
        let policy = Policy::transient().max_attempts(1000).max_delay(Duration::from_millis(300));
        let again = shop
            .call(&peer, "transfer", number.to_string())
            .id(format!("t-{number}"))
            .policy(policy)
            .timeout(Duration::from_secs(60));
        assert_eq!(again.await.unwrap(), answers[&number]);
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let store = Embedded::open(folder.path().join("data")).expect("what a kill left behind can be opened");
    let runs = store.runs(&RunFilter::default(), None, 100_000).await.unwrap();
    assert_eq!(runs.len(), answers.len(), "a request is one run, however often it came");
    assert!(runs.iter().all(|run| run.status == Status::Completed));
    let receipts: BTreeSet<_> = answers.values().collect();
    assert_eq!(receipts.len(), answers.len());
    // A step that was in flight at a kill is made again by the next process, and by no other: within one process each is made once.
    let lines = log::read(&std::fs::read_to_string(folder.path().join("log")).unwrap());
    let executed: BTreeSet<_> = lines.iter().map(|line| (line.process, &line.run, &line.step)).collect();
    assert_eq!(executed.len(), lines.len(), "a process has executed a step twice");
}
