//! A task that another instance began goes on here: what was done there counts, and a person says what becomes of it.

use super::roll_back::roll_back;
use super::stages::progress;
use super::task::*;
use super::*;

fn adopts(done: &[bool], alone: bool) -> Command {
    adopt(task_of("acme"), options(), done, alone)
}

/// Taken up with those stages done, which can be undone or not.
fn adopted(done: &[bool], alone: bool) -> One {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    let steps = done.iter().map(|_| "STEP_COMPLETED");
    let expected: Vec<_> = ["RUN_STARTED", "TASK_ADOPTED"].into_iter().chain(steps).chain(["RUN_INTERRUPTED"]).collect();
    assert_eq!(one.does(adopts(done, alone)), expected);
    one
}

/// It has what it asked for, and begins.
#[track_caller]
fn has_its_lock(one: &mut One, fence: u64) {
    let granted = grant(one, fence);
    assert_eq!(one.hears(&lock_entity(), granted), ["LOCK_ACQUIRED", "TASK_STARTED"]);
    assert!(one.effects.contains(&Effect::Host));
}

/// The names of the steps that are done.
fn done(one: &One) -> Vec<&str> {
    one.run().open().expect("an open run").steps.keys().map(StepId::as_str).collect()
}

/// The stage of that place is done here.
#[track_caller]
fn does_stage(one: &mut One, index: u32) {
    let name = STAGES[index as usize];
    takes(one, [stage_started(name, index)], 1);
    let outcome = [undoable_completed(&format!("{name}#1"), 1, "1"), stage_completed(name, index)];
    let last = match index {
        2 => run_completed("1"),
        _ => checkpoint_saved(name, index, "{\"b\":2}"),
    };
    takes(one, outcome.into_iter().chain([last]), u32::from(index < 2));
}

#[test]
fn what_was_done_elsewhere_is_on_record_and_a_person_decides() {
    let stages = [true, true, true];
    for many in 0..3 {
        let one = adopted(&stages[..many], true);
        let index = u32::try_from(many).ok().and_then(|many| many.checked_sub(1));
        assert_eq!(one.task_status(), TaskStatus::Interrupted);
        assert_eq!(progress(&one), (many, index.map(|index| index + 1), index), "{many} are done");
        assert_eq!((fence(&one), done(&one).len()), (None, many));
        assert_eq!(one.effects, [Effect::Close, answer(Answer::Created)]);
        assert_eq!(tells(&one), [(TaskStatus::Pending, Wants::Turn), (TaskStatus::Interrupted, Wants::Nothing)]);
        assert!(tells_its_lock(&one).is_empty());
        let task = one.run().task().expect("a task");
        assert_eq!(task.adopted.as_ref().map(|done| done.data.clone()), index.map(|_| Payload::json("{\"a\":1}")));
        assert_eq!(task.checkpoint, task.adopted);
        assert_eq!(task.started_at, index.map(|_| at(7)));
        assert!(task.alone && !task.adopting);
    }
}

#[test]
fn what_it_is_adopted_with_survives_being_stored() {
    let one = adopted(&[true, false], true);
    for entry in &one.journal {
        assert_eq!(Entry::try_from(&steadfast_kernel::Record::from(entry)), Ok(entry.clone()));
    }
    let outputs = one.journal.iter().filter_map(|entry| match &entry.event {
        Event::StepCompleted { step, output, undoable, .. } => Some((step.as_str(), output.clone(), *undoable)),
        _ => None,
    });
    let null = || Payload::json("null");
    assert_eq!(outputs.collect::<Vec<_>>(), [("drain#1", null(), true), ("switch#1", null(), false)]);
}

#[test]
fn only_the_tasks_of_others_are_adopted() {
    for mut one in [pending(), admitted(), in_second(), failed(), adopted(&[true], true)] {
        assert!(one.refuses(adopts(&[true], true)).contains("this instance's own"), "{:?}", one.task_status());
    }
    let mut stranger = One::new(EntityId::from(&task_of("acme")));
    stranger.does(start());
    assert!(stranger.refuses(adopts(&[true], true)).contains("this instance's own"));
    let Command::AdoptRun(mut no_task) = adopts(&[], true) else { panic!("another command") };
    no_task.start.options.task = None;
    let refused = One::new(EntityId::from(&task_of("acme"))).ask(Command::AdoptRun(no_task));
    assert_eq!(refused, Err(Refusal::RunNotFound { run: task_of("acme") }));
}

