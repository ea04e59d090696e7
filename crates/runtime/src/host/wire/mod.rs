//! The host protocol between processes: the same messages as inside one, numbered and tolerant of what a later version adds.
//!
//! ```text
//!   worker: Hello (before the line, by whoever opens it)
//!   server: Welcome | Bye
//!   server: Open … More*   Tell   Ask        Beat (answers each beat of the worker)
//!   worker: Turn  Failed  Heartbeat  Blocked  Closed  GivenBack   Attempts   Room   Beat   Drain   Bye
//! ```
//!
//! Beats pass by all that waits, also in the middle of a long message: who has much to say does not seem dead for it.
//!
//! Entries of journals and events that a turn proposes travel in the form in which a store keeps them, and payloads as they are. What cannot be read ends the line.

mod bodies;
mod frames;
mod hello;
mod outbox;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use frames::Frames;
pub use hello::{Hello, Offer};
pub(crate) use outbox::Outbox;
pub(crate) use read::Reader;
pub(crate) use write::{put_down, put_up, weigh_down, weigh_up};

use super::{Opening, Says, SessionId, ToHost};
use std::time::Duration;
use steadfast_kernel::{Attempt, StepId, Timestamp};

/// The version of the protocol. It rises when one side would misunderstand the other.
pub(crate) const VERSION: u32 = 4;

/// The oldest version that is spoken with older workers, so that servers can be replaced before them. In it no turn says that it asks again, so all of it is recorded though its run is paused.
pub(crate) const VERSION_MIN: u32 = 3;

/// Why what the other side said cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub(crate) String);

/// What a server says to a worker.
#[derive(Debug)]
pub(crate) enum Down {
    /// The line stands, and these are its terms.
    Welcome(Welcome),
    /// Host a run.
    Open { session: SessionId, opening: Box<Opening> },
    /// A session is told something.
    Tell { session: SessionId, message: ToHost, now: Timestamp },
    /// Which attempts are being made?
    Ask { session: SessionId, question: u64 },
    /// That beat was heard.
    Beat { number: u64, now: Timestamp },
    /// The line is over.
    Bye { why: String, for_good: bool },
}

/// The terms of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// The version that is spoken: that of the worker.
    pub(crate) version: u32,
    /// How large a payload may be.
    pub(crate) payload_bytes_max: usize,
    /// How long a message to the server may be.
    pub(crate) message_bytes_max: usize,
    /// How often at most the heartbeats of one step are recorded.
    pub(crate) heartbeat_every: Duration,
    /// The server's time.
    pub(crate) now: Timestamp,
}

/// What a worker says to a server.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are reports, and none is kept")]
pub(crate) enum Up {
    /// A session says something.
    Report { session: SessionId, says: Says },
    /// These attempts are being made.
    Attempts { question: u64, attempts: Vec<(StepId, Attempt)> },
    /// It may be given so many runs, those that it has included; it hosts others for other servers.
    Room { runs: u32 },
    /// It is there.
    Beat { number: u64 },
    /// It is not to be given anything more.
    Drain,
    /// It goes. Unless it abandons what it hosts, nothing is left of that: whatever the server thinks that it has was never opened.
    Bye { abandons: bool },
}
