//! A disk that takes no more: who wants to change something is refused and told why, who looks is answered, and it goes on by itself.
//!
//! Subject: `crates/runtime/src/shard/aside.rs`.
//! Subject: `crates/runtime/src/shard/heal.rs`.

use crate::support::{call, calls};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use steadfast::memory::{Fault, Memory};
use steadfast::{Ctx, Engine, Failure, Health, Status, VirtualClock, workflow};
use tempfile::{TempDir, tempdir};
use tokio::sync::Semaphore;

/// The folder of the child process.
const CHILD: &str = "STEADFAST_TEST_ENGINE_FULL_DISK";

static GATE: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(0));

#[workflow]
async fn echo(ctx: Ctx, input: String) -> Result<usize, Failure> {
    ctx.step("count", || async { Ok::<_, Failure>(input.len()) }).await
}

#[workflow]
async fn gated(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("charge", || {
        let call = call(&ctx, "charge");
        async move {
            let _closed = GATE.acquire().await;
            Ok::<_, Failure>(call)
        }
    })
    .await
}

/// The folder, if this is the child process; runs the test as one if it is not. It is a process of its own because the limit on file sizes, which stands for
/// the full disk here, is one of the process.
fn in_a_process_of_its_own(test: &str) -> Result<PathBuf, TempDir> {
    if let Some(dir) = env::var_os(CHILD) {
        return Ok(dir.into());
    }
    let dir = tempdir().unwrap();
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(env::current_exe().unwrap());
    child.args(["--exact", &format!("full_disk::{test}")]).env(CHILD, dir.path());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Err(dir)
}

#[tokio::test]
async fn a_full_disk_is_survived() {
    let dir = match in_a_process_of_its_own("a_full_disk_is_survived") {
        Ok(dir) => return survive(&dir).await,
        Err(dir) => dir,
    };
    let engine = Engine::open(dir.path()).unwrap().register(echo).register(gated).start().await.unwrap();
    assert_eq!(engine.run("refused").unwrap().result::<usize>().await.unwrap(), 100_000, "the child has done it");
}

async fn survive(dir: &Path) {
    let engine = Engine::open(dir).unwrap().register(echo).register(gated).start().await.unwrap();
    let done = engine.start("echo", "abc").id("done").await.unwrap();
    assert_eq!(done.result::<usize>().await.unwrap(), 3);
    let going = engine.start("gated", &()).id("going").await.unwrap();
    while calls("going", "charge") == 0 {
        tokio::task::yield_now().await;
    }

    let log = std::fs::metadata(dir.join("steadfast.db-wal")).unwrap().len();
    limit_file_size(&log.to_string());
    let large = "x".repeat(100_000);
    for _ in 0..3 {
        let Err(error) = engine.start("echo", &large).id("refused").await else { panic!("there is no room") };
        assert_eq!(error.code(), "SF0308", "{error:?}");
        assert!(error.is_retryable() && error.to_string().contains("the disk is full"), "{error}");
    }
    let Health::Healing { error, .. } = engine.health() else { panic!("{:?}", engine.health()) };
    assert_eq!(error.code(), "SF0308");
    assert_eq!(done.result::<usize>().await.unwrap(), 3, "who looks is answered");
    assert_eq!(going.view().await.unwrap().seq, 1);
    assert_eq!(going.journal().await.unwrap().len(), 1);
    assert_eq!(engine.list().await.unwrap().items.len(), 2);
    assert_eq!(engine.run("never").unwrap().view().await.unwrap_err().code(), "SF0104");
    GATE.close(); // the step succeeds now, and that cannot be recorded
    assert!(!engine.health().is_well());

    limit_file_size("unlimited");
    assert_eq!(going.result::<u32>().await.unwrap(), 1, "what was done is not done again");
    assert!(engine.health().is_well());
    let again = engine.start("echo", &large).id("refused").await.unwrap();
    assert_eq!(again.result::<usize>().await.unwrap(), 100_000);
    engine.shutdown().await;
}

const MS: Duration = Duration::from_millis(1);

/// How often the disk fills up: from time to time it is given longer to itself, so it is not done often.
const FULL: usize = 6;

/// How many start runs meanwhile.
const STARTERS: usize = 4;

