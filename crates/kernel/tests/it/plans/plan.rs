//! The plan: which task begins, when it pauses by itself, and when it has ended.

use super::*;

pub(super) const ALL: [&str; 4] = ["a", "b", "c", "d"];

/// Two at once, and nothing else.
pub(super) fn two() -> Settings {
    Settings { max_concurrency: 2, ..Settings::default() }
}

/// A plan of four tenants whose tasks were made, and wait for their turn.
pub(super) fn ready(settings: Settings) -> One {
    let mut one = One::new(plan_entity());
    assert_eq!(one.does(create_plan(plan_created(&ALL, settings), Vec::new())), ["PLAN_CREATED"]);
    for name in ALL {
        assert_eq!(one.plan().status(), PlanStatus::Created);
        assert_eq!(says(&mut one, name, TaskStatus::Pending, Wants::Turn), ["TASK_CHANGED"]);
    }
    assert_eq!(one.plan().status(), PlanStatus::Ready);
    one
}

/// The same, started.
pub(super) fn started(settings: Settings) -> One {
    let mut one = ready(settings);
    one.does(operate(Verb::Start, ada()));
    one
}

/// A task says where it stands, having heard everything.
#[track_caller]
pub(super) fn says(one: &mut One, name: &str, status: TaskStatus, wants: Wants) -> Vec<&'static str> {
    says_in(one, name, 1, status, wants)
}

#[track_caller]
pub(super) fn says_in(one: &mut One, name: &str, epoch: Epoch, status: TaskStatus, wants: Wants) -> Vec<&'static str> {
    one.hears(&EntityId::from(&task_of(name)), Message::TaskChanged(TaskChanged { epoch, status, wants, heard: u64::MAX }))
}

#[track_caller]
pub(super) fn is(one: &mut One, name: &str, status: TaskStatus) -> Vec<&'static str> {
    says(one, name, status, Wants::Nothing)
}

/// The tenants whose tasks were let begin by the last thing that happened.
pub(super) fn lets(one: &One) -> Vec<&str> {
    let tenant = |to: &EntityId| one.plan().tasks.iter().find(|task| to.run() == Some(&task.run)).map(|task| task.tenant.as_str());
    let let_begin = one.said.iter().filter(|(_, message)| matches!(message, Message::AdmitTask { .. }));
    let_begin.filter_map(|(to, _)| tenant(to)).collect()
}

pub(super) fn cause(one: &One) -> Option<Cause> {
    if let Phase::Paused { cause, .. } = one.plan().phase { Some(cause) } else { None }
}

/// What the tasks are told.
pub(super) fn told(one: &One) -> Vec<(&str, &'static str)> {
    let name = |to: &EntityId| one.plan().tasks.iter().find(|task| to.run() == Some(&task.run)).map(|task| task.tenant.as_str());
    let what = |message: &Message| match message {
        Message::OperateTask { verb: Verb::Pause, .. } => "pause",
        Message::OperateTask { verb: Verb::Resume, .. } => "resume",
        Message::OperateTask { verb: Verb::Cancel, .. } => "cancel",
        Message::OperateTask { verb: Verb::RollBack, .. } => "roll back",
        Message::RecallTask { .. } => "recall",
        other => other.kind(),
    };
    one.said.iter().filter_map(|(to, message)| Some((name(to)?, what(message)))).collect()
}

#[test]
fn every_task_is_begun_with_what_the_plan_was_created_with() {
    let mut one = One::new(plan_entity());
    one.does(create_plan(plan_created(&["a", "b"], two()), Vec::new()));
    let children: Vec<_> = one.said.iter().filter_map(|(to, message)| Some((to, start_child(message)?))).collect();
    assert_eq!(children.len(), 2);
    let (to, child) = &children[0];
    assert_eq!((to.run(), &child.workflow), (Some(&task_of("a")), &workflow("switch")));
    let task = child.options.task.as_deref().expect("a task");
    assert_eq!((&task.plan, &task.tenant, task.stages.len()), (&plan_named("p"), &tenant("a"), 3));
    assert_eq!((child.options.recovery, child.options.tenant.as_deref()), (Recovery::Manual, Some("a")));
    assert_ne!(child.seed, children[1].1.seed, "each has a chance of its own");
}

