//! Another instance goes on with a task: it has ended here, in whatever status it was, and refuses everything.

use super::roll_back::roll_back;
use super::stages::progress;
use super::task::*;
use super::*;
use steadfast_kernel::Policy;

/// A task in each status, the fence that it has, and what it had asked of its lock.
fn in_every_status() -> Vec<(TaskStatus, One)> {
    let with = |act: &dyn Fn(&mut One)| {
        let mut one = in_second();
        act(&mut one);
        one
    };
    let backoff = with(&|one| {
        let report =
            steadfast_kernel::ReportFailure { in_flight: 0, ..report_timeout("switch#1", 1, &Policy::constant(SECOND).max_attempts(9)) };
        assert_eq!(one.does(Command::ReportFailure(report)), ["RETRY_SCHEDULED"]);
    });
    let undone = with(&|one| {
        one.does(roll_back());
        takes(one, [run_compensating(None)], 1);
    });
    let rolled_back = with(&|one| {
        one.does(roll_back());
        takes(one, [run_compensating(None)], 1);
        takes(one, [undo_completed("drain#1", 1), Event::RunCancelled], 0);
    });
    let rollback_failed = with(&|one| {
        one.does(roll_back());
        takes(one, [run_compensating(None)], 1);
        takes(one, [undo_failed("drain#1", 1, card_refused()), run_failed(card_refused())], 0);
    });
    vec![
        (TaskStatus::Pending, pending()),
        (TaskStatus::Waiting, admitted()),
        (TaskStatus::Running, in_second()),
        (TaskStatus::Running, with(&|one| drop(one.does(pause())))),
        (TaskStatus::Waiting, with(&|one| drop(takes(one, [signal_awaited("signal:ok#1", "ok")], 0)))),
        (TaskStatus::Waiting, backoff),
        (TaskStatus::Interrupted, with(&|one| drop(one.does(Command::InterruptRun)))),
        (TaskStatus::Failed, failed()),
        (TaskStatus::Completed, with(&|one| drop(takes(one, [run_completed("1")], 0)))),
        (TaskStatus::Cancelled, with(&|one| drop(one.does(cancel())))),
        (TaskStatus::RollingBack, undone),
        (TaskStatus::RolledBack, rolled_back),
        (TaskStatus::RollbackFailed, rollback_failed),
    ]
}

/// Which lock messages it has to say when it goes.
fn gives_back(one: &One) -> Vec<Message> {
    let task = one.run().task().expect("a task");
    let held = task.lock.as_ref().map(|lease| Message::ReleaseLock { fence: Some(lease.fence) });
    let asked = (task.admitted && !task.started).then_some(Message::ReleaseLock { fence: None });
    held.or(asked).into_iter().collect()
}

#[test]
fn it_is_handed_over_in_every_status_and_gives_back_what_it_has() {
    for (status, mut one) in in_every_status() {
        assert_eq!(one.task_status(), status);
        let (was_open, given, timers) = (one.run().open().is_some(), gives_back(&one), one.run().timers());
        let expected = if was_open { &["TASK_HANDED_OVER", "RUN_CANCELLED"][..] } else { &["TASK_HANDED_OVER"] };
        assert_eq!(one.does(hand_over(Some("i-2"))), expected, "{status:?}");
        assert_eq!((one.task_status(), fence(&one)), (TaskStatus::HandedOver, None));
        assert_eq!(tells(&one), [(TaskStatus::HandedOver, Wants::Nothing)], "{status:?}");
        assert_eq!(tells_its_lock(&one), given.iter().collect::<Vec<_>>(), "{status:?}");
        assert_eq!((one.effects.contains(&Effect::Close), one.effects.contains(&Effect::AnnounceEnd)), (was_open, was_open));
        assert_eq!(one.effects.last(), Some(&answer(Answer::HandedOver)));
        assert!(timers.iter().all(|timer| one.effects.contains(&Effect::Disarm(timer.name.clone()))), "{status:?}");
        assert!(one.run().timers().is_empty() && one.run().recover().is_none() && one.run().open().is_none());
        let to = one.run().task().and_then(|task| task.handed_over.clone()).and_then(|handed| handed.to);
        assert_eq!(to, InstanceId::new("i-2").ok());
    }
}

