//! What people want of a plan, in every status.

use super::plan::*;
use super::*;

/// A plan in each of its statuses, and where it stands in them.
fn in_every_status() -> Vec<(&'static str, One)> {
    let all_are = |mut one: One, status| {
        ALL.iter().for_each(|name| drop(is(&mut one, name, status)));
        one
    };
    let wide = || started(Settings { max_concurrency: 9, ..two() });
    let then = |mut one: One, verb| {
        one.does(operate(verb, ada()));
        one
    };
    let mut created = One::new(plan_entity());
    created.does(create_plan(plan_created(&ALL, two()), Vec::new()));
    let mut restarted = started(two());
    restarted.does(Command::InterruptPlan);
    vec![
        ("created", created),
        ("ready", ready(two())),
        ("running", started(two())),
        ("paused", then(started(two()), Verb::Pause)),
        ("paused by a restart", restarted),
        ("cancelling", then(started(two()), Verb::Cancel)),
        ("rolling back", then(started(two()), Verb::RollBack)),
        ("completed", all_are(wide(), TaskStatus::Completed)),
        ("failed", all_are(wide(), TaskStatus::Failed)),
        ("cancelled", all_are(wide(), TaskStatus::Cancelled)),
    ]
}

/// The first event, or nothing if it is answered without one, or why it is refused.
fn outcome(one: &mut One, verb: Verb) -> String {
    match one.ask(operate(verb, ada())) {
        Ok(events) => events.first().map_or_else(|| "-".into(), ToString::to_string),
        Err(Refusal::PlanStatus { status, what_to_do, .. }) => format!("{}: {what_to_do}", status.as_str()),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_verb_in_every_status() {
    let table = [
        (
            Verb::Start,
            [
                "PLAN_STARTED",
                "PLAN_STARTED",
                "-",
                "PAUSED: it was started; resume it",
                "PAUSED: it was started; resume it",
                "RUNNING: it was started; create another plan, or retry single tenants",
                "RUNNING: it was started; create another plan, or retry single tenants",
                "COMPLETED: it was started; create another plan, or retry single tenants",
                "FAILED: it was started; create another plan, or retry single tenants",
                "CANCELLED: it was started; create another plan, or retry single tenants",
            ],
        ),
        (
            Verb::Pause,
            [
                "CREATED: it was not started",
                "READY: it was not started",
                "PLAN_PAUSED",
                "-",
                "PLAN_PAUSED",
                "RUNNING: it is being ended, which cannot be paused",
                "RUNNING: it is being ended, which cannot be paused",
                "COMPLETED: it has ended",
                "FAILED: it has ended",
                "CANCELLED: it has ended",
            ],
        ),
        (
            Verb::Resume,
            [
                "CREATED: it was not started; start it",
                "READY: it was not started; start it",
                "-",
                "PLAN_RESUMED",
                "PLAN_RESUMED",
                "RUNNING: it is being ended",
                "RUNNING: it is being ended",
                "COMPLETED: it has ended; retry single tenants",
                "FAILED: it has ended; retry single tenants",
                "CANCELLED: it has ended; retry single tenants",
            ],
        ),
        (
            Verb::Cancel,
            [
                "PLAN_CANCEL_REQUESTED",
                "PLAN_CANCEL_REQUESTED",
                "PLAN_CANCEL_REQUESTED",
                "PLAN_CANCEL_REQUESTED",
                "PLAN_CANCEL_REQUESTED",
                "-",
                "RUNNING: it is being rolled back; cancel single tenants",
                "COMPLETED: it has ended",
                "PLAN_CANCEL_REQUESTED",
                "CANCELLED: it has ended",
            ],
        ),
        (
            Verb::RollBack,
            [
                "CREATED: nothing was done; cancel it",
                "READY: nothing was done; cancel it",
                "PLAN_ROLLBACK_REQUESTED",
                "PLAN_ROLLBACK_REQUESTED",
                "PLAN_ROLLBACK_REQUESTED",
                "PLAN_ROLLBACK_REQUESTED",
                "-",
                "PLAN_ROLLBACK_REQUESTED",
                "PLAN_ROLLBACK_REQUESTED",
                "PLAN_ROLLBACK_REQUESTED",
            ],
        ),
    ];
    for (verb, expected) in table {
        for ((name, mut one), expected) in in_every_status().into_iter().zip(expected) {
            assert_eq!(outcome(&mut one, verb), expected, "{verb:?} of a plan that is {name}");
        }
    }
    for (name, mut one) in in_every_status() {
        for verb in [Verb::Retry, Verb::Terminate] {
            assert!(outcome(&mut one, verb).ends_with("retry or cancel single tenants"), "{verb:?} of a plan that is {name}");
        }
    }
}

#[test]
fn a_plan_that_is_not_there_is_not_found() {
    for verb in [Verb::Start, Verb::Pause, Verb::Resume, Verb::Cancel, Verb::RollBack] {
        let refusal = One::new(plan_entity()).ask(operate(verb, ada())).expect_err("it is not refused");
        assert_eq!((refusal.clone(), refusal.code()), (Refusal::PlanNotFound { plan: plan_named("p") }, code::PLAN_NOT_FOUND));
    }
}

#[test]
fn the_same_command_again_is_one() {
    let mut one = ready(two());
    one.does(operate(Verb::Start, ada_with("c-1")));
    one.does(operate(Verb::Pause, ada_with("c-1")));
    one.does(operate(Verb::Resume, ada()));
    for verb in [Verb::Start, Verb::Pause] {
        assert_eq!(one.does(operate(verb, ada_with("c-1"))), [""; 0], "{verb:?}");
    }
    assert_eq!(one.does(operate(Verb::Pause, ada_with("c-2")))[0], "PLAN_PAUSED");
}

#[test]
fn a_pause_reaches_what_is_under_way_and_recalls_what_is_not() {
    let mut one = started(two());
    is(&mut one, "a", TaskStatus::Running);
    assert_eq!(one.does(operate(Verb::Pause, ada())), ["PLAN_PAUSED", "TASK_RECALLED"]);
    assert_eq!(told(&one), [("a", "pause"), ("b", "pause"), ("b", "recall")]);
    says(&mut one, "b", TaskStatus::Pending, Wants::Turn);
    is(&mut one, "a", TaskStatus::Completed);
    assert_eq!((lets(&one), cause(&one)), (vec![], Some(Cause::Person)), "nothing else begins");
    assert_eq!(one.does(operate(Verb::Resume, ada())), ["PLAN_RESUMED", "TASK_ADMITTED", "TASK_ADMITTED"]);
    assert_eq!(lets(&one), ["b", "c"]);
}

#[test]
fn a_resumed_plan_resumes_what_is_under_way() {
    let mut one = started(two());
    ["a", "b"].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Running)));
    one.does(operate(Verb::Pause, ada()));
    one.does(operate(Verb::Resume, ada()));
    assert_eq!(told(&one), [("a", "resume"), ("b", "resume")]);
}

