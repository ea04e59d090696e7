//! Keys as they are now. What is over is never shown, whether or not that is on record yet.

use crate::app::App;
use crate::ask::{KeyPath, Nothing, Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Key, Page};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{KeyName, Refusal};
use steadfast_runtime::Error;
use steadfast_store::KeyRow;
use utoipa::IntoParams;

/// How many keys are read at once: their values may be large.
const AT_ONCE: usize = 50;

/// A page that has so many bytes of values is full.
const BYTES: usize = 4 << 20;

/// A key.
#[utoipa::path(get, path = "/v1/keys/{key}", operation_id = "keys_show", tag = "keys",
    params(("key" = String, Path, description = "The key.", example = "session:42")), responses(
    (status = 200, description = "The key.", body = Key),
    (status = 400, description = "No key can have that name."),
    (status = 404, description = "There is no such key: it has expired, was deleted, or never was."),
))]
pub(in crate::api) async fn show(State(app): State<Arc<App>>, KeyPath(key): KeyPath, _: Query<Nothing>) -> Result<Json<Key>, Problem> {
    let row = app.engine.key(&key).await?;
    let row = row.ok_or(Error::Refused(Refusal::KeyNotFound { key }))?;
    Ok(Json(Key::from(&row)))
}

/// Which keys.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// Whose names begin so; all of them if it is left out.
    #[param(example = "session:")]
    prefix: Option<String>,
    /// How many at most; 50 if it is left out. A page of large values has fewer.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where the list goes on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Keys, by name.
#[utoipa::path(get, path = "/v1/keys", operation_id = "keys_list", tag = "keys", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<Key>),
    (status = 400, description = "A parameter cannot be understood, or no key begins so."),
))]
pub(in crate::api) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<Key>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let after: Option<KeyName> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let (rows, next) = app.some_keys(&asked.prefix.unwrap_or_default(), after, limit).await?;
    Ok(Json(Page { items: rows.iter().map(Key::from).collect(), next_cursor: next.as_ref().map(cursor::encode) }))
}

impl App {
    /// A page of keys: as many as are asked for, or as fit into it; and the last of them, if there are more.
    pub(crate) async fn some_keys(
        &self,
        prefix: &str,
        mut after: Option<KeyName>,
        limit: usize,
    ) -> Result<(Vec<KeyRow>, Option<KeyName>), Problem> {
        let (mut rows, mut bytes) = (Vec::<KeyRow>::new(), 0);
        loop {
            let wanted = (limit + 1 - rows.len()).min(AT_ONCE);
            let (more, next) = self.engine.keys(prefix, after.as_ref(), wanted).await?;
            for row in more {
                if rows.len() == limit || (bytes > BYTES && !rows.is_empty()) {
                    let last = rows.last().map(|row| row.key.clone());
                    return Ok((rows, last));
                }
                bytes += row.held.value.len();
                rows.push(row);
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok((rows, None)),
            }
        }
    }
}