#[test]
fn it_is_handed_over_once() {
    for (status, mut one) in in_every_status() {
        one.does(hand_over(None));
        for to in [None, Some("i-3")] {
            assert_eq!(one.does(hand_over(to)), [""; 0], "{status:?}");
            assert_eq!(one.effects, [answer(Answer::HandedOver)]);
        }
    }
    let mut stranger = One::new(run_id().into());
    stranger.does(start());
    assert!(stranger.refuses(hand_over(None)).contains("only tasks of plans"));
    assert_eq!(One::new(run_id().into()).ask(hand_over(None)), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn it_refuses_every_verb_and_says_where_to_ask() {
    for (status, mut one) in in_every_status() {
        one.does(hand_over(Some("i-2")));
        let before = one.run().clone();
        let verbs = [cancel(), pause(), resume(), terminate(), roll_back(), retry(RetryFrom::Failed), retry(RetryFrom::Start)];
        for verb in verbs {
            assert!(one.refuses(verb.clone()).contains("another instance goes on with it"), "{verb:?} of one that was {status:?}");
        }
        let turn = turn_of(&one, [stage_completed("switch", 1)], 1);
        assert!(one.ask(turn).is_err(), "what it was doing does not count any more");
        assert_eq!(one.does(Command::InterruptRun), [""; 0]);
        assert_eq!(one.run(), &before, "a refusal leaves no trace");
    }
}

#[test]
fn the_same_command_again_is_one_also_after_it_was_handed_over() {
    let mut one = in_second();
    one.does(Command::RollBackRun(ada_with("c-1")));
    one.does(hand_over(None));
    assert_eq!(one.does(Command::RollBackRun(ada_with("c-1"))), [""; 0]);
    assert!(one.refuses(Command::RollBackRun(ada_with("c-2"))).contains("ask there"));
}

#[test]
fn what_its_lock_and_its_plan_say_too_late_changes_nothing() {
    for (status, mut one) in in_every_status() {
        let (late, epoch) = (grant(&one, 7), one.run().epoch);
        let lost = fence(&one).map(|fence| Message::LockLost { fence, origin: ada() });
        let asked = one.run().task().expect("a task").asked;
        one.does(hand_over(Some("i-2")));
        let before = (one.run().epoch, one.run().seq);
        assert_eq!(one.hears(&lock_entity(), late), [""; 0], "{status:?}");
        assert_eq!(one.back()[0].message, Message::ReleaseLock { fence: Some(7) }, "a lock that comes now is given back");
        let says = [Message::LockRefused { asked, holder: "q:q/acme".into() }, Message::ConfirmLock { fence: 1, seen: 0 }];
        for message in says.into_iter().chain(lost) {
            assert_eq!(one.hears(&lock_entity(), message.clone()), [""; 0], "{message:?} to one that was {status:?}");
        }
        for message in [Message::AdmitTask { epoch }, Message::RecallTask { epoch }] {
            assert_eq!(one.hears(&plan_entity(), message.clone()), [""; 0], "{message:?} to one that was {status:?}");
            assert_eq!(one.effects, [answer(Answer::Heard)]);
        }
        for verb in [Verb::Pause, Verb::Resume, Verb::Cancel, Verb::RollBack] {
            assert_eq!(one.hears(&plan_entity(), Message::OperateTask { verb, origin: ada() }), [""; 0], "{verb:?}");
            let told = TaskChanged { epoch, status: TaskStatus::HandedOver, wants: Wants::Nothing, heard: one.told };
            assert_eq!(one.back()[0].message, Message::TaskChanged(told), "its plan hears that it is to ask elsewhere");
        }
        assert_eq!((one.run().epoch, one.run().seq), before);
    }
}

#[test]
fn one_that_was_adopted_can_be_handed_over_and_adopted_back_and_forth() {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    one.does(adopt(task_of("acme"), options(), &[], true));
    for (many, round) in [1, 1, 2, 3].into_iter().zip(2..) {
        assert_eq!(one.does(hand_over(Some("i-2"))), ["TASK_HANDED_OVER", "RUN_CANCELLED"]);
        one.does(adopt(task_of("acme"), options(), &vec![true; many], true));
        assert_eq!((one.task_status(), progress(&one).0, one.run().epoch), (TaskStatus::Interrupted, many, round));
    }
    one.does(retry(RetryFrom::Failed));
    assert_eq!((one.task_status(), progress(&one).0), (TaskStatus::Waiting, 3));
}

#[test]
fn the_reason_and_the_other_instance_are_on_record() {
    let mut one = in_second();
    one.does(hand_over(Some("i-2")));
    let entry = one.journal.iter().find(|entry| entry.event.kind() == "TASK_HANDED_OVER").expect("an event");
    let record = steadfast_kernel::Record::from(entry);
    assert_eq!(record.reason.as_deref(), Some("ordered twice"));
    assert_eq!(Entry::try_from(&record).as_ref(), Ok(entry));
}
