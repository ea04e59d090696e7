//! Work at fixed times.

use crate::support::engine;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Clock, Ctx, Engine, Failure, HOUR, MINUTE, Run, SECOND, Tick, Timestamp, VirtualClock, workflow};

/// Works for so many minutes in each tick, and tells when they were due.
#[workflow]
async fn watch(ctx: Ctx, minutes: Vec<u32>) -> Result<Vec<(i64, u64, u64)>, Failure> {
    let (mut every, mut ticks) = (ctx.every(HOUR), Vec::new());
    for minutes in minutes {
        let Tick { due, number, missed } = every.tick().await?;
        ticks.push((due.as_micros(), number, missed));
        let work = || async move {
            tokio::time::sleep(minutes * MINUTE).await;
            Ok::<_, Failure>(())
        };
        ctx.step("work", work).await?;
    }
    Ok(ticks)
}

/// Due in hours after the start of the run, number, missed.
async fn ticks(run: &Run) -> Vec<(f64, u64, u64)> {
    let ticks: Vec<(i64, u64, u64)> = run.result().await.unwrap();
    let begun = run.view().await.unwrap().started_at;
    let hours = |due| Timestamp::from_micros(due).saturating_since(begun).as_secs_f64() / HOUR.as_secs_f64();
    ticks.into_iter().map(|(due, number, missed)| (hours(due), number, missed)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_periodic_timer_keeps_its_phase() {
    let engine = engine(&Memory::new()).register(watch).start().await.unwrap();
    let run = engine.start("watch", &[1, 59, 61, 1, 200, 1]).await.unwrap();
    assert_eq!(
        ticks(&run).await,
        [(1.0, 1, 0), (2.0, 2, 0), (3.0, 3, 0), (4.0, 4, 0), (5.0, 5, 0), (8.0, 8, 2)],
        "the fourth is late by a minute, 6 and 7 pass while the fifth works"
    );
}

#[tokio::test(start_paused = true)]
async fn a_periodic_timer_keeps_its_phase_over_a_restart() {
    let (store, clock) = (Memory::new(), VirtualClock::start());
    let engine = Engine::on(store.clone()).clock(clock).register(watch).start().await.unwrap();
    engine.start("watch", &[0, 0, 0]).id("restarted-watch").await.unwrap();
    clock.sleep(HOUR + MINUTE).await;
    engine.shutdown().await;
    clock.sleep(3 * HOUR).await;
    let engine = Engine::on(store.reopen()).clock(clock).register(watch).start().await.unwrap();
    let run = engine.run("restarted-watch").unwrap();
    assert_eq!(ticks(&run).await, [(1.0, 1, 0), (2.0, 2, 0), (4.0, 4, 1)], "the second was asked for before, the third passed meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_pause_delays_the_tick_that_is_waited_for_and_none_after_it() {
    let clock = VirtualClock::start();
    let engine = Engine::on(Memory::new()).clock(clock).register(watch).start().await.unwrap();
    let run = engine.start("watch", &[0, 0, 0]).await.unwrap();
    clock.sleep(HOUR + 30 * MINUTE).await;
    run.pause().await.unwrap();
    clock.sleep(10 * MINUTE).await;
    run.resume().await.unwrap();
    let began = run.view().await.unwrap().started_at;
    assert_eq!(ticks(&run).await, [(1.0, 1, 0), (2.0, 2, 0), (3.0, 3, 0)]);
    let late = clock.now().saturating_since(began);
    assert!((3 * HOUR..3 * HOUR + MINUTE).contains(&late), "the last one came on time: {late:?}");
}

/// A life per tick, seven minutes of work in each.
#[workflow]
async fn watch_for_ever(ctx: Ctx, (begun, left): (Option<i64>, u32)) -> Result<f64, Failure> {
    let begun = begun.map_or_else(|| ctx.now(), Timestamp::from_micros);
    let tick = ctx.every(HOUR).since(begun).tick().await?;
    let work = || async {
        tokio::time::sleep(7 * MINUTE).await;
        Ok::<_, Failure>(())
    };
    ctx.step("work", work).await?;
    match left {
        0 => Ok(tick.due.saturating_since(begun).as_secs_f64() / HOUR.as_secs_f64()),
        _ => ctx.continue_as_new(&(Some(begun.as_micros()), left - 1)),
    }
}

#[tokio::test(start_paused = true)]
async fn a_period_keeps_its_phase_over_lives_that_take_its_beginning_along() {
    let engine = engine(&Memory::new()).register(watch_for_ever).start().await.unwrap();
    let run = engine.start("watch_for_ever", &(None::<i64>, 5)).await.unwrap();
    assert_eq!(run.result::<f64>().await.unwrap(), 6.0, "the sixth tick, six hours after the beginning");
}

#[workflow]
async fn until_then(ctx: Ctx, at: i64) -> Result<i64, Failure> {
    ctx.sleep_until(Timestamp::from_micros(at)).await?;
    Ok(ctx.now().as_micros())
}

#[tokio::test(start_paused = true)]
async fn a_sleep_until_a_time_ends_then_or_at_once() {
    let clock = VirtualClock::start();
    let engine = Engine::on(Memory::new()).clock(clock).register(until_then).start().await.unwrap();
    let then = clock.now().saturating_add(HOUR);
    for _ in 0..2 {
        let run = engine.start("until_then", &then.as_micros()).await.unwrap();
        let woken = Timestamp::from_micros(run.result().await.unwrap());
        assert!(woken >= then && woken.saturating_since(then) < SECOND, "{woken} for {then}");
    }
}

#[workflow]
async fn never(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.every(Duration::ZERO).tick().await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_period_of_zero_is_refused() {
    let engine = engine(&Memory::new()).register(never).start().await.unwrap();
    let error = engine.start("never", &()).await.unwrap().result::<()>().await.unwrap_err();
    assert!(error.to_string().contains("period of Ctx::every is zero"), "{error}");
}
