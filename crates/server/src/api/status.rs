//! How the server is: alive, ready, and in numbers.

use crate::app::App;
use crate::metrics::measure_messages;
use crate::problem::Problem;
use crate::shapes::{Alive, Dependency, Ready};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use std::sync::Arc;
use std::time::Duration;
use steadfast_runtime::{Health, SharingHealth, SharingState};

/// Whether the server answers.
#[utoipa::path(get, path = "/healthz", operation_id = "server_healthz", tag = "server",
    responses((status = 200, description = "It does.", body = Alive)))]
pub(super) async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok".into() })
}

/// Whether the server can do its work, with a line per dependency. While Redis is away it is ready, and its status is `degraded`: it shows what it has, and what it begins its detail says. Why something does not is only told to those who have the token.
#[utoipa::path(get, path = "/readyz", operation_id = "server_readyz", tag = "server", responses(
    (status = 200, description = "It can.", body = Ready),
    (status = 503, description = "Something that it depends on does not do its work."),
))]
pub(super) async fn readyz(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Ready>, Problem> {
    let mut dependencies = vec![store(&app.engine.health()), engine(&app), role(&app)];
    dependencies.extend(app.engine.sharing().map(|health| redis(&health)));
    let status = dependencies
        .iter()
        .map(|dependency| &*dependency.status)
        .find(|status| *status != UP)
        .unwrap_or(UP)
        .to_owned();
    if !app.access.may_know(&headers) {
        dependencies.iter_mut().for_each(|dependency| dependency.detail = None);
    }
    if dependencies.iter().all(|dependency| dependency.ready) {
        Ok(Json(Ready { ready: true, status, dependencies }))
    } else {
        Err(Problem::not_ready(dependencies))
    }
}

fn store(health: &Health) -> Dependency {
    let detail = match health {
        Health::Well => None,
        Health::Healing { since, error } => Some(format!("{error} ({}), since {since}", error.code())),
        Health::Over { error } => Some(format!("{error} ({}); start the server again", error.code())),
        _ => Some("it is not known how it is".into()),
    };
    let status = if health.is_well() { UP } else { "down" };
    Dependency { name: "store".into(), ready: health.is_well(), status: status.into(), detail }
}

fn engine(app: &App) -> Dependency {
    let closing = app.closing.is_cancelled();
    let status = if closing { "down" } else { UP };
    Dependency { name: "server".into(), ready: !closing, status: status.into(), detail: closing.then(|| "it is stopping".into()) }
}

/// What this instance is among those that work on the store. It is ready whatever that is, since it can be asked for anything. It says what is known here: a probe needs no token, so it
/// must not cost the store anything.
fn role(app: &App) -> Dependency {
    let detail = if app.engine.shares_store() {
        let (here, all) = app.engine.shards();
        format!("leader of {here} of {all} shards; instances that live: {}", app.engine.instances().len())
    } else {
        "leader".into()
    };
    Dependency { name: "role".into(), ready: true, status: UP.into(), detail: Some(detail) }
}

/// What is shared with other instances. The server answers and shows what it has without it, so it is ready: who sends work elsewhere looks at the status.
fn redis(health: &SharingHealth) -> Dependency {
    let (status, how) = match &health.state {
        SharingState::Up => (UP, "it can be used".into()),
        SharingState::Starting if health.mirror_only => ("starting", "it is brought up to date; nothing waits for that".into()),
        SharingState::Away { since, why, .. } if health.mirror_only => {
            ("degraded", format!("away since {since}: {why}; only what it mirrors is behind, and nothing waits for that"))
        }
        SharingState::Starting => ("starting", "it was not reached since the start; no stage and no lock begins before that".into()),
        SharingState::Away { since, why, refuses } => {
            let follows = match refuses {
                None => "this instance is alone, so that tasks and locks go on".into(),
                Some(refuses) => format!("no stage and no lock begins: {refuses}"),
            };
            ("degraded", format!("away since {since}: {why}; {follows}"))
        }
    };
    let (who, behind) = if health.mirror_only { ("a mirror only, as ", "it does") } else { ("", "others do") };
    let detail = [
        Some(format!("{who}instance {}: {how}", health.instance)),
        (health.pending > 0).then(|| format!("{behind} not know the latest of {} plans and tasks", health.pending)),
        health
            .foreign
            .first()
            .map(|key| format!("{key} holds something else than it should, and is left alone")),
    ];
    let detail = detail.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Dependency { name: "redis".into(), ready: true, status: status.into(), detail: Some(detail) }
}

const UP: &str = "up";

/// Numbers for Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "server_metrics", tag = "server",
    responses((status = 200, description = "Prometheus text.", body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    if app.metrics.is_some() {
        if let Some(door) = &app.door {
            measure_messages(&door.node.counts());
        }
        let _known_from_before = tokio::time::timeout(LOOK_WITHIN, app.engine.measure_callbacks()).await;
    }
    let text = app.metrics.as_ref().map(|metrics| metrics.render()).unwrap_or_default();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// How long the store may take to say how many ends of keys are to be told; what was known before is shown then.
const LOOK_WITHIN: Duration = Duration::from_secs(1);
