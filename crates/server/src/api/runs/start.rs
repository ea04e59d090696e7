//! Starting a run, and waiting for its end in the same request.

use crate::app::App;
use crate::ask::{Body, Nothing, Query};
use crate::problem::Problem;
use crate::shapes::{Run, StartRun};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::Answer;
use steadfast_runtime::Start;

/// Starts a run, or finds the one of that id. It is durable when this answers. With `waitMs` the answer comes when the run has ended, or when that time is over.
#[utoipa::path(post, path = "/v1/runs", operation_id = "runs_start", tag = "runs", request_body = StartRun, responses(
    (status = 201, description = "The run has begun.", body = Run),
    (status = 200, description = "The run of that id, which was started with the same input before.", body = Run),
    (status = 404, description = "There is no such workflow."),
    (status = 409, description = "There is a run of that id already, with another workflow or input."),
    (status = 422, description = "The workflow does not take that input."),
))]
pub(in crate::api) async fn start(
    State(app): State<Arc<App>>,
    _: Query<Nothing>,
    Body(asked): Body<StartRun>,
) -> Result<(StatusCode, Json<Run>), Problem> {
    if asked.deadline_ms == Some(0) {
        return Err(Problem::bad_request("deadlineMs is 0; a run needs some time, or leave it out"));
    }
    let start = Start {
        workflow: asked.workflow,
        input: asked.input.into_payload(),
        id: asked.id,
        deadline: asked.deadline_ms.map(Duration::from_millis),
        tenant: asked.tenant,
        limits: Vec::new(),
    };
    let (run, answer) = app.engine.start(start).await?;
    let view = app.wait_for(&run, asked.wait_ms.unwrap_or_default()).await?;
    let status = if answer == Answer::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Run::from(&view))))
}
