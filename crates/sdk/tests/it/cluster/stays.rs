//! A shard that is to move and does not come to rest: it goes on where it is, all of it, and moves when it can. Nothing is cut off, and nothing waits for long.
//!
//! Subject: `crates/runtime/src/shard/rest.rs`.
//! Subject: `crates/runtime/src/cluster/keeper/leaving.rs`.

use super::{Instance, LEASE, World, within};
use crate::keys::Told;
use crate::support::{call, calls, until};
use std::future::IntoFuture;
use std::time::Duration;
use steadfast::memory::{Fault, Gate};
use steadfast::{Config, Ctx, EngineBuilder, Failure, HOUR, MINUTE, Policy, RunId, SECOND, Settings, Status, workflow};
use tokio::time::Instant;

/// How long a shard may take to come to rest the first time.
const GRACE: Duration = Duration::from_secs(10);

/// One step that takes so long.
#[workflow]
async fn carry(ctx: Ctx, seconds: u64) -> Result<u32, Failure> {
    step(&ctx, "carry", Duration::from_secs(seconds)).await
}

/// A long step in one branch, steps without a pause in the next, and in another one short steps, sleeps, a child and an attempt that fails.
#[workflow]
async fn both(ctx: Ctx, seconds: u64) -> Result<u32, Failure> {
    let long = step(&ctx, "long", Duration::from_secs(seconds));
    let short = async {
        for number in 0..5 {
            ctx.sleep(2 * SECOND).await?;
            step(&ctx, &format!("s{number}"), Duration::ZERO).await?;
            ctx.start_and_wait::<_, u32>("carry", &1_u64).await?;
        }
        ctx.step("fails-twice", || {
            let tries = call(&ctx, "fails-twice");
            async move { if tries < 3 { Err(Failure::transient("not yet")) } else { Ok(tries) } }
        })
        .retry(Policy::constant(4 * SECOND).max_attempts(5))
        .await?;
        step(&ctx, "last", Duration::ZERO).await
    };
    let hops = async {
        for number in 0..10 {
            step(&ctx, &format!("hop{number}"), 3 * SECOND).await?;
        }
        step(&ctx, "landed", Duration::ZERO).await
    };
    let (long, short, hops) = ctx.join((long, short, hops)).await;
    Ok(long? + short? + hops?)
}

/// What was reserved is given back when the run is called off.
#[workflow]
async fn undone(ctx: Ctx, _: ()) -> Result<(), Failure> {
    let name = ctx.run_id().to_string();
    ctx.step("reserve", || async { Ok::<_, Failure>(()) })
        .undo(move |()| {
            let name = name.clone();
            async move {
                crate::support::note(&name, "given-back");
                Ok::<_, Failure>(())
            }
        })
        .await?;
    step(&ctx, "hold", 2 * HOUR).await.map(drop)
}

async fn step(ctx: &Ctx, name: &str, takes: Duration) -> Result<u32, Failure> {
    ctx.step(name, || {
        let tries = call(ctx, name);
        async move {
            tokio::time::sleep(takes).await;
            Ok::<_, Failure>(tries)
        }
    })
    .await
}

fn all(builder: EngineBuilder) -> EngineBuilder {
    all_with(GRACE, builder)
}

fn all_with(shutdown_grace: Duration, builder: EngineBuilder) -> EngineBuilder {
    let manual = || Settings::new().manual_recovery();
    builder
        .config(Config { shutdown_grace, ..Config::default() })
        .register_with(carry, manual())
        .register_with(both, manual())
        .register(undone)
}

/// Has a run that takes long in every shard, so that none comes to rest.
async fn keep_busy(instance: &Instance, name: &str, shards: u32) -> Vec<String> {
    let ids: Vec<_> = (0..shards).map(|shard| in_shard(name, shard, shards)).collect();
    for id in &ids {
        instance.engine.start("carry", &7200).id(id).await.unwrap();
    }
    until("all are under way", async || ids.iter().all(|id| calls(id, "carry") == 1)).await;
    ids
}

