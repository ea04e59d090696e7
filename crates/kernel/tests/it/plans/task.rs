//! A run that is a task: it begins with its turn and its lock, and what it keeps when it stops.

use super::*;

pub(super) const STAGES: [&str; 3] = ["drain", "switch", "check"];

pub(super) fn options() -> TaskOptions {
    TaskOptions {
        plan: plan_named("p"),
        tenant: tenant("acme"),
        stages: STAGES.map(String::from).into(),
        lease: Duration::from_secs(9),
        on_failure: OnFailure::Keep,
        conflict: Conflict::Refuse,
    }
}

pub(super) fn begun(task: TaskOptions) -> One {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    let options = RunOptions { recovery: Recovery::Manual, task: Some(Box::new(task)), ..RunOptions::default() };
    let child = StartChild { workflow: workflow("switch"), input: Payload::json("{}"), seed: SEED, deadline: None, options };
    assert_eq!(one.hears(&plan_entity(), Message::StartChild(child)), ["RUN_STARTED"]);
    one
}

/// It waits for its turn.
pub(super) fn pending() -> One {
    begun(options())
}

pub(super) fn grant(one: &One, fence: u64) -> Message {
    let (run, task) = (one.run(), one.run().task().expect("a task"));
    let (plan, lease) = (plan_named("p"), Duration::from_secs(9));
    let lease = Lease { plan, task: run.id.clone(), epoch: run.epoch, fence, lease, expires_at: at(one.now + 9_000) };
    Message::LockGranted { lease: Box::new(lease), asked: task.asked }
}

/// It was let begin, and has asked for its lock.
pub(super) fn admitted() -> One {
    let mut one = pending();
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 }), ["TASK_ADMITTED"]);
    one
}

/// It is under way, with fence 1.
pub(super) fn running() -> One {
    let mut one = admitted();
    let granted = grant(&one, 1);
    assert_eq!(one.hears(&lock_entity(), granted), ["LOCK_ACQUIRED", "TASK_STARTED"]);
    one
}

#[track_caller]
pub(super) fn takes(one: &mut One, events: impl IntoIterator<Item = Event>, in_flight: u32) -> Vec<&'static str> {
    let turn = turn_of(one, events, in_flight);
    one.does(turn)
}

pub(super) fn turn_of(one: &One, events: impl IntoIterator<Item = Event>, in_flight: u32) -> Command {
    let proposals = events.into_iter().map(|event| Proposal { at: at(one.now), event }).collect();
    Command::TakeTurn(TakeTurn {
        epoch: one.run().epoch,
        proposals,
        in_flight,
        asked: 0,
        unanswered: vec![],
        abandoned: vec![],
        asks_again: true,
    })
}

/// The first stage is done, and the second has begun.
pub(super) fn in_second() -> One {
    let mut one = running();
    takes(&mut one, [stage_started("drain", 0)], 1);
    let outcome = [undoable_completed("drain#1", 1, "7"), stage_completed("drain", 0), checkpoint_saved("drain", 0, "{\"a\":1}")];
    takes(&mut one, outcome.into_iter().chain([stage_started("switch", 1)]), 1);
    one
}

/// Its second stage has failed for good.
pub(super) fn failed() -> One {
    failed_after(in_second())
}

pub(super) fn failed_after(mut one: One) -> One {
    let events = [step_failed("switch#1", 1, card_refused()), stage_failed("switch", 1, card_refused()), run_failed(card_refused())];
    takes(&mut one, events, 0);
    one
}

pub(super) fn tells(one: &One) -> Vec<(TaskStatus, Wants)> {
    let told = one.said.iter().filter(|(to, _)| *to == plan_entity());
    told.filter_map(|(_, message)| match message {
        Message::TaskChanged(changed) => Some((changed.status, changed.wants)),
        _ => None,
    })
    .collect()
}

pub(super) fn tells_its_lock(one: &One) -> Vec<&Message> {
    one.said.iter().filter(|(to, _)| *to == lock_entity()).map(|(_, message)| message).collect()
}

pub(super) fn fence(one: &One) -> Option<u64> {
    one.run().task()?.lock.as_ref().map(|lease| lease.fence)
}

