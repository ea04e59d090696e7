//! What operators ask of a run. Who wants it and why is kept on record, and the same command again is one.

use crate::app::App;
use crate::ask::{Command, Nothing, Optional, Query, RunPath, SignalPath};
use crate::problem::Problem;
use crate::shapes::{CancelRun, Reason, Replayed, Run, SendSignal, SignalReceived};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::{Origin, RunId};

impl App {
    /// The run as it stands now.
    pub(super) async fn seen(&self, run: &RunId) -> Result<Json<Run>, Problem> {
        Ok(Json(Run::from(&self.engine.view(run).await?)))
    }
}

/// Has a run begin nothing new until it is resumed. Attempts in flight end and are recorded; its own time stands still.
#[utoipa::path(post, path = "/v1/runs/{id}/pause", operation_id = "runs_pause", tag = "runs", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The run's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record.", body = Run),
    (status = 404, description = "There is no such run."),
    (status = 409, description = "It has ended or is interrupted."),
))]
pub(in crate::api) async fn pause(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Run>, Problem> {
    app.engine.pause(&run, command.because(reason)?).await?;
    app.seen(&run).await
}

/// Has a paused run go on, with the time that was left.
#[utoipa::path(post, path = "/v1/runs/{id}/resume", operation_id = "runs_resume", tag = "runs", request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The run's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record.", body = Run),
    (status = 404, description = "There is no such run."),
    (status = 409, description = "It has ended or is interrupted."),
))]
pub(in crate::api) async fn resume(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Run>, Problem> {
    app.engine.resume(&run, command.because(reason)?).await?;
    app.seen(&run).await
}

/// Calls a run off. What it did is undone, unless it is to be terminated.
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", operation_id = "runs_cancel", tag = "runs", request_body = Option<CancelRun>, params(
    ("id" = String, Path, description = "The run's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one."),
), responses(
    (status = 200, description = "It is on record; what the run did is undone after that.", body = Run),
    (status = 404, description = "There is no such run."),
    (status = 409, description = "It has ended."),
))]
pub(in crate::api) async fn cancel(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    _: Query<Nothing>,
    command: Command,
    Optional(CancelRun { reason, terminate }): Optional<CancelRun>,
) -> Result<Json<Run>, Problem> {
    let origin = command.because(reason)?;
    if terminate {
        app.engine.terminate(&run, origin).await?
    } else {
        app.engine.cancel(&run, origin).await?
    }
    app.seen(&run).await
}

/// Tells a run something. It is kept until the code asks for it. An approval is the signal that has the step's name.
#[utoipa::path(post, path = "/v1/runs/{id}/signals/{name}", operation_id = "runs_signal", tag = "runs",
    request_body = Option<SendSignal>, params(
    ("id" = String, Path, description = "The run's id."),
    ("name" = String, Path, description = "The name of the signal, or of the step that is to be approved."),
    ("Idempotency-Key" = Option<String>, Header, description = "What tells it from others, unless the body has a signalId."),
), responses(
    (status = 200, description = "It is on record.", body = SignalReceived),
    (status = 404, description = "There is no such run."),
    (status = 409, description = "The run has ended, or nobody asks for that answer."),
))]
pub(in crate::api) async fn signal(
    State(app): State<Arc<App>>,
    SignalPath(run, name): SignalPath,
    _: Query<Nothing>,
    command: Command,
    Optional(SendSignal { payload, signal_id, reason }): Optional<SendSignal>,
) -> Result<Json<SignalReceived>, Problem> {
    if signal_id.as_ref().is_some_and(|id| !(1..=256).contains(&id.len())) {
        return Err(Problem::bad_request("signalId has to have 1 to 256 bytes, or be left out"));
    }
    let origin = command.because(reason)?;
    let origin = Origin { command: signal_id.or(origin.command), ..origin };
    let received = app.engine.signal(&run, &name, payload.into_payload(), origin).await?;
    Ok(Json(SignalReceived { received }))
}

/// Replays the journal of a run against the code that is registered here. Nothing is carried out, and nothing changes.
#[utoipa::path(post, path = "/v1/runs/{id}/replay", operation_id = "runs_replay", tag = "runs", request_body = Option<Reason>,
    params(("id" = String, Path, description = "The run's id.")), responses(
    (status = 200, description = "What was found.", body = Replayed),
    (status = 404, description = "There is no such run, or its code is not here."),
))]
pub(in crate::api) async fn replay(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    _: Query<Nothing>,
    _: Optional<Reason>,
) -> Result<Json<Replayed>, Problem> {
    Ok(Json(Replayed::from(&app.engine.replay(&run).await?)))
}
