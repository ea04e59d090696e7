//! What operators ask of a tenant's latest task. Who wants it and why is kept on record, and the same command again is one.

use crate::app::App;
use crate::ask::{Command, Nothing, Optional, Query, TenantPath};
use crate::problem::Problem;
use crate::shapes::{Reason, RetryTask, Task};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::{RetryFrom, RetryRun};
use steadfast_runtime::Wanted;

/// Begins another life of a tenant's task: after the last stage that is done, or from the start. It needs its turn in its plan, which may be paused, and its lock.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/retry", operation_id = "tenants_retry", tag = "tenants",
    request_body = Option<RetryTask>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record; the task begins after that.", body = Task),
    (status = 404, description = "The tenant has no task."),
    (status = 409, description = "Another instance has the task, and lives; or its definition is not here. Or: The task is under way, has completed and is not to begin from its start, or is half rolled back; or another task has its tenant's lock."),
))]
pub(in crate::api) async fn retry(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Optional(RetryTask { from_checkpoint, reason }): Optional<RetryTask>,
) -> Result<Json<Task>, Problem> {
    let origin = command.because(reason)?;
    let (from, wanted) = match from_checkpoint {
        true => (RetryFrom::Failed, Wanted::Retry),
        false => (RetryFrom::Start, Wanted::RetryFromStart),
    };
    let task = app.own_task(&tenant, wanted, &origin).await?;
    app.engine.retry(&task, RetryRun { origin, from, ..RetryRun::default() }).await?;
    Ok(Json(app.task(&task).await?))
}

/// Has a tenant's task begin nothing new until it is resumed. A stage that is under way ends and is recorded.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/pause", operation_id = "tenants_pause", tag = "tenants",
    request_body = Option<Reason>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record.", body = Task),
    (status = 404, description = "The tenant has no task."),
    (status = 409, description = "It has ended or is interrupted, or another instance has or had it."),
))]
pub(in crate::api) async fn pause(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Task>, Problem> {
    let origin = command.because(reason)?;
    let task = app.task_here(&tenant).await?;
    app.engine.pause(&task, origin).await?;
    Ok(Json(app.task(&task).await?))
}

/// Has a tenant's paused task go on.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/resume", operation_id = "tenants_resume", tag = "tenants",
    request_body = Option<Reason>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record.", body = Task),
    (status = 404, description = "The tenant has no task."),
    (status = 409, description = "It has ended or is interrupted, or another instance has or had it."),
))]
pub(in crate::api) async fn resume(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Task>, Problem> {
    let origin = command.because(reason)?;
    let task = app.task_here(&tenant).await?;
    app.engine.resume(&task, origin).await?;
    Ok(Json(app.task(&task).await?))
}

/// Calls a tenant's task off. It ends at once and gives its lock back; nothing is undone. One that has failed can be called off, too.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/cancel", operation_id = "tenants_cancel", tag = "tenants",
    request_body = Option<Reason>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It has ended.", body = Task),
    (status = 404, description = "The tenant has no task."),
    (status = 409, description = "Another instance has the task, and lives; or its definition is not here. Or: It has completed, was called off before, or was rolled back."),
))]
pub(in crate::api) async fn cancel(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Task>, Problem> {
    let origin = command.because(reason)?;
    let task = app.own_task(&tenant, Wanted::Cancel, &origin).await?;
    app.engine.cancel(&task, origin).await?;
    Ok(Json(app.task(&task).await?))
}

/// Has what a tenant's task did undone, newest first. One that has ended needs its turn in its plan, and its lock, for that.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/rollback", operation_id = "tenants_rollback", tag = "tenants",
    request_body = Option<Reason>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record; what the task did is undone after that.", body = Task),
    (status = 404, description = "The tenant has no task."),
    (status = 409, description = "Another instance has the task, and lives; or its definition is not here. Or: It never began, or is rolled back already."),
))]
pub(in crate::api) async fn rollback(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Task>, Problem> {
    let origin = command.because(reason)?;
    let task = app.own_task(&tenant, Wanted::RollBack, &origin).await?;
    app.engine.roll_back(&task, origin).await?;
    Ok(Json(app.task(&task).await?))
}

/// Gives a tenant's task up that is not under way, so that another instance can go on with it at once: a retry there takes it up from its checkpoint.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/hand-over", operation_id = "tenants_hand_over", tag = "tenants",
    request_body = Option<Reason>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record, and nobody's until somebody retries it.", body = Task),
    (status = 400, description = "This server shares nothing: there is nobody to hand a task over to."),
    (status = 404, description = "The tenant has no task."),
    (status = 409, description = "It is under way, or there is nothing to go on with, or another instance has it."),
))]
pub(in crate::api) async fn hand_over(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Task>, Problem> {
    Ok(Json(app.hand_over(&tenant, command.because(reason)?).await?))
}
