//! A real process, killed at random moments: nothing acknowledged is lost, nothing recorded runs twice, every run ends as it must.
//!
//! `CRASH_SEED` repeats a schedule of kills, `CRASH_KILLS` sets how many there are (60 if it does not).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod facts;
mod victim;

use facts::Facts;
use steadfast_kernel::random::{Seed, Stream};
use victim::Victim;

/// As many runs as one process has to carry.
const RUNS: u32 = 200;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}")))
}

#[test]
fn a_process_killed_at_random_moments_loses_nothing_and_repeats_nothing() {
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills_wanted = setting("CRASH_KILLS").unwrap_or(60);
    println!("CRASH_SEED={seed} CRASH_KILLS={kills_wanted}");
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut chance = Stream::new(&Seed(key), "", "kills");

    let (mut kills, mut rounds) = (0, 0);
    while kills < kills_wanted {
        rounds += 1;
        kills += round(&mut chance, kills_wanted - kills);
    }
    println!("{kills} kills in {rounds} rounds of {RUNS} runs");
}

/// Two hundred runs on a fresh data folder, killed until they are done or there were kills enough, then left alone until they are done.
fn round(chance: &mut Stream, kills_max: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let mut facts = Facts::new(folder.path(), RUNS);
    let mut kills = 0;
    for process in 1.. {
        let victim = Victim::start(folder.path(), process, RUNS);
        let mercy = kills >= kills_max;
        let life_ms = if mercy { 120_000 } else { 5 + chance.next_u64() % 100 };
        let end = victim.live_for(life_ms);
        facts.check(process, &end.acknowledged);
        if end.done {
            break;
        }
        assert!(!mercy, "left alone, the process does not come to an end:\n{}", end.errors);
        kills += 1;
    }
    facts.check_the_end();
    kills
}