#[test]
fn a_cancelled_plan_ends_once_all_tasks_have() {
    let mut one = started(two());
    is(&mut one, "a", TaskStatus::Completed);
    is(&mut one, "b", TaskStatus::Failed);
    assert_eq!(one.does(operate(Verb::Cancel, ada())), ["PLAN_CANCEL_REQUESTED"]);
    assert_eq!(told(&one), [("b", "cancel"), ("c", "cancel"), ("d", "cancel")], "also those that have failed, for their locks");
    ["b", "c"]
        .iter()
        .for_each(|name| assert_eq!(is(&mut one, name, TaskStatus::Cancelled), ["TASK_CHANGED"]));
    assert_eq!(one.plan().status(), PlanStatus::Running);
    assert_eq!(is(&mut one, "d", TaskStatus::Cancelled), ["TASK_CHANGED", "PLAN_CANCELLED"]);
    assert_eq!(one.plan().status(), PlanStatus::Cancelled);
}

#[test]
fn a_plan_is_rolled_back_so_many_at_once() {
    let mut one = started(two());
    ["a", "b"].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    ["c", "d"].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Running)));
    assert_eq!(one.does(operate(Verb::RollBack, ada())), ["PLAN_ROLLBACK_REQUESTED"]);
    assert_eq!(told(&one), ALL.map(|name| (name, "roll back")));
    says_in(&mut one, "a", 2, TaskStatus::RollingBack, Wants::TurnAsked);
    assert_eq!(lets(&one), [""; 0], "two are under way");
    is(&mut one, "c", TaskStatus::RolledBack);
    assert_eq!(lets(&one), ["a"]);
    is(&mut one, "d", TaskStatus::RolledBack);
    says_in(&mut one, "a", 2, TaskStatus::RolledBack, Wants::Nothing);
    says_in(&mut one, "b", 2, TaskStatus::RollingBack, Wants::TurnAsked);
    assert_eq!(lets(&one), ["b"]);
    assert_eq!(says_in(&mut one, "b", 2, TaskStatus::RolledBack, Wants::Nothing), ["TASK_CHANGED", "PLAN_CANCELLED"]);
}

