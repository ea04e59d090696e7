//! What operators ask of a plan. Who wants it and why is kept on record, and the same command again is one.

use crate::app::App;
use crate::ask::{Command, Nothing, Optional, PlanPath, Query};
use crate::problem::Problem;
use crate::shapes::{Plan, Reason};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::PlanId;
use steadfast_kernel::run::Verb;

impl App {
    async fn operate(&self, plan: &PlanId, verb: Verb, command: Command, reason: Option<String>) -> Result<Json<Plan>, Problem> {
        self.engine.operate_plan(plan, verb, command.because(reason)?).await?;
        Ok(Json(self.plan(plan).await?))
    }
}

/// Has the tasks of a plan begin: the canaries first, and so many at once as it says.
#[utoipa::path(post, path = "/v1/plans/{id}/start", operation_id = "plans_start", tag = "plans", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The plan's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record.", body = Plan),
    (status = 404, description = "There is no such plan."),
    (status = 409, description = "Another instance has it. Or: It was started before or has ended, or tenants are locked by others: `locked` names all of them."),
))]
pub(in crate::api) async fn start(
    State(app): State<Arc<App>>,
    PlanPath(plan): PlanPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Plan>, Problem> {
    app.operate(&plan, Verb::Start, command, reason).await
}

/// Has no other task begin until the plan is resumed. Tasks that are under way pause at the end of their stage.
#[utoipa::path(post, path = "/v1/plans/{id}/pause", operation_id = "plans_pause", tag = "plans", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The plan's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record; tasks pause after that.", body = Plan),
    (status = 404, description = "There is no such plan."),
    (status = 409, description = "Another instance has it. Or: It was not started, is being ended, or has ended."),
))]
pub(in crate::api) async fn pause(
    State(app): State<Arc<App>>,
    PlanPath(plan): PlanPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Plan>, Problem> {
    app.operate(&plan, Verb::Pause, command, reason).await
}

/// Has a paused plan go on, with the tasks that it paused.
#[utoipa::path(post, path = "/v1/plans/{id}/resume", operation_id = "plans_resume", tag = "plans", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The plan's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record.", body = Plan),
    (status = 404, description = "There is no such plan."),
    (status = 409, description = "Another instance has it. Or: It was not started, a canary has not completed, or it is being ended or has ended."),
))]
pub(in crate::api) async fn resume(
    State(app): State<Arc<App>>,
    PlanPath(plan): PlanPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Plan>, Problem> {
    app.operate(&plan, Verb::Resume, command, reason).await
}

/// Calls a plan off: all of its tasks end, and give their locks back. Nothing is undone.
#[utoipa::path(post, path = "/v1/plans/{id}/cancel", operation_id = "plans_cancel", tag = "plans", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The plan's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record; the tasks end after that.", body = Plan),
    (status = 404, description = "There is no such plan."),
    (status = 409, description = "Another instance has it. Or: It has ended, or is being rolled back."),
))]
pub(in crate::api) async fn cancel(
    State(app): State<Arc<App>>,
    PlanPath(plan): PlanPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Plan>, Problem> {
    app.operate(&plan, Verb::Cancel, command, reason).await
}

/// Has what the tasks of a plan did undone, newest first, so many tasks at once as it says.
#[utoipa::path(post, path = "/v1/plans/{id}/rollback", operation_id = "plans_rollback", tag = "plans",
    request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The plan's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record; what the tasks did is undone after that.", body = Plan),
    (status = 404, description = "There is no such plan."),
    (status = 409, description = "Another instance has it. Or: Nothing of it has begun."),
))]
pub(in crate::api) async fn rollback(
    State(app): State<Arc<App>>,
    PlanPath(plan): PlanPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Plan>, Problem> {
    app.operate(&plan, Verb::RollBack, command, reason).await
}
