//! What changes a key. The answer says its revision, which is durable by then.

use crate::app::App;
use crate::ask::{Body, KeyPath, Nothing, Query};
use crate::problem::Problem;
use crate::shapes::{KeyDeleted, KeyKept, OnExpire, PutKey, RenewKey, Time};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{KeyName, Revision, Target, Timestamp};
use steadfast_runtime::{Error, Put};
use utoipa::IntoParams;

/// Gives a key a value and a time to live. When that is over, the key is gone and who is to be told is told, again and again until it has succeeded.
#[utoipa::path(put, path = "/v1/keys/{key}", operation_id = "keys_put", tag = "keys", request_body = PutKey,
    params(("key" = String, Path, description = "The key.", example = "session:42")), responses(
    (status = 200, description = "It is on record.", body = KeyKept),
    (status = 400, description = "No key can have that name, the time to live is nothing, or the request cannot be understood."),
    (status = 403, description = "The key belongs to another owner; or the host or site is not allowed."),
    (status = 404, description = "There is no such workflow as the expiry is to start."),
    (status = 409, description = "The key has another revision than `ifRevision`."),
    (status = 422, description = "That address may not be called, or the workflow does not take that input."),
))]
pub(in crate::api) async fn put(
    State(app): State<Arc<App>>,
    KeyPath(key): KeyPath,
    _: Query<Nothing>,
    Body(asked): Body<PutKey>,
) -> Result<Json<KeyKept>, Problem> {
    let put = Put {
        ttl: ttl(asked.ttl_ms)?,
        owner: owner(asked.owner)?,
        on_expire: asked.on_expire.map(target).transpose()?,
        value: asked.value.into_payload(),
        directory: asked.directory,
        if_revision: asked.if_revision,
    };
    Ok(kept(&key, app.engine.put_key(&key, put).await?))
}

/// Gives a key another time to live, counted from now.
#[utoipa::path(post, path = "/v1/keys/{key}/renew", operation_id = "keys_renew", tag = "keys", request_body = RenewKey,
    params(("key" = String, Path, description = "The key.", example = "session:42")), responses(
    (status = 200, description = "It is on record.", body = KeyKept),
    (status = 400, description = "No key can have that name, the time to live is nothing, or the request cannot be understood."),
    (status = 403, description = "The key belongs to another owner; or the host or site is not allowed."),
    (status = 404, description = "There is no such key: it has expired, was deleted, or never was."),
    (status = 409, description = "The key has another revision than `ifRevision`."),
))]
pub(in crate::api) async fn renew(
    State(app): State<Arc<App>>,
    KeyPath(key): KeyPath,
    _: Query<Nothing>,
    Body(asked): Body<RenewKey>,
) -> Result<Json<KeyKept>, Problem> {
    let (ttl, owner) = (ttl(asked.ttl_ms)?, owner(asked.owner)?);
    Ok(kept(&key, app.engine.renew_key(&key, ttl, owner, asked.if_revision).await?))
}

/// Who deletes it, and which.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Who {
    /// Who deletes it; needed if it belongs to somebody.
    #[param(max_length = 256)]
    owner: Option<String>,
    /// Only if that is its revision now.
    if_revision: Option<u64>,
}

/// Removes a key. Nobody is called back for that.
#[utoipa::path(delete, path = "/v1/keys/{key}", operation_id = "keys_delete", tag = "keys",
    params(("key" = String, Path, description = "The key.", example = "session:42"), Who), responses(
    (status = 200, description = "It is gone.", body = KeyDeleted),
    (status = 400, description = "No key can have that name, or a parameter cannot be understood."),
    (status = 403, description = "The key belongs to another owner; or the host or site is not allowed."),
    (status = 404, description = "There is no such key: it has expired, was deleted, or never was."),
    (status = 409, description = "The key has another revision than `ifRevision`."),
))]
pub(in crate::api) async fn delete(
    State(app): State<Arc<App>>,
    KeyPath(key): KeyPath,
    Query(asked): Query<Who>,
) -> Result<Json<KeyDeleted>, Problem> {
    let revision = app.engine.delete_key(&key, owner(asked.owner)?, asked.if_revision).await?;
    Ok(Json(KeyDeleted { key: key.to_string(), revision }))
}

fn kept(key: &KeyName, (revision, expires_at): (Revision, Timestamp)) -> Json<KeyKept> {
    Json(KeyKept { key: key.to_string(), revision, expires_at: Time(expires_at) })
}

/// Less than nothing is as good as nothing.
fn ttl(millis: i64) -> Result<Duration, Problem> {
    match u64::try_from(millis) {
        Ok(millis @ 1..) => Ok(Duration::from_millis(millis)),
        _ => Err(Error::InvalidTtl.into()),
    }
}

fn owner(owner: Option<String>) -> Result<Option<String>, Problem> {
    match owner {
        Some(owner) if !(1..=256).contains(&owner.len()) => Err(Problem::bad_request("owner has to have 1 to 256 bytes, or be left out")),
        owner => Ok(owner),
    }
}

fn target(told: OnExpire) -> Result<Target, Problem> {
    told.into_target()?
        .ok_or_else(|| Problem::bad_request("onExpire.handler is always true; leave onExpire out if nobody is to be told"))
}
