//! Lists of plans.

use crate::app::App;
use crate::ask::{Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Page, PlanStatus, PlanSummary};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::WorkflowName;
use steadfast_store::{PlanCursor, PlanFilter};
use utoipa::IntoParams;

/// Which plans: those to which all of it applies.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// In that status.
    status: Option<PlanStatus>,
    /// Of that definition.
    definition: Option<String>,
    /// How many at most; 50 if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where the list goes on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Plans, newest first, with how many of their tasks stand where.
#[utoipa::path(get, path = "/v1/plans", operation_id = "plans_list", tag = "plans", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<PlanSummary>),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(in crate::api) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<PlanSummary>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let after: Option<PlanCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let definition = asked.definition.map(WorkflowName::new).transpose()?.map(|name| name.to_string());
    let filter = PlanFilter { shard: None, status: asked.status.map(Into::into), definition };
    let (items, next) = app.some_plans(&filter, after.as_ref(), limit).await?;
    Ok(Json(Page { items, next_cursor: next.as_ref().map(cursor::encode) }))
}

impl App {
    /// A page of plans, and the last of them if there are more.
    pub(crate) async fn some_plans(
        &self,
        filter: &PlanFilter,
        after: Option<&PlanCursor>,
        limit: usize,
    ) -> Result<(Vec<PlanSummary>, Option<PlanCursor>), Problem> {
        let mut rows = self.engine.plans(filter, after, limit + 1).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let plans: Vec<_> = rows.iter().map(|row| row.plan.clone()).collect();
        let counts = self.engine.task_counts(&plans).await?;
        let next = rows.last().filter(|_| more).map(PlanCursor::from);
        Ok((rows.iter().map(|row| PlanSummary::of(row, &counts)).collect(), next))
    }
}