/// The id of a run that lives in that shard.
fn in_shard(name: &str, shard: u32, shards: u32) -> String {
    let lives_there = |id: &String| steadfast_store::shard_of(&RunId::new(id).unwrap().into(), shards) == shard;
    (0..).map(|number| format!("{name}-{number}")).find(lives_there).unwrap()
}

#[tokio::test(start_paused = true)]
async fn all_that_is_in_a_shard_that_does_not_come_to_rest_goes_on() {
    let (world, told) = (World::new(4), Told::new());
    let with_keys = |builder: EngineBuilder| all(builder).on_expire("k", told.handler());
    let a = world.start("a", with_keys).await;
    let busy = keep_busy(&a, "busy", 4).await;
    let mixed: Vec<_> = (0..8).map(|number| format!("mixed-{number}")).collect();
    for id in &mixed {
        a.engine.start("both", &7200).id(id).await.unwrap();
    }
    for number in 0..8 {
        a.engine.put(&format!("k{number}"), &number).ttl(5 * SECOND).await.unwrap();
    }
    let b = world.start("b", all).await;
    tokio::time::sleep(GRACE / 2).await; // half of its shards come to rest now
    let new: Vec<_> = (0..8).map(|number| format!("new-{number}")).collect();
    let begun = Instant::now();
    let starts = new.iter().map(|id| b.engine.start("carry", &1).id(id).into_future());
    assert!(futures_util::future::join_all(starts).await.iter().all(Result::is_ok));
    assert!(begun.elapsed() < SECOND, "what is new is on record at once: {:?}", begun.elapsed());

    within(2 * MINUTE, "all but the long steps is done", async || {
        mixed.iter().all(|id| calls(id, "last") == 1 && calls(id, "landed") == 1)
            && new.iter().all(|id| calls(id, "carry") == 1)
            && told.all().len() == 8
    })
    .await;
    assert!(a.has(4).await && b.has(0).await, "nothing has moved");
    for id in mixed.iter().chain(&busy) {
        assert!(b.engine.run(id).unwrap().result::<u32>().await.is_ok(), "{id}");
    }
    for id in &mixed {
        assert!((0..5).all(|number| calls(id, &format!("s{number}")) == 1) && calls(id, "long") == 1, "{id} has done something twice");
        assert_eq!((calls(id, "fails-twice"), calls(id, "last")), (3, 1), "{id}");
    }
    assert!(busy.iter().all(|id| calls(id, "carry") == 1), "nothing was cut off");
    within(3 * HOUR, "they share at last", async || a.has(2).await && b.has(2).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_taken_back_lets_a_shard_go_on() {
    let world = World::new(2);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(1).await && b.has(1).await).await;
    let busy = keep_busy(&a, "taken-back", 2).await;
    assert!(b.engine.drain_instance("a", true).await.unwrap());
    tokio::time::sleep(SECOND).await;
    assert!(b.engine.drain_instance("a", false).await.unwrap());
    tokio::time::sleep(GRACE).await;
    let begun = Instant::now();
    for number in 0..8 {
        let run = b.engine.start("carry", &0).id(format!("after-{number}")).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    }
    assert!(begun.elapsed() < 2 * SECOND, "{:?}", begun.elapsed());
    for id in &busy {
        assert_eq!(b.engine.run(id).unwrap().result::<u32>().await.unwrap(), 1, "{id} was not cut off");
    }
}

/// Whether a run that takes no time begins within a second in every shard.
async fn works_everywhere(instance: &Instance, name: &str, shards: u32) -> bool {
    let ids: Vec<_> = (0..shards).map(|shard| in_shard(name, shard, shards)).collect();
    for id in &ids {
        instance.engine.start("carry", &0).id(id).await.unwrap();
    }
    tokio::time::sleep(SECOND).await;
    ids.iter().all(|id| calls(id, "carry") == 1)
}

/// Ends when a shard has begun nothing for so long.
async fn stands_still_for(instance: &Instance, name: &str, seconds: usize) {
    let (mut round, mut still) = (0, 0);
    while still < seconds {
        let works = works_everywhere(instance, &format!("{name}-{round}"), 2).await;
        (round, still) = (round + 1, if works { 0 } else { still + 1 });
        assert!(round < 1000, "it comes to rest at some time");
    }
}

/// Nobody waits until the time is over that a shard has to come to rest, if there is no reason for it any more.
#[tokio::test(start_paused = true)]
async fn a_drain_that_is_taken_back_late_lets_a_shard_go_on_at_once() {
    let world = World::new(2);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(1).await && b.has(1).await).await;
    keep_busy(&a, "taken-back-late", 2).await;
    assert!(b.engine.drain_instance("a", true).await.unwrap());
    stands_still_for(&b, "drained", 12).await; // it is tried for the second time, for 20 s
    assert!(b.engine.drain_instance("a", false).await.unwrap());
    tokio::time::sleep(SECOND).await;
    assert!(works_everywhere(&b, "after-all", 2).await);
    assert!(a.has(1).await && b.has(1).await);
}

