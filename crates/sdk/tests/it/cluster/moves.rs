//! What is under way goes on when its shard changes hands: at once and in good order, or after its holder has died.
//!
//! Subject: `crates/runtime/src/cluster/keeper/leaving.rs`.

use super::{LEASE, World, within};
use crate::support::{call, calls, until};
use std::future::IntoFuture;
use std::time::Duration;
use steadfast::{Ctx, EngineBuilder, Failure, HOUR, MINUTE, SECOND, Settings, Status, workflow};

/// Ten short steps, one a second.
#[workflow]
async fn walk(ctx: Ctx, _nothing: ()) -> Result<u32, Failure> {
    for number in 0..10 {
        let name = format!("s{number}");
        ctx.step(&name, || {
            call(&ctx, &name);
            async { Ok::<_, Failure>(()) }
        })
        .await?;
        ctx.sleep(Duration::from_secs(1)).await?;
    }
    Ok(10)
}

/// One long step.
#[workflow]
async fn carry(ctx: Ctx, seconds: u64) -> Result<u32, Failure> {
    ctx.step("carry", || {
        let tries = call(&ctx, "carry");
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Failure>(tries)
        }
    })
    .await
}

fn all(builder: EngineBuilder) -> EngineBuilder {
    builder.register(walk).register_with(carry, Settings::new().manual_recovery())
}

