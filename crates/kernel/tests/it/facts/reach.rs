//! The scenarios are worth something only if they come to every place of the machines.

use super::scenario::scenario;
use super::world::World;
use super::{play, scenario::Scenario};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use steadfast_kernel::{Answer, Completion, Decision, Effect, Refusal, Run};

#[test]
fn the_scenarios_reach_every_event_effect_refusal_and_status() {
    let mut seen = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..600 {
        let scenario: Scenario = scenario().new_tree(&mut runner).expect("a scenario").current();
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
    let expected = "Arm AnnounceEnd Bounce Close Disarm Host Open Pause Resume StartAttempt \
        ChildEnded SignalDelivered StepFailed Stopped TimerFired \
        CancelRequested Created Exists Heard HeartbeatRecorded Interrupted Paused Resumed Retried RetryScheduled SignalKnown SignalReceived \
        Superseded Terminated TurnTaken \
        SF0103 SF0104 SF0105 SF0108 SF0111 SF0112 SF0113 SF0114 \
        READY RUNNING WAITING PAUSED COMPENSATING INTERRUPTED COMPLETED FAILED CANCELLED \
        BACKOFF TIMER SIGNAL IN_DOUBT SLOT CHILD \
        RUN_STARTED STEP_STARTED STEP_COMPLETED STEP_FAILED RETRY_SCHEDULED STEP_HEARTBEAT PROGRESS_NOTED TIMER_SET TIMER_FIRED \
        SIGNAL_AWAITED SIGNAL_RECEIVED SIGNAL_TAKEN CHILD_STARTED CHILD_ENDED CHILD_TAKEN SLOT_ACQUIRED \
        RUN_PAUSED RUN_RESUMED RUN_INTERRUPTED RUN_RETRIED RUN_CONTINUED \
        RUN_CANCEL_REQUESTED RUN_COMPENSATING UNDO_COMPLETED UNDO_FAILED RUN_CANCELLED RUN_COMPLETED RUN_FAILED";
    assert_eq!(seen, expected.split_whitespace().collect());
}

pub(super) fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Arm(_) => "Arm",
        Effect::Disarm(_) => "Disarm",
        Effect::Open => "Open",
        Effect::Host => "Host",
        Effect::Pause => "Pause",
        Effect::Resume => "Resume",
        Effect::Bounce(_) => "Bounce",
        Effect::StartAttempt { .. } => "StartAttempt",
        Effect::Deliver(Completion::StepFailed { .. }) => "StepFailed",
        Effect::Deliver(Completion::TimerFired { .. }) => "TimerFired",
        Effect::Deliver(Completion::SignalReceived { .. }) => "SignalDelivered",
        Effect::Deliver(Completion::ChildEnded { .. }) => "ChildEnded",
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
        Effect::Answer(Answer::Terminated) => "Terminated",
        Effect::Answer(Answer::Paused) => "Paused",
        Effect::Answer(Answer::Resumed) => "Resumed",
        Effect::Answer(Answer::Retried) => "Retried",
        Effect::Answer(Answer::Interrupted) => "Interrupted",
        Effect::Answer(Answer::HeartbeatRecorded) => "HeartbeatRecorded",
        Effect::Answer(Answer::Heard) => "Heard",
        Effect::Answer(Answer::Dropped) => "Dropped",
        Effect::Answer(Answer::Redriven) => "Redriven",
        Effect::Answer(Answer::Operated) => "Operated",
        Effect::Answer(Answer::RollingBack) => "RollingBack",
        Effect::Answer(Answer::HandedOver) => "HandedOver",
        Effect::Answer(Answer::Broken) => "Broken",
        Effect::Answer(Answer::Put { .. }) => "Put",
        Effect::Answer(Answer::Renewed { .. }) => "Renewed",
        Effect::Answer(Answer::Deleted { .. }) => "Deleted",
        Effect::Answer(Answer::Expired) => "Expired",
        Effect::Answer(Answer::NotFound) => "NotFound",
        Effect::Answer(Answer::Mismatch) => "Mismatch",
        Effect::Answer(Answer::Reported) => "Reported",
        Effect::CallBack { .. } => "CallBack",
        Effect::Retire(_) => "Retire",
        Effect::Shorten(_) => "Shorten",
        Effect::Forget => "Forget",
        Effect::Answer(Answer::Kept { .. }) => "Kept",
    }
}
