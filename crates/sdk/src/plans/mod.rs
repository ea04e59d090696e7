//! Plans: roll-outs over tenants, stage by stage, with checkpoints, tenant locks and a person who decides on retry. `define.rs` is the plan as code, `task.rs`
//! what a stage is given, `create.rs` and `handle.rs` what is done with a plan, `tenants.rs` what is done by tenant.

mod create;
mod define;
mod handle;
mod task;
mod tenants;

pub use create::CreatePlan;
pub use define::Plan;
pub use handle::{PlanHandle, PlanInfo, TaskInfo};
pub use task::Task;
