//! What came of a run.

use crate::app::App;
use crate::ask::{Query, RunPath};
use crate::problem::Problem;
use crate::shapes::RunResult;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// How long to wait for it.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// How long the answer may wait for the end of the run. The server has a bound for it, 60 seconds unless it is configured otherwise.
    #[param(example = 30000)]
    wait_ms: Option<u64>,
}

/// The result or the failure of a run; it can be waited for.
#[utoipa::path(get, path = "/v1/runs/{id}/result", operation_id = "runs_result", tag = "runs",
    params(("id" = String, Path, description = "The run's id."), Asked), responses(
    (status = 200, description = "The run has ended: its result or its failure.", body = RunResult),
    (status = 202, description = "The run goes on.", body = RunResult),
    (status = 400, description = "No run can have that id, or a parameter cannot be understood."),
    (status = 404, description = "There is no such run."),
))]
pub(in crate::api) async fn result(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    Query(asked): Query<Asked>,
) -> Result<(StatusCode, Json<RunResult>), Problem> {
    let view = app.wait_for(&run, asked.wait_ms.unwrap_or_default()).await?;
    let status = if view.ended.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(RunResult::from(&view))))
}
