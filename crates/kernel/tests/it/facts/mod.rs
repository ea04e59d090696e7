//! What must always hold, whatever is asked of a run and in whatever order.
//!
//! Random commands, sensible ones and nonsense, are given to a run while time moves on; after each of them every fact is checked.

mod agreement;
mod frozen;
mod journal;
pub(crate) mod keys;
pub(crate) mod plans;
mod reach;
mod routes;
mod saved;
pub(crate) mod scenario;
pub(crate) mod society;
mod talk;
pub(crate) mod world;

use crate::support::*;
use agreement::script_and_state_agree;
use journal::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use saved::{a_snapshot_restores_the_state, what_is_read_to_replay_is_enough};
use scenario::{Op, Scenario, policy, scenario};
use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::{SIGNALS_MAX, script};
use steadfast_kernel::{Command, Decision, Entity, EntityId, Entry, Event, Refusal, ReportFailure, Run, StartRun, Status, Timestamp, Wait};
use world::World;

/// What was asked and not refused, and when.
type Accepted = Vec<(Timestamp, Command)>;

impl World {
    /// Every fact about state and journal.
    fn holds(&self, scenario: &Scenario) -> TestCaseResult {
        sequences_have_no_gap(&self.journal)?;
        prop_assert_eq!(&fold(&self.journal).expect("a good journal"), &self.state, "state is the fold of its entries");
        prop_assert_eq!(&stored(&self.journal), &self.journal, "the store keeps every entry as it is");
        nothing_follows_an_end(&self.journal)?;
        lives_are_counted(&self.journal)?;
        generations_rise_with_what_is_discarded(&self.journal)?;
        let script = script(self.journal.clone());
        attempts_are_consecutive_and_bounded(&script, scenario)?;
        a_recorded_step_never_changes(&script)?;
        code_and_undo_exclude_each_other(&script)?;
        an_end_that_was_not_asked_for_is_no_cancel(&script)?;
        let news = signals_are_taken_once(&script)? | children_end_once(&script)?;
        let Some(run) = &self.state else { return Ok(()) };
        let mut timers = run.timers();
        timers.sort_by(|a, b| a.name.cmp(&b.name));
        prop_assert_eq!(timers, self.armed.values().cloned().collect::<Vec<_>>(), "timers are a fold of the entries");
        timers_come_of_their_entries(&self.journal, run)?;
        let may_move = matches!(run.status(), Status::Running | Status::Waiting | Status::Compensating);
        prop_assert!(!(news && may_move && run.is_waiting()), "a restart would not host it");
        script_and_state_agree(&self.journal, run)?;
        what_is_read_to_replay_is_enough(&self.journal, run)?;
        a_snapshot_restores_the_state(&EntityId::from(&run.id), &Entity::Run(Box::new(run.clone())))?;
        status_is_derived(run)
    }
}

fn status_is_derived(run: &Run) -> TestCaseResult {
    let (status, waits) = (run.status(), run.waits());
    prop_assert_eq!(status.is_final(), run.ended().is_some());
    prop_assert!(status != Status::Waiting || !waits.is_empty(), "waits for nothing that has a name");
    let by_person = |wait: &&Wait| matches!(wait, Wait::Paused { .. } | Wait::Slot { .. });
    let first = waits.iter().take_while(by_person).count();
    prop_assert!(!waits[first..].iter().any(|wait| by_person(&wait)), "what a person has to see to comes first");
    prop_assert!(waits[first..].is_sorted_by_key(|wait| wait.due_at().unwrap_or(Timestamp::MAX)), "those without an end come last");
    if status.is_final() || matches!(status, Status::Paused | Status::Interrupted) {
        prop_assert!(run.timers().is_empty());
    }
    prop_assert!(!status.is_final() || waits.is_empty());
    Ok(())
}

/// Plays a scenario; every fact is checked after every command. What happened is told to `saw`.
pub(crate) fn play(
    scenario: &Scenario,
    mut saw: impl FnMut(&World, &Result<Decision, Refusal>),
) -> Result<(World, Accepted), TestCaseError> {
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
    keys_tell_work_apart(&world.journal)?;
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
