//! What must hold after every process, and when every run has ended.

use super::script::{Act, Does, Script};
use super::shards::{self, at_once};
use super::world::{World, is_outcome};
use steadfast::{Code, Entry, Event, RunId, Store};
use steadfast_kernel::{Run, run};
use steadfast_store::{RunRow, TimerKey};

/// When every run has ended.
pub(super) fn check(world: &World, runs: &[(String, Script)]) {
    assert_eq!(world.wrong(), Vec::<String>::new());
    for (id, script) in runs {
        let journal = world.journal(id);
        let state = fold(id, &journal).unwrap_or_else(|| panic!("{id} is not there"));
        assert_eq!(state.timers(), [], "a run that has ended takes its timers with it");
        let in_time = ended_as_it_must(world, id, script, &state);
        each_act_has_its_outcome(id, script, &journal, in_time);
        calls_are_bounded(world, id, script, in_time);
    }
}

/// After every process: what a commit writes beside the events is there with them, or not at all.
pub(super) fn rows_and_timers_are_folds(world: &World, runs: &[(String, Script)]) {
    let (store, mut timers) = (world.store(), Vec::new());
    for (id, _) in runs {
        let state = fold(id, &world.journal(id));
        let row = at_once(store.run(&RunId::new(id).unwrap()));
        assert_eq!(
            row,
            state.as_ref().map(|state| RunRow::of(shards::shard_of(&store, &(&state.id).into()), state)),
            "the row of {id} is not the fold of its journal"
        );
        timers.extend(state.iter().flat_map(Run::timers));
    }
    timers.sort_by_key(|timer| TimerKey::from(timer));
    assert_eq!(shards::timers(&store), timers, "the timers are not the fold of the journals");
}

fn fold(id: &str, journal: &[Entry]) -> Option<Run> {
    let id = RunId::new(id).unwrap();
    let mut state = None;
    for entry in journal {
        state = Some(run::evolve(&id, state, entry).unwrap_or_else(|illegal| panic!("{illegal}")));
    }
    state
}

/// True if it came to its own end, and not to that of its time.
fn ended_as_it_must(world: &World, id: &str, script: &Script, state: &Run) -> bool {
    let ended = state.ended().unwrap_or_else(|| panic!("{id} has not ended"));
    match world.end(id) {
        Ok(sum) => {
            assert!(sum == script.expected() || script.is_hurried(), "{id}: {sum} {script:?}");
            assert_eq!(ended.outcome.as_ref().unwrap().bytes, sum.to_string().as_bytes(), "{id}");
            true
        }
        Err(code) => {
            assert_eq!(code, Code::DeadlineExceeded, "{id}");
            assert!(state.deadline.is_some_and(|deadline| ended.at >= deadline.at), "{id} was ended before its time");
            assert_eq!(ended.outcome.as_ref().unwrap_err().code, code, "{id}");
            false
        }
    }
}

fn each_act_has_its_outcome(id: &str, script: &Script, journal: &[Entry], in_time: bool) {
    let outcomes: Vec<&Event> = journal.iter().map(|entry| &entry.event).filter(|event| is_outcome(event)).collect();
    assert!(outcomes.len() == script.acts.len() || !in_time, "{id}: {outcomes:?}");
    for ((place, act), outcome) in script.acts.iter().enumerate().zip(outcomes) {
        match (act, outcome) {
            (Act::Sleep { .. }, Event::TimerFired { .. }) => {}
            (Act::Step { does, max_attempts, .. }, Event::StepCompleted { step, attempt, .. }) => {
                assert!(
                    does.succeeds() && step.as_str() == format!("act-{place}#1") && attempt <= max_attempts,
                    "{id}: {act:?} {outcome:?}"
                );
            }
            (Act::Step { does, max_attempts, .. }, Event::StepFailed { step, attempt, .. }) => {
                let last = if *does == Does::Refuse { 1 } else { *max_attempts };
                let early = script.is_hurried() && *attempt < last; // a retry that would come after the run's deadline is not waited for
                assert!(!does.succeeds() || early, "{id}: {act:?} {outcome:?}");
                assert!(step.as_str() == format!("act-{place}#1") && (*attempt == last || early), "{id}: {act:?} {outcome:?}");
            }
            _ => panic!("{id}: {outcome:?} is not the outcome of {act:?}"),
        }
    }
}

/// Only an attempt that a crash cut off is made again.
fn calls_are_bounded(world: &World, id: &str, script: &Script, in_time: bool) {
    for (place, act) in script.acts.iter().enumerate() {
        let Act::Step { does, max_attempts, .. } = act else { continue };
        let (calls, restarts) = (world.calls(id, place), world.restarts());
        let last = match does {
            Does::Succeed { .. } | Does::Refuse => 1,
            Does::HangAtFirst | Does::PanicAtFirst => 2,
            Does::FailAtFirst { .. } | Does::AlwaysFail | Does::AlwaysHang => *max_attempts,
        };
        assert!(calls <= last + restarts, "{id}: {act:?} was called {calls} times in {restarts} restarts");
        assert!(calls >= 1 || !in_time, "{id}: {act:?} was never called");
    }
}
