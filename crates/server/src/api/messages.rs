//! The node of this server, and who is connected to it.

use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::Messages;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use steadfast_runtime::clock::{Clock, SystemClock};

/// The node of this server: who is connected to it, which routes it answers, what is under way, and what it has done since the start.
#[utoipa::path(get, path = "/v1/messages", operation_id = "messages_show", tag = "messages", responses(
    (status = 200, description = "All of it.", body = Messages),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn show(State(app): State<Arc<App>>, _: Query<Nothing>) -> Json<Messages> {
    Json(app.messages())
}

impl App {
    /// The node of this server, if it has one, and who is connected to it.
    pub(crate) fn messages(&self) -> Messages {
        let door = self.door.as_ref();
        door.map(|door| Messages::of(&door.node, SystemClock.now())).unwrap_or_default()
    }
}
