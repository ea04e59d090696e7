//! Dead letters: looked at, tried again, thrown away.

use crate::app::App;
use crate::ask::{Body, Command, LetterPath, NarrowLetters, Nothing, Optional, Query, time, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Letter, LetterRefused, LettersRedriven, Page, Reason, RedriveLetters, Time};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::LetterId;
use steadfast_runtime as runtime;
use steadfast_store::LetterCursor;
use utoipa::IntoParams;

/// For so long a request waits for messages to be delivered, or for half of its time if that is less: clients give up after 30 s, as the command line does.
const DELIVERED_WITHIN: Duration = Duration::from_secs(15);

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
    /// Steps of runs of that workflow.
    workflow: Option<String>,
    /// Messages of that route.
    route: Option<String>,
    /// Expiries of that key.
    key: Option<String>,
    /// Expiries of keys whose names begin so.
    key_prefix: Option<String>,
    /// What they are about: `step`, `expiry` or `message`.
    kind: Option<String>,
    /// Whose work they are.
    tenant: Option<String>,
    /// The class of their failure: `transient`, `permanent` or `poison`.
    class: Option<String>,
    /// The code of their failure.
    code: Option<String>,
    /// There since that time, or later.
    #[param(value_type = Option<Time>)]
    added_after: Option<String>,
    /// There since before that time.
    #[param(value_type = Option<Time>)]
    added_before: Option<String>,
}

impl Asked {
    fn narrow(self) -> Result<NarrowLetters, Problem> {
        let Asked { workflow, route, key, key_prefix, kind, tenant, class, code, added_after, added_before, .. } = self;
        let added_after = added_after.map(|text| time("addedAfter", &text)).transpose()?;
        let added_before = added_before.map(|text| time("addedBefore", &text)).transpose()?;
        Ok(NarrowLetters { workflow, route, key, key_prefix, kind, tenant, class, code, added_after, added_before })
    }
}

/// Dead letters, newest first; those to which everything applies that is asked for.
#[utoipa::path(get, path = "/v1/letters", operation_id = "letters_list", tag = "letters", params(Asked), responses(
    (status = 200, description = "A page of them.", body = Page<Letter>),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn list(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Json<Page<Letter>>, Problem> {
    let limit = within("limit", asked.limit, 1..=1000, 50)? as usize;
    let after: Option<LetterCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let mut rows = app.engine.letters(&asked.narrow()?.filter()?, after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|last| cursor::encode(&LetterCursor::from(last)));
    Ok(Json(Page { items: rows.iter().map(Letter::from).collect(), next_cursor }))
}

/// A dead letter, with its bytes.
#[utoipa::path(get, path = "/v1/letters/{id}", operation_id = "letters_show", tag = "letters",
    params(("id" = String, Path, description = "WORKFLOW.NUMBER, key:KEY.NUMBER or route:ROUTE.NUMBER", example = "checkout.17")), responses(
    (status = 200, description = "The letter.", body = Letter),
    (status = 400, description = "No letter can have that id."),
    (status = 404, description = "There is no such letter."),
))]
pub(super) async fn show(State(app): State<Arc<App>>, LetterPath(letter): LetterPath, _: Query<Nothing>) -> Result<Json<Letter>, Problem> {
    Ok(Json(Letter::from(&app.engine.letter(&letter).await?)))
}

/// Has a dead letter tried again: the run of a step is retried from there, an expiry is told anew, and a message is sent or handled again.
#[utoipa::path(post, path = "/v1/letters/{id}/redrive", operation_id = "letters_redrive", tag = "letters",
    request_body = Option<Reason>, params(
    ("id" = String, Path, description = "WORKFLOW.NUMBER, key:KEY.NUMBER or route:ROUTE.NUMBER", example = "checkout.17"),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 204, description = "It is tried again."),
    (status = 404, description = "There is no such letter."),
    (status = 409, description = "Its run cannot be retried now, its message was not delivered, or is still on its way: that goes on by itself."),
))]
pub(super) async fn redrive(
    State(app): State<Arc<App>>,
    LetterPath(letter): LetterPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<StatusCode, Problem> {
    app.engine.redrive_within(&letter, command.because(reason)?, time_for_messages(&app)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn time_for_messages(app: &App) -> Duration {
    DELIVERED_WITHIN.min(app.config.request_time / 2)
}

/// How many are tried at the most if nobody says so.
const LIMIT: u64 = 1000;

/// Has many dead letters tried again, oldest first, each of them once. A request ends in time: `more` says that there are others, and another one with `nextCursor`
/// and `addedBefore` goes on.
#[utoipa::path(post, path = "/v1/letters/redrive", operation_id = "letters_redrive_many", tag = "letters",
    request_body = RedriveLetters, params(
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is answered as before, and tries nothing."),
), responses(
    (status = 200, description = "What came of it.", body = LettersRedriven),
))]
pub(super) async fn redrive_many(
    State(app): State<Arc<App>>,
    _: Query<Nothing>,
    command: Command,
    Body(asked): Body<RedriveLetters>,
) -> Result<Json<LettersRedriven>, Problem> {
    let limit = within("limit", asked.limit, 1..=100_000, LIMIT)? as usize;
    let per_second = asked.per_second.map(|rate| within("perSecond", Some(rate.into()), 1..=10_000, 1)).transpose()?;
    let after: Option<LetterCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let RedriveLetters { workflow, route, key, key_prefix, kind, tenant, class, code, added_after, added_before, .. } = asked;
    let filter = NarrowLetters { workflow, route, key, key_prefix, kind, tenant, class, code, added_after, added_before }.filter()?;
    let origin = command.because(asked.reason)?;
    if asked.dry_run {
        let matching = app.engine.letters_count(&filter).await?;
        return Ok(Json(LettersRedriven { matching: Some(matching), more: matching > 0, ..LettersRedriven::default() }));
    }
    let wanted = runtime::RedriveLetters {
        filter,
        per_second: per_second.map(|rate| rate as u32),
        limit,
        within: Some(time_for_messages(&app)),
        after,
        origin,
    };
    Ok(Json(app.engine.redrive_letters(wanted).await?.into()))
}

impl From<runtime::RedrivenLetters> for LettersRedriven {
    fn from(done: runtime::RedrivenLetters) -> Self {
        let refused = |(letter, why): &(LetterId, runtime::Error)| LetterRefused {
            letter: letter.to_string(),
            code: why.code().into(),
            detail: why.to_string(),
        };
        LettersRedriven {
            matching: None,
            redriven: done.redriven,
            refused: done.refused,
            reasons: done.reasons.iter().map(refused).collect(),
            more: done.more,
            next_cursor: done.last.as_ref().map(cursor::encode),
            added_before: Some(Time(done.until)),
        }
    }
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
#[utoipa::path(delete, path = "/v1/letters/{id}", operation_id = "letters_discard", tag = "letters", params(
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
