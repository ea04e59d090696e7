//! Plans, tasks and locks: short constructors.

use super::*;
use steadfast_kernel::plan::{PlanCreated, PlanEvent, Settings};
use steadfast_kernel::{
    AdoptRun, CreatePlan, HandOver, InstanceId, LockEvent, OperatePlan, PlanId, Recovery, TaskEvent, TaskOptions, TenantId, run::Verb,
};

pub(crate) fn plan_named(name: &str) -> PlanId {
    PlanId::new(name).expect("a plan id")
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a tenant")
}

/// A plan for those tenants with the stages `drain`, `switch` and `check`.
pub(crate) fn plan_created(tenants: &[&str], settings: Settings) -> PlanCreated {
    PlanCreated {
        workflow: workflow("switch"),
        definition: "switch".into(),
        version: None,
        stages: ["drain", "switch", "check"].map(String::from).into(),
        tenants: tenants.iter().map(|name| tenant(name)).collect(),
        skipped: Vec::new(),
        settings,
        seed: SEED,
        origin: ada(),
        input: Payload::json("{}"),
    }
}

pub(crate) fn create_plan(created: PlanCreated, locked: Vec<(TenantId, String)>) -> Command {
    Command::CreatePlan(Box::new(CreatePlan { created: Box::new(created), locked }))
}

pub(crate) fn operate(verb: Verb, origin: Origin) -> Command {
    Command::OperatePlan(OperatePlan { verb, origin, locked: Vec::new() })
}

/// Another instance goes on with a task.
pub(crate) fn hand_over(to: Option<&str>) -> Command {
    Command::HandOverRun(HandOver { to: to.and_then(|to| InstanceId::new(to).ok()), origin: ada() })
}

/// This instance goes on with a task of which so many stages are done, that can be undone or not.
pub(crate) fn adopt(run: RunId, task: TaskOptions, done: &[bool], alone: bool) -> Command {
    let options = RunOptions { recovery: Recovery::Manual, task: Some(Box::new(task)), ..RunOptions::default() };
    let start = StartRun { run, workflow: workflow("switch"), input: Payload::json("{}"), seed: SEED, deadline: None, options };
    let (from, data) = (InstanceId::new("i-1").ok(), Payload::json("{\"a\":1}"));
    let started_at = (!done.is_empty()).then(|| at(7));
    Command::AdoptRun(Box::new(AdoptRun {
        start,
        from,
        origin: ada(),
        started_at,
        fence: 8,
        done: done.into(),
        half_undone: false,
        data,
        alone,
    }))
}

pub(crate) fn of_task(event: TaskEvent) -> Event {
    Event::Task(Box::new(event))
}

pub(crate) fn of_plan(event: PlanEvent) -> Event {
    Event::Plan(Box::new(event))
}

pub(crate) fn of_lock(event: LockEvent) -> Event {
    Event::Lock(Box::new(event))
}

/// What the code of a task says of a stage.
pub(crate) fn stage_started(name: &str, index: u32) -> Event {
    of_task(TaskEvent::StageStarted { stage: StepId::stage(name), index })
}

pub(crate) fn stage_completed(name: &str, index: u32) -> Event {
    of_task(TaskEvent::StageCompleted { stage: StepId::stage(name), index })
}

pub(crate) fn stage_failed(name: &str, index: u32, failure: Failure) -> Event {
    of_task(TaskEvent::StageFailed { stage: StepId::stage(name), index, failure })
}

pub(crate) fn checkpoint_saved(name: &str, index: u32, data: &'static str) -> Event {
    of_task(TaskEvent::CheckpointSaved { stage: StepId::stage(name), index, data: Payload::json(data) })
}
