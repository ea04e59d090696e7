//! A task is undone: from every state, newest first, and only if a person wants it.

use super::task::*;
use super::*;

pub(super) fn roll_back() -> Command {
    Command::RollBackRun(ada())
}

/// The host undoes the first stage, and it ends.
#[track_caller]
fn undoes(one: &mut One) {
    assert_eq!(one.task_status(), TaskStatus::RollingBack);
    takes(one, [run_compensating(None)], 1);
    takes(one, [undo_completed("drain#1", 1), Event::RunCancelled], 0);
    assert_eq!((one.task_status(), fence(one)), (TaskStatus::RolledBack, None));
    assert_eq!(tells(one), [(TaskStatus::RolledBack, Wants::Nothing)]);
    assert!(matches!(tells_its_lock(one)[..], [Message::ReleaseLock { fence: Some(_) }]));
    assert!(one.run().task().is_some_and(|task| task.checkpoint.is_none()), "no retry goes on from there");
}

/// It is let begin again, and has its lock or takes it.
#[track_caller]
fn is_let(one: &mut One) {
    let epoch = one.run().epoch;
    let happened = one.hears(&plan_entity(), Message::AdmitTask { epoch });
    if happened == ["TASK_ADMITTED"] {
        let granted = grant(one, 9);
        one.hears(&lock_entity(), granted);
    }
    assert!(one.effects.contains(&Effect::Host));
    assert_eq!(tells(one), [(TaskStatus::RollingBack, Wants::Nothing)]);
}

