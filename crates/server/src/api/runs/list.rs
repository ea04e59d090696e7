//! Lists of runs.

use crate::app::App;
use crate::ask::{Narrow, Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Page, RunSummary, Status};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_store::RunCursor;
use utoipa::IntoParams;

/// Which runs: those to which all of it applies.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// In that status.
    status: Option<Status>,
    /// Of that workflow.
    workflow: Option<String>,
    /// Of that tenant.
    tenant: Option<String>,
    /// With that primary wait reason: `BACKOFF`, `SIGNAL`, …
    wait: Option<String>,
    /// With that text in the id, the workflow, the tenant, in why it failed or in what it said last. At most 10,000 runs are looked at for a page, so one may have
    /// fewer than `limit` items, or none, and a `nextCursor` all the same: there the search goes on.
    q: Option<String>,
    /// How many at most; 50 if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where the list goes on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Runs, newest first.
#[utoipa::path(get, path = "/v1/runs", operation_id = "runs_list", tag = "runs", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<RunSummary>),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(in crate::api) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<RunSummary>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let after: Option<RunCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let Asked { status, workflow, tenant, wait, q, .. } = asked;
    let filter = Narrow { status, workflow, tenant, wait }.filter()?;
    let page = app.engine.list(&filter, q.as_deref(), after.as_ref(), limit).await?;
    let next_cursor = page.next.as_ref().map(cursor::encode);
    Ok(Json(Page { items: page.rows.iter().map(RunSummary::from).collect(), next_cursor }))
}
