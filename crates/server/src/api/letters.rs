//! Dead letters: looked at, tried again, thrown away.

use crate::app::App;
use crate::ask::{Command, LetterPath, Nothing, Optional, Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Letter, Page, Reason};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_store::LetterCursor;
use utoipa::IntoParams;

/// Which letters.
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

/// Dead letters, newest first.
#[utoipa::path(get, path = "/v1/letters", tag = "letters", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<Letter>),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<Letter>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let after: Option<LetterCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let mut rows = app.engine.letters(&steadfast_store::LetterFilter::default(), after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|last| cursor::encode(&LetterCursor::from(last)));
    Ok(Json(Page { items: rows.iter().map(Letter::from).collect(), next_cursor }))
}

/// A dead letter, with its bytes.
#[utoipa::path(get, path = "/v1/letters/{id}", tag = "letters",
    params(("id" = String, Path, description = "WORKFLOW.NUMBER, key:KEY.NUMBER or route:ROUTE.NUMBER", example = "checkout.17")), responses(
    (status = 200, description = "The letter.", body = Letter),
    (status = 400, description = "No letter can have that id."),
    (status = 404, description = "There is no such letter."),
))]
pub(super) async fn show(State(app): State<Arc<App>>, LetterPath(letter): LetterPath, _: Query<Nothing>) -> Result<Json<Letter>, Problem> {
    Ok(Json(Letter::from(&app.engine.letter(&letter).await?)))
}

/// Has a dead letter tried again: the run of a step is retried from there, and an expiry is told anew.
#[utoipa::path(post, path = "/v1/letters/{id}/redrive", tag = "letters", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "WORKFLOW.NUMBER, key:KEY.NUMBER or route:ROUTE.NUMBER", example = "checkout.17"),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 204, description = "It is tried again."),
    (status = 404, description = "There is no such letter."),
    (status = 409, description = "Its run cannot be retried now."),
))]
pub(super) async fn redrive(
    State(app): State<Arc<App>>,
    LetterPath(letter): LetterPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<StatusCode, Problem> {
    app.engine.redrive(&letter, command.because(reason)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why it is thrown away.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Why {
    /// Why; kept on record.
    #[param(max_length = 4096)]
    reason: Option<String>,
}

/// Throws a dead letter away.
#[utoipa::path(delete, path = "/v1/letters/{id}", tag = "letters", params(
    ("id" = String, Path, description = "WORKFLOW.NUMBER, key:KEY.NUMBER or route:ROUTE.NUMBER", example = "checkout.17"),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
    Why,
), responses(
    (status = 204, description = "It is gone."),
    (status = 400, description = "No letter can have that id, or a parameter cannot be understood."),
    (status = 404, description = "There is no such letter."),
))]
pub(super) async fn discard(
    State(app): State<Arc<App>>,
    LetterPath(letter): LetterPath,
    Query(Why { reason }): Query<Why>,
    command: Command,
) -> Result<StatusCode, Problem> {
    app.engine.drop_letter(&letter, command.because(reason)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
