//! The ways in which a program is run: undisturbed, from a part of its journal, with faults, and called off.

use super::facts::{self, Delays, ensure};
use super::program::{Dice, Program};
use super::world::{Mishap, Trouble, World};
use steadfast::{Store, Timestamp};

/// How many parts of a journal are gone on with.
const PARTS: usize = 4;

/// Runs the program of that seed in the ways that its seed says, and tells what went wrong.
pub(super) fn check(seed: u64, program: &Program) -> Result<(), String> {
    in_virtual_time(async {
        let mut dice = Dice::new(seed, "runs");
        let live = live(seed, program, &mut dice).await.map_err(|why| format!("live: {why}"))?;
        match dice.below(8) {
            0 => rewound(&live, PARTS, &mut dice).await.map_err(|why| format!("from a part of the journal: {why}")),
            1..4 => faulty(&live, &mut dice).await.map(drop).map_err(|why| format!("with faults: {why}")),
            4 => cancelled(&live, &mut dice).await.map_err(|why| format!("cancelled: {why}")),
            _ => Ok(()),
        }
    })
}

/// What comes up when the program is run, live and with faults.
pub(super) fn kinds(seed: u64, program: &Program) -> Result<Vec<&'static str>, String> {
    in_virtual_time(async {
        let mut dice = Dice::new(seed, "runs");
        let live = live(seed, program, &mut dice).await?;
        let faulty = faulty(&live, &mut dice).await?;
        Ok([facts::kinds(&live).await, facts::kinds(&faulty).await].concat())
    })
}

fn in_virtual_time<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime can be built").block_on(what)
}

/// Every other store is slow, so that more happens between two turns.
async fn live(seed: u64, program: &Program, dice: &mut Dice) -> Result<World, String> {
    let mut world = World::new(seed, program).await;
    let commits = if seed.is_multiple_of(2) { Vec::new() } else { vec![slow(dice)] };
    run(&mut world, Trouble { commits, cancel: None }, &Delays::new()).await?;
    Ok(world)
}

fn slow(dice: &mut Dice) -> Vec<Mishap> {
    let mut until = 0;
    let commit = |_| {
        until += dice.below(25);
        Mishap::Slow(until)
    };
    (0..12).map(commit).collect()
}

/// To the end; then everything that must hold is looked at.
async fn run(world: &mut World, trouble: Trouble, delays: &Delays) -> Result<(), String> {
    let engine = world.go_on(trouble).await?;
    facts::check(world).await?;
    facts::same_delays(delays, &facts::delays(world).await)?;
    facts::replays(world, &engine).await
}

/// The machine died after some of the commits: another one goes on with what is there.
async fn rewound(whole: &World, parts: usize, dice: &mut Dice) -> Result<(), String> {
    let (commits, records, delays) = (whole.store.commits(), whole.records().await, facts::delays(whole).await);
    for _ in 0..parts {
        let commits = 1 + dice.below(commits) as usize;
        let store = whole.store.rewound(commits);
        let later = super::code::within(dice.one_of(&[0, 0, 30, 10_000]));
        let mut world = World::on(whole.seed, &whole.program, store, Timestamp::EPOCH);
        let part = world.records().await;
        let now = part.last().ok_or("a part without a record")?.at.saturating_add(later);
        world = World::on(whole.seed, &whole.program, world.store, now);
        let tell = |why| format!("{commits} commits, {later:?} later: {why}");
        run(&mut world, Trouble::default(), &delays).await.map_err(tell)?;
        ensure(records.starts_with(&part), || tell("the part is not one".into()))?;
        ensure(world.records().await.starts_with(&part), || tell("what was on record has changed".into()))?;
    }
    Ok(())
}

/// The store fails and crashes in random places; now and then the run is called off as well.
async fn faulty(live: &World, dice: &mut Dice) -> Result<World, String> {
    let delays = facts::delays(live).await;
    let mut world = World::new(live.seed, &live.program).await;
    let lives = 1 + dice.below(3);
    let commits = (0..lives).map(|_| mishaps(dice)).collect();
    let cancel = dice.percent(30).then(|| dice.below(150));
    run(&mut world, Trouble { commits, cancel }, &delays).await?;
    Ok(world)
}

/// Some that nothing happens to, some that fail or are slow, and mostly a crash in the end.
fn mishaps(dice: &mut Dice) -> Vec<Mishap> {
    let mut commits: Vec<_> = (0..dice.below(14))
        .map(|_| match dice.below(10) {
            0..6 => Mishap::Nothing,
            6..8 => Mishap::Fail,
            _ => Mishap::Slow(dice.below(200)),
        })
        .collect();
    if dice.percent(80) {
        commits.push(dice.one_of(&[Mishap::CrashBefore, Mishap::CrashAfter]));
    }
    commits
}

/// Called off at a random moment; the same from parts of that journal.
async fn cancelled(live: &World, dice: &mut Dice) -> Result<(), String> {
    let delays = facts::delays(live).await;
    let mut world = World::new(live.seed, &live.program).await;
    let cancel = Some(dice.below(120));
    run(&mut world, Trouble { cancel, ..Trouble::default() }, &delays).await?;
    rewound(&world, 2, dice).await
}
