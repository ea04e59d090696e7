//! Why a run does not move now: a closed set, each reason with its data.

use crate::{Attempt, Failure, LimitKey, PlanId, RunId, Seq, StepId, TenantId, Timestamp, WorkflowName};
use std::fmt;

/// Why a run does not move now.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Wait {
    /// A step has failed and is tried again later.
    Backoff {
        /// The step.
        step: StepId,
        /// The attempt to come.
        attempt: Attempt,
        /// How many attempts there are in all.
        of: Attempt,
        /// When it is made.
        due_at: Timestamp,
        /// Why the attempt before it failed.
        failure: Failure,
    },
    /// The code sleeps.
    Timer {
        /// Until then.
        due_at: Timestamp,
    },
    /// The code waits to be told something.
    Signal {
        /// The signal's name.
        name: String,
        /// Until then at the most.
        until: Option<Timestamp>,
    },
    /// The code waits for a person's yes or no.
    Approval {
        /// The name of the signal that says it.
        name: String,
        /// Who may say it; everybody if it names nobody.
        roles: Vec<String>,
        /// Until then at the most.
        until: Option<Timestamp>,
    },
    /// Nobody knows whether that attempt happened; its probe or a person has to say.
    InDoubt {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: Attempt,
    },
    /// Nothing new is begun until somebody resumes it.
    Paused {
        /// Who wants that.
        by: Option<String>,
        /// Why.
        why: Option<String>,
        /// Since when.
        since: Timestamp,
    },
    /// It needs a slot before it begins.
    Slot {
        /// The limit.
        key: LimitKey,
        /// How many are to have one before it, itself included; nothing where that is not known.
        position: Option<usize>,
    },
    /// It needs its tenant's lock before it begins.
    Lock {
        /// Whose lock.
        tenant: TenantId,
        /// Who has it, where that is known.
        holder: Option<String>,
    },
    /// Its plan has not let it begin yet.
    Plan {
        /// The plan.
        plan: PlanId,
    },
    /// Another run, which it has started, has to end.
    Child {
        /// The child.
        run: RunId,
    },
    /// No code of that name is registered here.
    NoWorker {
        /// The workflow that is missing.
        workflow: WorkflowName,
        /// The version of its definition that is, by hash; nothing if it has none.
        version: Option<String>,
    },
    /// The code asks for something else than the journal holds.
    Mismatch {
        /// The event at which they part.
        at: Seq,
        /// What the journal holds.
        expected: String,
        /// What the code did.
        found: String,
    },
}

impl Wait {
    /// The public name of the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Wait::Backoff { .. } => "BACKOFF",
            Wait::Timer { .. } => "TIMER",
            Wait::Signal { .. } => "SIGNAL",
            Wait::Approval { .. } => "APPROVAL",
            Wait::InDoubt { .. } => "IN_DOUBT",
            Wait::Paused { .. } => "PAUSED",
            Wait::Slot { .. } => "SLOT",
            Wait::Lock { .. } => "LOCK",
            Wait::Plan { .. } => "PLAN",
            Wait::Child { .. } => "CHILD",
            Wait::NoWorker { .. } => "NO_WORKER",
            Wait::Mismatch { .. } => "MISMATCH",
        }
    }

    /// When it ends by itself, if it does.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self {
            Wait::Backoff { due_at, .. } | Wait::Timer { due_at } => Some(*due_at),
            Wait::Signal { until, .. } | Wait::Approval { until, .. } => *until,
            Wait::Paused { .. }
            | Wait::Slot { .. }
            | Wait::Lock { .. }
            | Wait::Plan { .. }
            | Wait::Child { .. }
            | Wait::InDoubt { .. }
            | Wait::NoWorker { .. }
            | Wait::Mismatch { .. } => None,
        }
    }
}

/// A sentence for people: what it waits for, and what they can do about it.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_the_most = |until: &Option<Timestamp>| until.map(|until| format!(", until {until} at the most")).unwrap_or_default();
        let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "somebody".into());
        let because = |why: &Option<String>| why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        match self {
            Wait::Backoff { step, attempt, of, due_at, failure } => {
                write!(f, "step {step} failed ({}) and is tried again at {due_at}: attempt {attempt} of {of}", failure.message)
            }
            Wait::Timer { due_at } => write!(f, "the code sleeps until {due_at}"),
            Wait::Signal { name, until } => write!(f, "the code waits for the signal {name:?}{}", at_the_most(until)),
            Wait::Approval { name, roles, until } => {
                let whose = if roles.is_empty() { "somebody".to_string() } else { format!("one who is {}", roles.join(" or ")) };
                write!(f, "{whose} has to approve {name:?}{}", at_the_most(until))
            }
            Wait::InDoubt { step, attempt } => {
                write!(f, "nobody knows whether attempt {attempt} of step {step} happened; somebody has to say so")
            }
            Wait::Paused { by, why, since } => write!(f, "paused by {} since {since}{}; resume it", named(by), because(why)),
            Wait::Slot { key, position: Some(position) } => write!(f, "it is number {position} in line for a slot of the limit {key}"),
            Wait::Slot { key, position: None } => write!(f, "it is in line for a slot of the limit {key}"),
            Wait::Lock { tenant, holder: Some(holder) } => write!(f, "the lock of tenant {tenant} is held by {holder}"),
            Wait::Lock { tenant, holder: None } => write!(f, "it needs the lock of tenant {tenant}"),
            Wait::Plan { plan } => write!(f, "its plan {plan} has not let it begin yet"),
            Wait::Child { run } => write!(f, "its child {run} has not ended"),
            Wait::NoWorker { workflow, version: None } => {
                write!(f, "nobody here has the code of workflow {workflow}; start a worker or an engine that has it")
            }
            Wait::NoWorker { workflow, version: Some(version) } => {
                write!(f, "nobody here has the version {version} of workflow {workflow}; start a worker or an engine that has it")
            }
            Wait::Mismatch { at, expected, found } => {
                write!(
                    f,
                    "the code does not fit the journal: event {at} is {expected}, but {found}; deploy code that fits, or retry the run"
                )
            }
        }
    }
}
