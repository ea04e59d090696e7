//! A run, and what the outside knows of it: the journal, the timers, the time.

use super::scenario::{Abandoned, End, Guess, Item, Op, Scenario};
use crate::support::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::{Open, Phase, decide, evolve};
use steadfast_kernel::{
    Answer, Attempt, Code, Command, Completion, Decision, Effect, Entry, Event, Failure, Payload, Proposal, Refusal, ReportFailure, Run,
    StartRun, StepId, TakeTurn, Timer, TimerName, Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) state: Option<Run>,
    pub(super) journal: Vec<Entry>,
    /// What arming and disarming has left, in the order of their names.
    pub(super) armed: BTreeMap<TimerName, Timer>,
}

impl World {
    pub(super) fn new() -> Self {
        World { now: at(1_000), state: None, journal: Vec::new(), armed: BTreeMap::new() }
    }

    /// The attempt of a step or undo that the journal says is next. An undo that has failed begins again.
    fn attempt_to_come(&self, step: &StepId) -> Attempt {
        self.journal.iter().fold(1, |attempt, entry| match &entry.event {
            Event::RetryScheduled { step: of, .. } if of == step => attempt + 1,
            Event::UndoFailed { step: of, .. } if of.undo() == *step => 1,
            _ => attempt,
        })
    }

    fn open(&self) -> Option<&Open> {
        match self.state.as_ref().map(|run| &run.phase) {
            Some(Phase::Open(open)) => Some(open),
            _ => None,
        }
    }

    pub(super) fn command(&self, scenario: &Scenario, op: &Op) -> Command {
        match op {
            Op::Start { same } => {
                let input = Payload::json(if *same { "17" } else { "18" });
                Command::StartRun(StartRun { input, seed: Seed(scenario.seed), deadline: scenario.deadline, ..start_run() })
            }
            Op::Turn { epoch, items, end, and_more, in_flight, abandoned } => {
                let ended = end.map(|end| match end {
                    End::Completed => run_completed("18"),
                    End::Failed => run_failed(timeout()),
                    End::Compensating { called_off } => run_compensating((!called_off).then(timeout)),
                    End::Cancelled => Event::RunCancelled,
                });
                let more = and_more.then(|| step_completed("after#1", 1, "1")).filter(|_| ended.is_some());
                let events = items.iter().flat_map(|item| self.events(item)).chain(ended).chain(more);
                let proposals = events.map(|event| Proposal { at: self.now, event }).collect();
                let abandoned = abandoned.iter().filter_map(|what| self.abandoned(what)).collect();
                Command::TakeTurn(TakeTurn { epoch: *epoch, proposals, in_flight: *in_flight, unanswered: Vec::new(), abandoned })
            }
            Op::Fail { epoch, step, attempt, class, retry_after, policy, in_flight } => {
                let mut failure = Failure::new(Code::Internal, "it broke").class(*class);
                if let Some(delay) = retry_after {
                    failure = failure.retry_after(*delay);
                }
                Command::ReportFailure(ReportFailure {
                    epoch: *epoch,
                    step: step.clone(),
                    attempt: attempt.or(self.attempt_to_come(step)),
                    failure,
                    policy: policy.get(&scenario.policies).clone(),
                    asked_at: at(1_000),
                    in_flight: *in_flight,
                    unanswered: Vec::new(),
                    details: None,
                })
            }
            Op::FireArmed { which, revision } => {
                let armed: Vec<&Timer> = self.armed.values().collect();
                let (name, right) = if armed.is_empty() {
                    (TimerName::Deadline, 1)
                } else {
                    let timer = which.get(&armed);
                    (timer.name.clone(), timer.revision)
                };
                fire(name, u64::from(revision.or(u32::try_from(right).expect("a short journal"))))
            }
            Op::FireAny { name, revision } => fire(name.clone(), *revision),
            Op::Signal { name, id } => send_signal(name, id.map(|id| format!("m-{id}")).as_deref()),
            Op::Cancel => cancel_where(self.state.as_ref().is_some_and(|run| run.seq.is_multiple_of(3))),
            Op::Pass(_) | Op::Flood => unreachable!("not one command"),
        }
    }

    fn abandoned(&self, what: &Abandoned) -> Option<TimerName> {
        match what {
            Abandoned::Any(name) => Some(name.clone()),
            Abandoned::Armed(which) => {
                let of_the_code: Vec<_> = self.armed.keys().filter(|name| **name != TimerName::Deadline).collect();
                (!of_the_code.is_empty()).then(|| (*which.get(&of_the_code)).clone())
            }
        }
    }

    fn events(&self, item: &Item) -> Vec<Event> {
        let of_step = |step: &str, attempt: &Guess| attempt.or(self.attempt_to_come(&id(step)));
        let of_undo = |step: &str, attempt: &Guess| attempt.or(self.attempt_to_come(&id(step).undo()));
        vec![match item {
            Item::Begun(step, attempt) => step_started(step, of_step(step, attempt)),
            Item::Completed(step, attempt) => step_completed(step, of_step(step, attempt), "1"),
            Item::Undoable(step, attempt) => undoable_completed(step, of_step(step, attempt), "1"),
            Item::Failed(step, attempt) => step_failed(step, of_step(step, attempt), timeout()),
            Item::Undone(step, attempt) => undo_completed(step, of_undo(step, attempt)),
            Item::UndoFailed(step, attempt) => undo_failed(step, of_undo(step, attempt), timeout()),
            Item::Set(sleep, for_long) => Event::TimerSet { sleep: id(sleep), due_at: self.now.saturating_add(*for_long) },
            Item::Fired(sleep) => timer_fired(sleep),
            Item::Awaited(wait, name, within) => {
                let until = within.map(|within| self.now.saturating_add(within));
                Event::SignalAwaited { wait: id(wait), name: (*name).into(), until }
            }
            Item::TakenEarly(wait, signal) => return self.taken_early(wait, signal),
            Item::TakenRight(wait, signal) => return self.taken_right(wait, signal).into_iter().collect(),
            Item::TakenAny(wait, signal) => signal_taken(wait, *signal),
            Item::Retry(step) => retry_scheduled(step, self.attempt_to_come(&id(step)) + 1, 9, 1),
            Item::Arrived(name) => signal_received(name, None),
            Item::CancelRequested => cancel_requested(),
            Item::Started => run_started(),
        }]
    }

