//! The instances that share the store: shown, and drained.

use crate::app::App;
use crate::ask::{Command, InstancePath, Nothing, Optional, Query};
use crate::problem::Problem;
use crate::shapes::{Cluster, Instance, Reason};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_kernel::{Origin, code};

/// The most instances that an answer names to whoever asks for one that is not there.
const NAMED_MAX: usize = 20;

/// How much of an id is said again to whoever asks for one that is not there, in characters.
const SAID_MAX: usize = 100;

/// The instances that share the store of this server, and who has which shard of it.
#[utoipa::path(get, path = "/v1/cluster", operation_id = "cluster_show", tag = "cluster", responses(
    (status = 200, description = "As the store knows it now.", body = Cluster),
    (status = 400, description = "A parameter cannot be understood."),
    (status = 404, description = "This server does not share its store."),
))]
pub(super) async fn show(State(app): State<Arc<App>>, _: Query<Nothing>) -> Result<Json<Cluster>, Problem> {
    app.cluster().await.map(Json)
}

/// Has an instance give its shards to the others, and take no more until it is undrained: what it works on goes on there. Any instance can be asked, about
/// any other. It is answered at once; how many shards are left is in `shards`. Draining one that drains changes nothing. The reason goes to the server's log.
#[utoipa::path(post, path = "/v1/cluster/instances/{id}/drain", operation_id = "cluster_drain", tag = "cluster",
    request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The instance's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one, with a key or without."),
), responses(
    (status = 200, description = "The instance, as it is now.", body = Instance),
    (status = 404, description = "There is no such instance, or this server does not share its store."),
))]
pub(super) async fn drain(
    State(app): State<Arc<App>>,
    InstancePath(id): InstancePath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Instance>, Problem> {
    app.drain(&id, true, &command.because(reason)?).await.map(Json)
}

/// Has an instance that drains take shards again. One that does not drain stays as it is. The reason goes to the server's log.
#[utoipa::path(post, path = "/v1/cluster/instances/{id}/undrain", operation_id = "cluster_undrain", tag = "cluster",
    request_body = Option<Reason>, params(
    ("id" = String, Path, description = "The instance's id."),
    ("Idempotency-Key" = Option<String>, Header, description = "The same again is one, with a key or without."),
), responses(
    (status = 200, description = "The instance, as it is now.", body = Instance),
    (status = 404, description = "There is no such instance, or this server does not share its store."),
))]
pub(super) async fn undrain(
    State(app): State<Arc<App>>,
    InstancePath(id): InstancePath,
    _: Query<Nothing>,
    command: Command,
    Optional(Reason { reason }): Optional<Reason>,
) -> Result<Json<Instance>, Problem> {
    app.drain(&id, false, &command.because(reason)?).await.map(Json)
}

impl App {
    /// The instances that share the store, and who has which shard.
    pub(crate) async fn cluster(&self) -> Result<Cluster, Problem> {
        let view = self.engine.cluster().await?;
        let alone = || {
            Problem::new(code::NOT_SHARED, "this server does not share its store; start it with --postgres to have others work beside it")
        };
        let view = view.ok_or_else(alone)?;
        Ok(Cluster::of(&view, &self.engine.lags().await?))
    }

    /// Asks an instance to give its shards away, or takes that back.
    pub(crate) async fn drain(&self, id: &str, draining: bool, origin: &Origin) -> Result<Instance, Problem> {
        let before = self.cluster().await?;
        let is_known = before.instances.iter().any(|instance| instance.id == id); // only the id of an instance is worth asking the store about
        if !is_known || !self.engine.drain_instance(id, draining).await? {
            return Err(no_such_instance(id, &before));
        }
        let (by, why) = (origin.by.as_deref(), origin.why.as_deref());
        tracing::info!(instance = id, draining, by, why, "an instance is asked to give its shards away, or that is taken back");
        let after = self.cluster().await?;
        let as_it_is = after.instances.iter().find(|instance| instance.id == id).cloned();
        as_it_is.ok_or_else(|| no_such_instance(id, &after))
    }
}

fn no_such_instance(id: &str, cluster: &Cluster) -> Problem {
    let id: String = id.chars().take(SAID_MAX).collect();
    let mut there: Vec<&str> = cluster.instances.iter().take(NAMED_MAX).map(|instance| instance.id.as_str()).collect();
    there.extend((cluster.instances.len() > NAMED_MAX).then_some("others"));
    Problem::new(
        code::INSTANCE_NOT_FOUND,
        format!("no instance {id:?} shares the store; there are {}; GET /v1/cluster tells more", there.join(", ")),
    )
}
