//! Random programs against a straightforward model: live, replayed, from parts of their journals, with faults, and called off.
//!
//! One seed decides everything about a program: what it does, the chance of its run, the signals it is sent, and what goes wrong. A program that
//! fails is made smaller for as long as it still fails, and is printed with the command that repeats it.
//!
//! Subject: `crates/runtime/src/host/session.rs`.
//! Subject: `crates/runtime/src/host/replay.rs`.

mod code;
mod facts;
mod model;
mod program;
mod runs;
mod trail;
mod world;

use program::{Node, Program, Step, run_seed};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use steadfast_kernel::random::Stream;
use trail::{Seen, Trail, What};

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
    let why = check(seed, &program).err()?;
    let (smallest, why_smallest) = smallest(program.clone(), why.clone(), |program| check(seed, program));
    Some(format!(
        "seed {seed}: {why}\n\n{program}\nthe smallest that fails: {why_smallest}\n\n{smallest}\n\
         repeat it with: PROGRAM_SEED={seed} cargo test -p steadfast --test it programs\n"
    ))
}

/// A panic is a failure like any other, and has a seed.
fn check(seed: u64, program: &Program) -> Result<(), String> {
    catch_unwind(|| runs::check(seed, program)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        Err(format!("a panic: {}", message.unwrap_or_default()))
    })
}

/// Makes a failing program smaller for as long as it fails.
fn smallest(program: Program, why: String, check: impl Fn(&Program) -> Result<(), String>) -> (Program, String) {
    let (mut best, mut why, mut tries) = (program, why, 0);
    loop {
        let mut smaller = best.smaller().into_iter().take(SMALLER_MAX - tries);
        let failing = smaller.find_map(|program| {
            tries += 1;
            check(&program).err().map(|why| (program, why))
        });
        match failing {
            Some(found) => (best, why) = found,
            None => return (best, why),
        }
    }
}

/// What the programs are for: everything that a journal can hold comes up, and in every way of running them.
#[test]
fn the_programs_come_to_everything_there_is() {
    let mut seen = BTreeMap::new();
    for seed in 0..400 {
        let program = Program::generate(seed);
        for kind in runs::kinds(seed, &program).expect("all is well") {
            *seen.entry(kind).or_insert(0) += 1;
        }
    }
    for kind in [
        "RUN_STARTED",
        "STEP_COMPLETED",
        "STEP_FAILED",
        "RETRY_SCHEDULED",
        "TIMER_SET",
        "TIMER_FIRED",
        "SIGNAL_AWAITED",
        "SIGNAL_RECEIVED",
        "SIGNAL_TAKEN",
        "RUN_CANCEL_REQUESTED",
        "RUN_COMPENSATING",
        "UNDO_COMPLETED",
        "RUN_COMPLETED",
        "RUN_FAILED",
        "RUN_CANCELLED",
        "abandoned",
        "several outcomes in a turn",
        "several engines",
    ] {
        assert!(seen.get(kind).is_some_and(|times| *times >= 10), "{kind} comes up too rarely: {seen:?}");
    }
}

#[test]
fn the_model_refuses_what_cannot_be() {
    let program = Program(vec![
        Node::Step(Step { name: "a".into(), transient: 1, fails: false, takes: 0, undo: None }),
        Node::Signal { name: "s".into(), within: None },
        Node::Race(vec![vec![Node::Random], vec![Node::Fail]]),
    ]);
    let draw = Stream::new(&run_seed(0), "race#1.0", "random").at(0);
    let judge = |seen: [What; 3], failed: Option<&str>| {
        let seen = (0u32..).zip(seen).map(|(tick, what)| Seen { tick: 10 + tick, at: 0, what }).collect();
        let trail = Trail { seen, failed: failed.map(Into::into) };
        model::check(&program, run_seed(0), &trail, &|said| (said == 0).then(|| "s".into())).is_ok()
    };
    let (output, signal) = (What::Output("a#1".into()), What::Signal(0));
    let won = |index, tick, what, failed: Option<&str>| {
        What::Won(index, Trail { seen: vec![Seen { tick, at: 0, what }], failed: failed.map(Into::into) })
    };
    let (first, failure) = (won(0, 0, What::Drew(draw), None), "asked to fail (0)");
    assert!(judge([output.clone(), signal.clone(), first.clone()], None));
    assert!(
        judge([output.clone(), signal.clone(), won(1, 0, What::Failed(failure.into()), Some(failure))], Some(failure)),
        "either may win"
    );

    assert!(!judge([What::Output("a#2".into()), signal.clone(), first.clone()], None), "the output of another step");
    assert!(!judge([output.clone(), What::Signal(1), first.clone()], None), "a signal that nobody sent");
    assert!(!judge([output.clone(), What::TooLate, first.clone()], None), "a time-out of a wait that has none");
    assert!(!judge([output.clone(), signal.clone(), won(0, 0, What::Drew(draw + 1), None)], None), "another draw");
    assert!(!judge([output.clone(), signal.clone(), won(1, 0, What::Drew(draw), None)], None), "the trail of another branch");
    assert!(!judge([output.clone(), signal.clone(), won(0, 10, What::Drew(draw), None)], None), "two things seen at once");
    assert!(!judge([output, signal, first], Some(failure)), "a failure without a cause");
}

#[test]
fn a_program_that_fails_is_made_as_small_as_it_can_be() {
    let has_sleep = |program: &Program| program.to_string().contains("Sleep");
    let program = (0..)
        .map(Program::generate)
        .find(|program| has_sleep(program) && program.to_string().lines().count() > 12);
    let (smallest, why) =
        smallest(
            program.expect("there is one"),
            "first".into(),
            |program| {
                if has_sleep(program) { Err("it sleeps".into()) } else { Ok(()) }
            },
        );
    assert_eq!((smallest, &*why), (Program(vec![Node::Sleep(0)]), "it sleeps"));
}
