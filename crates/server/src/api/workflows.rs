//! Workflows that can be started here.

use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::{Workflow, Workflows, recovery};
use axum::Json;
use axum::extract::State;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every workflow that can be started here: registered by code, or read from a definition, with its versions.
#[utoipa::path(get, path = "/v1/workflows", tag = "workflows", responses(
    (status = 200, description = "In the order of their names.", body = Workflows),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn list(State(app): State<Arc<App>>, _: Query<Nothing>) -> Json<Workflows> {
    Json(Workflows { items: app.workflows() })
}

impl App {
    /// Every workflow that can be started here, in the order of their names.
    pub(crate) fn workflows(&self) -> Vec<Workflow> {
        let is_gone = |name: &str| self.catalogue.as_ref().is_some_and(|catalogue| catalogue.defines(name)); // unless it is described below
        let registered = self.engine.workflows().into_iter().filter(|(name, _)| !is_gone(name.as_str()));
        let registered = registered.map(|(name, registered)| Workflow {
            name: name.to_string(),
            source: "code".into(),
            recovery: recovery(registered.recovery).into(),
            slots: registered.slots,
            description: None,
            input: None,
            steps: Vec::new(),
            versions: Vec::new(),
        });
        let described = self.catalogue.iter().flat_map(|catalogue| catalogue.describe());
        let by_name: BTreeMap<String, Workflow> = registered.chain(described).map(|workflow| (workflow.name.clone(), workflow)).collect();
        by_name.into_values().collect()
    }
}
