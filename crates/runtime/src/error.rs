//! What an engine answers when it cannot do what was asked, by what the caller can do about it.

use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Code, EntityId, Failure, InstanceId, InvalidId, LetterId, Refusal, TenantId, code};
use steadfast_store::CommonsError;

/// Why a request was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be: it left no trace.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An id or name that is not allowed.
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    /// No workflow of that name is registered, and no worker has brought it.
    #[error("no workflow {name:?} is registered here; registered: {}", if known.is_empty() { "none".into() } else { known.join(", ") })]
    UnknownWorkflow {
        /// The name.
        name: String,
        /// The names that are, and those that workers bring or have brought.
        known: Vec<String>,
    },
    /// The workflow does not take that input.
    #[error("{why}")]
    InvalidInput {
        /// What is wrong with it.
        why: String,
    },
    /// Larger than allowed.
    #[error("the input has {bytes} bytes, at most {max} are allowed; keep large data elsewhere and pass its address")]
    PayloadTooLarge {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        max: usize,
    },
    /// A setting that cannot be.
    #[error("{0}")]
    InvalidSetting(String),
    /// A time to live that cannot be.
    #[error("a time to live must be more than nothing; a key that is to be gone at once need not be put")]
    InvalidTtl,
    /// Nobody can be called back so.
    #[error("nobody can be called back so: {why}")]
    CallbackNotAllowed {
        /// Why not, and what to do.
        why: String,
    },
    /// No plan of that name is known.
    #[error("no plan {name:?} is known here; known: {}", if known.is_empty() { "none".into() } else { known.join(", ") })]
    UnknownPlan {
        /// The name.
        name: String,
        /// The names that are.
        known: Vec<String>,
    },
    /// A plan that cannot be.
    #[error("{why}")]
    InvalidPlan {
        /// What is wrong with it.
        why: String,
    },
    /// That tenant has no task.
    #[error("tenant {tenant} has no task; no plan was made for it, or that was removed")]
    TaskNotFound {
        /// The tenant.
        tenant: TenantId,
    },
    /// Another instance has it.
    #[error("{what} is {}: ask there, or here once that instance is gone", whose(instance.as_ref()))]
    Elsewhere {
        /// What.
        what: String,
        /// Which; nothing if nobody has it.
        instance: Option<InstanceId>,
    },
    /// What instances share cannot be used.
    #[error("what instances share cannot be used now, so nothing was changed: {why}")]
    SharingAway {
        /// What was found.
        why: String,
    },
    /// There is something in a place of what instances share that none of them has put there.
    #[error("{key} holds something else than an instance would have put there, so nothing was changed: look who did, and remove it")]
    SharedForeign {
        /// Where.
        key: String,
    },
    /// A task of another instance has a definition that this one does not have.
    #[error(
        "this instance does not have the definition {name} of hash {hash}: give it the same definition as the instance that began the task"
    )]
    DefinitionNotHere {
        /// Its name.
        name: String,
        /// Which of that name.
        hash: String,
    },
    /// Somebody is trying that dead letter again just now.
    #[error("dead letter {letter} is being tried again just now; look at it when that is over")]
    LetterBusy {
        /// The letter.
        letter: LetterId,
    },
    /// A message was sent or handled again, and failed again.
    #[error("the message of dead letter {letter} was not delivered, and the letter is still there: {failure}")]
    NotDelivered {
        /// The letter.
        letter: LetterId,
        /// Why.
        failure: Failure,
    },
    /// Nobody here can send or handle messages again.
    #[error("dead letter {letter} is a message, and nothing here can send or handle messages; redrive it where that is done")]
    NoRedelivery {
        /// The letter.
        letter: LetterId,
    },
    /// Too much is waiting already.
    #[error("too much is waiting already ({what}); try again in {retry_after:?}")]
    Busy {
        /// Which limit was reached.
        what: &'static str,
        /// When to come back.
        retry_after: Duration,
    },
    /// The engine is stopping or has stopped.
    #[error("the engine is stopping or has stopped; what was started is kept and goes on after the next start")]
    Stopped,
    /// The store cannot write or read right now.
    #[error("the store cannot be used right now{}; nothing was changed, or it will show when asked again; try again in {retry_after:?}", why(source.as_deref()))]
    Unavailable {
        /// What the store said.
        #[source]
        source: Option<Arc<steadfast_store::Error>>,
        /// When to come back.
        retry_after: Duration,
    },
    /// The store will not be usable again for this process.
    #[error("the store cannot be used by this process any more")]
    Store(#[source] Arc<steadfast_store::Error>),
    /// The journal of a run says something that cannot be. The run is left as it is.
    #[error("{entity} is set aside, and nothing of it is changed: {why}")]
    JournalBroken {
        /// Whose journal.
        entity: EntityId,
        /// What does not fit.
        why: String,
    },
}

