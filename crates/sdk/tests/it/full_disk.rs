//! A disk that takes no more: who wants to change something is refused and told why, who looks is answered, and it goes on by itself.

use crate::support::{call, calls};
use std::env;
use std::path::Path;
use std::process::{self, Command};
use std::sync::LazyLock;
use std::time::Duration;
use steadfast::memory::{Fault, Memory};
use steadfast::{Ctx, Engine, Failure, Health, VirtualClock, workflow};
use tempfile::tempdir;
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

/// A process of its own, because the limit on file sizes, which stands for the full disk here, is one of the process.
#[tokio::test]
async fn a_full_disk_is_survived() {
    if let Some(dir) = env::var_os(CHILD) {
        return survive(Path::new(&dir)).await;
    }
    let dir = tempdir().unwrap();
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(env::current_exe().unwrap());
    child.args(["--exact", "full_disk::a_full_disk_is_survived"]).env(CHILD, dir.path());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
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