fn start_child(message: &Message) -> Option<&StartChild> {
    if let Message::StartChild(child) = message { Some(child) } else { None }
}

#[test]
fn a_tenant_that_is_named_twice_is_one() {
    let mut one = One::new(plan_entity());
    one.does(create_plan(plan_created(&["b", "a", "b", "a"], two()), Vec::new()));
    let tenants: Vec<_> = one.plan().tasks.iter().map(|task| task.tenant.as_str()).collect();
    assert_eq!(tenants, ["b", "a"], "in the order in which they were named first");
}

#[test]
fn the_same_creation_again_is_one_and_another_is_refused() {
    let mut one = ready(two());
    assert_eq!(one.does(create_plan(plan_created(&ALL, two()), vec![(tenant("a"), "q:q/a".into())])), [""; 0]);
    assert_eq!(one.effects, [answer(Answer::Exists)]);
    let other = steadfast_kernel::PlanCreated { input: Payload::json("{\"v\":2}"), ..plan_created(&ALL, two()) };
    for another in [plan_created(&["a"], two()), plan_created(&ALL, Settings::default()), other] {
        assert_eq!(one.ask(create_plan(another, Vec::new())), Err(Refusal::PlanExists { plan: plan_named("p") }));
    }
}

#[test]
fn tenants_that_are_locked_are_refused_with_who_has_them_or_left_out() {
    let locked = vec![(tenant("b"), "q:q/b".to_string())];
    let mut one = One::new(plan_entity());
    let refusal = one.ask(create_plan(plan_created(&ALL, two()), locked.clone())).expect_err("it is not refused");
    assert_eq!((refusal.code(), refusal.to_string().contains("tenant b is locked by q:q/b")), (code::TENANTS_LOCKED, true));
    let skips = Settings { conflict: Conflict::Skip, ..two() };
    assert_eq!(one.does(create_plan(plan_created(&ALL, skips.clone()), locked.clone())), ["PLAN_CREATED"]);
    assert_eq!((one.plan().tasks.len(), &one.plan().created.skipped), (3, &locked));
    assert_eq!(one.does(create_plan(plan_created(&ALL, skips), Vec::new())), [""; 0], "it is the same, though nobody is locked now");
    let mut one = ready(two());
    let start = Command::OperatePlan(OperatePlan { verb: Verb::Start, origin: ada(), locked });
    assert_eq!(one.ask(start).expect_err("it is not refused").code(), code::TENANTS_LOCKED);
}

#[test]
fn tasks_begin_in_order_and_never_more_at_once_than_allowed() {
    let mut one = ready(two());
    assert_eq!(one.does(operate(Verb::Start, ada())), ["PLAN_STARTED", "TASK_ADMITTED", "TASK_ADMITTED"]);
    assert_eq!(lets(&one), ["a", "b"]);
    assert_eq!(is(&mut one, "b", TaskStatus::Running), ["TASK_CHANGED"]);
    assert_eq!(is(&mut one, "b", TaskStatus::Completed), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!((lets(&one), one.plan().admitted.len()), (vec!["c"], 2));
    is(&mut one, "a", TaskStatus::Failed);
    assert_eq!(lets(&one), ["d"], "one that has failed makes room too");
    is(&mut one, "c", TaskStatus::Completed);
    assert_eq!(is(&mut one, "d", TaskStatus::Completed), ["TASK_CHANGED", "PLAN_FAILED"]);
    assert_eq!(one.plan().status(), PlanStatus::Failed);
}

#[test]
fn tasks_that_are_made_after_the_start_begin_too() {
    let mut one = One::new(plan_entity());
    one.does(create_plan(plan_created(&ALL, two()), Vec::new()));
    assert_eq!(one.does(operate(Verb::Start, ada())), ["PLAN_STARTED"]);
    says(&mut one, "c", TaskStatus::Pending, Wants::Turn);
    assert_eq!(lets(&one), ["c"]);
}

#[test]
fn what_was_heard_before_changes_nothing() {
    let mut one = started(two());
    let from = EntityId::from(&task_of("a"));
    let changed = |status| Message::TaskChanged(TaskChanged { epoch: 1, status, wants: Wants::Nothing, heard: 0 });
    assert_eq!(one.hears_as(&from, 20, changed(TaskStatus::Completed)), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(one.hears_as(&from, 20, changed(TaskStatus::Completed)), [""; 0]);
    assert_eq!(one.hears_as(&from, 19, changed(TaskStatus::Running)), [""; 0]);
    assert_eq!(one.hears_as(&EntityId::from(&other_run("x")), 1, changed(TaskStatus::Running)), [""; 0], "it is no task of it");
}

#[test]
fn all_completed_is_completed_and_all_called_off_is_cancelled() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    assert_eq!(is(&mut one, "d", TaskStatus::Cancelled), ["TASK_CHANGED", "PLAN_COMPLETED"]);
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Cancelled)));
    assert_eq!(is(&mut one, "d", TaskStatus::RolledBack), ["TASK_CHANGED", "PLAN_CANCELLED"]);
}

