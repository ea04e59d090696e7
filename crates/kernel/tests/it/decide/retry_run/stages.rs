//! A task that has failed begins again with the stage in which it failed, whatever that failed of.

use super::*;
use std::time::Duration;
use steadfast_kernel::{Conflict, Lease, OnFailure, PlanId, TaskEvent, TaskOptions, TenantId};

fn task(event: TaskEvent) -> Event {
    Event::Task(Box::new(event))
}

/// A task that is at its first stage.
fn begun() -> Vec<Event> {
    let (plan, tenant) = (PlanId::new("p").expect("an id"), TenantId::new("t").expect("an id"));
    let lease = Duration::from_secs(9000);
    let options = TaskOptions {
        plan: plan.clone(),
        tenant,
        stages: vec!["one".into(), "two".into(), "three".into()],
        lease,
        on_failure: OnFailure::Keep,
        conflict: Conflict::Refuse,
    };
    let lock = Lease { plan, task: run_id(), epoch: 1, fence: 1, lease, expires_at: at(9_000_000) };
    vec![
        run_started_with(None, RunOptions { task: Some(Box::new(options)), ..RunOptions::default() }),
        task(TaskEvent::Admitted { epoch: 1 }),
        task(TaskEvent::LockAcquired(lock)),
        task(TaskEvent::Started),
        task(TaskEvent::StageStarted { stage: StepId::stage("one"), index: 0 }),
    ]
}

/// The first stage is done by entry 8.
fn one_done() -> Vec<Event> {
    let stage = StepId::stage("one");
    let done = [
        step_completed("one#1", 1, "1"),
        task(TaskEvent::StageCompleted { stage: stage.clone(), index: 0 }),
        task(TaskEvent::CheckpointSaved { stage, index: 0, data: Payload::json("{}") }),
        task(TaskEvent::StageStarted { stage: StepId::stage("two"), index: 1 }),
    ];
    begun().into_iter().chain(done).collect()
}

fn fails(events: Vec<Event>, stage: &str, index: u32) -> Vec<Entry> {
    let failed = task(TaskEvent::StageFailed { stage: StepId::stage(stage), index, failure: card_refused() });
    history(events.into_iter().chain([failed, run_failed(card_refused())]))
}

#[track_caller]
fn begins_again(history: &[Entry], from: Option<&str>, cut: u64, reset: &[&str]) -> Run {
    let next = life(history.len() as u64 + 1, retried(from, cut, reset));
    check(history, 70, retry_run(), Ok(decision([next.clone()], [Effect::Close, answer(Answer::Retried)])));
    folded(&[history, &[next]].concat()).expect("a run")
}

#[test]
fn a_stage_whose_outcome_was_not_accepted_is_done_again() {
    let events = one_done().into_iter().chain([step_completed("two#1", 1, "2")]).collect();
    let run = begins_again(&fails(events, "two", 1), None, 9, &["two#1"]);
    assert_eq!(steps(&run), ["one#1"]);
    assert_eq!(run.task().and_then(|task| Some(task.checkpoint.as_ref()?.index)), Some(0), "and goes on from its checkpoint");
    assert_eq!((run.generations.get(&id("one#1")), run.generations.get(&id("two#1"))), (1, 2), "it is new work");
}

#[test]
fn a_question_whose_answer_was_a_no_is_asked_again() {
    let asked = [signal_awaited("two#1/two#1", "two"), signal_received("two", None), signal_taken("two#1/two#1", 11)];
    let run = begins_again(&fails(one_done().into_iter().chain(asked).collect(), "two", 1), None, 9, &[]);
    let open = run.open().expect("an open run");
    assert!(open.awaits.is_empty() && open.signals.is_empty(), "the no is spent: {open:?}");
}

#[test]
fn the_first_stage_begins_with_the_task() {
    let events = begun().into_iter().chain([step_completed("one#1", 1, "1")]).collect();
    let run = begins_again(&fails(events, "one", 0), None, 2, &["one#1"]);
    assert!(steps(&run).is_empty() && run.task().is_some_and(|task| task.checkpoint.is_none() && task.lock.is_some()));
}

#[test]
fn a_stage_in_which_something_failed_begins_again_there() {
    let more = [step_completed("two#1", 1, "2"), step_failed("more#1", 1, card_refused())];
    let run = begins_again(&fails(one_done().into_iter().chain(more).collect(), "two", 1), Some("more#1"), 11, &["more#1"]);
    assert_eq!(steps(&run), ["one#1", "two#1"]);
}