    /// A wait that finds its signal there.
    fn taken_early(&self, wait: &str, which: &Index) -> Vec<Event> {
        let signals: Vec<_> = self.open().iter().flat_map(|open| &open.signals).collect();
        if signals.is_empty() {
            return vec![];
        }
        let (signal, name) = which.get(&signals);
        vec![signal_awaited(wait, name), signal_taken(wait, **signal)]
    }

    /// A wait on record and a signal of its name, if there are such.
    fn taken_right(&self, wait: &Index, signal: &Index) -> Option<Event> {
        let open = self.open()?;
        let fits = |name: &str| open.signals.iter().filter(|(_, other)| *other == name).map(|(seq, _)| *seq).collect::<Vec<_>>();
        let waits: Vec<_> = open.awaits.iter().filter(|(_, awaited)| !fits(&awaited.name).is_empty()).collect();
        if waits.is_empty() {
            return None;
        }
        let (wait, awaited) = wait.get(&waits);
        Some(signal_taken(wait.as_str(), *signal.get(&fits(&awaited.name))))
    }

    /// Gives a command and does what a shard would: commits the entries, folds them, arms and disarms.
    pub(super) fn tell(&mut self, command: &Command) -> Result<Result<Decision, Refusal>, TestCaseError> {
        let decided = decide(&run_id(), self.state.as_ref(), command.clone(), self.now);
        let again = decide(&run_id(), self.state.as_ref(), command.clone(), self.now);
        prop_assert_eq!(&decided, &again, "the same question has the same answer");
        if self.state.as_ref().is_some_and(|run| run.ended().is_some()) {
            let unmoved = match (command, &decided) {
                (Command::StartRun(_), Ok(Decision { entries, effects })) => entries.is_empty() && *effects == [answer(Answer::Exists)],
                (Command::FireTimer(_), decided) => *decided == Ok(decision([], [answer(Answer::Superseded)])),
                (_, decided) => decided.is_err(),
            };
            prop_assert!(unmoved, "something follows the end: {:?}", decided);
        }
        if let Ok(Decision { entries, effects }) = &decided {
            a_report_is_closed_by_its_last_entry(entries)?;
            self.nothing_is_early(effects)?;
            self.journal.extend(entries.iter().cloned());
            self.state = entries.iter().try_fold(self.state.take(), |state, entry| {
                evolve(&run_id(), state, entry)
                    .map(Some)
                    .map_err(|illegal| TestCaseError::fail(illegal.to_string()))
            })?;
            self.follow(entries, effects)?;
        }
        Ok(decided)
    }

    /// Arms and disarms. Only what may have been settled before is disarmed without having been armed: a wait that has no end, an attempt
    /// that started on record, and what the host calls abandoned.
    fn follow(&mut self, entries: &[Entry], effects: &[Effect]) -> TestCaseResult {
        let settled = |entry: &Entry, name: &TimerName| match (&entry.event, name) {
            _ if entry.abandoned.contains(name) => true,
            (Event::SignalTaken { wait, .. }, TimerName::Sleep(sleep)) => wait == sleep,
            (Event::StepStarted { step, .. }, TimerName::Retry(retried)) => step == retried,
            _ => false,
        };
        for effect in effects {
            match effect {
                Effect::Arm(timer) => {
                    self.armed.insert(timer.name.clone(), timer.clone());
                }
                Effect::Disarm(name) if self.armed.remove(name).is_none() => {
                    let begun = self.journal.iter().filter(|entry| matches!(entry.event, Event::StepStarted { .. }));
                    let known = entries.iter().chain(begun).any(|entry| settled(entry, name));
                    prop_assert!(known, "{} is disarmed and was not armed", name);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What a timer leads to comes from one that was armed and is due.
    fn nothing_is_early(&self, effects: &[Effect]) -> TestCaseResult {
        for effect in effects {
            let name = match effect {
                Effect::StartAttempt { step, .. } => TimerName::Retry(step.clone()),
                Effect::Deliver(Completion::TimerFired { sleep }) => TimerName::Sleep(sleep.clone()),
                Effect::Close | Effect::Deliver(Completion::Stopped { failure: Some(_) }) => TimerName::Deadline,
                _ => continue,
            };
            let due = self.armed.get(&name).map(|timer| timer.due);
            prop_assert!(due.is_some_and(|due| due <= self.now), "{} fires at {} and is due at {:?}", name, self.now, due);
        }
        Ok(())
    }
}

/// Only the last entry of a commit says how many attempts are in flight and what is abandoned. Of what the host says it always does; of
/// what comes from outside it never does.
fn a_report_is_closed_by_its_last_entry(entries: &[Entry]) -> TestCaseResult {
    let Some((last, before)) = entries.split_last() else { return Ok(()) };
    prop_assert!(before.iter().all(|entry| entry.in_flight.is_none() && entry.abandoned.is_empty()));
    let from_outside = matches!(last.event, Event::RunStarted { .. } | Event::SignalReceived { .. } | Event::RunCancelRequested { .. });
    prop_assert_eq!(last.in_flight.is_none(), from_outside);
    prop_assert!(!from_outside || last.abandoned.is_empty());
    Ok(())
}