#[workflow]
async fn measured(ctx: Ctx, input: String) -> Result<usize, Failure> {
    ctx.step("first", || {
        call(&ctx, "first");
        async { Ok::<_, Failure>(()) }
    })
    .await?;
    ctx.sleep(Duration::from_millis(5)).await?;
    ctx.step("count", || {
        call(&ctx, "count");
        async { Ok::<_, Failure>(input.len()) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fills_up_again_and_again_loses_nothing() {
    let dir = match in_a_process_of_its_own("a_disk_that_fills_up_again_and_again_loses_nothing") {
        Ok(dir) => return fill_up(&dir).await,
        Err(dir) => dir,
    };
    let engine = Engine::open(dir.path()).unwrap().register(measured).start().await.unwrap();
    let done = engine.list().status(Status::Completed).limit(1_000).await.unwrap().items.len();
    assert!(done > FULL * STARTERS, "{done} runs");
    assert!(engine.list().status(Status::Running).await.unwrap().items.is_empty());
}

async fn fill_up(dir: &Path) {
    let engine = Engine::open(dir).unwrap().register(measured).start().await.unwrap();
    let first = engine.start("measured", "abc").id("first").await.unwrap();
    assert_eq!(first.result::<usize>().await.unwrap(), 3);
    let over = Arc::new(AtomicBool::new(false));
    let starters: Vec<_> = (0..STARTERS).map(|n| tokio::spawn(keep_starting(engine.clone(), n, Arc::clone(&over)))).collect();
    for round in 0..FULL as u64 {
        let log = std::fs::metadata(dir.join("steadfast.db-wal")).unwrap().len();
        limit_file_size(&(log + round * 3_000).to_string());
        while engine.health().is_well() {
            tokio::time::sleep(MS).await;
        }
        let full = engine.health();
        assert!(matches!(&full, Health::Healing { error, .. } if error.code() == "SF0308"), "{full:?}");
        assert_eq!(first.result::<usize>().await.unwrap(), 3, "who looks is answered");
        assert!(!engine.list().await.unwrap().items.is_empty());
        limit_file_size("unlimited");
        let before = engine.commits();
        while !engine.health().is_well() || engine.commits() < before + 20 {
            tokio::time::sleep(MS).await; // it goes on by itself
        }
    }
    over.store(true, Ordering::SeqCst);
    for starter in starters {
        starter.await.unwrap();
    }
    engine.shutdown().await;
}

/// Starts one run after the other, each as often as it takes, and waits for its end.
async fn keep_starting(engine: Engine, starter: usize, over: Arc<AtomicBool>) {
    for n in 0.. {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let (id, input) = (format!("filling-{starter}-{n}"), "x".repeat(n % 7 * 3_000));
        loop {
            match engine.start("measured", &input).id(&id).await {
                Ok(_) => break,
                Err(error) => tokio::time::sleep(error.retry_after().unwrap_or_else(|| panic!("{error:?}"))).await,
            }
        }
        let counted = loop {
            match engine.run(&id).unwrap().result::<usize>().await {
                Ok(counted) => break counted,
                Err(error) => tokio::time::sleep(error.retry_after().unwrap_or_else(|| panic!("{id} was acknowledged: {error:?}"))).await,
            }
        };
        assert_eq!(counted, input.len());
        assert_eq!((calls(&id, "first"), calls(&id, "count")), (1, 1), "what was done is not done again");
    }
}

/// Sets the largest size of a file that this process may write.
fn limit_file_size(bytes: &str) {
    let limit = format!("--fsize={bytes}:");
    let status = Command::new("prlimit").args(["--pid", &process::id().to_string(), &limit]).status();
    assert!(status.unwrap().success(), "prlimit is part of util-linux");
}

/// A disk with next to no room takes the question whether it writes again and refuses the work: it is not asked fifty times a second for ever.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_again_and_again_is_asked_less_often() {
    let store = Memory::new();
    let engine = Engine::on(store.clone()).clock(VirtualClock::start()).register(echo).start().await.unwrap();
    let mut attempts = 0;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        store.faults().clear();
        store.faults().after(0, Fault::Fail); // the start; the question after it gets through
        assert_eq!(engine.start("echo", "abc").await.map(drop).unwrap_err().code(), "SF0301");
        attempts += 1;
        while !engine.health().is_well() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(attempts < 50, "{attempts} times in a minute");
}
