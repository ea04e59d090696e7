//! Stages and checkpoints of a task, and what another life keeps of them.

use super::task::*;
use super::*;

/// How many stages are done, the stage it is at, and the stage of its checkpoint.
pub(super) fn progress(one: &One) -> (usize, Option<u32>, Option<u32>) {
    let task = one.run().task().expect("a task");
    (task.completed.len(), one.run().stage_at(), task.checkpoint.as_ref().map(|checkpoint| checkpoint.index))
}

#[test]
fn a_stage_its_outcome_and_its_checkpoint_are_one_commit() {
    let one = in_second();
    assert_eq!(progress(&one), (1, Some(1), Some(0)));
    let checkpoint = one.run().task().and_then(|task| task.checkpoint.clone()).expect("a checkpoint");
    assert_eq!((checkpoint.data, checkpoint.saved_at), (Payload::json("{\"a\":1}"), at(one.now)));
    assert_eq!(one.journal[checkpoint.version as usize - 1].event.kind(), "CHECKPOINT_SAVED", "its version is its place");
}

#[test]
fn a_checkpoint_never_goes_back_and_none_follows_the_last_stage() {
    let mut one = in_second();
    takes(&mut one, [step_completed("switch#1", 1, "1"), stage_completed("switch", 1), checkpoint_saved("switch", 1, "{}")], 1);
    for (name, index) in [("drain", 0), ("switch", 1), ("check", 2), ("check", 7)] {
        let turn = turn_of(&one, [checkpoint_saved(name, index, "{}")], 1);
        assert!(one.refuses(turn).contains("does not fit a task with 2 of 3 stages done"), "{name}");
    }
    assert_eq!(progress(&one), (2, Some(2), Some(1)));
}

#[test]
fn stages_of_one_turn_are_in_order() {
    let mut one = running();
    let both = turn_of(&one, [stage_completed("switch", 1), stage_completed("drain", 0)], 1);
    assert!(one.ask(both).is_err());
    let both = turn_of(&one, [checkpoint_saved("switch", 1, "{}"), checkpoint_saved("drain", 0, "{}")], 1);
    assert!(one.ask(both).is_err());
    takes(&mut one, [stage_completed("drain", 0), stage_completed("switch", 1)], 1);
    assert_eq!(progress(&one).0, 2);
    for (name, index) in [("drain", 0), ("other", 3)] {
        let turn = turn_of(&one, [stage_started(name, index)], 1);
        assert!(one.ask(turn).is_err(), "{name} is done, or none of its stages");
    }
}

#[test]
fn what_an_earlier_life_says_is_refused() {
    let mut one = failed();
    let stale = turn_of(&one, [stage_started("switch", 1)], 1);
    one.does(retry(RetryFrom::Failed));
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 });
    assert!(one.refuses(stale).contains("epoch"));
}

#[test]
fn a_retry_from_the_checkpoint_keeps_stages_and_lock() {
    let mut one = failed();
    assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED"]);
    assert_eq!(tells(&one), [(TaskStatus::Pending, Wants::TurnAsked)], "a person wants it to begin");
    assert_eq!((progress(&one), fence(&one), one.task_status()), ((1, Some(1), Some(0)), Some(1), TaskStatus::Pending));
    assert!(!one.effects.contains(&Effect::Host));
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 }), ["TASK_ADMITTED", "TASK_STARTED"], "it has its lock");
    assert!(one.effects.contains(&Effect::Host) && tells_its_lock(&one).is_empty());
    let steps = &one.run().open().expect("an open run").steps;
    assert!(steps.contains_key(&id("drain#1")) && !steps.contains_key(&id("switch#1")));
}

#[test]
fn a_retry_from_the_start_discards_all_stages_and_keeps_the_lock() {
    let mut one = failed();
    assert_eq!(one.does(retry(RetryFrom::Start)), ["RUN_RETRIED"]);
    assert_eq!((progress(&one), fence(&one)), ((0, None, None), Some(1)));
    assert!(one.run().open().expect("an open run").steps.is_empty());
}

#[test]
fn a_retry_after_the_lock_was_lost_takes_it_again() {
    let mut one = in_second();
    one.hears(&lock_entity(), Message::LockLost { fence: 1, origin: Origin::default() });
    assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED"]);
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 }), ["TASK_ADMITTED"]);
    assert!(matches!(tells_its_lock(&one)[..], [Message::AcquireLock { epoch: 2, .. }]));
    let granted = grant(&one, 5);
    assert_eq!(one.hears(&lock_entity(), granted), ["LOCK_ACQUIRED", "TASK_STARTED"]);
    assert_eq!((progress(&one).0, fence(&one)), (1, Some(5)));
}

#[test]
fn a_retry_of_an_interrupted_task_runs_what_is_left() {
    let mut one = in_second();
    assert_eq!(one.does(Command::InterruptRun), ["RUN_INTERRUPTED"]);
    assert_eq!((tells(&one), fence(&one)), (vec![(TaskStatus::Interrupted, Wants::Nothing)], Some(1)));
    one.does(retry(RetryFrom::Failed));
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 });
    assert_eq!((progress(&one), one.task_status()), ((1, Some(1), Some(0)), TaskStatus::Running));
    takes(&mut one, [step_completed("switch#1", 1, "1"), stage_completed("switch", 1), checkpoint_saved("switch", 1, "{}")], 1);
    assert_eq!(progress(&one).0, 2);
}

#[test]
fn a_task_is_not_retried_from_a_step_or_with_something_else() {
    let mut one = failed();
    assert!(one.refuses(retry(RetryFrom::Step(id("drain#1")))).contains("from its checkpoint or from its start"));
    assert!(one.ask(retry_run()).is_ok());
    assert!(pending().refuses(retry_run()).contains("not begun"), "it waits for its turn");
}

/// The lock may be on its way to it: nothing is to begin by itself because of that.
#[test]
fn a_restart_has_a_task_that_waits_for_its_lock_wait_for_its_turn() {
    let mut one = admitted();
    let late = grant(&one, 1);
    assert_eq!(one.does(Command::InterruptRun), ["TASK_RECALLED"]);
    assert_eq!((tells(&one), one.task_status()), (vec![(TaskStatus::Pending, Wants::Turn)], TaskStatus::Pending));
    assert_eq!(one.hears(&lock_entity(), late), [""; 0]);
    assert!(matches!(one.back()[0].message, Message::ReleaseLock { fence: Some(1) }), "it gives it back");
    assert_eq!(one.does(Command::InterruptRun), [""; 0]);
}

#[test]
fn what_a_person_wanted_to_begin_again_is_asked_for_again_after_a_restart() {
    let mut one = in_second();
    one.hears(&lock_entity(), Message::LockLost { fence: 1, origin: ada() });
    one.does(retry(RetryFrom::Failed));
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 }), ["TASK_ADMITTED"]);
    assert_eq!(one.does(Command::InterruptRun), ["TASK_RECALLED"]);
    assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED"]);
    assert_eq!(tells(&one), [(TaskStatus::Pending, Wants::TurnAsked)]);
}

#[test]
fn a_restart_leaves_alone_what_has_not_begun_or_only_waits() {
    for mut one in [pending(), failed()] {
        assert_eq!(one.does(Command::InterruptRun), [""; 0]);
    }
    let mut waiting = in_second();
    takes(&mut waiting, [signal_awaited("signal:ok#1", "ok")], 0);
    assert_eq!(waiting.does(Command::InterruptRun), [""; 0]);
    assert_eq!(waiting.task_status(), TaskStatus::Waiting);
}
