//! What happens to a lock.

use super::Waiter;
use crate::{Lease, Origin, RunId, Seq, Timestamp};
use serde::{Deserialize, Serialize};

/// What happens to a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LockEvent {
    /// A task asks for it, and stands in line.
    Requested(Waiter),
    /// A task has it.
    Acquired(Lease),
    /// It is the same task's for longer.
    Renewed {
        /// Of this holding.
        fence: u64,
        /// Until then.
        expires_at: Timestamp,
        /// How far the task had come.
        seen: Seq,
    },
    /// Its holder is at work, as far as is known, and gives no sign of life: it is not renewed this time.
    Suspected {
        /// Of this holding.
        fence: u64,
    },
    /// A task does not need it any more, or no longer waits for it.
    Released {
        /// The task.
        task: RunId,
        /// Of this holding; nothing if it stood in line.
        fence: Option<u64>,
        /// Who has it: the task stood in line, does not wait for anybody, and is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// Its time was over, or somebody else has it by now.
    Lost {
        /// Of this holding.
        fence: u64,
        /// Who found that, and what; nobody if its time was over.
        #[serde(default, skip_serializing_if = "is_nobody")]
        origin: Origin,
    },
    /// A person took it away from a holder that this instance knows of only by hearsay.
    BrokenElsewhere {
        /// Who had it.
        holder: String,
        /// Who took it away, and why.
        origin: Origin,
    },
    /// A person took it away.
    Broken {
        /// Of this holding.
        fence: u64,
        /// Who, and why.
        origin: Origin,
    },
}

fn is_nobody(origin: &Origin) -> bool {
    *origin == Origin::default()
}

impl LockEvent {
    /// The stored and public type.
    pub fn kind(&self) -> &'static str {
        match self {
            LockEvent::Requested(_) => "LOCK_REQUESTED",
            LockEvent::Acquired(_) => "LOCK_ACQUIRED",
            LockEvent::Renewed { .. } => "LOCK_RENEWED",
            LockEvent::Suspected { .. } => "LOCK_SUSPECTED",
            LockEvent::Released { .. } => "LOCK_RELEASED",
            LockEvent::Lost { .. } => "LOCK_LOST",
            LockEvent::Broken { .. } | LockEvent::BrokenElsewhere { .. } => "LOCK_BROKEN",
        }
    }
}