#[test]
fn canaries_come_first_and_the_others_once_they_have_completed() {
    let mut one = started(Settings { canary: 1, ..two() });
    assert_eq!(lets(&one), ["a"]);
    is(&mut one, "a", TaskStatus::Running);
    assert_eq!(lets(&one), [""; 0]);
    is(&mut one, "a", TaskStatus::Completed);
    assert_eq!(lets(&one), ["b", "c"]);
}

#[test]
fn the_next_one_is_canary_in_place_of_one_that_was_called_off() {
    let mut one = started(Settings { canary: 1, ..two() });
    is(&mut one, "a", TaskStatus::Cancelled);
    assert_eq!(lets(&one), ["b"]);
}

#[test]
fn a_failed_canary_pauses_the_plan_until_it_is_retried_or_called_off() {
    let failed_canary = || {
        let mut one = started(Settings { canary: 1, ..two() });
        assert_eq!(is(&mut one, "a", TaskStatus::Failed), ["TASK_CHANGED", "PLAN_PAUSED"]);
        assert_eq!(cause(&one), Some(Cause::Canary));
        assert!(one.refuses(operate(Verb::Resume, ada())).contains("a canary has not completed"));
        one
    };
    let mut retried = failed_canary();
    assert_eq!(says_in(&mut retried, "a", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(retried.does(operate(Verb::Resume, ada())), ["PLAN_RESUMED"], "the others still wait for it");
    says_in(&mut retried, "a", 2, TaskStatus::Completed, Wants::Nothing);
    assert_eq!(lets(&retried), ["b", "c"]);
    let mut cancelled = failed_canary();
    is(&mut cancelled, "a", TaskStatus::Cancelled);
    assert_eq!(cancelled.does(operate(Verb::Resume, ada())), ["PLAN_RESUMED", "TASK_ADMITTED"]);
    assert_eq!(lets(&cancelled), ["b"], "which is the canary now");
}

#[test]
fn a_plan_stops_once_so_many_have_failed_and_a_person_who_resumes_it_knows() {
    let mut one = started(Settings { max_concurrency: 1, stop_when: Some(StopWhen::Failed(1)), ..two() });
    assert_eq!(is(&mut one, "a", TaskStatus::Failed), ["TASK_CHANGED", "PLAN_PAUSED"]);
    assert_eq!(cause(&one), Some(Cause::StopWhen));
    assert_eq!(one.does(operate(Verb::Resume, ada())), ["PLAN_RESUMED", "TASK_ADMITTED"]);
    assert_eq!(is(&mut one, "b", TaskStatus::Completed), ["TASK_CHANGED", "TASK_ADMITTED"], "that one is forgiven");
    assert_eq!(is(&mut one, "c", TaskStatus::Failed), ["TASK_CHANGED", "PLAN_PAUSED"], "another one is not");
    let mut one = started(Settings { max_concurrency: 3, stop_when: Some(StopWhen::FailedPercent(50)), ..two() });
    assert_eq!(is(&mut one, "a", TaskStatus::Failed), ["TASK_CHANGED", "TASK_ADMITTED"], "that is a quarter");
    assert_eq!(is(&mut one, "b", TaskStatus::RollbackFailed), ["TASK_CHANGED"], "nobody is left to be stopped");
    let mut one = started(Settings { max_concurrency: 1, stop_when: Some(StopWhen::FailedPercent(25)), ..two() });
    assert_eq!(is(&mut one, "a", TaskStatus::RollbackFailed), ["TASK_CHANGED", "PLAN_PAUSED"]);
}

#[test]
fn a_plan_that_stops_recalls_who_has_not_begun() {
    let mut one = started(Settings { stop_when: Some(StopWhen::Failed(1)), ..two() });
    assert_eq!(is(&mut one, "a", TaskStatus::Failed), ["TASK_CHANGED", "PLAN_PAUSED", "TASK_RECALLED"]);
    assert_eq!(told(&one), [("b", "recall")]);
    let mut one = started(Settings { stop_when: Some(StopWhen::Failed(1)), ..two() });
    is(&mut one, "b", TaskStatus::Running);
    assert_eq!(is(&mut one, "a", TaskStatus::Failed), ["TASK_CHANGED", "PLAN_PAUSED"], "what is under way goes on");
}

#[test]
fn a_deadline_pauses_the_plan_and_its_tasks() {
    let mut one = ready(Settings { deadline: Some(Duration::from_secs(60)), ..two() });
    one.does(operate(Verb::Start, ada()));
    is(&mut one, "a", TaskStatus::Running);
    let (due, revision) = one.timer(&TimerName::Deadline);
    assert_eq!(due, 61_000);
    assert_eq!(one.fires(TimerName::Deadline), [""; 0], "it is not due yet");
    one.now = due;
    assert_eq!(one.fires(TimerName::Deadline), ["PLAN_PAUSED", "TASK_RECALLED"]);
    assert_eq!((cause(&one), told(&one)), (Some(Cause::Deadline), vec![("a", "pause"), ("b", "pause"), ("b", "recall")]));
    assert!(one.effects.contains(&Effect::Disarm(TimerName::Deadline)));
    says(&mut one, "b", TaskStatus::Pending, Wants::Turn);
    assert_eq!(one.does(operate(Verb::Resume, ada())), ["PLAN_RESUMED", "TASK_ADMITTED"]);
    assert_eq!(one.does(fire(TimerName::Deadline, revision)), [""; 0], "it goes on without one");
}

#[test]
fn a_restart_pauses_the_plan_and_recalls_who_has_not_begun() {
    let mut one = started(two());
    is(&mut one, "a", TaskStatus::Running);
    assert_eq!(one.does(Command::InterruptPlan), ["PLAN_PAUSED", "TASK_RECALLED"]);
    assert_eq!((cause(&one), told(&one)), (Some(Cause::Restart), vec![("b", "recall")]));
    assert_eq!(says(&mut one, "b", TaskStatus::Pending, Wants::Turn), ["TASK_CHANGED"]);
    assert_eq!(is(&mut one, "a", TaskStatus::Interrupted), ["TASK_CHANGED"]);
    assert_eq!((one.plan().admitted.len(), one.plan().status()), (0, PlanStatus::Paused));
    assert_eq!(one.does(Command::InterruptPlan), [""; 0], "a second restart changes nothing");
    assert_eq!(one.does(operate(Verb::Resume, ada())), ["PLAN_RESUMED", "TASK_ADMITTED", "TASK_ADMITTED"]);
    assert_eq!(lets(&one), ["b", "c"]);
    for mut other in [ready(two()), One { now: 9, ..ready(two()) }] {
        assert_eq!(other.does(Command::InterruptPlan), [""; 0]);
    }
}

#[test]
fn what_a_person_wants_begins_while_the_plan_is_paused_but_not_too_many_at_once() {
    let mut one = started(two());
    ["a", "b"].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Running)));
    one.does(Command::InterruptPlan);
    ["a", "b"].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Interrupted)));
    assert_eq!(says_in(&mut one, "b", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(says_in(&mut one, "c", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(says_in(&mut one, "a", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED"], "there is no room");
    assert_eq!(one.plan().status(), PlanStatus::Paused);
    says_in(&mut one, "b", 2, TaskStatus::Completed, Wants::Nothing);
    assert_eq!(lets(&one), ["a"]);
}

#[test]
fn a_task_that_asks_twice_is_let_begin_once() {
    let mut one = started(Settings { max_concurrency: 1, ..two() });
    is(&mut one, "a", TaskStatus::Failed);
    is(&mut one, "b", TaskStatus::Failed);
    assert_eq!(is(&mut one, "c", TaskStatus::Running), ["TASK_CHANGED"]);
    is(&mut one, "c", TaskStatus::Completed);
    is(&mut one, "d", TaskStatus::Interrupted);
    assert_eq!(says_in(&mut one, "b", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED", "TASK_ADMITTED"]);
    assert_eq!(says_in(&mut one, "a", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED"]);
    assert_eq!(says_in(&mut one, "b", 2, TaskStatus::RollingBack, Wants::TurnAsked), ["TASK_CHANGED"], "it has its turn");
    assert_eq!(one.plan().admitted.len(), 1);
}

#[test]
fn tasks_that_wait_for_a_person_pause_the_plan() {
    let mut one = started(Settings { max_concurrency: 9, ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    assert_eq!(is(&mut one, "d", TaskStatus::Interrupted), ["TASK_CHANGED", "PLAN_PAUSED"]);
    assert_eq!(cause(&one), Some(Cause::Interrupted));
    assert_eq!(is(&mut one, "d", TaskStatus::Cancelled), ["TASK_CHANGED", "PLAN_COMPLETED"]);
}

#[test]
fn an_ended_plan_goes_on_when_a_task_of_it_is_retried() {
    let mut one = started(Settings { max_concurrency: 9, deadline: Some(Duration::from_secs(60)), ..two() });
    ALL[..3].iter().for_each(|name| drop(is(&mut one, name, TaskStatus::Completed)));
    assert_eq!(is(&mut one, "d", TaskStatus::Failed), ["TASK_CHANGED", "PLAN_FAILED"]);
    assert_eq!(says_in(&mut one, "d", 2, TaskStatus::Pending, Wants::TurnAsked), ["TASK_CHANGED", "PLAN_RESUMED", "TASK_ADMITTED"]);
    assert_eq!((one.plan().status(), one.plan().timers()), (PlanStatus::Running, None), "the deadline was for what has ended");
    assert_eq!(says_in(&mut one, "d", 2, TaskStatus::Completed, Wants::Nothing), ["TASK_CHANGED", "PLAN_COMPLETED"]);
}

#[test]
fn an_answer_that_is_older_than_what_was_heard_since_changes_no_status() {
    let mut one = started(two());
    is(&mut one, "a", TaskStatus::Failed);
    says_in(&mut one, "a", 2, TaskStatus::Pending, Wants::TurnAsked);
    let old = TaskChanged { epoch: 1, status: TaskStatus::Failed, wants: Wants::Nothing, heard: 1 };
    one.hears_as(&EntityId::from(&task_of("a")), 0, Message::TaskChanged(old));
    let task = &one.plan().tasks[0];
    assert_eq!((task.status, task.epoch, one.plan().waiting.contains(&0)), (TaskStatus::Pending, 2, true));
}

#[test]
fn a_task_whose_id_another_run_has_counts_as_failed() {
    let mut one = One::new(plan_entity());
    one.does(create_plan(plan_created(&["a"], two()), Vec::new()));
    let taken = TaskChanged { epoch: 0, status: TaskStatus::Failed, wants: Wants::Nothing, heard: 1 };
    assert_eq!(one.hears_as(&EntityId::from(&task_of("a")), 0, Message::TaskChanged(taken)), ["TASK_CHANGED"]);
    assert_eq!(one.does(operate(Verb::Start, ada())), ["PLAN_STARTED", "PLAN_FAILED"]);
}