#[test]
fn it_begins_only_with_its_turn_and_its_lock() {
    let mut one = pending();
    assert_eq!((tells(&one), one.task_status()), (vec![(TaskStatus::Pending, Wants::Turn)], TaskStatus::Pending));
    assert!(!one.effects.contains(&Effect::Open));
    let turn = turn_of(&one, [stage_started("drain", 0)], 1);
    assert!(one.refuses(turn).contains("waits for its turn"));
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 }), ["TASK_ADMITTED"]);
    let (plan, lease) = (plan_named("p"), Duration::from_secs(9));
    assert_eq!(tells_its_lock(&one), [&Message::AcquireLock { epoch: 1, asked: 2, plan, lease, waits: true }]);
    assert!(!one.effects.contains(&Effect::Host));
    let turn = turn_of(&one, [stage_started("drain", 0)], 1);
    assert!(one.refuses(turn).contains("waits for its turn"));
    let granted = grant(&one, 1);
    assert_eq!(one.hears(&lock_entity(), granted), ["LOCK_ACQUIRED", "TASK_STARTED"]);
    assert_eq!((tells(&one), one.task_status()), (vec![(TaskStatus::Running, Wants::Nothing)], TaskStatus::Running));
    assert!(one.effects.contains(&Effect::Host));
}

#[test]
fn it_has_no_deadline_of_its_own() {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    let options = RunOptions { task: Some(Box::new(options())), ..RunOptions::default() };
    let deadline = Some(Duration::from_secs(1));
    let child = StartChild { workflow: workflow("switch"), input: Payload::json("{}"), seed: SEED, deadline, options };
    one.hears(&plan_entity(), Message::StartChild(child));
    assert_eq!((one.run().deadline, one.run().timers().len()), (None, 0), "it would pass while it waits for its turn");
}

#[test]
fn it_is_let_begin_by_its_own_plan_in_its_own_life_and_once() {
    let mut one = pending();
    assert_eq!(one.hears(&EntityId::Plan(plan_named("q")), Message::AdmitTask { epoch: 1 }), [""; 0]);
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 2 }), [""; 0]);
    let mut one = admitted();
    assert_eq!(one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 }), [""; 0]);
}

#[test]
fn a_lock_that_is_not_wanted_any_more_is_given_back() {
    let mut one = admitted();
    let granted = grant(&one, 1);
    assert_eq!(one.does(cancel()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!(tells_its_lock(&one), [&Message::ReleaseLock { fence: None }]);
    assert_eq!(one.hears(&lock_entity(), granted), [""; 0]);
    assert_eq!(one.back()[0].message, Message::ReleaseLock { fence: Some(1) });
}

#[test]
fn a_grant_of_an_earlier_request_of_the_same_life_is_given_back() {
    let mut one = admitted();
    let early = grant(&one, 1);
    assert_eq!(one.hears(&plan_entity(), Message::RecallTask { epoch: 1 }), ["TASK_RECALLED"]);
    assert_eq!(
        (tells(&one), tells_its_lock(&one)),
        (vec![(TaskStatus::Pending, Wants::Turn)], vec![&Message::ReleaseLock { fence: None }])
    );
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 });
    assert_eq!(one.hears(&lock_entity(), early), [""; 0]);
    assert_eq!((one.back()[0].message.clone(), fence(&one)), (Message::ReleaseLock { fence: Some(1) }, None));
    let granted = grant(&one, 2);
    assert_eq!(one.hears(&lock_entity(), granted), ["LOCK_ACQUIRED", "TASK_STARTED"]);
}

#[test]
fn a_holding_that_is_given_anew_replaces_the_one_before() {
    let mut one = running();
    let again = grant(&one, 2);
    assert_eq!(one.hears(&lock_entity(), again), ["LOCK_ACQUIRED"]);
    assert_eq!(fence(&one), Some(2));
}

#[test]
fn one_that_was_recalled_waits_again_and_one_that_has_begun_pauses() {
    let mut one = admitted();
    one.hears(&plan_entity(), Message::RecallTask { epoch: 1 });
    assert_eq!(one.task_status(), TaskStatus::Pending);
    assert_eq!(one.hears(&plan_entity(), Message::RecallTask { epoch: 1 }), [""; 0], "it waits already");
    let mut one = running();
    assert_eq!(one.hears(&plan_entity(), Message::RecallTask { epoch: 1 }), ["RUN_PAUSED"]);
}