#[test]
fn more_stages_than_it_has_are_as_many_as_it_has() {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    assert_eq!(one.does(adopts(&[true; 5], true)).len(), 2 + 3 + 1);
    assert_eq!(progress(&one), (3, Some(2), Some(2)));
}

#[test]
fn a_retry_goes_on_from_what_was_done_elsewhere() {
    for (stages, left) in [(&[][..], &STAGES[..]), (&[true], &STAGES[1..]), (&[true, false], &STAGES[2..])] {
        let mut one = adopted(stages, true);
        assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED", "TASK_ADMITTED"], "its plan is not here to let it begin");
        assert!(matches!(tells_its_lock(&one)[..], [Message::AcquireLock { epoch: 2, .. }]));
        has_its_lock(&mut one, 9);
        assert_eq!(done(&one).len(), stages.len());
        let first = stages.len();
        for (place, name) in left.iter().enumerate() {
            assert_eq!(one.run().task().map(|task| task.completed.len()), Some(first + place), "{name} is next");
            does_stage(&mut one, u32::try_from(first + place).expect("three stages"));
        }
        assert_eq!((one.task_status(), progress(&one).0), (TaskStatus::Completed, 3));
        assert_eq!(tells_its_lock(&one), [&Message::ReleaseLock { fence: Some(9) }]);
    }
}

#[test]
fn one_that_was_done_with_all_its_stages_elsewhere_only_ends_here() {
    let mut one = adopted(&[true; 3], true);
    one.does(retry(RetryFrom::Failed));
    has_its_lock(&mut one, 9);
    let again = turn_of(&one, [stage_started("check", 2)], 1);
    assert!(one.ask(again).is_err(), "it is done");
    takes(&mut one, [run_completed("1")], 0);
    assert_eq!(one.task_status(), TaskStatus::Completed);
}

#[test]
fn a_retry_from_the_start_discards_what_was_done_elsewhere() {
    let mut one = adopted(&[true, true], true);
    assert_eq!(one.does(retry(RetryFrom::Start)), ["RUN_RETRIED", "TASK_ADMITTED"]);
    assert_eq!((progress(&one), done(&one).len()), ((0, None, None), 0));
    let task = one.run().task().expect("a task");
    assert!(task.adopted.is_none() && task.alone, "its plan is not here all the same");
    has_its_lock(&mut one, 9);
    (0..3).for_each(|index| does_stage(&mut one, index));
    assert_eq!(one.task_status(), TaskStatus::Completed);
}

#[test]
fn a_failure_in_a_later_stage_keeps_what_was_done_elsewhere_and_here() {
    let mut one = adopted(&[true], true);
    one.does(retry(RetryFrom::Failed));
    has_its_lock(&mut one, 9);
    does_stage(&mut one, 1);
    let failed = [step_failed("check#1", 1, card_refused()), stage_failed("check", 2, card_refused()), run_failed(card_refused())];
    takes(&mut one, [stage_started("check", 2)].into_iter().chain(failed), 0);
    assert_eq!((one.task_status(), fence(&one)), (TaskStatus::Failed, Some(9)));
    assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED", "TASK_ADMITTED", "TASK_STARTED"], "it has kept its lock");
    assert!(one.effects.contains(&Effect::Host));
    assert_eq!((progress(&one), done(&one)), ((2, Some(2), Some(1)), vec!["drain#1", "switch#1"]));
    let task = one.run().task().expect("a task");
    assert_eq!(task.adopted.as_ref().map(|done| done.index), Some(0), "what was done elsewhere still counts");
    does_stage(&mut one, 2);
    assert_eq!(one.task_status(), TaskStatus::Completed);
}

