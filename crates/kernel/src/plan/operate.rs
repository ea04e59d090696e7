//! What people want of a plan, and what a restart makes of it. What a status does not list is refused, with the status named.
//!
//! Tested by `crates/sdk/tests/it/plans/verbs.rs`.

use super::{Cause, Phase, Plan, PlanEvent, PlanStatus, follow};
use crate::machine::Decision;
use crate::run::Verb;
use crate::{Answer, Conflict, OperatePlan, Origin, Refusal, TaskStatus, TenantId, Timestamp};

pub(super) fn decide(plan: &Plan, command: OperatePlan, now: Timestamp) -> Result<Decision, Refusal> {
    let OperatePlan { verb, origin, locked } = command;
    if plan.has_done(verb, &origin) {
        return Ok(Decision::answer(Answer::Operated));
    }
    let refused =
        |what_to_do: &'static str| Err(Refusal::PlanStatus { plan: plan.id.clone(), status: plan.status(), what_to_do: what_to_do.into() });
    let events = match (verb, &plan.phase) {
        (Verb::Start, Phase::New) => {
            may_start(plan, locked)?;
            vec![PlanEvent::Started { origin }]
        }
        (Verb::Start, Phase::Running) => return Ok(Decision::answer(Answer::Operated)),
        (Verb::Start, Phase::Paused { .. }) => return refused("it was started; resume it"),
        (Verb::Start, _) => return refused("it was started; create another plan, or retry single tenants"),
        (Verb::Pause, Phase::Running) => pause(plan, Cause::Person, origin),
        (Verb::Pause, Phase::Paused { cause: Cause::Person, .. }) => return Ok(Decision::answer(Answer::Operated)),
        (Verb::Pause, Phase::Paused { .. }) => pause(plan, Cause::Person, origin), // what is under way pauses too
        (Verb::Pause, Phase::New) => return refused("it was not started"),
        (Verb::Pause, Phase::Ending { .. }) => return refused("it is being ended, which cannot be paused"),
        (Verb::Pause, Phase::Ended { .. }) => return refused("it has ended"),
        (Verb::Resume, Phase::Paused { cause: Cause::Canary, .. }) if open_canary(plan).is_some() => {
            return refused("a canary has not completed: retry or cancel it first");
        }
        (Verb::Resume, Phase::Paused { .. }) => vec![PlanEvent::Resumed { origin }],
        (Verb::Resume, Phase::Running) => return Ok(Decision::answer(Answer::Operated)),
        (Verb::Resume, Phase::New) => return refused("it was not started; start it"),
        (Verb::Resume, Phase::Ending { .. }) => return refused("it is being ended"),
        (Verb::Resume, Phase::Ended { .. }) => return refused("it has ended; retry single tenants"),
        (Verb::Cancel, Phase::Ended { status: PlanStatus::Completed | PlanStatus::Cancelled, .. }) => return refused("it has ended"),
        (Verb::Cancel, Phase::Ending { undo: true }) => return refused("it is being rolled back; cancel single tenants"),
        (Verb::Cancel, Phase::Ending { undo: false }) => return Ok(Decision::answer(Answer::Operated)),
        (Verb::Cancel, _) => vec![PlanEvent::CancelRequested { origin, undo: false }],
        (Verb::RollBack, Phase::New) => return refused("nothing was done; cancel it"),
        (Verb::RollBack, Phase::Ending { undo: true }) => return Ok(Decision::answer(Answer::Operated)),
        (Verb::RollBack, _) => vec![PlanEvent::CancelRequested { origin, undo: true }],
        (Verb::Terminate | Verb::Retry, _) => return refused("retry or cancel single tenants"),
    };
    Ok(follow(plan, events, now, Answer::Operated))
}

/// The plan is paused, and whoever was let begin and has not is to wait for its turn again.
fn pause(plan: &Plan, cause: Cause, origin: Origin) -> Vec<PlanEvent> {
    let tasks = plan
        .admitted
        .iter()
        .map(|place| &plan.tasks[*place])
        .filter(|task| !task.begun && task.status == TaskStatus::Pending);
    let recalled = tasks.map(|task| PlanEvent::TaskRecalled { task: task.run.clone(), epoch: task.epoch });
    [PlanEvent::Paused { cause, origin }].into_iter().chain(recalled).collect()
}

/// Its process has died: nothing begins by itself any more.
pub(super) fn interrupt(plan: &Plan, now: Timestamp) -> Decision {
    if !plan.is_under_way() {
        return Decision::answer(Answer::Interrupted);
    }
    let why = "the process that ran it has ended: look at its tasks, retry those that are interrupted, and resume it";
    let origin = Origin { by: Some("the engine".into()), why: Some(why.into()), command: None };
    follow(plan, pause(plan, Cause::Restart, origin), now, Answer::Interrupted)
}

fn may_start(plan: &Plan, locked: Vec<(TenantId, String)>) -> Result<(), Refusal> {
    if plan.created.settings.conflict == Conflict::Refuse && !locked.is_empty() {
        return Err(Refusal::TenantsLocked { plan: plan.id.clone(), locked });
    }
    Ok(())
}

fn open_canary(plan: &Plan) -> Option<()> {
    let is_open = |place: &usize| {
        let status = plan.tasks[*place].status;
        matches!(status, TaskStatus::Failed | TaskStatus::RollbackFailed | TaskStatus::Interrupted)
    };
    super::next::canaries(plan).filter(|canaries| canaries.iter().any(is_open)).map(drop)
}

impl Cause {
    /// Whether tasks that are under way pause too, at the end of their stage.
    pub(super) fn pauses_tasks(self) -> bool {
        match self {
            Cause::Person | Cause::Deadline => true,
            Cause::Restart | Cause::StopWhen | Cause::Canary | Cause::Interrupted => false,
        }
    }
}
