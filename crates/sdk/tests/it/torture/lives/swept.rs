//! The same lives, removed a short time after their end, while everything goes on: starts with the same ids and other plans, retries, words, letters,
//! crashes, and sweeps that fail. A run is there whole or not at all, and nothing of it is left in the next run of its id.
//!
//! Subject: `crates/runtime/src/shard/sweep.rs`.

use super::ledger::Ledger;
use super::operator::Operator;
use super::plan::{self, Plan};
use super::{Top, converge, facts, shards, start};
use crate::torture::script::Chance;
use crate::torture::{Ground, MS, dead, fault, plan_faults};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::collections::VecDeque;
use std::time::Duration;
use steadfast::memory::{Fault, Memory};
use steadfast::{Clock, Engine, EngineBuilder, Retention, Status, Store, VirtualClock};
use steadfast_kernel::{EntityId, Timestamp};
use steadfast_store::Sweep;
use tokio::time::Instant;

/// How often an engine looks for runs whose time is over, from its start on.
const EVERY: Duration = Duration::from_secs(60);

/// Virtual time, but who would sleep for long is woken soon: an engine with that clock looks for runs whose time is over all the time.
struct Hasty(VirtualClock);

impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(if time > EVERY / 2 { 3 * MS } else { time })
    }

    fn steady_for(&self) -> Duration {
        self.0.steady_for()
    }
}

/// The clock of a process whose runtime has just begun, after those before it have lived that long.
fn clock(lived: Duration) -> VirtualClock {
    VirtualClock::start_at(VirtualClock::start().now().saturating_add(lived))
}

/// Tells how many runs were removed while others were under way.
pub(in crate::torture) fn case(ground: Ground, seed: u64) -> usize {
    let mut chance = Chance::new(seed);
    let mut tops: Vec<_> = (0..1 + chance.below(4))
        .map(|n| Top::draw(&mut chance, format!("swept-{ground:?}-{seed}-{n}")))
        .collect();
    let hasty = chance.below(2) == 0;
    let every = if hasty { 200 * MS } else { EVERY }; // by then everything was looked at
    let ledger = Ledger::of(shards::store(&mut chance), tops.iter().map(|top| top.id.clone()).collect(), Duration::ZERO);
    let (mut operator, mut lived) = (Operator::default(), Duration::ZERO);
    for _ in 0..1 + chance.below(4) {
        let retention = draw(&mut chance);
        lived += ground.runtime().block_on(async {
            let engine = ground.engine(&ledger.store(), lived, retention).await;
            let engine = if hasty { engine.clock(Hasty(clock(lived))) } else { engine };
            watch(&mut chance, &ledger, retention, lived, true);
            disturbed(&mut chance, &ledger, &mut tops, &mut operator, (engine, every)).await
        });
        ledger.restart();
        facts::always(&ledger);
    }
    let swept = ledger.count_swept();
    let retention = Retention::new().completed(MS).failed(MS).cancelled(MS);
    ground.runtime().block_on(async {
        let engine = ground.engine(&ledger.store(), lived, retention).await;
        let engine = if hasty { engine.clock(Hasty(clock(lived))) } else { engine };
        watch(&mut chance, &ledger, retention, lived, false);
        healed(&mut chance, &ledger, &tops, &mut operator, (engine, every)).await;
    });
    swept
}

fn draw(chance: &mut Chance) -> Retention {
    let mut keep_for = || [Some(MS), Some(20 * MS), Some(EVERY), None][chance.below(4) as usize];
    Retention { completed: keep_for(), failed: keep_for(), cancelled: keep_for() }
}

/// Looks at every sweep, and has some of its steps fail: none takes a run whose time is not over.
fn watch(chance: &mut Chance, ledger: &Ledger, retention: Retention, lived: Duration, faults: bool) {
    let (book, store) = (ledger.share(), ledger.store());
    let clock = clock(lived);
    let mut line: VecDeque<Option<Fault>> = VecDeque::new();
    for _ in 0..if faults { chance.below(4) } else { 0 } {
        line.extend((0..chance.below(4)).map(|_| None));
        line.push_back(Some(fault(chance)));
    }
    store.faults().sweep_entries(1 + chance.below(8) as usize);
    store.clone().faults().sweep_rule(move |runs| {
        runs.iter().for_each(|sweep| may_go(&book, &store, retention, sweep, clock.now()));
        line.pop_front().flatten()
    });
}

