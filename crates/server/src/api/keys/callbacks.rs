//! Ends of keys that are still to be told.

use crate::app::App;
use crate::ask::{Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Callback, Page};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_store::{CallbackCursor, CallbackRow};
use utoipa::IntoParams;

/// Of which keys.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct Asked {
    /// Of keys whose names begin so; of all if it is left out.
    #[param(example = "session:")]
    prefix: Option<String>,
    /// How many at most; 50 if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where the list goes on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Ends of keys that are still to be told, those that have waited for longest first: who is told, how often it was tried, why it failed last, and when it is tried next.
#[utoipa::path(get, path = "/v1/callbacks", operation_id = "callbacks_list", tag = "callbacks", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<Callback>),
    (status = 400, description = "A parameter cannot be understood, or no key begins so."),
))]
pub(in crate::api) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<Callback>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let (rows, next_cursor) = app.some_callbacks(asked.prefix.as_deref(), asked.cursor.as_deref(), limit).await?;
    Ok(Json(Page { items: rows.iter().map(Callback::from).collect(), next_cursor }))
}

impl App {
    /// A page of ends that are still to be told, and where the list goes on.
    pub(crate) async fn some_callbacks(
        &self,
        prefix: Option<&str>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<CallbackRow>, Option<String>), Problem> {
        let after: Option<CallbackCursor> = cursor.map(|text| cursor::decode("cursor", text)).transpose()?;
        let mut rows = self.engine.callbacks(prefix.unwrap_or_default(), after.as_ref(), limit + 1).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|last| cursor::encode(&CallbackCursor::from(last)));
        Ok((rows, next))
    }
}
