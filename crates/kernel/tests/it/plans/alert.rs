//! Those who watch a plan hear that the commons are away, and that they are back; and a plan ends whose tasks others go on with.

use super::plan::*;
use super::*;

fn alert(degraded: bool) -> Command {
    Command::AlertPlan { degraded, why: "no answer from the commons".into() }
}

#[test]
fn each_alert_is_put_on_record_once_and_with_its_reason() {
    let mut one = started(two());
    assert_eq!(one.does(alert(false)), [""; 0], "they were never away");
    assert_eq!(one.does(alert(true)), ["DEGRADED"]);
    let record = steadfast_kernel::Record::from(one.journal.last().expect("an event"));
    assert_eq!((record.reason.as_deref(), one.said.len()), (Some("no answer from the commons"), 0));
    assert_eq!((one.does(alert(true)), one.effects.clone()), (vec![], vec![answer(Answer::Heard)]));
    assert_eq!(one.does(alert(false)), ["RESTORED"]);
    assert_eq!(one.does(alert(false)), [""; 0]);
    assert_eq!(one.does(alert(true)), ["DEGRADED"]);
    assert_eq!(One::new(plan_entity()).does(alert(true)), [""; 0], "there is no plan of that id");
}

#[test]
fn a_plan_that_is_over_is_told_only_that_they_are_back() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    one.does(alert(true));
    ALL.iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    assert_eq!(one.plan().status(), PlanStatus::Completed);
    assert_eq!(one.does(alert(false)), ["RESTORED"]);
    assert_eq!(one.does(alert(true)), [""; 0]);
    assert_eq!(one.plan().status(), PlanStatus::Completed);
}

/// Those tasks are handed over, and the others come to that.
fn ends(handed_over: usize, others: TaskStatus) -> PlanStatus {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    for (place, name) in ALL.iter().enumerate() {
        is(&mut one, name, if place < handed_over { TaskStatus::HandedOver } else { others });
    }
    one.plan().status()
}

#[test]
fn a_plan_ends_without_the_tasks_that_others_go_on_with() {
    assert_eq!(ends(2, TaskStatus::Completed), PlanStatus::Completed);
    assert_eq!(ends(2, TaskStatus::Failed), PlanStatus::Failed);
    assert_eq!(ends(2, TaskStatus::Cancelled), PlanStatus::Cancelled);
    assert_eq!(ends(4, TaskStatus::Completed), PlanStatus::Cancelled, "none of it was done here");
}

#[test]
fn a_task_that_is_handed_over_leaves_room_for_the_next_one() {
    let mut one = started(two());
    assert_eq!(is(&mut one, "a", TaskStatus::HandedOver), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(lets(&one), ["c"]);
}

#[test]
fn a_canary_that_is_handed_over_holds_nobody_up() {
    let mut one = started(Settings { canary: 1, ..two() });
    assert_eq!(is(&mut one, "a", TaskStatus::HandedOver), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(lets(&one), ["b"], "the next one is the canary in its place");
    assert_eq!(is(&mut one, "b", TaskStatus::Completed), ["TASK_CHANGED", "TASK_ADMITTED", "TASK_ADMITTED"]);
}

#[test]
fn a_plan_with_tasks_that_are_handed_over_is_called_off_and_rolled_back_without_them() {
    for (verb, what) in [(Verb::Cancel, "cancel"), (Verb::RollBack, "roll back")] {
        let mut one = started(Settings { max_concurrency: 9, ..two() });
        ["a", "b"].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::HandedOver)));
        one.does(operate(verb, ada()));
        assert_eq!(told(&one), [("c", what), ("d", what)]);
        is(&mut one, "c", TaskStatus::Cancelled);
        assert_eq!(is(&mut one, "d", TaskStatus::Cancelled), ["TASK_CHANGED", "PLAN_CANCELLED"]);
        let mut all = started(Settings { max_concurrency: 9, ..two() });
        ALL[..3].iter().for_each(|name| drop(is(&mut all, name, TaskStatus::HandedOver)));
        all.does(operate(verb, ada()));
        assert_eq!(is(&mut all, "d", TaskStatus::HandedOver), ["TASK_CHANGED", "PLAN_CANCELLED"], "it was handed over meanwhile");
    }
}

#[test]
fn a_task_that_is_told_to_end_while_it_is_handed_over_answers_and_the_plan_ends() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Cancelled)));
    one.does(operate(Verb::Cancel, ada()));
    let from = EntityId::from(&task_of("d"));
    let early = TaskChanged { epoch: 1, status: TaskStatus::HandedOver, wants: Wants::Nothing, heard: 0 };
    assert_eq!(one.hears(&from, Message::TaskChanged(early.clone())), ["TASK_CHANGED"], "it had not heard of it yet");
    let answer = Message::TaskChanged(TaskChanged { heard: u64::MAX, ..early });
    assert_eq!(one.hears_as(&from, 0, answer), ["TASK_CHANGED", "PLAN_CANCELLED"]);
}

#[test]
fn a_plan_that_has_ended_goes_on_with_a_task_that_is_taken_up_again_once_a_person_wants_it() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    is(&mut one, "a", TaskStatus::HandedOver);
    ALL[1..].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    assert_eq!(one.plan().status(), PlanStatus::Completed);
    assert_eq!(says_in(&mut one, "a", 2, TaskStatus::Interrupted, Wants::Nothing), ["TASK_CHANGED"]);
    assert_eq!(one.plan().status(), PlanStatus::Completed);
    let again = says_in(&mut one, "a", 3, TaskStatus::Pending, Wants::TurnAsked);
    assert_eq!(again, ["TASK_CHANGED", "PLAN_RESUMED", "TASK_ADMITTED"]);
    assert_eq!(says_in(&mut one, "a", 3, TaskStatus::Completed, Wants::Nothing), ["TASK_CHANGED", "PLAN_COMPLETED"]);
}

#[test]
fn a_plan_that_is_under_way_waits_for_a_person_to_see_to_a_task_that_is_taken_up_again() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    is(&mut one, "a", TaskStatus::HandedOver);
    ALL[2..].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    says_in(&mut one, "a", 2, TaskStatus::Interrupted, Wants::Nothing);
    assert_eq!(is(&mut one, "b", TaskStatus::Completed), ["TASK_CHANGED", "PLAN_PAUSED"]);
    assert_eq!(cause(&one), Some(Cause::Interrupted));
    assert_eq!(says_in(&mut one, "a", 2, TaskStatus::Cancelled, Wants::Nothing), ["TASK_CHANGED", "PLAN_COMPLETED"]);
}
