//! Instances that come, go, die, are cut off and find the store ill at random, while runs with children, limits and signals are under way: all of them end as they must, and nothing that
//! is recorded is done again.
//!
//! `TORTURE_SEED` repeats a case (a failing one prints its seed), `TORTURE_CASES` sets how many there are.
//!
//! Subject: `crates/runtime/src/cluster/mod.rs`.

use super::{Instance, World};
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use steadfast::memory::{Fault, Memory};
use steadfast::{Config, Ctx, Engine, EngineBuilder, Entry, Error, Event, Failure, Policy, RunId, Store, workflow};
use steadfast_kernel::random::{Seed, Stream};

/// The stores of the cases, by what the ids of their runs begin with, so that steps can look what is recorded of them.
static STORES: LazyLock<Mutex<BTreeMap<String, Memory>>> = LazyLock::new(Mutex::default);

/// What must not have happened. A step cannot panic about it: that would be a failed attempt.
static WRONG: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Longer than any run takes when it is left alone.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whoever was asked and says nothing for so long is dead. It is longer than anything takes, so whoever lives answers.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(90);

/// Looks whether a step is on record already that is about to be done.
fn about_to_do(run: &RunId, step: &str) {
    let case = run.as_str().split('-').next().unwrap_or_default();
    let Some(store) = STORES.lock().unwrap_or_else(PoisonError::into_inner).get(case).map(Memory::another) else { return };
    let done = |entry: &Entry| matches!(&entry.event, Event::StepCompleted { step: done, .. } if done.as_str() == step);
    if journal(&store, run).iter().any(done) {
        WRONG
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{run} does {step} again, which is recorded"));
    }
}

fn journal(store: &Memory, run: &RunId) -> Vec<Entry> {
    let records = store
        .journal(&run.into(), 0, 10_000)
        .now_or_never()
        .expect("memory does not wait")
        .expect("it is not dead");
    records.iter().map(|record| Entry::try_from(record).expect("it can be read")).collect()
}

async fn step(ctx: &Ctx, name: &str, takes: Duration) -> Result<(), Failure> {
    let (run, id) = (ctx.run_id().clone(), format!("{name}#1"));
    ctx.step(name, || {
        about_to_do(&run, &id);
        async move {
            tokio::time::sleep(takes).await;
            Ok::<_, Failure>(())
        }
    })
    .retry(Policy::constant(Duration::from_millis(200)).max_attempts(50))
    .await
}

#[workflow]
async fn errand(ctx: Ctx, acts: Vec<u64>) -> Result<u64, Failure> {
    let mut sum = 0;
    for (place, act) in acts.iter().enumerate() {
        sum += match act % 4 {
            0 => {
                step(&ctx, &format!("short-{place}"), Duration::ZERO).await?;
                1
            }
            1 => {
                step(&ctx, &format!("long-{place}"), Duration::from_millis(act % 3000)).await?;
                10
            }
            2 => {
                ctx.sleep(Duration::from_millis(act % 5000)).await?;
                100
            }
            _ => ctx.start_and_wait::<_, u64>("child", act).await?,
        };
    }
    Ok(sum)
}

#[workflow]
async fn child(ctx: Ctx, act: u64) -> Result<u64, Failure> {
    step(&ctx, "own", Duration::from_millis(act % 700)).await?;
    Ok(1000)
}

#[workflow]
async fn told(ctx: Ctx, times: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for number in 0..times {
        sum += ctx.signal::<u64>(&format!("n{number}")).await?;
    }
    Ok(sum)
}

fn expected(acts: &[u64]) -> u64 {
    acts.iter().map(|act| [1, 10, 100, 1000][(act % 4) as usize]).sum()
}

fn all(builder: EngineBuilder) -> EngineBuilder {
    let config = Config { shutdown_grace: Duration::from_millis(700), snapshot_every: 5, runs_idle_max: 8, ..Config::default() };
    builder.config(config).register(errand).register(child).register(told)
}

struct Chance(Stream);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }
}

/// Instances that are there now: anybody may be asked.
struct Town<'a> {
    world: &'a World,
    here: tokio::sync::Mutex<Vec<Instance>>,
    made: Mutex<u32>,
}

impl Town<'_> {
    async fn add(&self) {
        let id = {
            let mut made = self.made.lock().unwrap();
            *made += 1;
            format!("i{made}")
        };
        let instance = self.world.start(&id, all).await;
        self.here.lock().await.push(instance);
    }

    /// Somebody who can be asked.
    async fn anybody(&self, number: usize) -> Engine {
        let here = self.here.lock().await;
        here[number % here.len()].engine.clone()
    }

    /// Something happens to somebody.
    async fn trouble(&self, chance: &mut Chance) {
        let which = |here: &Vec<Instance>, chance: &mut Chance| chance.below(here.len() as u64) as usize;
        match chance.below(7) {
            0 | 1 => self.add().await,
            kind @ 2..=3 => {
                self.add().await; // somebody is always there
                let instance = {
                    let mut here = self.here.lock().await;
                    let which = which(&here, chance);
                    here.remove(which)
                };
                if kind == 2 { instance.crash() } else { instance.stop().await }
            }
            4 => {
                let here = self.here.lock().await;
                let instance = &here[which(&here, chance)];
                let draining = chance.below(2) == 0;
                let _it_may_be_gone = instance.engine.drain_instance(&instance.id, draining).await;
            }
            5 => {
                let here = self.here.lock().await;
                let instance = &here[which(&here, chance)];
                instance.cut();
                tokio::time::sleep(Duration::from_millis(chance.below(8000))).await;
                instance.network.0.lock().unwrap().insert(instance.id.clone(), Some(instance.engine.clone()));
            }
            _ => {
                let here = self.here.lock().await;
                let instance = &here[which(&here, chance)];
                let fault = if chance.below(2) == 0 { Fault::Fail } else { Fault::Doubt };
                instance.store.faults().after(chance.below(3) as usize, fault);
            }
        }
        tokio::time::sleep(Duration::from_millis(chance.below(3000))).await;
    }
}

