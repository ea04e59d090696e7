//! Long journals are not read from their beginning: what they come to is saved now and then.
//!
//! Subject: `crates/runtime/src/shard/save.rs`.
//! Subject: `crates/runtime/src/shard/read.rs`.

use crate::support::{engine, lines, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, HOUR, MINUTE, Policy, SECOND, Status, workflow};
use steadfast_store::{Batch, Fence, Store};

/// Goes on for so many lives of one step each, then waits for a word.
#[workflow]
async fn lives(ctx: Ctx, left: u32) -> Result<String, Failure> {
    ctx.step("live", || async { Ok::<_, Failure>(()) }).await?;
    match left {
        0 => ctx.signal("end").await,
        _ => ctx.continue_as_new(&(left - 1)),
    }
}

/// Does so many steps, then waits for a word.
#[workflow]
async fn long(ctx: Ctx, steps: u32) -> Result<String, Failure> {
    for i in 0..steps {
        ctx.step("add", || async move { Ok::<_, Failure>(i) }).await?;
    }
    ctx.signal("end").await
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(lives).register(long).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_run_of_many_lives_is_read_in_as_long_as_one_of_few() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("lives", &2_000).id("many-lives").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    let (epochs, read) = (u64::from(run.view().await.unwrap().epoch), store.entries_read());
    assert!(read < 150 * epochs, "{read} entries were read for {epochs} lives");
    engine.shutdown().await;
    let store = store.reopen();
    let engine = start(&store).await;
    let run = engine.run("many-lives").unwrap();
    run.signal("end", &"of it").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "of it");
    assert!(store.entries_read() < 500, "{} entries were read to end it", store.entries_read());
}

#[tokio::test(start_paused = true)]
async fn whoever_only_looks_does_not_read_a_long_journal() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("long", &3_000).id("long").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    engine.shutdown().await;
    let store = store.reopen();
    let engine = start(&store).await;
    let run = engine.run("long").unwrap();
    assert_eq!(run.view().await.unwrap().status, Status::Waiting);
    let read = store.entries_read();
    assert!(read < 1_500, "{read} entries were read to look at it");
    run.signal("end", &"of it").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "of it");
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

/// What a store may hold for whatever reason: another version's, a half one, one of somebody else, one that does not fit the journal.
#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_of_no_use_is_not_used() {
    let store = Memory::new();
    let engine = start(&store).await;
    let (run, other) = (engine.start("long", &250).id("saved").await.unwrap(), engine.start("long", &250).id("saved-2").await.unwrap());
    for run in [&run, &other] {
        until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    }
    let expected = lines(&run).await;
    engine.shutdown().await;
    let good = store.reopen().snapshot(&run.id().into()).await.unwrap().expect("it was saved");
    let mut of_another = store.reopen().snapshot(&other.id().into()).await.unwrap().expect("it was saved");
    of_another.entity = good.entity.clone();
    let (mut newer, mut half, mut early) = (good.clone(), good.clone(), good.clone());
    newer.fold += 1;
    half.state = half.state.slice(..half.state.len() / 2);
    early.seq -= 1;
    let mut ended = good.clone();
    let text = String::from_utf8(ended.state.to_vec()).unwrap();
    ended.seq -= 50; // the entries after it cannot follow on its state
    ended.state = text.replace(&format!("\"seq\":{}", good.seq), &format!("\"seq\":{}", ended.seq)).into();
    for useless in [newer, half, early, of_another, ended] {
        let store = store.reopen();
        let head = store.claim(0).await.unwrap();
        let fences = vec![Fence { shard: 0, term: head.term, after: head.seq, upto: head.seq + 1 }];
        store.commit(Batch { fences, snapshots: vec![useless], ..Batch::default() }).await.unwrap();
        let engine = start(&store.reopen()).await;
        let run = engine.run("saved").unwrap();
        assert_eq!((run.view().await.unwrap().status, lines(&run).await), (Status::Waiting, expected.clone()));
        assert!(run.replay().await.unwrap().mismatch.is_none());
        engine.shutdown().await;
    }
    let engine = start(&store.reopen()).await;
    let run = engine.run("saved").unwrap();
    run.signal("end", &"of it").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "of it");
}

#[workflow]
async fn stubborn(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("down", || async { Err::<(), _>(Failure::transient("down")) })
        .retry(Policy::constant(MINUTE).max_attempts(1_000))
        .await
}

#[tokio::test(start_paused = true)]
async fn what_is_saved_knows_of_the_retry_to_come() {
    let store = Memory::new();
    let engine = engine(&store).register(stubborn).start().await.unwrap();
    let run = engine.start("stubborn", &()).id("stubborn").await.unwrap();
    tokio::time::sleep(2 * HOUR + SECOND).await;
    let snapshot = store.snapshot(&run.id().into()).await.unwrap().expect("it was saved");
    let state: serde_json::Value = serde_json::from_slice(&snapshot.state).unwrap();
    assert_eq!(state["run"]["retryContext"]["currentAttempt"], snapshot.seq, "the attempt to come after {} events", snapshot.seq);
    assert_eq!(state["run"]["retryContext"]["lastBackoff"]["secs"], 60);
}
