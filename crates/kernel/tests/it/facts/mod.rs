//! What must always hold, whatever is asked of a run and in whatever order.
//!
//! Random commands, sensible ones and nonsense, are given to a run while time moves on; after each of them every fact is checked.

mod journal;
mod scenario;
mod world;

use crate::support::*;
use journal::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseResult, TestRunner};
use scenario::{Op, Scenario, policy, scenario};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::SIGNALS_MAX;
use steadfast_kernel::{
    Answer, Command, Completion, Decision, Effect, Entry, Event, Refusal, ReportFailure, Run, StartRun, Status, Timestamp,
};
use world::World;

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
        code_and_undo_exclude_each_other(&self.journal)?;
        an_end_that_was_not_asked_for_is_no_cancel(&self.journal)?;
        let news = signals_are_taken_once(&self.journal)?;
        let Some(run) = &self.state else { return Ok(()) };
        let mut timers = run.timers();
        timers.sort_by(|a, b| a.name.cmp(&b.name));
        prop_assert_eq!(timers, self.armed.values().cloned().collect::<Vec<_>>(), "timers are a fold of the entries");
        prop_assert!(!news || !run.is_waiting(), "a restart would not host it");
        status_is_derived(run)
    }
}

fn status_is_derived(run: &Run) -> TestCaseResult {
    let (status, waits) = (run.status(), run.waits());
    prop_assert_eq!(status.is_final(), run.ended().is_some());
    prop_assert!(status != Status::Waiting || !waits.is_empty(), "waits for nothing that has a name");
    prop_assert!(waits.is_sorted_by_key(|wait| wait.due_at().unwrap_or(Timestamp::MAX)), "those without an end come last");
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
        if let Op::Flood = op {
            accepted.extend(flood(&mut world)?);
        }
        let command = match op {
            Op::Flood => send_signal("approve", None),
            op => world.command(scenario, op),
        };
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

/// As many signals as may wait to be taken, as far as they are taken in; the facts are checked after the last of them.
fn flood(world: &mut World) -> Result<Accepted, TestCaseError> {
    let mut accepted = Vec::new();
    for _ in 0..SIGNALS_MAX {
        let command = send_signal("approve", None);
        if world.tell(&command)?.is_ok() {
            accepted.push((world.now, command));
        }
    }
    Ok(accepted)
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
            if other.journal.len() > 200 && !other.journal.len().is_multiple_of(100) {
                continue; // in a flood of signals one crash in a hundred will do
            }
            other.journal = stored(&other.journal);
            other.state = folded(&other.journal);
            let timers = other.state.iter().flat_map(Run::timers);
            other.armed = timers.map(|timer| (timer.name.clone(), timer)).collect();
        }
        other.now = world.now;
        other.state = folded(&stored(&other.journal));
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
            seen.extend(world.state.iter().flat_map(Run::waits).map(|wait| wait.reason()));
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
    let expected = "Arm AnnounceEnd Close Disarm Open StartAttempt \
        SignalDelivered StepFailed Stopped TimerFired \
        CancelRequested Created Exists RetryScheduled SignalKnown SignalReceived Superseded TurnTaken \
        SF0103 SF0104 SF0105 SF0108 SF0111 SF0112 RUNNING WAITING COMPENSATING COMPLETED FAILED CANCELLED BACKOFF TIMER SIGNAL IN_DOUBT \
        RUN_STARTED STEP_STARTED STEP_COMPLETED STEP_FAILED RETRY_SCHEDULED TIMER_SET TIMER_FIRED \
        SIGNAL_AWAITED SIGNAL_RECEIVED SIGNAL_TAKEN RUN_CANCEL_REQUESTED RUN_COMPENSATING UNDO_COMPLETED UNDO_FAILED \
        RUN_CANCELLED RUN_COMPLETED RUN_FAILED";
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
        Effect::Host => "Host",
        Effect::Pause => "Pause",
        Effect::Resume => "Resume",
        Effect::Bounce(_) => "Bounce",
        Effect::Deliver(Completion::ChildEnded { .. }) => "ChildEnded",
        Effect::Answer(Answer::Terminated) => "Terminated",
        Effect::Answer(Answer::Paused) => "Paused",
        Effect::Answer(Answer::Resumed) => "Resumed",
        Effect::Answer(Answer::Retried) => "Retried",
        Effect::Answer(Answer::Interrupted) => "Interrupted",
        Effect::Answer(Answer::HeartbeatRecorded) => "HeartbeatRecorded",
        Effect::Answer(Answer::Heard) => "Heard",
        Effect::Answer(Answer::Dropped) => "Dropped",
    }
}
