//! What must hold after any run of any program, whatever happened to it on the way.

use super::code::{ATTEMPTS, UNDO_ATTEMPTS, trail_of};
use super::model;
use super::program::run_seed;
use super::trail::{Made, made};
use super::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast::{Engine, Entry, Event, Store};
use steadfast_kernel::{Run, TimerName, run};
use steadfast_store::RunRow;

/// The delay before each attempt of each step.
pub(super) type Delays = BTreeMap<(String, u32), Duration>;

pub(super) async fn check(world: &World) -> Result<(), String> {
    let journal = world.journal().await;
    folds(world, &journal).await?;
    names_fit(&journal)?;
    attempts_are_consecutive(&journal)?;
    nothing_is_left_waiting(&journal)?;
    undone_in_order(&journal)?;
    signals_arrived_once(world, &journal)?;
    signals_are_taken_in_order(&journal)?;
    nothing_is_done_twice(world, &journal)?;
    ends_as_the_model_says(world, &journal)
}

/// The journal replays against the code without a difference, and without doing anything.
pub(super) async fn replays(world: &World, engine: &Engine) -> Result<(), String> {
    let before = made().len();
    let run = engine.run(world.run.as_str()).map_err(|error| error.to_string())?;
    let replayed = run.replay().await.map_err(|error| error.to_string())?;
    if let Some(mismatch) = replayed.mismatch {
        return Err(format!("replay differs: {mismatch:?}"));
    }
    ensure(made().len() == before, || "a replay has made attempts".into())
}

/// The journal has no gap and can be followed to an end; the rows are what follows from it.
async fn folds(world: &World, journal: &[Entry]) -> Result<(), String> {
    let mut state: Option<Run> = None;
    for entry in journal {
        state = Some(run::evolve(&world.run, state, entry).map_err(|illegal| illegal.to_string())?);
    }
    let state = state.ok_or("there is no journal")?;
    ensure(state.ended().is_some(), || "the journal has no end".into())?;
    let row = world.store.run(&world.run).await.map_err(|error| error.to_string())?;
    let expected = RunRow::of(0, &state);
    ensure(row.as_ref() == Some(&expected), || format!("the row is {row:?}, the journal says {expected:?}"))?;
    let timers = world.store.timers(0, None, 100).await.map_err(|error| error.to_string())?;
    ensure(timers.is_empty(), || format!("timers are left: {timers:?}"))
}

/// A step returns the id that its place in the program gives it, and fails by that name: the engine must have called it the same.
fn names_fit(journal: &[Entry]) -> Result<(), String> {
    for entry in journal {
        let fits = match &entry.event {
            Event::StepCompleted { step, output, .. } => output.bytes.as_ref() == format!("\"{step}\"").as_bytes(),
            Event::StepFailed { step, failure, .. } => failure.message.contains(&format!("{step} is ")),
            Event::RetryScheduled { step, failure, .. } => {
                let step = step.undone().unwrap_or_else(|| step.clone());
                failure.message.starts_with(&format!("{step} "))
            }
            _ => true,
        };
        ensure(fits, || format!("the engine took one step for another: {entry:?}"))?;
    }
    Ok(())
}

/// Retries count up from 2 without a gap to what is allowed, and an outcome belongs to the attempt that was due.
fn attempts_are_consecutive(journal: &[Entry]) -> Result<(), String> {
    let mut due: BTreeMap<String, u32> = BTreeMap::new();
    for entry in journal {
        let (step, attempt, retry) = match &entry.event {
            Event::RetryScheduled { step, attempt, of, .. } => {
                let most = if step.undone().is_some() { UNDO_ATTEMPTS } else { ATTEMPTS };
                ensure(*of == most && attempt <= of, || format!("one attempt too many: {entry:?}"))?;
                (step.clone(), *attempt, true)
            }
            Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. } => (step.clone(), *attempt, false),
            Event::UndoCompleted { step, attempt } => (step.undo(), *attempt, false),
            Event::UndoFailed { .. } => return Err(format!("no undo fails for good: {entry:?}")),
            _ => continue,
        };
        let last = due.entry(step.to_string()).or_insert(1);
        ensure(attempt == *last + u32::from(retry), || format!("attempt {last} was due: {entry:?}"))?;
        *last = attempt;
    }
    Ok(())
}

