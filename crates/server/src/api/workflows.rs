//! Workflows that can be started here.

use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::{PlanTerms, Workflow, Workflows, recovery};
use axum::Json;
use axum::extract::State;
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_kernel::{Recovery, WorkflowName};
use steadfast_runtime::host::Offer;
use steadfast_runtime::{PlanSpec, Registered};

/// Every workflow that can be started here, and every plan that can be created: registered by code, read from a definition, with its versions, or brought by workers.
#[utoipa::path(get, path = "/v1/workflows", operation_id = "workflows_list", tag = "workflows", responses(
    (status = 200, description = "In the order of their names.", body = Workflows),
    (status = 400, description = "A parameter cannot be understood."),
))]
pub(super) async fn list(State(app): State<Arc<App>>, _: Query<Nothing>) -> Json<Workflows> {
    Json(Workflows { items: app.workflows() })
}

impl App {
    /// Every workflow that can be started here, and every plan that can be created, in the order of their names.
    pub(crate) fn workflows(&self) -> Vec<Workflow> {
        let is_gone = |name: &str| self.catalogue.as_ref().is_some_and(|catalogue| catalogue.defines(name)); // unless it is described below
        let all = self.engine.workflows();
        let plans: BTreeMap<&str, &Registered> = all
            .iter()
            .filter(|(_, registered)| registered.is_plan)
            .map(|(name, registered)| (name.as_str(), registered))
            .collect();
        let registered = all
            .iter()
            .filter(|(name, _)| !is_gone(name.as_str()))
            .map(|(name, registered)| code(name, registered));
        let described = self.catalogue.iter().flat_map(|catalogue| catalogue.describe());
        let brought = self.engine.brought();
        let by_name: BTreeMap<String, Workflow> = brought
            .iter()
            .map(of_workers)
            .chain(registered)
            .chain(described)
            .map(|workflow| (workflow.name.clone(), workflow))
            .collect();
        let known = by_name.into_values().map(|workflow| match plans.get(workflow.name.as_str()) {
            Some(registered) => Workflow { kind: "plan".into(), plan: terms(registered), ..workflow },
            None => workflow,
        });
        known.collect()
    }
}

fn code(name: &WorkflowName, registered: &Registered) -> Workflow {
    plain(name, "code", registered.recovery, registered.slots)
}

fn of_workers(offer: &Offer) -> Workflow {
    plain(&offer.workflow, "worker", offer.recovery, offer.slots)
}

/// A workflow of which no more is known.
fn plain(name: &WorkflowName, source: &str, recovers: Recovery, slots: Option<u32>) -> Workflow {
    Workflow {
        name: name.to_string(),
        kind: "workflow".into(),
        source: source.into(),
        recovery: recovery(recovers).into(),
        slots,
        description: None,
        input: None,
        steps: Vec::new(),
        plan: None,
        versions: Vec::new(),
    }
}

/// What goes for plans that are created now.
fn terms(registered: &Registered) -> Option<PlanTerms> {
    let PlanSpec { stages, settings, .. } = registered.code.plan()?;
    Some(PlanTerms { stages, settings: (&settings).into() })
}
