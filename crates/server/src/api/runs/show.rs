//! One run: where it stands, and its journal.

use crate::app::App;
use crate::ask::{Nothing, Query, RunPath, within};
use crate::problem::Problem;
use crate::shapes::{Event, Run};
use crate::steps;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// How many entries are read at once.
const PAGE: usize = 1000;

/// A run, with its steps.
#[utoipa::path(get, path = "/v1/runs/{id}", operation_id = "runs_show", tag = "runs",
    params(("id" = String, Path, description = "The run's id.")), responses(
    (status = 200, description = "The run.", body = Run),
    (status = 400, description = "No run can have that id."),
    (status = 404, description = "There is no such run."),
))]
pub(in crate::api) async fn show(State(app): State<Arc<App>>, RunPath(run): RunPath, _: Query<Nothing>) -> Result<Json<Run>, Problem> {
    let view = app.engine.view(&run).await?;
    let steps = steps::of_run(&app, &view).await?;
    Ok(Json(Run { steps: Some(steps), ..Run::from(&view) }))
}

/// Which part of a journal.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// Only events of that attempt; those that are not about an attempt count as the first.
    #[param(minimum = 1)]
    attempt: Option<u32>,
    /// Only events after that sequence.
    after: Option<u64>,
    /// How many at most; 1,000 if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// The journal of a run, in order.
#[utoipa::path(get, path = "/v1/runs/{id}/events", operation_id = "runs_events", tag = "runs",
    params(("id" = String, Path, description = "The run's id."), Asked), responses(
    (status = 200, description = "The events. If there are as many as the limit allows, there may be more: ask again after the last one.", body = Vec<Event>),
    (status = 400, description = "No run can have that id, or a parameter cannot be understood."),
    (status = 404, description = "There is no such run."),
))]
pub(in crate::api) async fn events(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    Query(asked): Query<Asked>,
) -> Result<Json<Vec<Event>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 1000)? as usize;
    within("attempt", asked.attempt.map(u64::from), 1..=u64::from(u32::MAX), 1)?;
    let (mut found, mut after) = (Vec::new(), asked.after.unwrap_or_default());
    let at_once = if asked.attempt.is_none() { limit } else { PAGE };
    while found.len() < limit {
        let page = app.engine.journal(&run, after, at_once).await?;
        let events = page.iter().map(|entry| Event::of(run.as_str(), entry));
        found.extend(events.filter(|event| asked.attempt.is_none_or(|attempt| event.attempt_number == attempt)));
        match page.last() {
            Some(last) if page.len() == at_once => after = last.seq,
            _ => break,
        }
    }
    found.truncate(limit);
    Ok(Json(found))
}
