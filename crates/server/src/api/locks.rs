//! Locks of tenants: listed, and broken.

use crate::app::App;
use crate::ask::{Command, Optional, Query, TenantPath, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Lock, Page, Reason};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::TenantId;
use utoipa::IntoParams;

/// Which locks.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// How many at most; 50 if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where the list goes on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Locks that tasks of this instance have, by tenant.
#[utoipa::path(get, path = "/v1/locks", operation_id = "locks_list", tag = "locks", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<Lock>),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<Lock>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let after: Option<TenantId> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let mut rows = app.engine.locks(after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|last| cursor::encode(&last.tenant));
    Ok(Json(Page { items: rows.iter().map(|row| app.lock(row)).collect(), next_cursor }))
}

/// Why it is broken.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Why {
    /// Why; kept on record. Needed, here or in the body.
    #[param(max_length = 4096)]
    reason: Option<String>,
}

/// Takes a lock away from its holder, who is interrupted if it is under way; who waits for the lock has it then. A reason is needed, in the query or in the
/// body, and is kept on record. One of an instance that is gone can be broken on any other. There are no roles yet: whoever has the token may do this.
#[utoipa::path(delete, path = "/v1/locks/{tenant}", operation_id = "locks_break_one", tag = "locks", request_body = Option<Reason>, params(
    ("tenant" = String, Path, description = "The tenant."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
    Why,
), responses(
    (status = 204, description = "It is on record."),
    (status = 400, description = "No reason is given, no tenant can be called that, or the request cannot be understood."),
    (status = 404, description = "Nobody has it."),
    (status = 409, description = "Another instance has it, and lives: break it there."),
))]
pub(super) async fn break_one(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    Query(why): Query<Why>,
    command: Command,
    Optional(body): Optional<Reason>,
) -> Result<StatusCode, Problem> {
    let given = |reason: &String| !reason.trim().is_empty();
    let reason = match (why.reason.filter(given), body.reason.filter(given)) {
        (Some(one), Some(other)) if one != other => {
            return Err(Problem::bad_request("the reason in the query is not the one in the body; give one of them"));
        }
        (Some(reason), _) | (None, Some(reason)) => reason,
        (None, None) => {
            return Err(Problem::bad_request("a lock is broken for a reason: say why, as ?reason= or as {\"reason\": …} in the body"));
        }
    };
    app.engine.break_lock(&tenant, command.because(Some(reason))?).await?;
    Ok(StatusCode::NO_CONTENT)
}