#[test]
fn a_failure_in_the_first_stage_here_keeps_what_was_done_elsewhere() {
    let mut one = adopted(&[true], true);
    one.does(retry(RetryFrom::Failed));
    has_its_lock(&mut one, 9);
    let mut one = failed_after(one);
    one.does(retry(RetryFrom::Failed));
    assert_eq!((progress(&one), done(&one)), ((1, Some(1), Some(0)), vec!["drain#1"]));
    let mut one = adopted(&[true], true);
    one.does(retry(RetryFrom::Failed));
    has_its_lock(&mut one, 9);
    takes(&mut one, [stage_started("switch", 1), stage_failed("switch", 1, card_refused()), run_failed(card_refused())], 0);
    one.does(retry(RetryFrom::Failed));
    assert_eq!((progress(&one), done(&one)), ((1, Some(1), Some(0)), vec!["drain#1"]), "also if no step of it has failed");
}

#[test]
fn a_roll_back_undoes_what_was_done_elsewhere_and_here() {
    let mut one = adopted(&[true, false], true);
    one.does(retry(RetryFrom::Failed));
    has_its_lock(&mut one, 9);
    takes(&mut one, [stage_started("check", 2)], 1);
    takes(&mut one, [undoable_completed("check#1", 1, "1")], 1);
    assert_eq!(one.does(roll_back()), ["RUN_CANCEL_REQUESTED"]);
    takes(&mut one, [run_compensating(None)], 1);
    let undoable: Vec<_> = one.run().open().expect("an open run").undoable.iter().map(StepId::as_str).collect();
    assert_eq!(undoable, ["check#1", "drain#1"], "one of them cannot be undone");
    takes(&mut one, [undo_completed("check#1", 1), undo_completed("drain#1", 1), Event::RunCancelled], 0);
    assert_eq!(one.task_status(), TaskStatus::RolledBack);
}

#[test]
fn one_that_was_just_adopted_is_rolled_back_without_its_plan() {
    let mut one = adopted(&[true], true);
    assert_eq!(one.does(roll_back()), ["RUN_RETRIED", "RUN_CANCEL_REQUESTED", "TASK_ADMITTED"]);
    assert_eq!(one.task_status(), TaskStatus::RollingBack);
    has_its_lock(&mut one, 9);
    takes(&mut one, [run_compensating(None)], 1);
    takes(&mut one, [undo_completed("drain#1", 1), Event::RunCancelled], 0);
    assert_eq!((one.task_status(), fence(&one)), (TaskStatus::RolledBack, None));
}

#[test]
fn what_is_done_has_begun_also_if_nobody_knows_when() {
    let Command::AdoptRun(unknown) = adopts(&[true], true) else { panic!("another command") };
    let mut one = One::new(EntityId::from(&task_of("acme")));
    one.does(Command::AdoptRun(Box::new(AdoptRun { started_at: None, ..*unknown })));
    assert_eq!(one.does(roll_back())[..2], ["RUN_RETRIED", "RUN_CANCEL_REQUESTED"], "there is something to undo");
}

#[test]
fn one_of_which_nothing_is_done_is_called_off_instead_of_rolled_back() {
    let mut one = adopted(&[], true);
    assert_eq!(one.does(roll_back()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!(one.task_status(), TaskStatus::Cancelled);
}

#[test]
fn one_that_was_adopted_is_called_off_and_is_not_paused() {
    let mut one = adopted(&[true], true);
    assert!(one.refuses(pause()).contains("retry it, or cancel it"));
    assert!(one.refuses(resume()).contains("retry it, or cancel it"));
    assert_eq!(one.does(cancel()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!((one.task_status(), tells_its_lock(&one).len()), (TaskStatus::Cancelled, 0));
    assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED", "TASK_ADMITTED"]);
    assert_eq!(progress(&one), (1, Some(1), Some(0)));
}

#[test]
fn one_that_goes_on_alone_is_paused_and_resumed_as_others_are() {
    let mut one = adopted(&[true], true);
    one.does(retry(RetryFrom::Failed));
    assert_eq!(one.does(pause()), ["RUN_PAUSED"]);
    let granted = grant(&one, 9);
    assert_eq!(one.hears(&lock_entity(), granted), ["LOCK_ACQUIRED", "TASK_STARTED"]);
    assert_eq!((one.task_status(), one.effects.contains(&Effect::Host)), (TaskStatus::Paused, false));
    assert_eq!(one.does(resume()), ["RUN_RESUMED"]);
    does_stage(&mut one, 1);
    assert_eq!(one.task_status(), TaskStatus::Running);
}

#[test]
fn one_whose_plan_is_here_waits_for_its_turn() {
    let mut one = adopted(&[true], false);
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 }), [""; 0], "it is interrupted: a person decides");
    assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED"]);
    assert_eq!((tells(&one), one.task_status()), (vec![(TaskStatus::Pending, Wants::TurnAsked)], TaskStatus::Pending));
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 }), ["TASK_ADMITTED"]);
    has_its_lock(&mut one, 9);
    (1..3).for_each(|index| does_stage(&mut one, index));
    assert_eq!(one.task_status(), TaskStatus::Completed);
    let mut one = adopted(&[true], false);
    assert_eq!(one.does(roll_back()), ["RUN_RETRIED", "RUN_CANCEL_REQUESTED"]);
}

