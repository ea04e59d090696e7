//! Branches: joins, races and the identity of what is asked for in them.
//!
//! Subject: `crates/runtime/src/host/branch.rs`.

use crate::support::{call, calls, engine, lines};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Engine, Failure, HOUR, Policy, SECOND, Store, workflow};

const MS: Duration = Duration::from_millis(1);

/// Loops over the same step name at its own pace.
async fn shuttle(ctx: &Ctx, name: &str, pace: u32) -> Result<String, Failure> {
    let mut trail = Vec::new();
    for round in 0..4_u32 {
        let place = ctx.step("ship", || async move {
            tokio::time::sleep((round * pace) % 5 * MS).await;
            Ok::<_, Failure>(format!("{name}{round}"))
        });
        trail.push(place.await?);
    }
    trail.push((ctx.random() % 1000).to_string());
    Ok(trail.join(" "))
}

#[workflow]
async fn two_loops(ctx: Ctx, _input: ()) -> Result<String, Failure> {
    let (left, right) = ctx.join((shuttle(&ctx, "left", 3), shuttle(&ctx, "right", 2))).await;
    Ok(format!("{} | {}", left?, right?))
}

#[tokio::test(start_paused = true)]
async fn two_branches_that_loop_over_the_same_name_never_swap_results() {
    let store = Memory::new();
    let first = engine(&store).register(two_loops).start().await.unwrap();
    let run = first.start("two_loops", &()).id("loops").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert!(result.starts_with("left0 left1 left2 left3 "), "{result}");
    assert!(result.contains("| right0 right1 right2 right3 "), "{result}");
    let journal = lines(&run).await;
    for branch in ["join#1.0", "join#1.1"] {
        for round in 1..=4 {
            assert!(journal.contains(&format!("STEP_COMPLETED {branch}/ship#{round} a1")), "{journal:#?}");
        }
    }
    let commits = usize::try_from(store.commits()).unwrap();
    for prefix in 1..commits {
        let engine = engine(&store.rewound(prefix)).register(two_loops).start().await.unwrap();
        let again: String = engine.run("loops").unwrap().result().await.unwrap();
        assert_eq!(again, result, "after {prefix} commits");
    }
}

#[workflow]
async fn slow_and_fast(ctx: Ctx, _input: ()) -> Result<(usize, String), Failure> {
    let slow = async {
        ctx.sleep(HOUR).await?;
        Ok::<_, Failure>("slow".to_string())
    };
    let stubborn = async {
        ctx.step("stubborn", || async { Err::<String, _>(Failure::transient("never")) })
            .retry(Policy::constant(HOUR).max_attempts(99))
            .await
    };
    let fast = async {
        ctx.sleep(SECOND).await?;
        ctx.step("fast", || async { Ok::<_, Failure>("fast".to_string()) }).await
    };
    let (winner, said) = ctx.race((slow, stubborn, fast)).await;
    let said = said?;
    ctx.sleep(48 * HOUR).await?;
    Ok((winner, said))
}

