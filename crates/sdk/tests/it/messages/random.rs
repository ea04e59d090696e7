//! Workers that are killed, cut off, half-open and drained by chance, with and without a store that fails: every run completes, every step is recorded once, nothing is hosted
//! in two places at a time, and no attempt that had begun before is told that it had not.
//!
//! `SEED` repeats a case; it is printed first.
//!
//! Subject: `crates/runtime/src/shard/lost.rs`.

use super::{node, start};
use crate::support::engine;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use steadfast::memory::{Fault, Memory};
use steadfast::messages::memory::{Faults, Memory as Network};
use steadfast::testing::Journal;
use steadfast::worker::Worker;
use steadfast::{Config, Ctx, Engine, Failure, MINUTE, Policy, Run, SECOND, VirtualClock, workflow};

/// Some are there from the start; the others begin while there is trouble, so that there is always something to lose.
const RUNS: usize = 48;
const RUNS_AT_ONCE: usize = 16;
const STEPS: usize = 10;
const WORKERS: usize = 4;
const HEARTBEAT: Duration = Duration::from_secs(3);
/// For how long there is trouble at the least: until every kind of it has been. After that everything is well.
const TROUBLE: Duration = Duration::from_secs(30);
/// What happens to workers: killed, drained, cut, silent, slow, well again.
const KINDS: usize = 6;

/// Chance that follows from a seed.
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }
}

/// What the code of all workers together has seen.
#[derive(Default)]
struct Seen {
    /// How many have a run now.
    hosts: BTreeMap<String, u32>,
    /// How often each attempt was begun.
    begun: BTreeMap<(String, usize, u32), u32>,
    /// Attempts that were told that they may have begun before.
    redelivered: u32,
    wrong: Vec<String>,
}

static SEEN: LazyLock<Mutex<Seen>> = LazyLock::new(Mutex::default);

fn seen<T>(with: impl FnOnce(&mut Seen) -> T) -> T {
    with(&mut SEEN.lock().unwrap())
}

/// There as long as somebody hosts the run.
struct Host(String);

impl Host {
    fn enter(run: String) -> Self {
        seen(|seen| {
            let hosts = seen.hosts.entry(run.clone()).or_default();
            *hosts += 1;
            if *hosts > 1 {
                seen.wrong.push(format!("{run} is hosted {hosts} times at once"));
            }
        });
        Host(run)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        seen(|seen| *seen.hosts.entry(self.0.clone()).or_default() -= 1);
    }
}

fn begin(ctx: &Ctx, step: usize) {
    let (run, redelivered) = (ctx.run_id().to_string(), ctx.redelivered());
    seen(|seen| {
        let begun = seen.begun.entry((run.clone(), step, ctx.attempt())).or_default();
        *begun += 1;
        if *begun > 1 && !redelivered {
            seen.wrong
                .push(format!("{run}: attempt {} of step {step} had begun before, and was not told", ctx.attempt()));
        }
        seen.redelivered += u32::from(redelivered);
    });
}

/// Ten steps that take their time; some fail once, and some are followed by a sleep.
#[workflow]
async fn ten(ctx: Ctx, seed: u64) -> Result<usize, Failure> {
    let _host = Host::enter(ctx.run_id().to_string());
    let mut sum = 0;
    for step in 0..STEPS {
        let mut dice = Dice(seed ^ (step as u64) << 32);
        let (takes, fails, sleeps) = (Duration::from_millis(dice.below(700)), dice.below(5) == 0, dice.below(5) == 0);
        sum += ctx
            .step(&format!("s{step}"), || async {
                begin(&ctx, step);
                tokio::time::sleep(takes).await;
                if fails && ctx.attempt() == 1 { Err(Failure::transient("once")) } else { Ok(step) }
            })
            .retry(Policy::constant(SECOND))
            .await?;
        if sleeps {
            ctx.sleep(2 * SECOND).await?;
        }
    }
    Ok(sum)
}

fn name(number: usize) -> String {
    format!("w{number}")
}

async fn hire(network: &Network, number: usize) -> Worker {
    let wire = Arc::new(network.wire_of(&name(number)));
    let worker = Worker::of("server").name(name(number)).wire(wire).heartbeat(HEARTBEAT).patience(2 * SECOND);
    worker.clock(VirtualClock::start()).register(ten).start().await.unwrap()
}

/// The process of a worker dies: first nothing of it runs any more, then others hear of it.
async fn kill(network: &Network, number: usize, worker: Worker) {
    let silence = Faults { swallow: true, ..Faults::default() };
    network.set_both(&name(number), "server", silence);
    drop(worker);
    for _ in 0..100 {
        tokio::task::yield_now().await; // what is left of it in this process ends
    }
    network.cut_off(&name(number));
    network.set_both(&name(number), "server", Faults::default());
}