#[test]
fn a_task_that_never_began_is_called_off() {
    for mut one in [pending(), admitted()] {
        assert_eq!(one.does(roll_back()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
        assert_eq!(one.task_status(), TaskStatus::Cancelled);
        assert!(one.refuses(roll_back()).contains("nothing to undo"));
    }
}

#[test]
fn a_task_that_is_under_way_stops_and_is_undone() {
    let mut one = in_second();
    assert_eq!(one.does(roll_back()), ["RUN_CANCEL_REQUESTED"]);
    assert!(one.effects.contains(&Effect::Deliver(Completion::Stopped { failure: None, undo: true })));
    assert_eq!(tells(&one), [(TaskStatus::RollingBack, Wants::Nothing)]);
    assert_eq!(one.does(roll_back()), [""; 0], "it is asked for once");
    undoes(&mut one);
    assert!(one.refuses(roll_back()).contains("already"));
}

#[test]
fn a_task_that_is_to_be_undone_neither_completes_nor_fails_before_it_is() {
    for end in [run_completed("1"), run_failed(card_refused())] {
        let mut one = in_second();
        one.does(roll_back());
        let turn = turn_of(&one, [end], 0);
        assert!(one.refuses(turn).contains("is to be undone first"), "its code had not heard of it");
        undoes(&mut one);
    }
    let mut one = in_second();
    let turn = turn_of(&one, [run_compensating(Some(card_refused()))], 1);
    assert!(one.refuses(turn).contains("only if a person wants it"));
}

#[test]
fn a_task_that_is_paused_or_waits_is_undone_too() {
    let (mut paused, mut waiting) = (in_second(), in_second());
    paused.does(pause());
    takes(&mut waiting, [signal_awaited("signal:ok#1", "ok")], 0);
    for mut one in [paused, waiting] {
        assert_eq!(one.does(roll_back()), ["RUN_CANCEL_REQUESTED"]);
        undoes(&mut one);
    }
}

#[test]
fn a_task_that_has_ended_or_is_interrupted_begins_a_life_in_which_it_is_undone() {
    let (mut interrupted, mut cancelled, mut lost, mut completed) = (in_second(), in_second(), in_second(), in_second());
    interrupted.does(Command::InterruptRun);
    cancelled.does(cancel());
    lost.hears(&lock_entity(), Message::LockLost { fence: 1, origin: ada() });
    takes(&mut completed, [run_completed("1")], 0);
    for mut one in [failed(), interrupted, cancelled, lost, completed] {
        assert_eq!(one.does(roll_back()), ["RUN_RETRIED", "RUN_CANCEL_REQUESTED"]);
        assert_eq!(tells(&one), [(TaskStatus::Pending, Wants::TurnAsked), (TaskStatus::RollingBack, Wants::TurnAsked)]);
        assert!(!one.effects.contains(&Effect::Host), "it waits for its turn");
        is_let(&mut one);
        undoes(&mut one);
    }
}

#[test]
fn what_cannot_be_undone_keeps_the_lock_and_can_be_tried_again() {
    let mut one = in_second();
    one.does(roll_back());
    takes(&mut one, [run_compensating(None)], 1);
    takes(&mut one, [undo_failed("drain#1", 1, card_refused()), run_failed(card_refused())], 0);
    assert_eq!((one.task_status(), fence(&one)), (TaskStatus::RollbackFailed, Some(1)));
    assert_eq!(tells(&one), [(TaskStatus::RollbackFailed, Wants::Nothing)]);
    assert_eq!(one.does(roll_back()), ["RUN_RETRIED", "RUN_CANCEL_REQUESTED"]);
    is_let(&mut one);
    undoes(&mut one);
}

#[test]
fn a_task_that_is_being_undone_can_be_called_off() {
    let mut asked = in_second();
    asked.does(roll_back());
    let mut undone = in_second();
    undone.does(roll_back());
    takes(&mut undone, [run_compensating(None)], 1);
    let mut waiting = failed();
    waiting.does(roll_back());
    for mut one in [asked, undone, waiting] {
        assert_eq!(one.does(cancel()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
        assert_eq!((one.task_status(), fence(&one)), (TaskStatus::Cancelled, None));
        assert_eq!(tells(&one), [(TaskStatus::Cancelled, Wants::Nothing)]);
    }
}

#[test]
fn a_task_that_waits_to_be_retried_can_be_undone_instead() {
    let mut one = failed();
    one.does(retry(RetryFrom::Failed));
    assert_eq!(one.does(roll_back()), ["RUN_CANCEL_REQUESTED"]);
    assert_eq!(tells(&one), [(TaskStatus::RollingBack, Wants::TurnAsked)]);
    is_let(&mut one);
    undoes(&mut one);
}

#[test]
fn a_task_that_is_to_be_undone_is_not_recalled() {
    let mut one = in_second();
    one.hears(&lock_entity(), Message::LockLost { fence: 1, origin: ada() });
    one.does(roll_back());
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 });
    assert_eq!(one.hears(&plan_entity(), Message::RecallTask { epoch: 2 }), [""; 0]);
    assert_eq!(one.task_status(), TaskStatus::RollingBack);
}

#[test]
fn a_restart_interrupts_an_undo_that_is_under_way() {
    let mut one = in_second();
    one.does(roll_back());
    takes(&mut one, [run_compensating(None)], 1);
    assert_eq!(one.does(Command::InterruptRun), ["RUN_INTERRUPTED"]);
    assert_eq!((one.task_status(), fence(&one)), (TaskStatus::Interrupted, Some(1)));
    one.does(roll_back());
    is_let(&mut one);
    undoes(&mut one);
}

#[test]
fn a_run_that_is_no_task_is_not_rolled_back() {
    let mut one = One::new(run_id().into());
    one.does(start());
    assert!(one.refuses(roll_back()).contains("only tasks of plans"));
}

#[test]
fn the_same_command_again_is_one() {
    let mut one = in_second();
    assert_eq!(one.does(Command::RollBackRun(ada_with("c-1"))), ["RUN_CANCEL_REQUESTED"]);
    undoes(&mut one);
    assert_eq!(one.does(Command::RollBackRun(ada_with("c-1"))), [""; 0]);
    assert_eq!(one.effects, [answer(Answer::RollingBack)]);
}
