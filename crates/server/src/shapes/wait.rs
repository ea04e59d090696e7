//! Why a run does not move now.

use super::{Failure, Time, step_name};
use serde::{Deserialize, Serialize};
use steadfast_kernel as kernel;
use utoipa::ToSchema;

/// Why a run does not move now: a closed set of reasons, each with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Wait)]
#[serde(tag = "reason", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Wait {
    /// A step has failed and is tried again later.
    #[serde(rename_all = "camelCase")]
    Backoff {
        /// The name of the step.
        step: String,
        /// Its place in the run.
        path: String,
        /// The attempt to come.
        attempt: u32,
        /// How many attempts there are in all.
        of: u32,
        /// When it is made.
        due_at: Time,
        /// Why the attempt before it failed.
        failure: Failure,
    },
    /// The code sleeps.
    #[serde(rename_all = "camelCase")]
    Timer {
        /// Until then.
        due_at: Time,
    },
    /// The code waits to be told something.
    Signal {
        /// The signal's name.
        name: String,
        /// Until then at the most.
        until: Option<Time>,
    },
    /// A person has to say yes or no.
    Approval {
        /// The name of the signal that says it, which is also the step's.
        name: String,
        /// Who may say it; everybody if it names nobody.
        roles: Vec<String>,
        /// Until then at the most.
        until: Option<Time>,
    },
    /// Nobody knows whether that attempt happened; its probe or a person has to say.
    InDoubt {
        /// The name of the step.
        step: String,
        /// Its place in the run.
        path: String,
        /// The attempt.
        attempt: u32,
    },
    /// Nothing new is begun until somebody resumes it.
    Paused {
        /// Who wants that.
        by: Option<String>,
        /// Why.
        why: Option<String>,
        /// Since when.
        since: Time,
    },
    /// It needs a slot before it begins.
    Slot {
        /// The limit.
        key: String,
        /// How many are to have one before it, itself included; nothing where that is not known.
        position: Option<u64>,
    },
    /// It needs its tenant's lock before it begins.
    #[serde(rename_all = "camelCase")]
    Lock {
        /// Whose lock.
        tenant_id: String,
        /// Who has it, `PLAN:TASK`; nothing where that is not known.
        holder: Option<String>,
    },
    /// Its plan has not let it begin yet.
    #[serde(rename_all = "camelCase")]
    Plan {
        /// The plan.
        plan_id: String,
    },
    /// Another run, which it has started, has to end.
    Child {
        /// The child.
        run: String,
    },
    /// No code of that name is registered here.
    NoWorker {
        /// The workflow that is missing.
        workflow: String,
        /// The version of its definition that is; nothing if it has none.
        version: Option<String>,
    },
    /// The code asks for something else than the journal holds.
    Mismatch {
        /// The event at which they part.
        at: u64,
        /// What the journal holds.
        expected: String,
        /// What the code did.
        found: String,
    },
}

impl Wait {
    /// The public names of the reasons.
    pub const REASONS: [&str; 12] =
        ["BACKOFF", "TIMER", "SIGNAL", "APPROVAL", "IN_DOUBT", "PAUSED", "SLOT", "LOCK", "PLAN", "CHILD", "NO_WORKER", "MISMATCH"];
}

impl From<&kernel::Wait> for Wait {
    fn from(wait: &kernel::Wait) -> Self {
        match wait {
            kernel::Wait::Backoff { step, attempt, of, due_at, failure } => {
                let (name, path) = (step_name(step).to_string(), step.to_string());
                Wait::Backoff { step: name, path, attempt: *attempt, of: *of, due_at: Time(*due_at), failure: failure.into() }
            }
            kernel::Wait::Timer { due_at } => Wait::Timer { due_at: Time(*due_at) },
            kernel::Wait::Signal { name, until } => Wait::Signal { name: name.clone(), until: until.map(Time) },
            kernel::Wait::Approval { name, roles, until } => {
                Wait::Approval { name: name.clone(), roles: roles.clone(), until: until.map(Time) }
            }
            kernel::Wait::InDoubt { step, attempt } => {
                Wait::InDoubt { step: step_name(step).into(), path: step.to_string(), attempt: *attempt }
            }
            kernel::Wait::Paused { by, why, since } => Wait::Paused { by: by.clone(), why: why.clone(), since: Time(*since) },
            kernel::Wait::Slot { key, position } => Wait::Slot { key: key.to_string(), position: position.map(|position| position as u64) },
            kernel::Wait::Lock { tenant, holder } => Wait::Lock { tenant_id: tenant.to_string(), holder: holder.clone() },
            kernel::Wait::Plan { plan } => Wait::Plan { plan_id: plan.to_string() },
            kernel::Wait::Child { run } => Wait::Child { run: run.to_string() },
            kernel::Wait::NoWorker { workflow, version } => Wait::NoWorker { workflow: workflow.to_string(), version: version.clone() },
            kernel::Wait::Mismatch { at, expected, found } => Wait::Mismatch { at: *at, expected: expected.clone(), found: found.clone() },
        }
    }
}