/// Asks until it is known that it was heard: the ids make it the same each time.
async fn patiently<T>(town: &Town<'_>, number: usize, mut ask: impl AsyncFnMut(Engine) -> Result<T, Error>) -> T {
    for tries in number.. {
        let asked = ask(town.anybody(tries).await);
        match tokio::time::timeout(GIVEN_UP_AFTER, asked).await {
            Err(_) => {} // who was asked has died, which it does not know itself here
            Ok(Ok(answer)) => return answer,
            Ok(Err(error)) => {
                let passes = error.retry_after().is_some() || error.to_string().contains("stopping or has stopped");
                assert!(passes, "{error}");
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    unreachable!("there is always another try")
}

async fn errand_of(town: &Town<'_>, number: usize, id: &str, acts: &[u64]) {
    patiently(town, number, async |engine| {
        let mut start = engine.start("errand", acts).id(id);
        if number.is_multiple_of(3) {
            start = start.limit("carts", 3);
        }
        start.await.map(drop)
    })
    .await;
    let sum = patiently(town, number + 1, async |engine| engine.run(id)?.result::<u64>().await).await;
    assert_eq!(sum, expected(acts), "{id} {acts:?}");
}

async fn told_of(town: &Town<'_>, number: usize, id: &str) {
    patiently(town, number, async |engine| engine.start("told", &5_u32).id(id).await.map(drop)).await;
    for part in 0..5_u64 {
        let name = format!("n{part}");
        patiently(town, number + 2, async |engine| match engine.run(id)?.signal(&name, &part).id(&name).await {
            Err(error) if part == 4 && error.to_string().contains("has ended") => Ok(()), // the one before was heard
            sent => sent.map(drop),
        })
        .await;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    let sum = patiently(town, number + 1, async |engine| engine.run(id)?.result::<u64>().await).await;
    assert_eq!(sum, 10, "{id}");
}

/// What does not end, and who has what.
async fn stuck(town: &Town<'_>, name: &str) -> String {
    let mut text = String::new();
    let here = town.here.lock().await;
    for instance in &*here {
        let (id, shards) = (&instance.id, instance.shards().await);
        text += &format!("\n{id}: shards {shards:?}, {:?}", instance.engine.health());
    }
    let Some(first) = here.first() else { return text };
    for row in first.engine.list().limit(1000).await.unwrap().items {
        if row.run.as_str().starts_with(name) && row.ended_at.is_none() {
            let waits = first.engine.run(row.run.as_str()).unwrap().view().await.map(|view| view.waits);
            text += &format!("\n{} in shard {}: {:?} {waits:?}", row.run, row.shard, row.status);
        }
    }
    text
}

fn case(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut chance = Chance(Stream::new(&Seed(key), "", "cluster"));
        let world = World::new(1 + chance.below(12) as u32);
        let name = format!("s{seed}");
        STORES.lock().unwrap().insert(name.clone(), world.store.another());
        let town = Town { world: &world, here: tokio::sync::Mutex::default(), made: Mutex::default() };
        town.add().await;
        let mut draw = |_| (0..1 + chance.below(6)).map(|_| chance.below(10_000)).collect::<Vec<_>>();
        let errands: Vec<_> = (0..12).map(&mut draw).collect();
        let ids: Vec<_> = (0..errands.len()).map(|number| format!("{name}-{number}")).collect();
        let runs = async {
            let errands = errands.iter().enumerate().map(|(number, acts)| errand_of(&town, number, &ids[number], acts));
            let others: Vec<_> = (0..4).map(|number| format!("{name}-told{number}")).collect();
            let others = others.iter().enumerate().map(|(number, id)| told_of(&town, number, id));
            futures_util::future::join(join_all(errands), join_all(others)).await;
        };
        let troubles = async {
            for _ in 0..12 {
                town.trouble(&mut chance).await;
            }
            let here = town.here.lock().await;
            for instance in &*here {
                instance.store.faults().clear();
                let _it_may_be_gone = instance.engine.drain_instance(&instance.id, false).await;
            }
        };
        let ended = tokio::time::timeout(PATIENCE, futures_util::future::join(runs, troubles)).await;
        if ended.is_err() {
            panic!("left alone, the runs do not end: {}", stuck(&town, &name).await);
        }
        for id in &ids {
            let journal = journal(&world.store.another(), &RunId::new(id).unwrap());
            assert!(journal.iter().map(|entry| entry.seq).eq(1..=journal.len() as u64), "{id} has gaps: {journal:?}");
        }
        for instance in std::mem::take(&mut *town.here.lock().await) {
            instance.stop().await;
        }
        let wrong = std::mem::take(&mut *WRONG.lock().unwrap_or_else(PoisonError::into_inner));
        assert_eq!(wrong, Vec::<String>::new());
        STORES.lock().unwrap().remove(&name);
    });
}

#[test]
fn whatever_happens_to_instances_runs_end_as_they_must_and_nothing_recorded_is_done_again() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seed = setting("TORTURE_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let cases = setting("TORTURE_CASES").unwrap_or(40);
    println!("TORTURE_SEED={seed} TORTURE_CASES={cases}");
    for seed in seed..seed + cases {
        println!("seed {seed}");
        case(seed);
    }
}