/// Whoever was to have the shard is dead.
#[tokio::test(start_paused = true)]
async fn a_shard_is_called_back_if_nobody_is_there_to_have_it() {
    let world = World::new(2);
    let a = world.start("a", all).await;
    let busy = keep_busy(&a, "for-nobody", 2).await;
    let b = world.start("b", all).await;
    stands_still_for(&a, "shared", 21).await; // for the third time, for 40 s
    b.crash();
    tokio::time::sleep(LEASE + 4 * SECOND).await;
    assert!(works_everywhere(&a, "alone", 2).await);
    assert!(busy.iter().all(|id| calls(id, "carry") == 1), "nothing was cut off");
}

/// However long attempts take, one after the other: the longer it takes, the longer a shard is waited for, so that it moves in the end.
#[tokio::test(start_paused = true)]
async fn a_shard_that_is_never_idle_is_drained_all_the_same() {
    for grace in [GRACE, Duration::ZERO] {
        let world = World::new(2);
        let with = |builder| all_with(grace, builder);
        never_idle(&world.start("a", with).await, &world.start("b", with).await, grace).await;
    }
}

async fn never_idle(a: &Instance, b: &Instance, grace: Duration) {
    until("they share", async || a.has(1).await && b.has(1).await).await;
    let load = async {
        for number in 0_u64.. {
            for of_each in 0..4 {
                let start = b.engine.start("carry", &90).id(format!("steady-{}-{number}-{of_each}", grace.as_secs()));
                start.await.unwrap();
            }
            tokio::time::sleep(30 * SECOND).await; // long before the ones before are done
        }
    };
    let drained = async {
        tokio::time::sleep(MINUTE).await;
        assert!(b.engine.drain_instance("a", true).await.unwrap());
        within(HOUR, "it has nothing any more", async || a.has(0).await && b.has(2).await).await;
    };
    tokio::select! {
        biased;
        () = load => unreachable!("it goes on"),
        () = drained => {}
    }
    let listed = b.engine.list().limit(1000).await.unwrap().items;
    assert!(listed.len() > 20 && listed.iter().all(|row| row.status != Status::Interrupted), "nothing was cut off");
}