#[test]
fn a_restart_before_it_has_its_lock_leaves_it_to_a_person_if_its_plan_is_not_here() {
    for stages in [&[][..], &[true]] {
        let mut one = adopted(stages, true);
        one.does(retry(RetryFrom::Failed));
        let early = grant(&one, 9);
        assert_eq!(one.does(Command::InterruptRun), ["TASK_RECALLED", "RUN_INTERRUPTED"]);
        assert_eq!((one.task_status(), tells_its_lock(&one)), (TaskStatus::Interrupted, vec![&Message::ReleaseLock { fence: None }]));
        assert_eq!(one.hears(&lock_entity(), early), [""; 0]);
        assert_eq!(one.back()[0].message, Message::ReleaseLock { fence: Some(9) });
        assert_eq!(one.does(Command::InterruptRun), [""; 0]);
        assert_eq!(one.does(retry(RetryFrom::Failed)), ["RUN_RETRIED", "TASK_ADMITTED"]);
        has_its_lock(&mut one, 10);
    }
    let mut one = adopted(&[true], false);
    one.does(retry(RetryFrom::Failed));
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 });
    assert_eq!(one.does(Command::InterruptRun), ["TASK_RECALLED"], "its plan sees to it");
}

#[test]
fn one_that_does_not_wait_for_its_lock_is_called_off_also_without_its_plan() {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    one.does(adopt(task_of("acme"), TaskOptions { conflict: Conflict::Skip, ..options() }, &[true], true));
    one.does(retry(RetryFrom::Failed));
    let asked = one.run().task().expect("a task").asked;
    let refused = Message::LockRefused { asked, holder: "q:q/acme".into() };
    assert_eq!(one.hears(&lock_entity(), refused), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!(one.task_status(), TaskStatus::Cancelled);
}

/// It was under way here, another instance went on with it, and this one takes it up again.
fn adopted_again(mut one: One, stages: &[bool]) -> One {
    one.does(hand_over(Some("i-2")));
    let steps = stages.iter().map(|_| "STEP_COMPLETED");
    let expected: Vec<_> = ["RUN_RETRIED", "TASK_ADOPTED"].into_iter().chain(steps).chain(["RUN_INTERRUPTED"]).collect();
    assert_eq!(one.does(adopts(stages, false)), expected);
    one
}

#[test]
fn one_that_was_handed_over_is_taken_up_again_with_what_was_done_meanwhile() {
    let mut completed = in_second();
    takes(&mut completed, [run_completed("1")], 0);
    let mut undone = in_second();
    undone.does(roll_back());
    takes(&mut undone, [run_compensating(None)], 1);
    for one in [pending(), admitted(), in_second(), failed(), completed, undone] {
        let before = one.run().epoch;
        let mut one = adopted_again(one, &[true, true]);
        assert_eq!((one.task_status(), one.run().epoch), (TaskStatus::Interrupted, before + 1));
        assert_eq!(tells(&one), [(TaskStatus::Interrupted, Wants::Nothing)]);
        assert_eq!((progress(&one), done(&one)), ((2, Some(2), Some(1)), vec!["drain#1", "switch#1"]));
        assert!(!one.run().task().expect("a task").rolls_back);
        one.does(retry(RetryFrom::Failed));
        one.hears(&plan_entity(), Message::AdmitTask { epoch: before + 2 });
        has_its_lock(&mut one, 20);
        does_stage(&mut one, 2);
        assert_eq!(one.task_status(), TaskStatus::Completed);
    }
}

#[test]
fn one_that_is_taken_up_again_with_nothing_done_begins_from_its_start() {
    let mut one = adopted_again(in_second(), &[]);
    assert_eq!((progress(&one), done(&one).len()), ((0, None, None), 0));
    assert_eq!(one.run().task().and_then(|task| task.started_at), Some(at(1000)), "it had begun here");
    one.does(retry(RetryFrom::Failed));
    assert_eq!(progress(&one).0, 0);
}

#[test]
fn the_command_that_adopts_it_again_may_also_retry_it() {
    let mut one = in_second();
    one.does(hand_over(None));
    let with_id = |command: Command| match command {
        Command::AdoptRun(adopt) => Command::AdoptRun(Box::new(AdoptRun { origin: ada_with("c-1"), ..*adopt })),
        Command::RetryRun(retry) => Command::RetryRun(steadfast_kernel::RetryRun { origin: ada_with("c-1"), ..retry }),
        other => other,
    };
    one.does(with_id(adopts(&[true], true)));
    assert_eq!(one.does(with_id(retry(RetryFrom::Failed))), ["RUN_RETRIED", "TASK_ADMITTED"], "it was not carried out yet");
    assert_eq!(one.does(with_id(retry(RetryFrom::Failed))), [""; 0], "the same command again is one");
    one.does(hand_over(None));
    assert_eq!(one.does(with_id(adopts(&[true], true)))[0], "RUN_RETRIED", "it is adopted all the same");
}

#[test]
fn one_that_another_has_undone_in_part_is_rolled_back_or_begins_from_its_start() {
    let Command::AdoptRun(half) = adopts(&[true, true], true) else { panic!("another command") };
    let mut one = One::new(EntityId::from(&task_of("acme")));
    one.does(Command::AdoptRun(Box::new(AdoptRun { half_undone: true, ..*half })));
    assert!(one.refuses(retry(RetryFrom::Failed)).contains("roll it back again, or retry it from its start"));
    let mut from_start = one.clone();
    from_start.does(retry(RetryFrom::Start));
    assert!(!from_start.run().task().expect("a task").half_undone);
    assert_eq!(one.does(roll_back()), ["RUN_RETRIED", "RUN_CANCEL_REQUESTED", "TASK_ADMITTED"]);
    has_its_lock(&mut one, 9);
    takes(&mut one, [run_compensating(None)], 1);
    assert_eq!(undoing(&one), Some(1), "whoever takes it up now has both undone");
    takes(&mut one, [undo_completed("switch#1", 1), undo_completed("drain#1", 1), Event::RunCancelled], 0);
    assert_eq!(one.task_status(), TaskStatus::RolledBack);
}

#[test]
fn one_that_has_done_all_of_its_stages_elsewhere_is_rolled_back_with_all_of_them() {
    let mut one = adopted(&[true, true, true], true);
    assert_eq!(one.does(roll_back())[0], "RUN_RETRIED");
    has_its_lock(&mut one, 9);
    takes(&mut one, [run_compensating(None)], 1);
    assert_eq!(undoing(&one), Some(2));
}

#[test]
fn a_step_that_is_done_counts_for_its_undoing_though_its_stage_is_not() {
    let mut one = adopted(&[true], true);
    one.does(retry(RetryFrom::Failed));
    has_its_lock(&mut one, 9);
    takes(&mut one, [stage_started("switch", 1)], 1);
    takes(&mut one, [undoable_completed("switch#1", 1, "1")], 1);
    one.does(roll_back());
    takes(&mut one, [run_compensating(None)], 1);
    assert_eq!(undoing(&one), Some(1));
}

/// The last stage that was done when the undoing began.
fn undoing(one: &One) -> Option<u32> {
    one.run().task().and_then(|task| Some(task.undoing.as_ref()?.index))
}
