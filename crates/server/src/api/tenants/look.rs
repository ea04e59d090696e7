//! The latest task of a tenant, and how far it has come.

use crate::app::App;
use crate::ask::{Nothing, Query, TenantPath};
use crate::problem::Problem;
use crate::shapes::{Checkpoint, Task};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::{RunId, code};
use steadfast_runtime::{Found, RunView, TaskView};

impl App {
    /// A task as it stands now, with the lock of its tenant.
    pub(crate) async fn task(&self, task: &RunId) -> Result<Task, Problem> {
        let view = self.engine.view(task).await?;
        let about = about(&view)?;
        let lock = self.engine.lock(&about.options.tenant).await?;
        let last = self.engine.journal(task, view.seq.saturating_sub(1), 1).await?;
        Ok(Task::of(&view, about, lock.as_ref().map(|row| self.lock(row)), last.last().map(|entry| entry.at)))
    }
}

/// A run that a tenant's row names is a task; nothing else says so.
fn about(view: &RunView) -> Result<&TaskView, Problem> {
    view.task
        .as_deref()
        .ok_or_else(|| Problem::new(code::TASK_NOT_FOUND, format!("run {} is no task of a plan", view.id)))
}

/// A tenant's task that was made last, also if another instance has it: `instance` says which, and `ownerLives` whether it lives.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/task", operation_id = "tenants_task", tag = "tenants",
    params(("tenant" = String, Path, description = "The tenant.")), responses(
    (status = 200, description = "The task.", body = Task),
    (status = 400, description = "No tenant can be called that."),
    (status = 404, description = "The tenant has no task."),
))]
pub(in crate::api) async fn task(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
) -> Result<Json<Task>, Problem> {
    match app.engine.find_task(&tenant).await? {
        Found::Here(task) => Ok(Json(app.task(&task).await?)),
        Found::Elsewhere(there) => Ok(Json(Task::elsewhere(&there, app.now()))),
    }
}

/// How far a tenant's task has come: where a retry goes on from.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/checkpoint", operation_id = "tenants_checkpoint", tag = "tenants",
    params(("tenant" = String, Path, description = "The tenant.")), responses(
    (status = 200, description = "The checkpoint.", body = Checkpoint),
    (status = 400, description = "No tenant can be called that."),
    (status = 404, description = "The tenant has no task, or the task has no checkpoint."),
))]
pub(in crate::api) async fn checkpoint(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
) -> Result<Json<Checkpoint>, Problem> {
    let (task, checkpoint) = match app.engine.find_task(&tenant).await? {
        Found::Here(task) => {
            let view = app.engine.view(&task).await?;
            (task, Checkpoint::of(&view, about(&view)?))
        }
        Found::Elsewhere(there) => (there.task.task.clone(), Checkpoint::elsewhere(&there)),
    };
    let missing = || {
        let why = format!("task {task} of tenant {tenant} has no checkpoint: no stage but the last is done, or it was rolled back");
        Problem::new(code::CHECKPOINT_NOT_FOUND, why)
    };
    checkpoint.map(Json).ok_or_else(missing)
}
