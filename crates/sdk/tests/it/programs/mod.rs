//! Random programs against a straightforward model: live, replayed, from parts of their journals, with faults, and called off.
//!
//! One seed decides everything about a program: what it does, the chance of its run, the signals it is sent, and what goes wrong. A program that
//! fails is made smaller for as long as it still fails, and is printed with the command that repeats it.

mod code;
mod facts;
mod model;
mod program;
mod runs;
mod trail;
mod world;

use program::Program;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// How many programs a test run checks, unless `PROGRAMS` says otherwise.
const PROGRAMS: u64 = 10_000;

/// How many smaller programs are tried before the smallest so far is shown.
const SMALLER_MAX: usize = 3_000;

#[test]
fn ten_thousand_programs_run_and_replay_without_a_difference() {
    if let Some(seed) = number("PROGRAM_SEED") {
        return assert!(verdict(seed).inspect(|report| eprintln!("{report}")).is_none(), "the program has failed: see above");
    }
    let programs = number("PROGRAMS").unwrap_or(PROGRAMS);
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let threads = thread::available_parallelism().map_or(2, |threads| threads.get().clamp(2, 8));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= programs {
                        return;
                    }
                    if let Some(report) = verdict(seed) {
                        failed.store(true, Ordering::Relaxed);
                        eprintln!("{report}");
                    }
                }
            });
        }
    });
    assert!(!failed.into_inner(), "a program has failed: see above");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

/// What is to be said about the program of that seed; nothing if all is well.
fn verdict(seed: u64) -> Option<String> {
    let program = Program::generate(seed);
    let why = runs::check(seed, &program).err()?;
    let (smallest, why_smallest) = smallest(seed, program.clone(), why.clone());
    Some(format!(
        "seed {seed}: {why}\n\n{program}\nthe smallest that fails: {why_smallest}\n\n{smallest}\n\
         repeat it with: PROGRAM_SEED={seed} cargo test -p steadfast --test it programs\n"
    ))
}

/// Makes a failing program smaller for as long as it fails.
fn smallest(seed: u64, program: Program, why: String) -> (Program, String) {
    let (mut best, mut why, mut tries) = (program, why, 0);
    loop {
        let mut smaller = best.smaller().into_iter().take(SMALLER_MAX - tries);
        let failing = smaller.find_map(|program| {
            tries += 1;
            runs::check(seed, &program).err().map(|why| (program, why))
        });
        match failing {
            Some(found) => (best, why) = found,
            None => return (best, why),
        }
    }
}
