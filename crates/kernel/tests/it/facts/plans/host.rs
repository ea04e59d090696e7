//! What the code of a task does.

use crate::support::plans::*;
use crate::support::*;
use proptest::prelude::*;
use steadfast_kernel::run::Stage;
use steadfast_kernel::{Command, Event, Payload, Proposal, Run, TakeTurn, Timestamp};

pub(super) const STAGES: [&str; 3] = ["drain", "switch", "check"];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    /// The stage begins.
    Begin,
    /// It is done, and the next one begins or all is done.
    Done,
    /// It fails for good.
    Fail,
    /// It waits for a signal.
    Wait,
    /// What was done is undone, or could not be.
    Undo { fails: bool },
    /// What no code says.
    Odd(u8),
    /// What the code of an earlier life says.
    Stale,
}

pub(super) fn moved() -> impl Strategy<Value = Move> {
    prop_oneof![
        2 => Just(Move::Begin),
        6 => Just(Move::Done),
        2 => Just(Move::Fail),
        1 => Just(Move::Wait),
        3 => proptest::bool::weighted(0.3).prop_map(|fails| Move::Undo { fails }),
        1 => (0..6_u8).prop_map(Move::Odd),
        1 => Just(Move::Stale),
    ]
}

pub(super) fn turn(run: &Run, moved: Move, now: Timestamp) -> Command {
    let events = events(run, moved);
    let ends = events.last().is_some_and(Event::is_end);
    let waits = matches!(events.last(), Some(Event::SignalAwaited { .. }));
    let proposals = events.into_iter().map(|event| Proposal { at: now, event }).collect();
    let epoch = if matches!(moved, Move::Stale) { run.epoch - 1 } else { run.epoch };
    Command::TakeTurn(TakeTurn {
        epoch,
        proposals,
        in_flight: u32::from(!ends && !waits),
        asked: 0,
        unanswered: vec![],
        abandoned: vec![],
        asks_again: true,
    })
}

fn events(run: &Run, moved: Move) -> Vec<Event> {
    let (Some(open), Some(task)) = (run.open(), run.task()) else { return vec![run_completed("1")] };
    if let Stage::Compensating { .. } = open.stage {
        let undone = open.undoable.iter().next_back();
        return match (undone, moved) {
            (Some(step), Move::Undo { fails: true }) => vec![undo_failed(step.as_str(), 1, card_refused()), run_failed(card_refused())],
            (Some(step), _) => vec![undo_completed(step.as_str(), 1)],
            (None, _) if open.cancel_requested => vec![Event::RunCancelled],
            (None, _) => vec![run_failed(card_refused())],
        };
    }
    if let Move::Odd(5) = moved {
        return vec![run_completed("1")]; // as if it had not heard that it is to be undone
    }
    if open.cancel_requested {
        return vec![if open.undoable.is_empty() { Event::RunCancelled } else { run_compensating(None) }];
    }
    let done = task.completed.len();
    let Some(name) = STAGES.get(done) else { return vec![run_completed("1")] };
    let (index, step) = (done as u32, id(&format!("{name}#1")));
    match moved {
        Move::Begin => vec![stage_started(name, index)],
        Move::Wait => vec![signal_awaited(&format!("signal:ok#{}", run.seq), "ok")],
        Move::Fail => {
            vec![step_failed(step.as_str(), 1, card_refused()), stage_failed(name, index, card_refused()), run_failed(card_refused())]
        }
        Move::Done | Move::Stale | Move::Undo { .. } => {
            let outcome = Event::StepCompleted { step: step.clone(), attempt: 1, output: Payload::json("1"), undoable: true };
            let outcome = (!open.steps.contains_key(&step)).then_some(outcome);
            let mut events: Vec<_> = outcome.into_iter().chain([stage_completed(name, index)]).collect();
            match STAGES.get(done + 1) {
                Some(next) => events.extend([checkpoint_saved(name, index, "{}"), stage_started(next, index + 1)]),
                None => events.push(run_completed("1")),
            }
            events
        }
        Move::Odd(0) => vec![checkpoint_saved("check", 2, "{}")],
        Move::Odd(1) => vec![checkpoint_saved("switch", 1, "{}"), checkpoint_saved("drain", 0, "{}")],
        Move::Odd(2) => vec![stage_completed("switch", 1), stage_completed("drain", 0)],
        Move::Odd(3) => vec![stage_started("drain", 0), stage_started("check", 7)],
        Move::Odd(_) => vec![run_compensating(Some(card_refused()))],
    }
}