#[test]
fn one_that_does_not_wait_for_a_lock_is_called_off() {
    let mut one = begun(TaskOptions { conflict: Conflict::Skip, ..options() });
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 });
    assert!(matches!(tells_its_lock(&one)[..], [Message::AcquireLock { waits: false, .. }]));
    let refused = |asked| Message::LockRefused { asked, holder: "q:q/acme".into() };
    assert_eq!(one.hears_as(&lock_entity(), 0, refused(9)), [""; 0], "that was another request");
    assert_eq!(one.hears_as(&lock_entity(), 0, refused(2)), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!(one.task_status(), TaskStatus::Cancelled);
    let Event::RunCancelRequested { origin, .. } = &one.journal[2].event else { panic!("another event") };
    assert!(origin.why.as_ref().is_some_and(|why| why.contains("q:q/acme")), "{origin:?}");
}

#[test]
fn one_that_completes_gives_its_lock_back() {
    let mut one = in_second();
    let outcome = [step_completed("switch#1", 1, "1"), stage_completed("switch", 1), checkpoint_saved("switch", 1, "{}")];
    takes(&mut one, outcome, 1);
    takes(&mut one, [step_completed("check#1", 1, "1"), stage_completed("check", 2), run_completed("1")], 0);
    assert_eq!(one.task_status(), TaskStatus::Completed);
    assert_eq!((tells(&one), fence(&one)), (vec![(TaskStatus::Completed, Wants::Nothing)], None));
    assert_eq!(tells_its_lock(&one), [&Message::ReleaseLock { fence: Some(1) }]);
}

