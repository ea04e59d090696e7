//! Another life of a run, or what it would be.

use crate::app::App;
use crate::ask::{Command, Nothing, Optional, Query, RunPath};
use crate::problem::Problem;
use crate::shapes::{Data, Retried, RetryRun};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::{self as kernel, Origin, RetryFrom, StepId};

/// Begins another life of a run that has ended, is interrupted, or waits. With `dryRun` it only says what would happen.
#[utoipa::path(post, path = "/v1/runs/{id}/retry", tag = "runs", request_body = Option<RetryRun>, params(
    ("id" = String, Path, description = "The run's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "The run in its new life, or what would happen.", body = Retried),
    (status = 404, description = "There is no such run."),
    (status = 409, description = "It is under way."),
    (status = 422, description = "It has no record of that step."),
))]
pub(in crate::api) async fn retry(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    _: Query<Nothing>,
    command: Command,
    Optional(mut asked): Optional<RetryRun>,
) -> Result<Json<Retried>, Problem> {
    let origin = command.because(asked.reason.take())?;
    let dry_run = asked.dry_run;
    let command = retry_run(origin, asked)?;
    if dry_run {
        let preview = app.engine.preview(&run, command).await?;
        return Ok(Json(Retried::Preview(Box::new((&preview).into()))));
    }
    app.engine.retry(&run, command).await?;
    let Json(seen) = app.seen(&run).await?;
    Ok(Json(Retried::Run(Box::new(seen))))
}

fn retry_run(origin: Origin, asked: RetryRun) -> Result<kernel::RetryRun, Problem> {
    let from = match asked.from_step.as_deref() {
        None => RetryFrom::Failed,
        Some("") => RetryFrom::Start,
        Some(step) => RetryFrom::Step(step_id(step)?),
    };
    let outputs = asked.outputs.into_iter().map(|(step, output)| Ok((step_id(&step)?, output.into_payload())));
    let outputs = outputs.collect::<Result<_, Problem>>()?;
    Ok(kernel::RetryRun { origin, from, input: asked.input.map(Data::into_payload), outputs, ..kernel::RetryRun::default() })
}

/// A step as the journal names it; a name alone is its first occurrence outside of branches.
fn step_id(step: &str) -> Result<StepId, Problem> {
    if step.is_empty() || step.len() > 4096 {
        return Err(Problem::bad_request("a step is named as in the journal: BRANCH/NAME#OCCURRENCE"));
    }
    Ok(if step.contains('#') { StepId::from_stored(step) } else { StepId::from_stored(&format!("{step}#1")) })
}
