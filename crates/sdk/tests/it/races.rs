//! Races: what the losers leave behind.
//!
//! Subject: `crates/runtime/src/host/board/hosting.rs`.

use crate::support::{engine, lines};
use steadfast::memory::Memory;
use steadfast::{Ctx, Failure, HOUR, MINUTE, Policy, SECOND, Store, Wait, workflow};

async fn done(ctx: &Ctx, step: &str) -> Result<u32, Failure> {
    ctx.step(step, || async { Ok::<_, Failure>(0) }).await
}

/// Both steps end at once. The first one's branch asks for the signal, which is there; then the second one's outcome ends the race.
#[workflow]
async fn drops_a_wait(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.sleep(SECOND).await?;
    let waits = async {
        done(&ctx, "first").await?;
        ctx.signal("go").await
    };
    let (winner, outcome) = ctx.race((waits, done(&ctx, "second"))).await;
    assert_eq!((winner, outcome?), (1, 0));
    ctx.signal("go").within(MINUTE).await
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_a_loser_was_about_to_get_is_for_the_next_who_waits() {
    let engine = engine(&Memory::new()).register(drops_a_wait).start().await.unwrap();
    let run = engine.start("drops_a_wait", &()).await.unwrap();
    run.signal("go", &7).await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 7, "{:#?}", lines(&run).await);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

async fn either(ctx: &Ctx) -> Result<(usize, u32), Failure> {
    let (winner, said) = ctx.race((ctx.signal("stop"), ctx.signal("go"))).await;
    Ok((winner, said?))
}

#[workflow]
async fn two_races(ctx: Ctx, _input: ()) -> Result<[(usize, u32); 2], Failure> {
    ctx.sleep(SECOND).await?;
    let (first, second) = ctx.join((either(&ctx), either(&ctx))).await;
    Ok([first?, second?])
}

#[tokio::test(start_paused = true)]
async fn signals_that_came_together_are_given_out_one_by_one() {
    let engine = engine(&Memory::new()).register(two_races).start().await.unwrap();
    let run = engine.start("two_races", &()).await.unwrap();
    for (name, said) in [("stop", 1), ("go", 2), ("go", 3)] {
        run.signal(name, &said).await.unwrap();
    }
    let winners: [(usize, u32); 2] = run.result().await.unwrap();
    assert_eq!(winners, [(0, 1), (1, 2)], "the second race gets what the first one did not need: {:#?}", lines(&run).await);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

#[workflow]
async fn drops_a_retry(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    let slow = async {
        let attempts = || {
            let attempt = ctx.attempt();
            async move {
                if attempt == 1 {
                    return Err(Failure::transient("down"));
                }
                tokio::time::sleep(HOUR).await;
                Ok(())
            }
        };
        ctx.step("slow", attempts).retry(Policy::constant(SECOND)).await
    };
    let (winner, _slept) = ctx.race((slow, ctx.sleep(MINUTE))).await;
    assert_eq!(winner, 1);
    ctx.sleep(HOUR).await
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_running_when_its_race_was_over_is_waited_for_no_more() {
    let store = Memory::new();
    let engine = engine(&store).register(drops_a_retry).start().await.unwrap();
    let run = engine.start("drops_a_retry", &()).await.unwrap();
    tokio::time::sleep(2 * MINUTE).await;
    let waits = run.view().await.unwrap().waits;
    assert!(matches!(waits[..], [Wait::Timer { .. }]), "{waits:?}");
    assert_eq!(store.timers(0, None, 10).await.unwrap().len(), 1, "only the sleep is armed");
}
