//! Bad input or an impossible request: answered, and leaves no trace.

use crate::plan::PlanStatus;
use crate::{KeyName, LetterId, PlanId, Revision, RouteName, RunId, Status, StepId, TaskStatus, TenantId, code};
use std::borrow::Cow;

/// Why a command was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Refusal {
    /// The id is taken by a run that is not the same.
    #[error("run {run} exists with another workflow or input; start it with another id, or ask for the result of this one")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// No such run.
    #[error("there is no run {run}")]
    RunNotFound {
        /// The id.
        run: RunId,
    },
    /// It is over.
    #[error("run {run} has ended")]
    Ended {
        /// The run.
        run: RunId,
    },
    /// Too many signals wait to be taken.
    #[error("run {run} has {max} signals that nobody has taken yet; send more when it has taken some")]
    TooManySignals {
        /// The run.
        run: RunId,
        /// How many may wait.
        max: usize,
    },
    /// An answer to a question that is not open, or has its answer.
    #[error("nobody asks run {run} about {name} now, or the answer is there already; an answer is not kept for a later question")]
    NotAsked {
        /// The run.
        run: RunId,
        /// The name of the answer.
        name: String,
    },
    /// Not in that status.
    #[error("run {run} is {}; {what_to_do}", status.as_str())]
    WrongStatus {
        /// The run.
        run: RunId,
        /// Where it stands.
        status: Status,
        /// What can be done instead.
        what_to_do: Cow<'static, str>,
    },
    /// Not in that status.
    #[error("task {task} is {}; {what_to_do}", status.as_str())]
    TaskStatus {
        /// The task.
        task: RunId,
        /// Where it stands.
        status: TaskStatus,
        /// What can be done instead.
        what_to_do: Cow<'static, str>,
    },
    /// There is no record of that step.
    #[error("run {run} has no record of a step {step}; steps are named as in its journal: BRANCH/NAME#OCCURRENCE")]
    StepNotFound {
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
    },
    /// No such letter.
    #[error(
        "there is no dead letter {letter} to be dealt with; it was redriven or dropped, is about what its run no longer knows, or never was"
    )]
    LetterNotFound {
        /// The letter.
        letter: LetterId,
    },
    /// A route has as many letters as it may have.
    #[error("route {route} has {max} dead letters, which is all it may have; redrive or drop some of them first")]
    TooManyLetters {
        /// The route.
        route: RouteName,
        /// How many there may be.
        max: usize,
    },
    /// The letters of a route are as long as they may be.
    #[error(
        "the dead letters of route {route} would have more than {max} bytes together, which is all they may have; redrive or drop some of them first"
    )]
    LettersTooLong {
        /// The route.
        route: RouteName,
        /// How many bytes they may have.
        max: u64,
    },
    /// No such key, or its time is over.
    #[error("there is no key {key}; it has expired, was deleted, or never was")]
    KeyNotFound {
        /// The key.
        key: KeyName,
    },
    /// It belongs to somebody else.
    #[error("key {key} belongs to another owner; only its owner may change, renew or delete it, and says so by naming itself")]
    KeyOwned {
        /// The key.
        key: KeyName,
    },
    /// Not that revision.
    #[error("key {key} {}; look at it again and decide anew", stands(*revision))]
    KeyChanged {
        /// The key.
        key: KeyName,
        /// What it has; nothing if there is none.
        revision: Option<Revision>,
    },
    /// Too many of its ends are still to be told.
    #[error(
        "key {key} has {max} ends or {bytes_max} bytes that nobody was told of yet, dead letters among them; see to those first, or use another name"
    )]
    TooManyEnds {
        /// The key.
        key: KeyName,
        /// How many there may be.
        max: usize,
        /// How many bytes they may have.
        bytes_max: usize,
    },
    /// The id is taken by a plan that is not the same.
    #[error("plan {plan} exists with another definition, other tenants or other settings; create it with another id, or look at this one")]
    PlanExists {
        /// The plan.
        plan: PlanId,
    },
    /// No such plan.
    #[error("there is no plan {plan}")]
    PlanNotFound {
        /// The id.
        plan: PlanId,
    },
    /// Not in that status.
    #[error("plan {plan} is {}; {what_to_do}", status.as_str())]
    PlanStatus {
        /// The plan.
        plan: PlanId,
        /// Where it stands.
        status: PlanStatus,
        /// What can be done instead.
        what_to_do: Cow<'static, str>,
    },
    /// Somebody else has the locks of some of its tenants.
    #[error("{}; wait for them, break those locks, leave those tenants out, or use `conflict: skip`", held(locked))]
    TenantsLocked {
        /// The plan.
        plan: PlanId,
        /// Whose locks, and who has them.
        locked: Vec<(TenantId, String)>,
    },
    /// Nobody has it.
    #[error("nobody has the lock of tenant {tenant}")]
    LockNotFound {
        /// Whose.
        tenant: TenantId,
    },
    /// A report about something that is no longer so.
    #[error("a report about run {run} is out of date: {why}")]
    Stale {
        /// The run.
        run: RunId,
        /// What it does not fit.
        why: String,
    },
}

fn stands(revision: Option<Revision>) -> String {
    revision.map_or_else(|| "does not exist".into(), |revision| format!("has revision {revision}"))
}

/// How many of them are named: a refusal is read by people.
const NAMED: usize = 10;

fn held(locked: &[(TenantId, String)]) -> String {
    let named: Vec<_> = locked
        .iter()
        .take(NAMED)
        .map(|(tenant, holder)| format!("tenant {tenant} is locked by {holder}"))
        .collect();
    let more = locked.len().saturating_sub(NAMED);
    named.join(", ") + &if more > 0 { format!(", and {more} more") } else { String::new() }
}

impl Refusal {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::RunExists { .. } => code::RUN_EXISTS,
            Refusal::RunNotFound { .. } => code::RUN_NOT_FOUND,
            Refusal::Ended { .. } => code::RUN_ENDED,
            Refusal::TooManySignals { .. } => code::TOO_MANY_SIGNALS,
            Refusal::NotAsked { .. } => code::NOT_ASKED,
            Refusal::Stale { .. } => code::STALE,
            Refusal::WrongStatus { .. } | Refusal::TaskStatus { .. } => code::WRONG_STATUS,
            Refusal::StepNotFound { .. } => code::STEP_NOT_FOUND,
            Refusal::LetterNotFound { .. } => code::LETTER_NOT_FOUND,
            Refusal::TooManyLetters { .. } | Refusal::LettersTooLong { .. } => code::TOO_MANY_LETTERS,
            Refusal::KeyNotFound { .. } => code::KEY_NOT_FOUND,
            Refusal::KeyOwned { .. } => code::KEY_OWNED,
            Refusal::KeyChanged { .. } => code::KEY_CHANGED,
            Refusal::TooManyEnds { .. } => code::TOO_MANY_ENDS,
            Refusal::PlanExists { .. } => code::PLAN_EXISTS,
            Refusal::PlanNotFound { .. } => code::PLAN_NOT_FOUND,
            Refusal::PlanStatus { .. } => code::PLAN_STATUS,
            Refusal::TenantsLocked { .. } => code::TENANTS_LOCKED,
            Refusal::LockNotFound { .. } => code::LOCK_NOT_FOUND,
        }
    }
}
