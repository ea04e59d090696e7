//! Workers that are connected.

use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::{Worker, Workers};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;

/// Every worker that is connected: other processes that have the code of workflows, and host runs for this server.
#[utoipa::path(get, path = "/v1/workers", operation_id = "workers_list", tag = "workers", responses(
    (status = 200, description = "In the order of their names.", body = Workers),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn list(State(app): State<Arc<App>>, _: Query<Nothing>) -> Json<Workers> {
    Json(Workers { items: app.workers() })
}

impl App {
    /// Every worker that is connected, in the order of their names.
    pub(crate) fn workers(&self) -> Vec<Worker> {
        self.engine.workers().into_iter().map(Worker::from).collect()
    }
}
