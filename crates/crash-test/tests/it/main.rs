//! A real process, killed at random moments: after each kill the facts are checked on what it left behind, and in the end every run has ended as it must.
//!
//! `CRASH_SEED` repeats a schedule of kills, `CRASH_KILLS` sets how many there are (100 if it does not).
//!
//! Subject: `crates/store-embedded/src/writer.rs`.
//! Subject: `crates/runtime/src/shard/load.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test may panic, and says how to repeat it")]

mod facts;
mod keys;
mod messages;
mod plans;
mod removed;
mod seen;
mod victim;
mod workers;
mod world;

use seen::Seen;
use std::sync::{Mutex, MutexGuard, PoisonError};
use steadfast_kernel::random::{Seed, Stream};
use victim::{Life, Victim};
use world::World;

/// As many runs as one process has to carry: four of every shape.
const RUNS: u32 = 144;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}")))
}

/// Held by tests whose processes have to come far enough between kills: they do not take the machine from each other.
static MACHINE: Mutex<()> = Mutex::new(());

fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says in the end how to repeat what has happened.
struct Repeat(String);

impl Drop for Repeat {
    fn drop(&mut self) {
        println!("repeat it with: {} cargo test -p steadfast-crash-test", self.0);
    }
}

#[test]
fn a_process_killed_at_random_moments_loses_nothing_and_repeats_nothing() {
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills_wanted = setting("CRASH_KILLS").unwrap_or(100);
    let repeat = Repeat(format!("CRASH_SEED={seed} CRASH_KILLS={kills_wanted}"));
    println!("{}", repeat.0);
    let mut chance = kills(seed);

    let (mut kills, mut rounds, mut seen) = (0, 0, Seen::default());
    while kills < kills_wanted {
        rounds += 1;
        kills += round(&mut chance, kills_wanted - kills, &mut seen);
    }
    println!("{kills} kills in {rounds} rounds of {RUNS} runs left behind: {seen}");
    seen.is_enough(kills);
}

/// The schedule of kills of that seed.
fn kills(seed: u64) -> Stream {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    Stream::new(&Seed(key), "", "kills")
}

/// Runs on a fresh data folder, whose process is killed until they are done or there were kills enough, and then left alone until they are done.
fn round(chance: &mut Stream, kills_max: u64, seen: &mut Seen) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::empty();
    let mut kills = 0;
    for process in 1.. {
        let mercy = kills >= kills_max;
        let life = if mercy { Life::Whole } else { Life::draw(chance) };
        let end = Victim::start(folder.path(), process, &RUNS.to_string()).live(life);
        let now = World::left_by(process, folder.path(), &world, &end.acknowledged);
        facts::hold(&now, &world);
        world = now;
        if end.done {
            break;
        }
        assert!(!mercy, "left alone, the process does not come to an end; not ended are {:?}\n{}", world.under_way(), end.errors);
        kills += 1;
        seen.note(&world);
    }
    facts::hold_at_the_end(&world);
    kills
}
