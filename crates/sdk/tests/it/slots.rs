//! Limits: so many runs at once, first come first served.
//!
//! Subject: `crates/kernel/src/limit/mod.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, HOUR, MINUTE, Settings, Status, Wait, workflow};

#[workflow]
async fn work(ctx: Ctx, (): ()) -> Result<(), Failure> {
    ctx.step("work", || {
        call(&ctx, "work");
        async { Ok::<_, Failure>(()) }
    })
    .await?;
    ctx.sleep(10 * MINUTE).await
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(work).start().await.unwrap()
}

async fn position(engine: &Engine, id: &str) -> Option<usize> {
    match &engine.run(id).unwrap().view().await.unwrap().waits[..] {
        [Wait::Slot { position, .. }] => *position,
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_its_slot_and_knows_its_place() {
    let engine = start(&Memory::new()).await;
    let mut runs = Vec::new();
    for n in 0..5 {
        runs.push(engine.start("work", &()).id(format!("slot-{n}")).limit("customer-7", 2).await.unwrap());
    }
    until("two have begun", async || runs[1].view().await.unwrap().status == Status::Waiting).await;
    for (n, place) in [(2, 1), (3, 2), (4, 3)] {
        let view = runs[n].view().await.unwrap();
        assert_eq!(view.status, Status::Ready);
        assert_eq!(position(&engine, &format!("slot-{n}")).await, Some(place));
        assert_eq!(calls(&format!("slot-{n}"), "work"), 0);
    }
    assert!(
        runs[2]
            .why()
            .await
            .unwrap()
            .to_string()
            .contains("number 1 in line for a slot of the limit key/customer-7")
    );
    runs[3].cancel().await.unwrap(); // leaves the line
    runs[3].result::<()>().await.unwrap_err();
    until("the line moves up", async || position(&engine, "slot-4").await == Some(2)).await;
    for n in [0, 1, 2, 4] {
        runs[n].result::<()>().await.unwrap();
    }
    let limit = engine.limit("customer-7").await.unwrap().unwrap();
    until("all slots are free", async || engine.limit("customer-7").await.unwrap().unwrap().members.is_empty()).await;
    assert_eq!(limit.slots, 2);
    assert_eq!(lines(&runs[4]).await[..2], ["RUN_STARTED", "SLOT_ACQUIRED"]);
}

#[tokio::test(start_paused = true)]
async fn never_more_at_once_than_there_are_slots() {
    #[workflow]
    async fn counted(_ctx: Ctx, (): ()) -> Result<(), Failure> {
        _ctx.step("count", || async {
            let now = RUNNING.fetch_add(1, SeqCst) + 1;
            MOST.fetch_max(now, SeqCst);
            tokio::time::sleep(MINUTE).await;
            RUNNING.fetch_sub(1, SeqCst);
            Ok::<_, Failure>(())
        })
        .await
    }
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    static MOST: AtomicU32 = AtomicU32::new(0);
    let engine = engine(&Memory::new()).register_with(counted, Settings::new().limit(3)).start().await.unwrap();
    let mut runs = Vec::new();
    for n in 0..20 {
        runs.push(engine.start("counted", &()).id(format!("counted-{n}")).await.unwrap());
    }
    for run in &runs {
        run.result::<()>().await.unwrap();
    }
    assert_eq!(MOST.load(SeqCst), 3);
    until("all slots are free", async || engine.limit_of("counted").await.unwrap().unwrap().members.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn the_line_survives_a_restart() {
    let store = Memory::new();
    let first = start(&store).await;
    for n in 0..3 {
        first.start("work", &()).id(format!("line-{n}")).limit("one", 1).await.unwrap();
    }
    until("the first has begun", async || calls("line-0", "work") == 1).await;
    drop(first);
    let second = start(&store.reopen()).await;
    assert_eq!((position(&second, "line-1").await, position(&second, "line-2").await), (Some(1), Some(2)));
    for n in 0..3 {
        second.run(&format!("line-{n}")).unwrap().result::<()>().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_need_two_slots_do_not_wait_for_each_other() {
    let engine = start(&Memory::new()).await;
    let mut runs = Vec::new();
    for n in 0..6 {
        let keys = if n % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        runs.push(engine.start("work", &()).id(format!("two-{n}")).limit(keys[0], 1).limit(keys[1], 1).await.unwrap());
    }
    for run in runs {
        run.result::<()>().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_the_wait_for_a_slot() {
    let engine = start(&Memory::new()).await;
    let first = engine.start("work", &()).id("holds").limit("tight", 1).await.unwrap();
    let late = engine.start("work", &()).id("too-late").limit("tight", 1).deadline(MINUTE).await.unwrap();
    late.result::<()>().await.unwrap_err();
    assert_eq!(calls("too-late", "work"), 0);
    first.result::<()>().await.unwrap();
    until("nobody is left in line", async || engine.limit("tight").await.unwrap().unwrap().members.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_retried_run_waits_for_its_slot_again() {
    let engine = start(&Memory::new()).await;
    let first = engine.start("work", &()).id("retried").limit("again", 1).await.unwrap();
    first.result::<()>().await.unwrap();
    let second = engine.start("work", &()).id("in-between").limit("again", 1).await.unwrap();
    until("the second has begun", async || calls("in-between", "work") == 1).await;
    let preview = first.retry().from_start().preview().await.unwrap();
    assert_eq!(preview.slots.iter().map(ToString::to_string).collect::<Vec<_>>(), ["key/again"]);
    first.retry().from_start().await.unwrap();
    assert_eq!(first.view().await.unwrap().status, Status::Ready);
    second.result::<()>().await.unwrap();
    first.result::<()>().await.unwrap();
    assert_eq!(calls("retried", "work"), 2);
}

#[tokio::test(start_paused = true)]
async fn more_slots_let_more_begin() {
    let engine = start(&Memory::new()).await;
    for n in 0..3 {
        engine.start("work", &()).id(format!("more-{n}")).limit("grows", 1).await.unwrap();
    }
    engine.start("work", &()).id("more-3").limit("grows", 3).await.unwrap();
    until("three have begun", async || calls("more-2", "work") == 1).await;
    assert_eq!((calls("more-3", "work"), position(&engine, "more-3").await), (0, Some(1)));
    let zero = engine.start("work", &()).limit("grows", 0).await.err().unwrap();
    assert_eq!(zero.code(), "SF0110", "{zero}");
    tokio::time::sleep(HOUR).await;
}