impl Error {
    /// The stable code; `docs/errors/` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Refused(refusal) => refusal.code(),
            Error::InvalidId(_) => code::INVALID_ID,
            Error::UnknownWorkflow { .. } => code::UNKNOWN_WORKFLOW,
            Error::InvalidInput { .. } => code::INVALID_INPUT,
            Error::PayloadTooLarge { .. } => code::PAYLOAD_TOO_LARGE,
            Error::InvalidSetting(_) => code::INVALID_SETTING,
            Error::InvalidTtl => code::INVALID_TTL,
            Error::CallbackNotAllowed { .. } => code::CALLBACK_NOT_ALLOWED,
            Error::UnknownPlan { .. } => code::UNKNOWN_PLAN,
            Error::InvalidPlan { .. } => code::INVALID_PLAN,
            Error::TaskNotFound { .. } => code::TASK_NOT_FOUND,
            Error::Elsewhere { .. } => code::ELSEWHERE,
            Error::SharingAway { .. } => code::SHARING_AWAY,
            Error::SharedForeign { .. } => code::SHARED_FOREIGN,
            Error::DefinitionNotHere { .. } => code::DEFINITION_NOT_HERE,
            Error::LetterBusy { .. } => code::LETTER_BUSY,
            Error::NotDelivered { .. } => code::NOT_DELIVERED,
            Error::NoRedelivery { .. } => code::NO_REDELIVERY,
            Error::Busy { .. } => code::BUSY,
            Error::Stopped => code::STOPPED,
            Error::Unavailable { source, .. } => source.as_ref().map_or(code::STORE_UNAVAILABLE, |source| source.code()),
            Error::Store(error) => error.code(),
            Error::JournalBroken { .. } => code::JOURNAL_BROKEN,
        }
    }

    /// True if the same request may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        self.retry_after().is_some()
    }

    /// When to come back, for what may pass.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Busy { retry_after, .. } | Error::Unavailable { retry_after, .. } => Some(*retry_after),
            Error::SharingAway { .. } => Some(SHARING_RETRY_AFTER),
            _ => None,
        }
    }

    /// The same as a failure of whoever asked: transient if it may pass, with the code that fits.
    pub fn to_failure(&self) -> Failure {
        let code = match self {
            Error::Refused(Refusal::TooManyLetters { .. } | Refusal::LettersTooLong { .. })
            | Error::PayloadTooLarge { .. }
            | Error::Busy { .. } => Code::ResourceExhausted,
            Error::NotDelivered { failure, .. } => return failure.clone(),
            Error::InvalidId(_) | Error::InvalidSetting(_) | Error::InvalidInput { .. } => Code::InvalidArgument,
            error if error.is_retryable() => Code::Unavailable,
            Error::Stopped => Code::Unavailable,
            Error::Refused(_) | Error::LetterBusy { .. } | Error::NoRedelivery { .. } => Code::FailedPrecondition,
            _ => Code::Internal,
        };
        Failure::new(code, self.to_string())
    }

    pub(crate) fn busy(what: &'static str) -> Self {
        Error::Busy { what, retry_after: BUSY_RETRY_AFTER }
    }

    pub(crate) fn from_store(error: impl Into<Arc<steadfast_store::Error>>) -> Self {
        let error = error.into();
        if error.is_retryable() { Error::Unavailable { source: Some(error), retry_after: STORE_RETRY_AFTER } } else { Error::Store(error) }
    }
}

impl From<CommonsError> for Error {
    fn from(error: CommonsError) -> Self {
        match error {
            CommonsError::Away { why } | CommonsError::Refused { why } => Error::SharingAway { why },
            CommonsError::Foreign { key } => Error::SharedForeign { key },
        }
    }
}

fn whose(instance: Option<&InstanceId>) -> String {
    instance.map_or_else(|| "nobody's".into(), |instance| format!("instance {instance}'s"))
}

/// What a person can see to, in a few words; the rest is in the source.
fn why(source: Option<&steadfast_store::Error>) -> &'static str {
    match source {
        Some(steadfast_store::Error::Full { .. }) => ", because the disk is full",
        Some(steadfast_store::Error::ReadOnly { .. }) => ", because the disk is read-only",
        _ => "",
    }
}

/// A store that hiccups is back within this; a store that is away longer is asked again at this pace.
pub(crate) const STORE_RETRY_AFTER: Duration = Duration::from_millis(100);

/// What is shared is tried again at this pace.
const SHARING_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A full queue empties quickly; whoever comes back after this usually gets in.
const BUSY_RETRY_AFTER: Duration = Duration::from_millis(50);