fn may_go(ledger: &Ledger, store: &Memory, retention: Retention, sweep: &Sweep, now: Timestamp) {
    let Some(run) = sweep.entity.run() else { return };
    let Some(Ok(Some(row))) = store.run(run).now_or_never() else { return };
    let keep_for = match row.status {
        Status::Completed => retention.completed,
        Status::Failed => retention.failed,
        Status::Cancelled => retention.cancelled,
        _ => None,
    };
    if !sweep.fits(&row) {
        return; // it has begun another life
    }
    if keep_for.is_none_or(|keep_for| sweep.ended_at.saturating_add(keep_for) > now) {
        ledger.is_wrong(format!("{row:?} is removed at {now:?}, though {retention:?}"));
    }
    ledger.may_go((run.to_string(), row.started_at));
}

/// A process with something to do at its beginning and whenever it looks for runs whose time is over.
async fn disturbed(
    chance: &mut Chance,
    ledger: &Ledger,
    tops: &mut [Top],
    operator: &mut Operator,
    (engine, every): (EngineBuilder, Duration),
) -> Duration {
    let (store, begun, gently) = (ledger.store(), Instant::now(), chance.below(3) == 0);
    let engine = plan::register(engine).start().await.unwrap();
    for sweeps in 0..1 + chance.below(4) as u32 {
        if sweeps > 0 {
            let early = chance.below(60) as u32 * MS;
            tokio::time::sleep_until(begun + every * sweeps - early).await;
        }
        if sweeps == 0 || every == EVERY {
            plan_faults(chance, &store);
        }
        busy(chance, ledger, tops, operator, &engine).await;
        if store.is_dead() {
            break;
        }
    }
    if gently {
        engine.shutdown().await;
    }
    begun.elapsed()
}

/// Everybody asks for something, for a while.
async fn busy(chance: &mut Chance, ledger: &Ledger, tops: &mut [Top], operator: &mut Operator, engine: &Engine) {
    let (store, life, every) = (ledger.store(), (50 + chance.below(150)) as u32 * MS, 2 + chance.below(20));
    for top in tops.iter_mut() {
        if chance.below(3) == 0 {
            top.plan = Plan::draw(chance, 0);
        }
    }
    let after: Vec<_> = tops.iter().map(|_| chance.below(80) as u32 * MS).collect();
    let starts = tops.iter().zip(after).map(async |(top, after)| {
        tokio::time::sleep(after).await;
        start(engine, ledger, top).await;
    });
    let work = async { tokio::join!(join_all(starts), operator.operate(chance, ledger, engine, 40, every)) };
    tokio::select! {
        biased;
        _ = work => {}
        () = dead(&store) => {}
        () = tokio::time::sleep(life) => {}
    }
}

/// A process without faults: everything comes to its end and goes, begins again, and goes again.
async fn healed(chance: &mut Chance, ledger: &Ledger, tops: &[Top], operator: &mut Operator, (engine, every): (EngineBuilder, Duration)) {
    let engine = plan::register(engine).start().await.unwrap();
    for _ in 0..2 {
        join_all(tops.iter().map(|top| start(&engine, ledger, top))).await;
        operator.operate(chance, ledger, &engine, 10, 30).await;
        converge(chance, ledger, &engine).await;
        facts::at_rest(ledger);
        let (store, resting) = (ledger.store(), Instant::now());
        let is_left = || store.entities().iter().any(|id| id.run().is_some()) || !shards::half_swept(&store).is_empty();
        while is_left() && resting.elapsed() < 3 * EVERY {
            tokio::time::sleep(every).await;
        }
        nothing_is_left(&store);
    }
    engine.shutdown().await;
}

/// Limits and letters have lives of their own.
fn nothing_is_left(store: &Memory) {
    let runs: Vec<_> = store.entities().into_iter().filter(|id| id.run().is_some()).collect();
    assert_eq!(runs, Vec::<EntityId>::new(), "every run has ended, and its time is over");
    assert_eq!(shards::runs(store), []);
    assert_eq!(shards::half_swept(store), []);
    assert_eq!(shards::timers(store), []);
    assert_eq!(shards::outbox(store), []);
}