#[test]
fn one_that_fails_keeps_its_lock_until_a_person_calls_it_off() {
    let mut one = failed();
    assert_eq!((one.task_status(), fence(&one)), (TaskStatus::Failed, Some(1)));
    assert_eq!((tells(&one), tells_its_lock(&one).len()), (vec![(TaskStatus::Failed, Wants::Nothing)], 0));
    assert_eq!(one.does(cancel()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!((one.task_status(), fence(&one)), (TaskStatus::Cancelled, None));
    assert_eq!(tells_its_lock(&one), [&Message::ReleaseLock { fence: Some(1) }]);
    assert!(one.ask(cancel()).is_err(), "it is over");
}

#[test]
fn one_that_fails_releases_its_lock_if_its_plan_says_so() {
    let mut one = begun(TaskOptions { on_failure: OnFailure::Release, ..options() });
    one.hears(&plan_entity(), Message::AdmitTask { epoch: 1 });
    let granted = grant(&one, 1);
    one.hears(&lock_entity(), granted);
    takes(&mut one, [run_failed(card_refused())], 0);
    assert_eq!((fence(&one), tells_its_lock(&one)), (None, vec![&Message::ReleaseLock { fence: Some(1) }]));
}

#[test]
fn a_task_that_is_called_off_ends_at_once_and_undoes_nothing() {
    let mut one = in_second();
    assert_eq!(one.does(cancel()), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert!(one.effects.contains(&Effect::Close) && !one.effects.iter().any(|effect| matches!(effect, Effect::Deliver(_))));
    assert_eq!(tells_its_lock(&one), [&Message::ReleaseLock { fence: Some(1) }]);
}

#[test]
fn a_lock_that_is_lost_interrupts_it() {
    let mut one = in_second();
    let lost = Message::LockLost { fence: 1, origin: ada() };
    assert_eq!(one.hears(&lock_entity(), Message::LockLost { fence: 7, origin: ada() }), [""; 0], "it was another holding");
    assert_eq!(one.hears(&lock_entity(), lost), ["LOCK_LOST", "RUN_INTERRUPTED"]);
    assert_eq!(
        (one.task_status(), fence(&one), tells(&one)),
        (TaskStatus::Interrupted, None, vec![(TaskStatus::Interrupted, Wants::Nothing)])
    );
    assert!(one.effects.contains(&Effect::Close));
    let turn = turn_of(&one, [stage_completed("switch", 1)], 1);
    assert!(one.ask(turn).is_err(), "what it was doing does not count");
}

#[test]
fn a_lock_that_is_lost_after_the_end_is_only_noted() {
    let mut one = failed();
    assert_eq!(one.hears(&lock_entity(), Message::LockLost { fence: 1, origin: ada() }), ["LOCK_LOST"]);
    assert_eq!((one.task_status(), fence(&one), one.said.len()), (TaskStatus::Failed, None, 0));
}

/// Whether it says that its lock is to be renewed, and how far it has come.
fn confirms(one: &mut One, seen: Seq) -> Option<Seq> {
    assert_eq!(one.hears_as(&lock_entity(), 0, Message::ConfirmLock { fence: 1, seen }), [""; 0]);
    match one.back()[0].message {
        Message::RenewLock { fence: 1, seen } => Some(seen),
        Message::DenyLock { fence: 1 } => None,
        _ => panic!("it says something else"),
    }
}

#[test]
fn a_task_at_work_keeps_its_lock_while_it_comes_further() {
    let mut one = in_second();
    let seq = one.run().seq;
    assert_eq!(confirms(&mut one, seq - 1), Some(seq));
    assert_eq!(confirms(&mut one, seq), None, "it seems to be stuck");
    assert_eq!(one.hears_as(&lock_entity(), 0, Message::ConfirmLock { fence: 7, seen: 0 }), [""; 0]);
    assert_eq!(one.back()[0].message, Message::DenyLock { fence: 7 }, "it is not its holding");
}

#[test]
fn a_task_that_waits_is_paused_has_failed_or_is_interrupted_keeps_its_lock() {
    let mut waiting = in_second();
    takes(&mut waiting, [signal_awaited("signal:ok#1", "ok")], 0);
    let (mut paused, mut interrupted) = (in_second(), in_second());
    assert_eq!(paused.does(pause()), ["RUN_PAUSED"]);
    assert_eq!(interrupted.does(Command::InterruptRun), ["RUN_INTERRUPTED"]);
    for mut one in [waiting, paused, interrupted, failed()] {
        let seq = one.run().seq;
        assert_eq!(confirms(&mut one, seq), Some(seq), "{:?}", one.task_status());
    }
}

#[test]
fn what_its_plan_wants_of_it_is_done_or_answered() {
    let operate = |verb| Message::OperateTask { verb, origin: ada() };
    let mut one = running();
    assert_eq!(one.hears(&plan_entity(), operate(Verb::Pause)), ["RUN_PAUSED"]);
    assert_eq!(one.hears(&plan_entity(), operate(Verb::Resume)), ["RUN_RESUMED"]);
    assert_eq!(one.hears(&plan_entity(), operate(Verb::Cancel)), ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    let Some((_, Message::TaskChanged(changed))) = one.said.last() else { panic!("it says nothing") };
    assert_eq!((changed.status, changed.heard), (TaskStatus::Cancelled, one.told), "it says up to where it has heard its plan");
    assert_eq!(one.hears(&plan_entity(), operate(Verb::Cancel)), [""; 0]);
    let told = TaskChanged { epoch: 1, status: TaskStatus::Cancelled, wants: Wants::Nothing, heard: one.told };
    assert_eq!(one.back()[0].message, Message::TaskChanged(told));
}

#[test]
fn a_task_that_has_not_begun_is_not_paused_by_its_plan() {
    let mut one = admitted();
    assert_eq!(one.hears(&plan_entity(), Message::OperateTask { verb: Verb::Pause, origin: ada() }), [""; 0]);
    assert_eq!(one.task_status(), TaskStatus::Waiting, "it is recalled, or begins because a person wants it");
}

#[test]
fn another_run_of_that_id_tells_the_plan_that_there_will_be_no_task() {
    let mut one = One::new(EntityId::from(&task_of("acme")));
    one.does(start());
    let options = RunOptions { task: Some(Box::new(options())), ..RunOptions::default() };
    let child = StartChild { workflow: workflow("switch"), input: Payload::json("{}"), seed: SEED, deadline: None, options };
    for message in [Message::StartChild(child), Message::OperateTask { verb: Verb::Cancel, origin: ada() }] {
        assert_eq!(one.hears(&plan_entity(), message), [""; 0]);
        let told = TaskChanged { epoch: 0, status: TaskStatus::Failed, wants: Wants::Nothing, heard: one.told };
        assert_eq!(one.back()[0].message, Message::TaskChanged(told));
    }
}
