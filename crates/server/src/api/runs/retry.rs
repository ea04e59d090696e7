//! Another life of a run, or what it would be.

use crate::app::App;
use crate::ask::{Command, Nothing, Optional, Query, RunPath};
use crate::problem::Problem;
use crate::shapes::{Data, Retried, RetryRun, Step};
use crate::steps;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::{self as kernel, Origin, RetryFrom, RunId, StepId, code};

/// Begins another life of a run that has ended, is interrupted, or waits. With `dryRun` it only says what would happen.
#[utoipa::path(post, path = "/v1/runs/{id}/retry", operation_id = "runs_retry", tag = "runs", request_body = Option<RetryRun>, params(
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
    asked.outputs.keys().try_for_each(|step| step_id(step).map(drop))?;
    let named = Named::of(&app, &run).await?;
    let command = retry_run(origin, asked, &named)?;
    if dry_run {
        let preview = app.engine.preview(&run, command).await?;
        return Ok(Json(Retried::Preview(Box::new((&preview).into()))));
    }
    app.engine.retry(&run, command).await?;
    let Json(seen) = app.seen(&run).await?;
    Ok(Json(Retried::Run(Box::new(seen))))
}

fn retry_run(origin: Origin, asked: RetryRun, named: &Named) -> Result<kernel::RetryRun, Problem> {
    if asked.input.is_some() && asked.from_step.as_deref().is_some_and(|step| !step.is_empty()) {
        return Err(Problem::bad_request("another input means from the start: leave out fromStep, or leave out input"));
    }
    let from = match asked.from_step.as_deref() {
        None => RetryFrom::Failed,
        Some("") => RetryFrom::Start,
        Some(step) => named.from(step)?,
    };
    let outputs = asked.outputs.into_iter().map(|(step, output)| Ok((named.supplied(&step)?, output.into_payload())));
    let outputs = outputs.collect::<Result<_, Problem>>()?;
    Ok(kernel::RetryRun { origin, from, input: asked.input.map(Data::into_payload), outputs, ..kernel::RetryRun::default() })
}

/// The steps of a run by the names of its definition; none if it has no definition.
struct Named {
    run: RunId,
    steps: Vec<Step>,
}

impl Named {
    async fn of(app: &App, run: &RunId) -> Result<Self, Problem> {
        let view = app.engine.view(run).await?;
        let steps = if view.definition.is_some() { steps::of_run(app, &view).await? } else { Vec::new() };
        Ok(Named { run: run.clone(), steps })
    }

    /// Where a retry from that step begins: at everything of it that is on record.
    fn from(&self, step: &str) -> Result<RetryFrom, Problem> {
        let begun = self.steps.iter().filter(|seen| seen.name == step && seen.started_at.is_some());
        let paths: Vec<StepId> = begun.map(|seen| StepId::from_stored(&seen.path)).collect();
        if paths.is_empty() { Ok(RetryFrom::Step(step_id(step)?)) } else { Ok(RetryFrom::Steps(paths)) }
    }

    /// The step whose output is supplied. Only what is attempted can be left out.
    fn supplied(&self, step: &str) -> Result<StepId, Problem> {
        let id = step_id(step)?;
        let of_definition = self.steps.iter().find(|seen| seen.name == step || seen.path == id.as_str());
        let refused = |why: &str| {
            Err(Problem::new(code::STEP_NOT_FOUND, format!("the output of {step:?} cannot be supplied to run {}: {why}", self.run)))
        };
        match of_definition {
            None if self.steps.is_empty() => Ok(id),
            None => refused("its definition has no such step"),
            Some(seen) if !["http", "run", "call", "set", "fail"].contains(&seen.kind.as_str()) => {
                refused("only steps that are attempted can be (http, run, call, set, fail); a step that waits is answered by a signal")
            }
            Some(_) => Ok(id),
        }
    }
}

/// A step as the journal names it; a name alone is its first occurrence outside of branches.
fn step_id(step: &str) -> Result<StepId, Problem> {
    if step.is_empty() || step.len() > 4096 {
        return Err(Problem::bad_request("a step is named as in the journal: BRANCH/NAME#OCCURRENCE"));
    }
    Ok(if step.contains('#') { StepId::from_stored(step) } else { StepId::from_stored(&format!("{step}#1")) })
}