/// Something happens to one of the workers; `done` counts what has, by its kind.
async fn trouble(network: &Network, workers: &mut [Option<Worker>], dice: &mut Dice, done: &mut [u32; KINDS]) {
    let number = dice.below(WORKERS as u64) as usize;
    let name = name(number);
    let missing = done.iter().position(|times| *times == 0).filter(|_| dice.below(2) == 0);
    let kind = missing.unwrap_or_else(|| dice.below(KINDS as u64) as usize);
    done[kind] += u32::from(workers[number].is_some());
    match (kind, workers[number].take()) {
        (_, None) => workers[number] = Some(hire(network, number).await),
        (0, Some(worker)) => kill(network, number, worker).await,
        (1, Some(worker)) => drop(tokio::spawn(worker.drain())), // another one of its name may come before it is done
        (2, worker) => {
            network.cut(&name, "server");
            workers[number] = worker;
        }
        (kind, worker) => {
            let faults = match kind {
                3 => Faults { swallow: true, ..Faults::default() },
                4 => Faults { delay: Some(Duration::ZERO..=SECOND), ..Faults::default() },
                _ => Faults::default(),
            };
            match dice.below(3) {
                0 => network.set(&name, "server", faults),
                1 => network.set("server", &name, faults),
                _ => network.set_both(&name, "server", faults),
            }
            workers[number] = worker;
        }
    }
}

/// Starts a run, also if the store does not say whether it has it.
async fn begin_run(server: &Engine, id: &str, seed: u64) -> Run {
    loop {
        match server.start("ten", &seed).id(id).await {
            Ok(run) => return run,
            Err(error) if error.is_retryable() => tokio::time::sleep(SECOND / 10).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Workers,
    Store,
    Both,
}

async fn play(seed: u64, kind: Trouble) {
    println!("SEED={seed} {kind:?}");
    let mut dice = Dice(seed);
    let (network, store) = (Network::new(seed), Memory::new());
    let config = Config { runs_idle_max: 5, ..Config::default() };
    let server =
        start(&network, engine(&store).config(config).messages(node(&network, "server")).workers().brought_by_workers("ten")).await;
    if kind != Trouble::Workers {
        let (mut faults, mut number) = (Dice(seed ^ 1), 0);
        store.faults().rule(move |_| {
            number += 1;
            match (number, faults.below(50)) {
                (7, _) | (_, 0) => Some(Fault::Fail), // each once at the least
                (11, _) | (_, 1) => Some(Fault::Doubt),
                _ => None,
            }
        });
    }
    let mut workers: Vec<Option<Worker>> = (0..WORKERS).map(|_| None).collect();
    let mut runs = Vec::new();
    for number in 0..RUNS_AT_ONCE {
        runs.push(begin_run(&server, &format!("{seed}-{number}"), dice.draw()).await);
    }
    let until_then = tokio::time::Instant::now() + TROUBLE;
    let (mut events, mut done) = (0, [0; KINDS]);
    for (number, worker) in workers.iter_mut().enumerate().filter(|_| kind == Trouble::Store) {
        *worker = Some(hire(&network, number).await);
    }
    while kind != Trouble::Store && (tokio::time::Instant::now() < until_then || done.contains(&0)) {
        trouble(&network, &mut workers, &mut dice, &mut done).await;
        if runs.len() < RUNS {
            runs.push(begin_run(&server, &format!("{seed}-{}", runs.len()), dice.draw()).await);
        }
        tokio::time::sleep(Duration::from_millis(100 + dice.below(1400))).await;
        events += 1;
    }
    while runs.len() < RUNS {
        runs.push(begin_run(&server, &format!("{seed}-{}", runs.len()), dice.draw()).await);
    }
    if kind == Trouble::Both {
        store.faults().clear();
    }
    network.heal();
    for (number, worker) in workers.iter_mut().enumerate() {
        if worker.is_none() {
            *worker = Some(hire(&network, number).await);
        }
    }
    let well_at = tokio::time::Instant::now();
    while server.workers().len() < WORKERS {
        assert!(well_at.elapsed() < MINUTE, "SEED={seed}: workers come back by themselves: {:?}", server.workers());
        tokio::time::sleep(SECOND / 10).await;
    }
    for run in &runs {
        let result = tokio::time::timeout(30 * MINUTE, run.result::<usize>()).await;
        assert_eq!(result.expect("every run completes").unwrap(), STEPS * (STEPS - 1) / 2, "SEED={seed}");
        let lines = Journal::of(run).await.lines();
        for step in 0..STEPS {
            let completed = lines.iter().filter(|line| line.starts_with(&format!("STEP_COMPLETED s{step}#1 "))).count();
            assert_eq!(completed, 1, "SEED={seed}: step {step} in {lines:#?}");
        }
    }
    let Seen { wrong, begun, redelivered, .. } = seen(std::mem::take);
    let (attempts, repeated) = (begun.values().sum::<u32>(), begun.values().map(|times| times - 1).sum::<u32>());
    assert!(wrong.is_empty(), "SEED={seed}: {wrong:#?}");
    println!("{events} events {done:?}, {attempts} attempts, {repeated} repeated, {redelivered} that may have been");
    match kind {
        Trouble::Store => assert_eq!(repeated, 0, "SEED={seed}: a store that fails loses nothing of what was done or begun"),
        Trouble::Workers | Trouble::Both => assert!(repeated > 0, "SEED={seed}: nothing was ever lost, so nothing was tested"),
    }
}

/// They share what their code has seen, so they come one after the other.
#[tokio::test(start_paused = true)]
async fn runs_survive_workers_that_come_and_go_by_chance() {
    let asked: Option<u64> = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = asked.unwrap_or_else(|| u64::from(std::process::id()));
    for kind in [Trouble::Workers, Trouble::Store, Trouble::Both] {
        play(seed, kind).await;
    }
}