/// A run that completed has had, or has given up, everything it waited for: nothing else may be armed meanwhile.
fn nothing_is_left_waiting(journal: &[Entry]) -> Result<(), String> {
    let mut waits = BTreeSet::new();
    for entry in journal {
        match &entry.event {
            Event::RetryScheduled { step, .. } => drop(waits.insert(TimerName::Retry(step.clone()))),
            Event::TimerSet { sleep: id, .. } | Event::SignalAwaited { wait: id, .. } => drop(waits.insert(TimerName::Sleep(id.clone()))),
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => drop(waits.remove(&TimerName::Retry(step.clone()))),
            Event::TimerFired { sleep: id } | Event::SignalTaken { wait: id, .. } => drop(waits.remove(&TimerName::Sleep(id.clone()))),
            Event::RunCompleted { .. } => {
                waits.retain(|name| !entry.abandoned.contains(name));
                return ensure(waits.is_empty(), || format!("nobody waits for these, and they were never given up: {waits:?}"));
            }
            _ => {}
        }
        waits.retain(|name| !entry.abandoned.contains(name));
    }
    Ok(())
}

/// Unless the run completed, exactly what can be undone is, the newest first.
fn undone_in_order(journal: &[Entry]) -> Result<(), String> {
    let undoable = journal.iter().filter_map(|entry| match &entry.event {
        Event::StepCompleted { step, undoable: true, .. } => Some(step.to_string()),
        _ => None,
    });
    let completed = journal.iter().any(|entry| matches!(entry.event, Event::RunCompleted { .. }));
    let expected: Vec<_> = undoable.rev().filter(|_| !completed).collect();
    let undone = journal.iter().filter_map(|entry| match &entry.event {
        Event::UndoCompleted { step, .. } => Some(step.to_string()),
        _ => None,
    });
    let undone: Vec<_> = undone.collect();
    ensure(undone == expected, || format!("undone: {undone:?}, expected: {expected:?}"))?;
    let mut begun = Vec::new();
    for Made { step, undo, .. } in made() {
        if undo && !begun.contains(&step) {
            begun.push(step);
        }
    }
    let of_journal: Vec<_> = undone.into_iter().filter(|step| begun.contains(step)).collect();
    ensure(begun == of_journal, || format!("undos were begun in this order: {begun:?}, recorded in that: {of_journal:?}"))
}

/// What was acknowledged is there, and nothing is there twice.
fn signals_arrived_once(world: &World, journal: &[Entry]) -> Result<(), String> {
    let mut arrived = BTreeSet::new();
    for entry in journal {
        if let Event::SignalReceived { id: Some(id), .. } = &entry.event {
            ensure(arrived.insert(id.clone()), || format!("the signal {id} is there twice"))?;
        }
    }
    let lost = world.acknowledged.iter().find(|said| !arrived.contains(&said.to_string()));
    ensure(lost.is_none(), || format!("the signal {lost:?} was acknowledged and is lost"))
}

/// A wait gets the first signal of its name that nobody has taken.
fn signals_are_taken_in_order(journal: &[Entry]) -> Result<(), String> {
    let (mut waits, mut signals) = (BTreeMap::new(), BTreeMap::new());
    for entry in journal {
        match &entry.event {
            Event::SignalAwaited { wait, name, .. } => drop(waits.insert(wait.clone(), name.clone())),
            Event::SignalReceived { name, .. } => drop(signals.insert(entry.seq, name.clone())),
            Event::SignalTaken { wait, signal } => {
                let first = signals.iter().find(|(_, name)| Some(*name) == waits.get(wait)).map(|(seq, _)| *seq);
                ensure(first == Some(*signal), || format!("{wait} was given the signal {signal}, the first was {first:?}"))?;
                signals.remove(signal);
            }
            _ => {}
        }
    }
    Ok(())
}