#[tokio::test(start_paused = true)]
async fn runs_of_an_instance_that_has_died_go_on_and_what_is_recorded_is_not_done_again() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let ids: Vec<_> = (0..20).map(|number| format!("walk-{number}")).collect();
    for id in &ids {
        b.engine.start("walk", &()).id(id).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(3500)).await;
    b.crash();
    let died = tokio::time::Instant::now();
    for id in &ids {
        assert_eq!(a.engine.run(id).unwrap().result::<u32>().await.unwrap(), 10);
        assert!((0..10).all(|step| calls(id, &format!("s{step}")) == 1), "{id} has done a step twice");
    }
    assert!(died.elapsed() < LEASE + Duration::from_secs(2 + 7), "they went on late: {:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn runs_go_on_while_instances_come_and_go_in_good_order() {
    let world = World::new(8);
    let mut a = world.start("a0", all).await;
    let ids: Vec<_> = (0..20).map(|number| format!("stroll-{number}")).collect();
    for id in &ids {
        a.engine.start("walk", &()).id(id).await.unwrap();
    }
    for number in 1..8 {
        let next = world.start(&format!("a{number}"), all).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        a.stop().await;
        a = next;
    }
    for id in &ids {
        assert_eq!(a.engine.run(id).unwrap().result::<u32>().await.unwrap(), 10);
        assert!((0..10).all(|step| calls(id, &format!("s{step}")) == 1), "{id} has done a step twice");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_lost_lease_interrupts_what_does_not_go_on_by_itself() {
    let world = World::new(8);
    let a = world.start("a", all).await;
    let run = a.engine.start("carry", &5).id("in-good-order").await.unwrap();
    until("it is under way", async || calls("in-good-order", "carry") == 1).await;
    let b = world.start("b", all).await;
    a.stop().await; // waits for the step, because that takes less than the grace period
    drop(run);
    assert_eq!(b.engine.run("in-good-order").unwrap().result::<u32>().await.unwrap(), 1);

    b.engine.start("carry", &3600).id("cut-off").await.unwrap();
    until("it is under way", async || calls("cut-off", "carry") == 1).await;
    b.crash();
    let c = world.start("c", all).await;
    let status = async || c.engine.run("cut-off").unwrap().view().await.unwrap().status;
    while status().await != Status::Interrupted {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(calls("cut-off", "carry"), 1, "nobody has done it again");
}

#[tokio::test(start_paused = true)]
async fn what_is_at_rest_goes_on_elsewhere_while_an_instance_waits_for_the_end_of_a_step() {
    let world = World::new(8);
    let a = world.start("a", all).await;
    a.engine.start("carry", &8).id("slow").await.unwrap();
    until("it is under way", async || calls("slow", "carry") == 1).await;
    let b = world.start("b", all).await;
    let stopping = tokio::spawn(a.stop());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!stopping.is_finished() && b.has(7).await, "{:?} are at the one that stays", b.shards().await);
    stopping.await.unwrap();
    assert_eq!(b.engine.run("slow").unwrap().result::<u32>().await.unwrap(), 1);
    until("it has all", async || b.has(8).await).await;
}

/// Nobody is in a hurry when an instance comes: what does not go on by itself is not interrupted by it.
#[tokio::test(start_paused = true)]
async fn a_shard_that_moves_because_another_comes_waits_for_long_attempts() {
    let world = World::new(8);
    let a = world.start("a", all).await;
    for number in 0..16 {
        a.engine.start("carry", &25).id(format!("load-{number}")).await.unwrap();
    }
    until("all are under way", async || (0..16).all(|number| calls(&format!("load-{number}"), "carry") == 1)).await;
    let b = world.start("b", all).await;
    for number in 0..16 {
        assert_eq!(b.engine.run(&format!("load-{number}")).unwrap().result::<u32>().await.unwrap(), 1, "load-{number} was carried once");
    }
    within(10 * MINUTE, "they share", async || a.has(4).await && b.has(4).await).await;
}

/// A move that somebody wants interrupts nothing, however long it takes: what is idle moves, and what is under way is waited for.
#[tokio::test(start_paused = true)]
async fn a_move_never_cuts_an_attempt_off() {
    let world = World::new(8);
    let a = world.start("a", all).await;
    a.engine.start("carry", &7200).id("very-long").await.unwrap();
    until("it is under way", async || calls("very-long", "carry") == 1).await;
    let b = world.start("b", all).await;
    until("the idle ones were moved", async || a.has(4).await && b.has(4).await).await;
    assert!(b.engine.drain_instance("a", true).await.unwrap());
    until("only that one is left", async || a.has(1).await && b.has(7).await).await;
    assert_eq!(b.engine.run("very-long").unwrap().result::<u32>().await.unwrap(), 1);
    within(30 * MINUTE, "it has moved as well", async || a.has(0).await && b.has(8).await).await;
}

/// Somebody who waits for a shard to come to rest is in a hurry when the instance ends.
#[tokio::test(start_paused = true)]
async fn an_end_in_the_middle_of_a_move_takes_no_longer_than_any_end() {
    let world = World::new(8);
    let a = world.start("a", all).await;
    a.engine.start("carry", &7200).id("on-the-move").await.unwrap();
    until("it is under way", async || calls("on-the-move", "carry") == 1).await;
    let b = world.start("b", all).await;
    assert!(b.engine.drain_instance("a", true).await.unwrap());
    until("only that one is left", async || a.has(1).await && b.has(7).await).await;
    let before = tokio::time::Instant::now();
    a.stop().await;
    assert!(before.elapsed() < Duration::from_secs(12), "{:?}", before.elapsed());
    until("it was given away", async || b.has(8).await).await;
    assert!(before.elapsed() < Duration::from_secs(13), "{:?}", before.elapsed());
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(b.engine.run("on-the-move").unwrap().view().await.unwrap().status, Status::Interrupted);
}

/// What was cut off by a death is put on record by whoever takes the shard, also if it gives the shard away again at once.
#[tokio::test(start_paused = true)]
async fn what_was_cut_off_is_interrupted_though_its_shard_moves_on_at_once() {
    for later in (0..1000).step_by(20) {
        let world = World::new(4);
        let a = world.start("a", all).await;
        let ids: Vec<_> = (0..8).map(|number| format!("dropped-{later}-{number}")).collect();
        for id in &ids {
            a.engine.start("carry", &3600).id(id).await.unwrap();
        }
        until("all are under way", async || ids.iter().all(|id| calls(id, "carry") == 1)).await;
        let b = world.start("b", all).await;
        a.crash();
        while b.has(0).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(later)).await;
        let c = world.start("c", all).await;
        b.stop().await;
        until("the next one has all", async || c.has(4).await).await;
        tokio::time::sleep(LEASE * 2).await;
        for id in &ids {
            let status = c.engine.run(id).unwrap().view().await.unwrap().status;
            assert_eq!((status, calls(id, "carry")), (Status::Interrupted, 1), "{id}, {later} us after it was taken");
        }
    }
}

/// One that hangs keeps nobody waiting who could ask the next holder.
#[tokio::test(start_paused = true)]
async fn whoever_asks_one_that_hangs_asks_the_next_one_as_soon_as_there_is_one() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let ids: Vec<_> = (0..20).map(|number| format!("asked-{number}")).collect();
    for id in &ids {
        a.engine.start("walk", &()).id(id).await.unwrap();
    }
    b.hang();
    let hung = tokio::time::Instant::now();
    let starts = (0..20).map(|number| a.engine.start("walk", &()).id(format!("asked-later-{number}")).into_future());
    let waits = ids.iter().map(|id| async { a.engine.run(id).unwrap().result::<u32>().await });
    let (started, ended) = futures_util::future::join(futures_util::future::join_all(starts), futures_util::future::join_all(waits)).await;
    assert!(started.iter().all(Result::is_ok) && ended.iter().all(|ended| *ended.as_ref().unwrap() == 10));
    assert!(hung.elapsed() < LEASE + Duration::from_secs(2 + 11), "they have waited for the one that hangs: {:?}", hung.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_the_grace_period_counts_as_cut_off() {
    let world = World::new(8);
    let a = world.start("a", all).await;
    a.engine.start("carry", &3600).id("too-long").await.unwrap();
    until("it is under way", async || calls("too-long", "carry") == 1).await;
    let b = world.start("b", all).await;
    a.stop().await;
    let status = async || b.engine.run("too-long").unwrap().view().await.unwrap().status;
    while status().await != Status::Interrupted {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn runs_of_one_that_others_do_not_reach_go_on_and_are_seen() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let ids: Vec<_> = (0..10).map(|number| format!("cut-{number}")).collect();
    for id in &ids {
        a.engine.start("walk", &()).id(id).await.unwrap();
    }
    b.cut(); // others do not reach it, but it reaches the store: it goes on
    for id in &ids {
        assert_eq!(a.engine.run(id).unwrap().result::<u32>().await.unwrap(), 10);
        assert!((0..10).all(|step| calls(id, &format!("s{step}")) == 1), "{id} has done a step twice");
    }
}

/// A slow step, and then one that must not be made twice.
#[workflow]
async fn pay(ctx: Ctx, seconds: u64) -> Result<u32, Failure> {
    ctx.step("pack", || async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok::<_, Failure>(())
    })
    .await?;
    ctx.step("pay", || {
        let paid = call(&ctx, "pay");
        async move { Ok::<_, Failure>(paid) }
    })
    .not_repeatable()
    .await
}

/// Neither does a move that works nor one that does not leave anything in doubt.
#[tokio::test(start_paused = true)]
async fn a_move_before_a_step_that_must_not_be_repeated_leaves_no_doubt() {
    let world = World::new(4);
    let with = |builder: EngineBuilder| all(builder).register(pay);
    let a = world.start("a", with).await;
    let runs: Vec<_> = (0..40_u64).map(|number| (format!("paid-{number}"), 1 + number)).collect();
    for (id, seconds) in &runs {
        a.engine.start("pay", seconds).id(id).await.unwrap();
    }
    let b = world.start("b", with).await;
    tokio::time::sleep(15 * SECOND).await;
    assert!(b.engine.drain_instance("a", true).await.unwrap());
    for (id, _) in &runs {
        let paid = tokio::time::timeout(HOUR, b.engine.run(id).unwrap().result::<u32>()).await;
        assert_eq!(paid.expect("it is not in doubt").unwrap(), 1, "{id}");
    }
    within(30 * MINUTE, "it has moved", async || a.has(0).await).await;
}
