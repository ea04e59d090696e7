//! What must always hold, whatever is asked of a run and in whatever order.
//!
//! Random commands, sensible ones and nonsense, are given to a run while time moves on; after each of them every fact is checked.

mod scenario;
mod world;

use crate::support::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseResult, TestRunner};
use scenario::{Op, Scenario, policy, scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::Decision;
use steadfast_kernel::{
    Answer, Attempt, Command, Completion, Effect, Entry, Event, Refusal, ReportFailure, Run, Seq, StartRun, Status, StepId, Timestamp,
};
use world::World;

/// The longest delay that any policy of a scenario gives.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// What was asked and not refused, and when.
type Accepted = Vec<(Timestamp, Command)>;

impl World {
    /// Every fact about state and journal.
    fn holds(&self, scenario: &Scenario) -> TestCaseResult {
        sequences_have_no_gap(&self.journal)?;
        prop_assert_eq!(&fold(&self.journal).expect("a good journal"), &self.state, "state is the fold of its entries");
        prop_assert_eq!(&stored(&self.journal), &self.journal, "the store keeps every entry as it is");
        attempts_are_consecutive_and_bounded(&self.journal, scenario)?;
        a_recorded_step_never_changes(&self.journal)?;
        nothing_follows_an_end(&self.journal)?;
        let Some(run) = &self.state else { return Ok(()) };
        let mut timers = run.timers();
        timers.sort_by(|a, b| a.name.cmp(&b.name));
        prop_assert_eq!(timers, self.armed.values().cloned().collect::<Vec<_>>(), "timers are a fold of the entries");
        status_is_derived(run)
    }
}

fn sequences_have_no_gap(journal: &[Entry]) -> TestCaseResult {
    prop_assert!(journal.iter().map(|entry| entry.seq).eq(1..=journal.len() as Seq));
    Ok(())
}

fn attempts_are_consecutive_and_bounded(journal: &[Entry], scenario: &Scenario) -> TestCaseResult {
    let deadline = journal.first().and_then(|entry| match entry.event {
        Event::RunStarted { deadline_at, .. } => deadline_at,
        _ => None,
    });
    let mut to_come: BTreeMap<&StepId, Attempt> = BTreeMap::new();
    for entry in journal {
        match &entry.event {
            Event::RetryScheduled { step, attempt, of, delay, due_at, .. } => {
                let expected = to_come.entry(step).or_insert(1);
                *expected += 1;
                prop_assert_eq!(*attempt, *expected);
                prop_assert!(attempt <= of);
                prop_assert!(*delay <= DELAY_MAX, "{:?} is above the cap", delay);
                prop_assert_eq!(*due_at, entry.at.saturating_add(*delay));
                prop_assert!(deadline.is_none_or(|deadline| *due_at < deadline), "an attempt after the deadline");
                if let [policy] = &scenario.policies[..] {
                    prop_assert!(*attempt <= policy.attempts_max());
                }
            }
            Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. } => {
                prop_assert_eq!(*attempt, to_come.get(step).copied().unwrap_or(1));
            }
            _ => {}
        }
    }
    Ok(())
}

fn a_recorded_step_never_changes(journal: &[Entry]) -> TestCaseResult {
    let (mut steps, mut set, mut fired) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for entry in journal {
        match &entry.event {
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => {
                prop_assert!(steps.insert(step), "two outcomes of {}", step)
            }
            Event::RetryScheduled { step, .. } => prop_assert!(!steps.contains(step), "{} has its outcome and is tried again", step),
            Event::TimerSet { sleep, .. } => prop_assert!(set.insert(sleep), "{} is set twice", sleep),
            Event::TimerFired { sleep } => prop_assert!(set.contains(sleep) && fired.insert(sleep), "{} fires twice or unset", sleep),
            _ => {}
        }
    }
    Ok(())
}

fn nothing_follows_an_end(journal: &[Entry]) -> TestCaseResult {
    let end = journal.iter().position(|entry| entry.event.is_end());
    prop_assert!(end.is_none_or(|end| end + 1 == journal.len()));
    Ok(())
}

fn status_is_derived(run: &Run) -> TestCaseResult {
    let (status, waits) = (run.status(), run.waits());
    prop_assert_eq!(status.is_final(), run.ended().is_some());
    prop_assert!(status != Status::Waiting || !waits.is_empty(), "waits for nothing that has a name");
    prop_assert!(waits.is_sorted_by_key(|wait| wait.due_at()));
    if status.is_final() {
        prop_assert!(waits.is_empty() && run.timers().is_empty());
    }
    Ok(())
}

/// Plays a scenario; every fact is checked after every command. What happened is told to `saw`.
fn play(scenario: &Scenario, mut saw: impl FnMut(&World, &Result<Decision, Refusal>)) -> Result<(World, Accepted), TestCaseError> {
    let (mut world, mut accepted) = (World::new(), Vec::new());
    for op in &scenario.ops {
        if let Op::Pass(time) = op {
            world.now = world.now.saturating_add(*time);
            continue;
        }
        let command = world.command(scenario, op);
        let before = world.clone();
        let decided = world.tell(&command)?;
        match &decided {
            Ok(_) => accepted.push((world.now, command)),
            Err(_) => prop_assert_eq!(&world, &before, "a refusal leaves a trace"),
        }
        world.holds(scenario)?;
        saw(&world, &decided);
    }
    Ok((world, accepted))
}

