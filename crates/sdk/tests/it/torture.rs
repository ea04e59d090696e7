//! Random workflows on a store with random faults, restarted at random moments: whatever happens, the facts hold and every run ends as it must.
//!
//! `TORTURE_SEED` repeats a case (a failing one prints its seed), `TORTURE_CASES` sets how many there are.
//!
//! Subject: `crates/runtime/src/shard/mod.rs`.

mod facts;
mod lives;
mod script;
mod shards;
mod world;

use facts::{check, rows_and_timers_are_folds};
use futures_util::future::join_all;
use script::{Chance, Script, played};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Config, Engine, EngineBuilder, Error, Health, Retention, SystemClock, VirtualClock};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use world::World;

const MS: Duration = Duration::from_millis(1);
/// Longer than any run takes when it is left alone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Attempts that hang do so for a shorter time; only a dead store makes it come to this.
const GRACE: Duration = Duration::from_millis(200);

/// What the processes of a case run on.
#[derive(Clone, Copy, Debug)]
enum Ground {
    /// One thread, whose time passes as soon as nothing else is to be done.
    Virtual,
    /// Several threads, and the time of the machine.
    Threads,
}

impl Ground {
    fn runtime(self) -> Runtime {
        let runtime = match self {
            Ground::Virtual => Builder::new_current_thread().enable_time().start_paused(true).build(),
            Ground::Threads => Builder::new_multi_thread().worker_threads(3).enable_time().build(),
        };
        runtime.unwrap()
    }

    /// An engine whose clock goes on where the process before has left it.
    async fn engine(self, store: &Memory, lived: Duration, retention: Retention) -> EngineBuilder {
        let config = Config { shutdown_grace: GRACE, snapshot_every: 3, runs_idle_max: 2, retention, ..Config::default() }; // much is read back
        let engine = Engine::on(store.clone()).config(config);
        match self {
            Ground::Virtual => {
                let clock = VirtualClock::start();
                tokio::time::advance(lived).await;
                engine.clock(clock)
            }
            Ground::Threads => engine.clock(SystemClock),
        }
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}")))
}

/// Tells how to repeat a case that panics.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat it with TORTURE_SEED={} TORTURE_CASES=1", self.0);
        }
    }
}

fn torture(ground: Ground, cases: u64, mut case: impl FnMut(Ground, u64)) {
    let seed = setting("TORTURE_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let cases = setting("TORTURE_CASES").unwrap_or(cases);
    println!("TORTURE_SEED={seed} TORTURE_CASES={cases}");
    for seed in seed..seed + cases {
        let _repeat = Repeat(seed);
        case(ground, seed);
    }
}

#[test]
fn random_runs_with_faults_and_restarts_end_as_they_must() {
    torture(Ground::Virtual, 600, case);
}

#[test]
fn random_runs_on_several_threads_end_as_they_must() {
    torture(Ground::Threads, 25, case);
}

#[test]
fn random_lives_with_faults_restarts_and_an_operator_can_be_ended() {
    let mut seen = BTreeSet::new();
    torture(Ground::Virtual, 150, |ground, seed| seen.extend(lives::case(ground, seed)));
    assert!(setting("TORTURE_CASES").is_some() || seen.len() == lives::KINDS, "too little has happened: {seen:?}");
}

#[test]
fn random_lives_that_are_removed_after_their_end_leave_nothing_behind() {
    let mut swept = 0;
    torture(Ground::Virtual, 60, |ground, seed| swept += lives::swept::case(ground, seed));
    assert!(setting("TORTURE_CASES").is_some() || swept > 100, "only {swept} runs were removed before the end of their case");
}

#[test]
fn random_lives_on_several_threads_can_be_ended() {
    torture(Ground::Threads, 5, |ground, seed| drop(lives::case(ground, seed)));
}

/// A few processes one after the other, all but the last with faults. When its runtime is dropped, nothing of a process is left.
fn case(ground: Ground, seed: u64) {
    let mut chance = Chance::new(seed);
    let runs: Vec<_> = (0..1 + chance.below(4))
        .map(|n| (format!("{ground:?}-{seed}-{n}"), Script::draw(&mut chance)))
        .collect();
    let world = World::of(&runs, shards::store(&mut chance));
    let mut lived = Duration::ZERO;
    for left in (0..1 + chance.below(5)).rev() {
        lived += ground.runtime().block_on(async {
            let engine = ground.engine(&world.store(), lived, Retention::new()).await;
            if left > 0 {
                plan_faults(&mut chance, &world.store());
            }
            process(&mut chance, &world, &runs, engine, left == 0).await
        });
        if left > 0 {
            world.restart();
        }
        rows_and_timers_are_folds(&world, &runs);
    }
    check(&world, &runs);
}

fn plan_faults(chance: &mut Chance, store: &Memory) {
    for _ in 0..chance.below(5) {
        let commits = chance.below(6);
        store.faults().after(commits as usize, fault(chance));
    }
}

fn fault(chance: &mut Chance) -> Fault {
    let held = chance.below(30);
    match chance.below(6) {
        0 | 1 => Fault::Fail,
        2 => Fault::Doubt,
        3 => Fault::CrashBefore,
        4 => Fault::CrashAfter,
        _ => Fault::Hold(opened_after(held as u32 * MS)),
    }
}

fn opened_after(time: Duration) -> Gate {
    let gate = Gate::default();
    let opened = gate.clone();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        opened.open();
    });
    gate
}

/// One process: starts the runs, then lives until they have ended, until the store is dead, or for a random while. Tells how long that was.
async fn process(chance: &mut Chance, world: &World, runs: &[(String, Script)], engine: EngineBuilder, last: bool) -> Duration {
    let (store, begun) = (world.store(), Instant::now());
    let life = if last { PATIENCE } else { chance.below(200) as u32 * MS };
    let gently = last || chance.below(3) == 0;
    let engine = engine.register(played).start().await.unwrap();
    let ended = tokio::select! {
        biased;
        _ = join_all(runs.iter().map(|(id, script)| one(&engine, world, id, script))) => true,
        () = dead(&store) => false,
        () = tokio::time::sleep(life) => false,
    };
    assert!(ended || !last, "left alone, the runs do not end: {:#?}", world.waits(&engine, runs).await);
    if gently {
        // An end whose commit is in doubt can be read before the shard knows of it, and a store that fails again and again keeps it from knowing.
        let writes = matches!(engine.health(), Health::Well);
        assert!(writes || !last, "nothing has failed");
        let stopping = Instant::now();
        engine.shutdown().await;
        assert!(!ended || !writes || stopping.elapsed() < GRACE, "something is left of runs that have ended");
    }
    begun.elapsed()
}

/// Starts a run as often as it takes, and waits for its end.
async fn one(engine: &Engine, world: &World, id: &str, script: &Script) {
    let run = loop {
        let mut start = engine.start("played", script).id(id);
        if let Some(deadline) = script.deadline() {
            start = start.deadline(deadline);
        }
        match start.await {
            Ok(run) => break run,
            Err(error) => tokio::time::sleep(error.retry_after().expect("only what passes")).await,
        }
    };
    world.acknowledge(id, run.is_new());
    match run.result::<u64>().await {
        Ok(sum) => world.ended(id, Ok(sum)),
        Err(Error::Failed { failure, .. }) => world.ended(id, Err(failure.code)),
        Err(other) => panic!("{id}: {other}"),
    }
}

async fn dead(store: &Memory) {
    while !store.is_dead() {
        tokio::time::sleep(MS).await;
    }
}
