//! One plan: where it and its tasks stand, and its journal.

use crate::app::App;
use crate::ask::{Nothing, PlanPath, Query, within};
use crate::problem::Problem;
use crate::shapes::{Event, Plan};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{EntityId, PlanId, Refusal};
use steadfast_runtime::{self as runtime, FoundPlan};
use utoipa::IntoParams;

impl App {
    /// A plan as it stands now, with all of its tasks.
    pub(crate) async fn plan(&self, plan: &PlanId) -> Result<Plan, Problem> {
        match self.engine.tasks(plan).await {
            Ok(rows) => Ok(Plan::of(&self.engine.plan(plan).await?, &rows)),
            Err(runtime::Error::Refused(Refusal::PlanNotFound { .. })) => match self.engine.find_plan(plan).await? {
                FoundPlan::Elsewhere(there) => Ok(self.plan_elsewhere(&there).await),
                FoundPlan::Here(state) => Ok(Plan::of(&state, &self.engine.tasks(plan).await?)),
            },
            Err(error) => Err(error.into()),
        }
    }
}

/// A plan, with a line for every one of its tasks, also if another instance has it: `instance` says which, and `ownerLives` whether it lives.
#[utoipa::path(get, path = "/v1/plans/{id}", operation_id = "plans_show", tag = "plans",
    params(("id" = String, Path, description = "The plan's id.")), responses(
    (status = 200, description = "The plan.", body = Plan),
    (status = 400, description = "No plan can have that id."),
    (status = 404, description = "There is no such plan."),
))]
pub(in crate::api) async fn show(State(app): State<Arc<App>>, PlanPath(plan): PlanPath, _: Query<Nothing>) -> Result<Json<Plan>, Problem> {
    Ok(Json(app.plan(&plan).await?))
}

/// Which part of a journal.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// Only events after that sequence.
    after: Option<u64>,
    /// How many at most; 1,000 if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// The journal of a plan, in order. What happens to its tasks is in theirs: `GET /v1/runs/{taskId}/events`.
#[utoipa::path(get, path = "/v1/plans/{id}/events", operation_id = "plans_events", tag = "plans",
    params(("id" = String, Path, description = "The plan's id."), Asked), responses(
    (status = 200, description = "The events. If there are as many as the limit allows, there may be more: ask again after the last one.", body = Vec<Event>),
    (status = 400, description = "No plan can have that id, or a parameter cannot be understood."),
    (status = 404, description = "There is no such plan."),
    (status = 409, description = "Another instance has it, and its journal."),
))]
pub(in crate::api) async fn events(
    State(app): State<Arc<App>>,
    PlanPath(plan): PlanPath,
    Query(asked): Query<Asked>,
) -> Result<Json<Vec<Event>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 1000)? as usize;
    let entries = app.engine.entries(&EntityId::Plan(plan.clone()), asked.after.unwrap_or_default(), limit).await?;
    if entries.is_empty() {
        match app.engine.find_plan(&plan).await? {
            FoundPlan::Here(_) => {} // there is nothing after that
            FoundPlan::Elsewhere(there) => {
                return Err(runtime::Error::Elsewhere { what: format!("plan {plan}"), instance: Some(there.plan.owner) }.into());
            }
        }
    }
    Ok(Json(entries.iter().map(|entry| Event::of(plan.as_str(), entry)).collect()))
}