#[test]
fn what_cannot_be_undone_fails_the_plan() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    one.does(operate(Verb::RollBack, ada()));
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::RolledBack)));
    assert_eq!(is(&mut one, "d", TaskStatus::RollbackFailed), ["TASK_CHANGED", "PLAN_FAILED"]);
}

#[test]
fn a_plan_does_not_end_before_its_tasks_have_heard_that_it_is_to() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    is(&mut one, "d", TaskStatus::Running);
    one.does(operate(Verb::RollBack, ada()));
    ALL[..3]
        .iter()
        .for_each(|name| drop(says_in(&mut one, name, 2, TaskStatus::RolledBack, Wants::Nothing)));
    let early = TaskChanged { epoch: 1, status: TaskStatus::Completed, wants: Wants::Nothing, heard: 0 };
    assert_eq!(one.hears(&EntityId::from(&task_of("d")), Message::TaskChanged(early)), ["TASK_CHANGED"], "it was said before that");
    assert_eq!(one.plan().status(), PlanStatus::Running);
    says_in(&mut one, "d", 2, TaskStatus::RollingBack, Wants::TurnAsked);
    assert_eq!(says_in(&mut one, "d", 2, TaskStatus::RolledBack, Wants::Nothing), ["TASK_CHANGED", "PLAN_CANCELLED"]);
}

#[test]
fn a_task_that_has_nothing_to_undo_answers() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::RolledBack)));
    assert_eq!(is(&mut one, "d", TaskStatus::Cancelled), ["TASK_CHANGED", "PLAN_CANCELLED"]);
    assert_eq!(one.does(operate(Verb::RollBack, ada())), ["PLAN_ROLLBACK_REQUESTED"]);
    assert_eq!(told(&one), [("d", "roll back")]);
    let answer = TaskChanged { epoch: 1, status: TaskStatus::Cancelled, wants: Wants::Nothing, heard: u64::MAX };
    let answered = one.hears_as(&EntityId::from(&task_of("d")), 0, Message::TaskChanged(answer));
    assert_eq!(answered, ["TASK_CHANGED", "PLAN_CANCELLED"]);
}

#[test]
fn an_interrupted_task_holds_up_the_end_of_a_plan_that_is_rolled_back() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    one.does(operate(Verb::RollBack, ada()));
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::RolledBack)));
    assert_eq!(is(&mut one, "d", TaskStatus::Interrupted), ["TASK_CHANGED"]);
    assert_eq!(one.plan().status(), PlanStatus::Running);
    assert_eq!(is(&mut one, "d", TaskStatus::Cancelled), ["TASK_CHANGED", "PLAN_CANCELLED"]);
}