#[tokio::test(start_paused = true)]
async fn the_losers_of_a_race_are_gone_with_their_timers() {
    let store = Memory::new();
    let engine = engine(&store).register(slow_and_fast).start().await.unwrap();
    let run = engine.start("slow_and_fast", &()).await.unwrap();
    tokio::time::sleep(2 * HOUR).await;
    let timers: Vec<String> = store.timers(0, None, 10).await.unwrap().iter().map(|timer| timer.name.to_string()).collect();
    assert_eq!(timers, ["sleep:sleep#1"], "only what the code still waits for is armed");
    let view = run.view().await.unwrap();
    assert_eq!((view.status, view.waits.len()), (steadfast::Status::Waiting, 1));
    assert_eq!(run.result::<(usize, String)>().await.unwrap(), (2, "fast".into()));
    let expected = [
        "RUN_STARTED",
        "TIMER_SET race#1.0/sleep#1",
        "TIMER_SET race#1.2/sleep#1",
        "RETRY_SCHEDULED race#1.1/stubborn#1 a2/99 UNAVAILABLE",
        "TIMER_FIRED race#1.2/sleep#1",
        "STEP_COMPLETED race#1.2/fast#1 a1",
        "TIMER_SET sleep#1",
        "TIMER_FIRED sleep#1",
        "RUN_COMPLETED",
    ];
    assert_eq!(lines(&run).await, expected);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

#[workflow]
async fn many(ctx: Ctx, count: u32) -> Result<Vec<u32>, Failure> {
    let item = |n: u32| {
        let ctx = &ctx;
        async move {
            ctx.step("item", || async move {
                tokio::time::sleep((n * 7) % 13 * MS).await;
                Ok::<_, Failure>(n)
            })
            .await
        }
    };
    ctx.all((0..count).map(item)).await.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn a_branch_per_item_keeps_the_order_of_the_items() {
    let engine = engine(&Memory::new()).register(many).start().await.unwrap();
    let run = engine.start("many", &100).await.unwrap();
    assert_eq!(run.result::<Vec<u32>>().await.unwrap(), (0..100).collect::<Vec<_>>());
    assert_eq!(run.replay().await.unwrap().mismatch, None);
    assert!(lines(&run).await.contains(&"STEP_COMPLETED all#1.42/item#1 a1".to_string()));
}

#[workflow]
async fn named(ctx: Ctx, _input: ()) -> Result<Vec<u64>, Failure> {
    let draw = || async { ctx.random() };
    let (left, inner) = (ctx.branch("left", draw()).await, ctx.branch("left", ctx.branch("inner", draw())).await);
    let step = ctx.branch("left", ctx.step("in-root", || async { Ok::<_, Failure>(0_u64) })).await?;
    let asked = ctx
        .branch("right", async { ctx.step("in-right", || async { Ok::<_, Failure>(0_u64) }).await })
        .await?;
    Ok(vec![ctx.random(), left, inner, step, asked])
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_belongs_to_the_branch_that_asks() {
    let engine = engine(&Memory::new()).register(named).start().await.unwrap();
    let run = engine.start("named", &()).await.unwrap();
    let drawn: Vec<u64> = run.result().await.unwrap();
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2], "every branch has its own chance");
    let journal = lines(&run).await;
    assert_eq!(
        journal[1..3],
        ["STEP_COMPLETED in-root#1 a1", "STEP_COMPLETED right#1/in-right#1 a1"],
        "a step that was made outside is asked for there"
    );
}

#[workflow]
async fn long_backoff(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    let stuck = async {
        ctx.step("stuck", || {
            let call = call(&ctx, "stuck");
            async move { if call == 1 { Err(Failure::transient("down")) } else { Ok(()) } }
        })
        .retry(Policy::constant(24 * HOUR))
        .await
    };
    let busy = async {
        for _ in 0..10 {
            ctx.step("busy", || {
                call(&ctx, "busy");
                async { Ok::<_, Failure>(()) }
            })
            .await?;
            ctx.sleep(SECOND).await?;
        }
        Ok::<_, Failure>(())
    };
    let (stuck, busy) = ctx.join((stuck, busy)).await;
    stuck.and(busy)
}

/// The trap: a branch whose predecessor is done starts at once, though an unrelated sibling sits in a long backoff.
#[tokio::test(start_paused = true)]
async fn a_branch_does_not_wait_for_the_backoff_of_its_sibling() {
    let engine = engine(&Memory::new()).register(long_backoff).start().await.unwrap();
    let run = engine.start("long_backoff", &()).id("long-backoff").await.unwrap();
    tokio::time::sleep(11 * SECOND).await;
    assert_eq!(calls("long-backoff", "busy"), 10);
    run.result::<()>().await.unwrap();
}

#[workflow]
async fn spawns(ctx: Ctx, _input: ()) -> Result<String, Failure> {
    let refused = elsewhere(ctx.clone()).await.expect_err("a spawned task is not the workflow");
    Ok(refused.message)
}

/// The macro cannot see this; the host can.
async fn elsewhere(ctx: Ctx) -> Result<(), Failure> {
    tokio::spawn(async move { ctx.step("elsewhere", || async { Ok::<_, Failure>(()) }).await }).await?
}

#[tokio::test(start_paused = true)]
async fn a_context_used_by_a_spawned_task_is_refused_with_advice() {
    let engine: Engine = engine(&Memory::new()).register(spawns).start().await.unwrap();
    let message: String = engine.start("spawns", &()).await.unwrap().result().await.unwrap();
    assert!(message.contains("outside of its workflow's own future") && message.contains("ctx.join"), "{message}");
}

#[workflow]
async fn nested(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("outer", || async { ctx.step("inner", || async { Ok::<_, Failure>(()) }).await }).await
}

#[tokio::test(start_paused = true)]
async fn a_step_inside_a_step_is_refused_with_advice() {
    let engine = engine(&Memory::new()).register(nested).start().await.unwrap();
    let error = engine.start("nested", &()).await.unwrap().result::<()>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::FailedPrecondition);
    assert!(error.to_string().contains("inside a step"), "{error}");
}

/// Three steps that come to their end in the same poll; the result is the order in which the code was told.
#[workflow]
async fn together(ctx: Ctx, _input: ()) -> Result<Vec<String>, Failure> {
    let told = std::sync::Mutex::new(Vec::new());
    let step = async |name: &str| {
        ctx.step(name, || async { Ok::<_, Failure>(()) }).await?;
        told.lock().unwrap().push(name.to_string());
        Ok::<_, Failure>(())
    };
    let (a, b, c) = ctx.join((step("a"), step("b"), step("c"))).await;
    a.and(b).and(c)?;
    Ok(told.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_ends_in_the_same_moment_is_told_in_the_order_of_the_journal() {
    let engine = engine(&Memory::new()).register(together).start().await.unwrap();
    let run = engine.start("together", &()).await.unwrap();
    let told = run.result::<Vec<String>>().await.unwrap();
    let journal = lines(&run).await;
    for (line, name) in journal[1..].iter().zip(&told) {
        assert!(line.ends_with(&format!("/{name}#1 a1")), "told of {told:?}, the journal is {journal:#?}");
    }
    assert_eq!(engine.commits(), 2, "all of it is one turn");
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}