#[tokio::test(start_paused = true)]
async fn an_end_while_a_shard_goes_on_cuts_off_only_after_the_grace_period() {
    let world = World::new(2);
    let a = world.start("a", all).await;
    let busy = keep_busy(&a, "busy-at-the-end", 2).await;
    let b = world.start("b", all).await;
    for later in [0, 9_999, 10_001, 30_000] {
        tokio::time::sleep(Duration::from_millis(later)).await;
        assert!(a.has(2).await && busy.iter().all(|id| calls(id, "carry") == 1));
    }
    let begun = Instant::now();
    a.stop().await;
    assert!((GRACE..GRACE + 3 * SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    for id in &busy {
        within(MINUTE, "it is interrupted", async || b.engine.run(id).unwrap().view().await.unwrap().status == Status::Interrupted).await;
    }
}

/// A run that is called off while its shard comes to rest is undone there, as soon as the shard goes on.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_called_off_meanwhile_is_undone_when_its_shard_goes_on() {
    let world = World::new(2);
    let a = world.start("a", all).await;
    keep_busy(&a, "busy-beside", 2).await;
    let runs = ["undone-0", "undone-1", "undone-2", "undone-3"];
    for id in runs {
        a.engine.start("undone", &()).id(id).await.unwrap();
    }
    until("they hold", async || runs.iter().all(|id| calls(id, "hold") == 1)).await;
    let b = world.start("b", all).await;
    tokio::time::sleep(GRACE / 2).await;
    for id in runs {
        b.engine.run(id).unwrap().cancel().await.unwrap();
    }
    for id in runs {
        within(MINUTE, "it is undone", async || b.engine.run(id).unwrap().view().await.unwrap().status == Status::Cancelled).await;
        assert_eq!(calls(id, "given-back"), 1, "{id}");
    }
    assert!(a.has(2).await, "its shards have never come to rest");
}

/// Waits to be told so many things.
#[workflow]
async fn listens(ctx: Ctx, count: usize) -> Result<Vec<String>, Failure> {
    let mut heard = Vec::new();
    for _ in 0..count {
        heard.push(ctx.signal::<String>("word").await?);
    }
    call(&ctx, "heard");
    Ok(heard)
}

/// A signal is on its way to the store when the shard goes on, for a run that nobody hosts by then.
#[tokio::test(start_paused = true)]
async fn what_is_being_recorded_when_a_shard_goes_on_is_not_lost() {
    let with = |builder: EngineBuilder| all(builder).register(listens);
    let world = World::new(2);
    let a = world.start("a", with).await;
    keep_busy(&a, "busy-while-told", 2).await;
    let runs = ["told-0", "told-1", "told-2", "told-3"];
    for id in runs {
        a.engine.start("listens", &1).id(id).await.unwrap();
    }
    let _b = world.start("b", with).await;
    tokio::time::sleep(GRACE / 2).await;
    let gate = Gate::default();
    let held = gate.clone();
    a.store.faults().rule(move |batch| {
        let is_told = batch.events.iter().any(|append| append.record.kind == "SIGNAL_RECEIVED");
        is_told.then(|| Fault::Late(held.clone()))
    });
    let told: Vec<_> = runs
        .map(|id| tokio::spawn(a.engine.run(id).unwrap().signal("word", "go").into_future()))
        .into_iter()
        .collect();
    tokio::time::sleep(GRACE).await; // it goes on meanwhile
    a.store.faults().clear();
    gate.open();
    for told in told {
        assert!(told.await.unwrap().unwrap());
    }
    within(10 * SECOND, "all have heard it", async || runs.iter().all(|id| calls(id, "heard") == 1)).await;
    assert!(a.has(2).await);
}

/// The deadline of a run passes though nothing begins in its shard.
#[tokio::test(start_paused = true)]
async fn deadlines_pass_while_a_shard_comes_to_rest() {
    let world = World::new(2);
    let a = world.start("a", all).await;
    keep_busy(&a, "busy-at-a-deadline", 2).await;
    let begun = Instant::now();
    let runs: Vec<_> = (0..4).map(|number| format!("in-time-{number}")).collect();
    for id in &runs {
        a.engine.start("carry", &7200).id(id).deadline(GRACE / 2 + 2 * SECOND).await.unwrap();
    }
    let b = world.start("b", all).await;
    for id in &runs {
        let failed = b.engine.run(id).unwrap().result::<u32>().await.unwrap_err();
        assert!(failed.to_string().contains("deadline"), "{failed}");
    }
    assert!(begun.elapsed() < GRACE, "{:?}", begun.elapsed());
    assert!(a.has(2).await);
}

/// Sleeps for so long.
#[workflow]
async fn rests(ctx: Ctx, seconds: u64) -> Result<(), Failure> {
    ctx.sleep(Duration::from_secs(seconds)).await
}

/// What is due and not to begin is in the way of nothing that is.
#[tokio::test(start_paused = true)]
async fn deadlines_pass_behind_more_timers_than_are_told_at_once() {
    let with = |builder: EngineBuilder| all(builder).register(rests);
    let world = World::new(1);
    let (a, b) = (world.start("a", with).await, world.start("b", with).await);
    let first = if a.has(1).await { &a } else { &b };
    keep_busy(first, "busy-before-many", 1).await;
    for number in 0..1500 {
        first.engine.start("rests", &3).id(format!("rests-{number}")).await.unwrap();
    }
    let late = first.engine.start("carry", &7200).id("behind-many").deadline(7 * SECOND).await.unwrap();
    let begun = Instant::now();
    assert!(b.engine.drain_instance(&first.id, true).await.unwrap());
    assert!(late.result::<u32>().await.unwrap_err().to_string().contains("deadline"));
    assert!(begun.elapsed() < GRACE, "{:?}", begun.elapsed());
    for number in 0..1500 {
        let rested = first.engine.run(&format!("rests-{number}")).unwrap();
        within(3 * GRACE, "it goes on when its shard does", async || rested.view().await.unwrap().status.is_final()).await;
    }
    assert!(first.has(1).await, "it has never come to rest");
}

/// A long step, one that fails the first time, and one that ends just before the other's next attempt.
#[workflow]
async fn flaky(ctx: Ctx, _: ()) -> Result<u32, Failure> {
    let long = step(&ctx, "long", 2 * HOUR);
    let first = step(&ctx, "first", Duration::from_millis(3900));
    let again = ctx
        .step("again", || {
            let tries = call(&ctx, "again");
            async move { if tries < 2 { Err(Failure::transient("not yet")) } else { Ok(tries) } }
        })
        .retry(Policy::constant(4 * SECOND).max_attempts(5));
    let (long, first, again) = ctx.join((long, first, again.into_future())).await;
    Ok(long? + first? + again?)
}

/// Its next attempt is due while something of the run is on its way to the store, and then the shard is to come to rest, and then the run is paused.
#[tokio::test(start_paused = true)]
async fn nothing_begins_in_a_run_that_is_paused_when_its_shard_goes_on() {
    let with = |builder: EngineBuilder| all(builder).register(flaky);
    let world = World::new(1);
    let (a, b) = (world.start("a", with).await, world.start("b", with).await);
    let (run, gate) = (a.engine.start("flaky", &()).id("paused-meanwhile").await.unwrap(), Gate::default());
    let again = || calls("paused-meanwhile", "again");
    until("it has failed once", async || again() == 1).await;
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let held = gate.clone();
    a.store.faults().rule(move |batch| {
        let is_first = batch.events.iter().any(|append| append.record.kind == "STEP_COMPLETED");
        is_first.then(|| Fault::Late(held.clone()))
    });
    tokio::time::sleep(SECOND).await;
    assert!(b.engine.drain_instance("a", true).await.unwrap());
    tokio::time::sleep(4 * SECOND).await;
    a.store.faults().clear();
    gate.open();
    tokio::time::sleep(SECOND).await;
    assert_eq!(again(), 1, "it is held back");
    run.pause().await.unwrap();
    tokio::time::sleep(GRACE).await;
    assert_eq!(again(), 1, "it is paused");
    run.resume().await.unwrap();
    within(3 * GRACE, "it is tried again", async || again() == 2).await;
    assert!(a.has(1).await, "its shard has never come to rest");
}

/// A standby that was behind has taken the place of the database: what was acknowledged last is gone, and nothing may build on it.
#[tokio::test(start_paused = true)]
async fn a_shard_whose_store_has_lost_commits_begins_anew_from_what_is_there() {
    let world = World::new(1);
    let a = world.start("a", |builder| all(builder).register(listens)).await;
    let run = a.engine.start("listens", &3).id("forgetful").await.unwrap();
    let other = a.engine.start("listens", &1).id("other").await.unwrap();
    run.signal("word", "one").await.unwrap();
    run.signal("word", "two").await.unwrap();
    until("it has heard them", async || run.view().await.unwrap().seq >= 4).await;
    tokio::time::sleep(SECOND).await;
    world.store.lose(2);
    within(MINUTE, "somebody notices that", async || other.signal("word", "hear").id("hear").await.is_ok()).await;
    for word in ["three", "four", "five"] {
        let said = async || run.signal("word", word).id(word).await.is_ok() || run.view().await.is_ok_and(|view| view.status.is_final());
        within(MINUTE, "it is heard, or all was heard", said).await;
    }
    let heard = tokio::time::timeout(MINUTE, run.result::<Vec<String>>())
        .await
        .expect("its journal is whole")
        .unwrap();
    assert!(heard.contains(&"three".into()) && !heard.contains(&"two".into()), "{heard:?}");
    let events: Vec<_> = run.journal().await.unwrap().into_iter().map(|entry| entry.seq).collect();
    assert_eq!(events, (1..=events.len() as u64).collect::<Vec<_>>(), "without a gap");
}

/// Tells another run, and waits for it.
#[workflow]
async fn tells(ctx: Ctx, to: String) -> Result<u32, Failure> {
    ctx.start("carry", &0_u64).id(&to).await?.result().await
}

/// A standby that was behind has taken the place of the database, and does not know that a shard has moved: whoever had it before has it again, is heard, and does not go on with what the one
/// after it may have done.
#[tokio::test(start_paused = true)]
async fn a_move_that_the_database_has_forgotten_counts_as_lost() {
    const SHARDS: u32 = 4;
    let with = |builder: EngineBuilder| all(builder).register(tells);
    let world = World::new(SHARDS);
    let a = world.start("a", with).await;
    let b = world.start("b", with).await;
    until("they share", async || a.has(2).await && b.has(2).await).await;

    let moved = b.shards().await[0];
    let run = b.engine.start("carry", &7200).id(in_shard("forgotten", moved, SHARDS)).await.unwrap();
    until("it is under way", async || calls(&run.id().to_string(), "carry") == 1).await;
    tokio::time::sleep(LEASE).await; // all have seen who has what
    world.leases.forget_move(moved, "a");
    within(LEASE, "it is interrupted", async || run.view().await.is_ok_and(|view| view.status == Status::Interrupted)).await;
    run.retry().await.unwrap(); // so that the shard stays
    tokio::time::sleep(LEASE).await;
    assert!(a.has(2).await && b.has(2).await);
    for shard in 0..SHARDS {
        let (parent, child) = (in_shard(&format!("tells-{shard}"), moved, SHARDS), in_shard("told", shard, SHARDS));
        let told = a.engine.start("tells", &child).id(&parent).await.unwrap();
        assert_eq!(tokio::time::timeout(MINUTE, told.result::<u32>()).await.expect("it is heard").unwrap(), 1, "{shard}");
    }
}

/// Whoever comes gets its share, but not all that is in the way of that stands still at once.
#[tokio::test(start_paused = true)]
async fn most_shards_work_while_a_few_come_to_rest() {
    const SHARDS: u32 = 32;
    let world = World::new(SHARDS);
    let a = world.start("a", all).await;
    keep_busy(&a, "busy-in-all", SHARDS).await;
    let _b = world.start("b", all).await;
    for round in 0..20 {
        tokio::time::sleep(3 * SECOND).await;
        let quick: Vec<_> = (0..SHARDS).map(|shard| in_shard(&format!("quick-{round}"), shard, SHARDS)).collect();
        for id in &quick {
            a.engine.start("carry", &0).id(id).await.unwrap();
        }
        tokio::time::sleep(SECOND).await;
        let done = quick.iter().filter(|id| calls(id, "carry") == 1).count();
        assert!(done >= SHARDS as usize - 4, "only {done} in round {round}");
    }
    assert!(a.has(SHARDS as usize).await, "none has come to rest");
}