proptest! {
    #[test]
    fn every_fact_holds_after_every_command(scenario in scenario()) {
        play(&scenario, |_, _| {})?;
    }

    #[test]
    fn without_what_was_refused_and_with_a_crash_after_every_command_all_is_the_same(scenario in scenario()) {
        let (world, accepted) = play(&scenario, |_, _| {})?;
        let mut other = World::new();
        for (now, command) in accepted {
            other.now = now;
            prop_assert!(other.tell(&command)?.is_ok());
            other.journal = stored(&other.journal);
            other.state = folded(&other.journal);
            let timers = other.state.iter().flat_map(Run::timers);
            other.armed = timers.map(|timer| (timer.name.clone(), timer)).collect();
        }
        other.now = world.now;
        prop_assert_eq!(other, world);
    }

    #[test]
    fn same_seed_same_delays_whatever_happens_beside(
        seed in any::<[u8; 32]>(), policy in policy(), late in 0..1_000_i64, beside in prop::collection::vec(0..3_usize, 8),
    ) {
        let policy = policy.deadline(Duration::MAX);
        let delays = |late: i64, beside: &[usize]| {
            let mut world = World::new();
            let mut beside = beside.iter();
            world.tell(&Command::StartRun(StartRun { seed: Seed(seed), ..start_run() }))?.expect("a new run");
            for attempt in 1..=policy.attempts_max() {
                for step in 0..beside.next().copied().unwrap_or(0) {
                    world.tell(&timed_out(&format!("beside#{attempt}{step}"), 1, &policy))?.expect("another step");
                }
                world.now = world.now.saturating_add(Duration::from_millis(late.unsigned_abs()));
                let report = ReportFailure { asked_at: world.now, ..report_timeout("charge#1", attempt, &policy) };
                world.tell(&Command::ReportFailure(report))?.expect("the attempt to come");
            }
            let delay = |entry: &Entry| match &entry.event {
                Event::RetryScheduled { step, delay, .. } if *step == id("charge#1") => Some(*delay),
                _ => None,
            };
            Ok::<_, TestCaseError>(world.journal.iter().filter_map(delay).collect::<Vec<_>>())
        };
        prop_assert_eq!(delays(0, &[])?, delays(late, &beside)?);
    }
}

/// The scenarios are worth something only if they come to every place of the machine.
#[test]
fn the_scenarios_reach_every_event_effect_refusal_and_status() {
    let mut seen = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..600 {
        let scenario = scenario().new_tree(&mut runner).expect("a scenario").current();
        let saw = |world: &World, decided: &Result<Decision, Refusal>| {
            seen.extend(world.state.iter().map(|run| run.status().as_str()));
            match decided {
                Ok(decision) => {
                    seen.extend(decision.entries.iter().map(|entry| entry.event.kind()));
                    seen.extend(decision.effects.iter().map(name));
                }
                Err(refusal) => {
                    seen.insert(refusal.code());
                }
            }
        };
        play(&scenario, saw).expect("every fact holds");
    }
    let expected = "Arm Close AnnounceEnd Created Disarm Exists Open RetryScheduled StartAttempt StepFailed Superseded TimerFired TurnTaken \
        SF0103 SF0104 SF0105 SF0108 RUNNING WAITING COMPLETED FAILED \
        RUN_STARTED STEP_COMPLETED STEP_FAILED RETRY_SCHEDULED TIMER_SET TIMER_FIRED RUN_COMPLETED RUN_FAILED";
    assert_eq!(seen, expected.split_whitespace().collect());
}

fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Arm(_) => "Arm",
        Effect::Disarm(_) => "Disarm",
        Effect::Open => "Open",
        Effect::StartAttempt { .. } => "StartAttempt",
        Effect::Deliver(Completion::StepFailed { .. }) => "StepFailed",
        Effect::Deliver(Completion::TimerFired { .. }) => "TimerFired",
        Effect::Deliver(Completion::SignalReceived { .. }) => "SignalDelivered",
        Effect::Deliver(Completion::Stopped { .. }) => "Stopped",
        Effect::Close => "Close",
        Effect::AnnounceEnd => "AnnounceEnd",
        Effect::Answer(Answer::Created) => "Created",
        Effect::Answer(Answer::Exists) => "Exists",
        Effect::Answer(Answer::TurnTaken) => "TurnTaken",
        Effect::Answer(Answer::RetryScheduled) => "RetryScheduled",
        Effect::Answer(Answer::SignalReceived) => "SignalReceived",
        Effect::Answer(Answer::SignalKnown) => "SignalKnown",
        Effect::Answer(Answer::CancelRequested) => "CancelRequested",
        Effect::Answer(Answer::Superseded) => "Superseded",
    }
}
