//! How much a sweep and giving free pages back hold commits up.
//!
//! `cargo run --release -p steadfast-store-embedded --example sweep_stall [FOLDER] [RUNS]` fills a store with ended runs and prints how long commits take: alone, while all those runs are
//! swept, and while the free pages go back to the disk. FOLDER is a new folder on the disk that is to be measured.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement at the command line")]
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steadfast_kernel::{Payload, Record, RunId, Seq, Status, Timestamp, WorkflowName};
use steadfast_store::{Append, Batch, Fence, RunRow, Store, Sweep, Swept};
use steadfast_store_embedded::Embedded;

/// Entries per run, and bytes of payload per entry.
const ENTRIES: Seq = 3;
const PAYLOAD: usize = 300;

/// The number, and time, of the first run that is not swept.
const NEW: i64 = 1 << 40;

/// As the engine does it.
const RUNS_PER_SWEEP: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);

fn entry(run: &RunId, seq: Seq) -> Append {
    let record = Record {
        seq,
        epoch: 1,
        kind: "STEP_COMPLETED".into(),
        at: Timestamp::EPOCH,
        subject: Some("add#1".into()),
        attempt: Some(1),
        backoff_ms: None,
        reason: None,
        payload: Some(Payload::json(vec![b'1'; PAYLOAD])),
        body: vec![8, 0].into(),
    };
    Append { shard: 0, entity: run.into(), record }
}

fn row(run: RunId, number: i64) -> RunRow {
    RunRow {
        shard: 0,
        run,
        workflow: WorkflowName::new("w").unwrap(),
        tenant: None,
        status: Status::Completed,
        wait: None,
        text: None,
        recover: None,
        started_at: Timestamp::from_micros(number),
        ended_at: Some(Timestamp::from_micros(number)),
        task: None,
    }
}

/// One complete run per number, as one commit.
async fn write(store: &Embedded, seq: &mut u64, prefix: &str, numbers: std::ops::Range<i64>) {
    let mut batch = Batch { fences: vec![Fence { shard: 0, term: 1, after: *seq, upto: *seq + 1 }], ..Batch::default() };
    for number in numbers {
        let run = RunId::new(format!("{prefix}-{}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()))).unwrap(); // ids in no order
        batch.events.extend((1..=ENTRIES).map(|seq| entry(&run, seq)));
        batch.runs.push(row(run, number));
    }
    store.commit(batch).await.unwrap();
    *seq += 1;
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{what:<34} {:>6} commits   p50 {:.2}   p95 {:.2}   p99 {:.2}   p99.9 {:.2}   max {:.2} ms",
        times.len(),
        at(0.5),
        at(0.95),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// One run after the other until it is said that it is enough: how long each took.
async fn load(store: &Embedded, seq: &mut u64, prefix: &str, enough: impl Fn(usize) -> bool) -> Vec<Duration> {
    let mut times = Vec::new();
    while !enough(times.len()) {
        let (begun, number) = (Instant::now(), NEW + i64::try_from(times.len()).unwrap());
        write(store, seq, prefix, number..number + 1).await;
        times.push(begun.elapsed());
    }
    times
}

/// Sweeps everything whose id begins with that: the steps' times.
async fn sweep(store: &Embedded, prefix: &str) -> Vec<Duration> {
    let mut steps = Vec::new();
    loop {
        let page = store.oldest(0, None, 500).await.unwrap();
        let old: Vec<_> = page.iter().filter(|row| row.run.as_str().starts_with(prefix)).collect();
        if old.is_empty() {
            return steps;
        }
        for few in old.chunks(RUNS_PER_SWEEP) {
            let mut left: Vec<_> = few.iter().map(|row| Sweep { entity: (&row.run).into(), ended_at: row.ended_at.unwrap() }).collect();
            while !left.is_empty() {
                let begun = Instant::now();
                let swept = store.sweep(0, 1, &left).await.unwrap();
                steps.push(begun.elapsed());
                left.drain(..swept.iter().filter(|swept| **swept != Swept::Half).count());
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn size(dir: &Path) -> f64 {
    std::fs::metadata(dir.join("steadfast.db")).map_or(0, |file| file.len()) as f64 / 1048576.0
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = std::path::PathBuf::from(arguments.next().unwrap_or_else(|| "sweep-stall".into()));
    let runs: i64 = arguments.next().map_or(100_000, |runs| runs.parse().unwrap());
    let store = Embedded::open(&dir).unwrap();
    assert_eq!(store.claim(0).await.unwrap().term, 1, "the folder has to be new");
    let mut seq = 0;
    for first in (0..runs).step_by(200) {
        write(&store, &mut seq, "old", first..(first + 200).min(runs)).await;
    }
    println!("{runs} runs, {:.0} MiB", size(&dir));
    print("alone", load(&store, &mut seq, "alone", |done| done == 2_000).await);

    let swept = Arc::new(AtomicBool::new(false));
    let sweeper = tokio::spawn({
        let (store, swept, begun) = (store.clone(), Arc::clone(&swept), Instant::now());
        async move {
            let steps = sweep(&store, "old").await;
            swept.store(true, Ordering::SeqCst);
            (steps, begun.elapsed())
        }
    });
    let times = load(&store, &mut seq, "beside", |_| swept.load(Ordering::SeqCst)).await;
    print("while they are swept", times);
    let (steps, took) = sweeper.await.unwrap();
    print("  the steps themselves", steps);
    println!("  swept in {:.1} s; {:.0} MiB", took.as_secs_f64(), size(&dir));

    // With pauses that are long enough for the writer to call the line empty.
    let mut times = Vec::new();
    for number in NEW..NEW + 2_000 {
        tokio::time::sleep(Duration::from_millis(4)).await;
        let begun = Instant::now();
        write(&store, &mut seq, "after", number..number + 1).await;
        times.push(begun.elapsed());
    }
    print("while free pages are given back", times);
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("  {:.0} MiB", size(&dir));
    drop(store);
    println!("closed: {:.0} MiB", size(&dir));
}