/// What is on record is not done again by a later engine, and no engine makes the same attempt twice.
fn nothing_is_done_twice(world: &World, journal: &[Entry]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for Made { life, step, attempt, undo } in made() {
        let id = if undo { format!("{step}/undo") } else { step };
        let on_record = world.on_record.get(life as usize - 1).is_some_and(|on_record| on_record.contains(&id));
        ensure(!on_record, || format!("{id} was on record when engine {life} made attempt {attempt}"))?;
        ensure(seen.insert((life, id.clone(), attempt)), || format!("engine {life} made attempt {attempt} of {id} twice"))?;
    }
    let executed = |id: &str, attempt: u32| seen.iter().any(|(_, other, made)| other == id && *made == attempt);
    let first_life: &BTreeSet<String> = &world.on_record[0];
    for entry in journal {
        let (id, attempt) = match &entry.event {
            Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. } => (step.to_string(), *attempt),
            Event::UndoCompleted { step, attempt } => (step.undo().to_string(), *attempt),
            _ => continue,
        };
        ensure(first_life.contains(&id) || executed(&id, attempt), || format!("nobody made attempt {attempt} of {id}"))?;
    }
    Ok(())
}

fn ends_as_the_model_says(world: &World, journal: &[Entry]) -> Result<(), String> {
    let trail = match journal.last().map(|entry| &entry.event) {
        Some(Event::RunCompleted { output }) => serde_json::from_slice(&output.bytes).map_err(|error| error.to_string())?,
        Some(Event::RunFailed { failure }) => trail_of(failure).ok_or_else(|| format!("the run failed without a trail: {failure:?}"))?,
        Some(Event::RunCancelled) => return was_asked_for(journal),
        other => return Err(format!("that is no end: {other:?}")),
    };
    model::check(&world.program, run_seed(world.seed), &trail, &|said| world.sent(said))
}

fn was_asked_for(journal: &[Entry]) -> Result<(), String> {
    let asked = journal.iter().any(|entry| matches!(entry.event, Event::RunCancelRequested { .. }));
    ensure(asked, || "it was cancelled, and nobody had asked for it".into())
}

pub(super) async fn delays(world: &World) -> Delays {
    let of = |entry: &Entry| match &entry.event {
        Event::RetryScheduled { step, attempt, delay, .. } => Some(((step.to_string(), *attempt), *delay)),
        _ => None,
    };
    world.journal().await.iter().filter_map(of).collect()
}

/// What came up in a run.
pub(super) async fn kinds(world: &World) -> Vec<&'static str> {
    let journal = world.journal().await;
    let is_outcome = |entry: &Entry| matches!(entry.event, Event::StepCompleted { .. } | Event::StepFailed { .. });
    let several = journal.windows(2).any(|pair| pair.iter().all(is_outcome) && pair[0].in_flight.is_none());
    let kinds = journal.iter().map(|entry| entry.event.kind());
    let more = [
        (journal.iter().any(|entry| !entry.abandoned.is_empty()), "abandoned"),
        (several, "several outcomes in a turn"),
        (world.on_record.len() > 1, "several engines"),
    ];
    kinds.chain(more.into_iter().filter(|(came_up, _)| *came_up).map(|(_, kind)| kind)).collect()
}

/// The same attempt of the same step waits as long in every life of the run.
pub(super) fn same_delays(first: &Delays, other: &Delays) -> Result<(), String> {
    for (which, delay) in first {
        let again = other.get(which).unwrap_or(delay);
        ensure(again == delay, || format!("the delay before {which:?} was {delay:?}, now it is {again:?}"))?;
    }
    Ok(())
}

pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
