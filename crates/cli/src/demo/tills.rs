//! Branches that get another till: a plan, one of whose tenants fails.

use crate::error::Error;
use steadfast_kernel::run::Verb;
use steadfast_kernel::{Origin, Payload, PlanId, PlanStatus};
use steadfast_runtime::{CreatePlan, Engine};

/// The plan, and what there is to see of it.
pub(super) const PLAN: &str = "demo/switch";
pub(super) const SHOWS: &str = "five branches, two at once; oslo cannot be verified at first, and waits for a person";

const BRANCHES: [&str; 5] = ["cairo", "lima", "oslo", "delhi", "tunis"];

/// Creates the plan and starts it, unless it is there from the last time.
///
/// # Errors
/// If it cannot be created or started.
pub(super) async fn begin(engine: &Engine) -> Result<(), Error> {
    let cannot = |error: &(dyn std::error::Error + 'static)| Error::failed("cannot begin the plan of the demonstration", error);
    let id = PlanId::new(PLAN).map_err(|error| cannot(&error))?;
    if engine.plan(&id).await.is_err() {
        let plan = CreatePlan {
            definition: "switch".into(),
            tenants: BRANCHES.iter().map(ToString::to_string).collect(),
            id: Some(PLAN.into()),
            input: Payload::json("{}"),
            max_concurrency: None,
            origin: Origin::default(),
        };
        engine.create_plan(plan).await.map_err(|error| cannot(&error))?;
    }
    if engine.plan(&id).await.map_err(|error| cannot(&error))?.status() == PlanStatus::Ready {
        engine.operate_plan(&id, Verb::Start, Origin::default()).await.map_err(|error| cannot(&error))?;
    }
    Ok(())
}
