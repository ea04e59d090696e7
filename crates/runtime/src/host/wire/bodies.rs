//! The messages as they travel. Numbers are for ever; a field that falls out of use keeps its number, and one that is not known is passed over.

use bytes::Bytes;
use prost::{Message, Oneof};

/// What a server says.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DownBody {
    #[prost(oneof = "DownKind", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(super) kind: Option<DownKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum DownKind {
    #[prost(message, tag = "1")]
    Welcome(WelcomeBody),
    #[prost(message, tag = "2")]
    Open(OpenBody),
    #[prost(message, tag = "3")]
    More(MoreBody),
    #[prost(message, tag = "4")]
    Tell(TellBody),
    #[prost(message, tag = "5")]
    Ask(AskBody),
    #[prost(message, tag = "6")]
    Beat(BeatBody),
    #[prost(message, tag = "7")]
    Bye(ByeBody),
}

/// What a worker says.
#[derive(Clone, PartialEq, Message)]
pub(super) struct UpBody {
    #[prost(oneof = "UpKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")]
    pub(super) kind: Option<UpKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum UpKind {
    #[prost(message, tag = "1")]
    Turn(TurnBody),
    #[prost(message, tag = "2")]
    Failed(FailedBody),
    #[prost(message, tag = "3")]
    Heartbeat(HeartbeatBody),
    #[prost(message, tag = "4")]
    Blocked(BlockedBody),
    /// The session.
    #[prost(uint64, tag = "5")]
    Closed(u64),
    #[prost(message, tag = "6")]
    Attempts(AttemptsBody),
    /// Its number.
    #[prost(uint64, tag = "7")]
    Beat(u64),
    #[prost(bool, tag = "8")]
    Drain(bool),
    #[prost(bool, tag = "9")]
    Bye(bool),
    /// The session.
    #[prost(uint64, tag = "10")]
    GivenBack(u64),
    /// How many runs.
    #[prost(uint32, tag = "11")]
    Room(u32),
}

/// Who a worker is and what it brings.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HelloBody {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) offers: Vec<OfferBody>,
    #[prost(uint32, tag = "4")]
    pub(super) sessions_max: u32,
    #[prost(uint64, tag = "5")]
    pub(super) heartbeat_us: u64,
    #[prost(fixed64, tag = "6")]
    pub(super) process: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OfferBody {
    #[prost(string, tag = "1")]
    pub(super) workflow: String,
    #[prost(bool, tag = "2")]
    pub(super) manual: bool,
    #[prost(uint32, optional, tag = "3")]
    pub(super) slots: Option<u32>,
    /// It has only these versions of its definition.
    #[prost(message, optional, tag = "4")]
    pub(super) versions: Option<VersionsBody>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionsBody {
    #[prost(string, repeated, tag = "1")]
    pub(super) hashes: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WelcomeBody {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(uint64, tag = "2")]
    pub(super) payload_bytes_max: u64,
    #[prost(uint64, tag = "3")]
    pub(super) message_bytes_max: u64,
    #[prost(uint64, tag = "4")]
    pub(super) heartbeat_every_us: u64,
    #[prost(int64, tag = "5")]
    pub(super) now: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OpenBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(string, tag = "2")]
    pub(super) run: String,
    #[prost(string, tag = "3")]
    pub(super) workflow: String,
    #[prost(string, optional, tag = "4")]
    pub(super) definition: Option<String>,
    #[prost(uint32, tag = "5")]
    pub(super) epoch: u32,
    #[prost(uint32, tag = "6")]
    pub(super) generation: u32,
    #[prost(message, repeated, tag = "7")]
    pub(super) generations: Vec<AttemptBody>,
    #[prost(bool, tag = "8")]
    pub(super) paused: bool,
    #[prost(int64, optional, tag = "9")]
    pub(super) retried_at: Option<i64>,
    #[prost(uint64, tag = "10")]
    pub(super) retried_seq: u64,
    #[prost(uint64, tag = "11")]
    pub(super) unsure_until: u64,
}

/// What belongs to the opening of a session, in parts, so that no message is as long as a journal.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MoreBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(message, repeated, tag = "2")]
    pub(super) script: Vec<RecordBody>,
    #[prost(message, repeated, tag = "3")]
    pub(super) supplied: Vec<NamedBody>,
    #[prost(message, repeated, tag = "4")]
    pub(super) details: Vec<NamedBody>,
    #[prost(bool, tag = "5")]
    pub(super) last: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TellBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(oneof = "TellKind", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17")]
    pub(super) kind: Option<TellKind>,
    #[prost(int64, tag = "16")]
    pub(super) now_us: i64,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum TellKind {
    #[prost(bool, tag = "2")]
    TurnTaken(bool),
    #[prost(string, tag = "3")]
    RetryScheduled(String),
    #[prost(bool, tag = "4")]
    SayTurnAgain(bool),
    #[prost(string, tag = "5")]
    SayFailureAgain(String),
    #[prost(message, tag = "6")]
    StartAttempt(AttemptBody),
    #[prost(message, tag = "7")]
    StepFailed(StepFailedBody),
    #[prost(string, tag = "8")]
    TimerFired(String),
    #[prost(message, tag = "9")]
    SignalReceived(SignalBody),
    #[prost(message, tag = "10")]
    ChildEnded(ChildEndedBody),
    #[prost(message, tag = "11")]
    Stopped(StoppedBody),
    #[prost(bool, tag = "12")]
    Pause(bool),
    #[prost(bool, tag = "13")]
    Resume(bool),
    #[prost(bool, tag = "14")]
    Leave(bool),
    /// True: end when nothing is in flight; false: at once.
    #[prost(bool, tag = "15")]
    End(bool),
    #[prost(bool, tag = "17")]
    GoOn(bool),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StepFailedBody {
    #[prost(string, tag = "1")]
    pub(super) step: String,
    #[prost(uint32, tag = "2")]
    pub(super) attempt: u32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) failure: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SignalBody {
    #[prost(uint64, tag = "1")]
    pub(super) signal: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, optional, tag = "3")]
    pub(super) payload: Option<PayloadBody>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ChildEndedBody {
    #[prost(string, tag = "1")]
    pub(super) child: String,
    #[prost(message, optional, tag = "2")]
    pub(super) output: Option<PayloadBody>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) failure: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoppedBody {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) failure: Option<Bytes>,
    #[prost(bool, tag = "2")]
    pub(super) undo: bool,
}

/// Which attempts are being made?
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct AskBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(uint64, tag = "2")]
    pub(super) question: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct BeatBody {
    #[prost(uint64, tag = "1")]
    pub(super) number: u64,
    #[prost(int64, tag = "2")]
    pub(super) now: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ByeBody {
    #[prost(string, tag = "1")]
    pub(super) why: String,
    #[prost(bool, tag = "2")]
    pub(super) for_good: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TurnBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(uint32, tag = "2")]
    pub(super) epoch: u32,
    /// Each of them a [`RecordBody`], which is read alone: an empty one has two bytes on its way, and two hundred when it is read.
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(super) proposals: Vec<Bytes>,
    #[prost(uint32, tag = "4")]
    pub(super) in_flight: u32,
    #[prost(uint32, tag = "5")]
    pub(super) asked: u32,
    #[prost(message, repeated, tag = "6")]
    pub(super) unanswered: Vec<AttemptBody>,
    #[prost(string, repeated, tag = "7")]
    pub(super) abandoned: Vec<String>,
    /// Not said before version 4 of the protocol.
    #[prost(bool, tag = "8")]
    pub(super) asks_again: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FailedBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(uint32, tag = "2")]
    pub(super) epoch: u32,
    #[prost(string, tag = "3")]
    pub(super) step: String,
    #[prost(uint32, tag = "4")]
    pub(super) attempt: u32,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) failure: Bytes,
    #[prost(bytes = "bytes", tag = "6")]
    pub(super) policy: Bytes,
    #[prost(int64, tag = "7")]
    pub(super) asked_at: i64,
    #[prost(uint32, tag = "8")]
    pub(super) in_flight: u32,
    #[prost(uint32, tag = "9")]
    pub(super) asked: u32,
    #[prost(message, repeated, tag = "10")]
    pub(super) unanswered: Vec<AttemptBody>,
    #[prost(message, optional, tag = "11")]
    pub(super) details: Option<PayloadBody>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeartbeatBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(uint32, tag = "2")]
    pub(super) epoch: u32,
    #[prost(string, tag = "3")]
    pub(super) step: String,
    #[prost(uint32, tag = "4")]
    pub(super) attempt: u32,
    #[prost(message, optional, tag = "5")]
    pub(super) details: Option<PayloadBody>,
}

/// Code and journal do not fit, or, with a workflow, the code is not there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockedBody {
    #[prost(uint64, tag = "1")]
    pub(super) session: u64,
    #[prost(uint64, tag = "2")]
    pub(super) at: u64,
    #[prost(string, tag = "3")]
    pub(super) expected: String,
    #[prost(string, tag = "4")]
    pub(super) found: String,
    #[prost(string, optional, tag = "5")]
    pub(super) workflow: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub(super) version: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AttemptsBody {
    #[prost(uint64, tag = "1")]
    pub(super) question: u64,
    #[prost(message, repeated, tag = "2")]
    pub(super) attempts: Vec<AttemptBody>,
}

/// A step and a number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttemptBody {
    #[prost(string, tag = "1")]
    pub(super) step: String,
    #[prost(uint32, tag = "2")]
    pub(super) attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedBody {
    #[prost(string, tag = "1")]
    pub(super) step: String,
    #[prost(message, optional, tag = "2")]
    pub(super) payload: Option<PayloadBody>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PayloadBody {
    #[prost(string, tag = "1")]
    pub(super) encoding: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) bytes: Bytes,
}

/// A kernel record, as a store keeps it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordBody {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(uint32, tag = "2")]
    pub(super) epoch: u32,
    #[prost(string, tag = "3")]
    pub(super) kind: String,
    #[prost(int64, tag = "4")]
    pub(super) at: i64,
    #[prost(string, optional, tag = "5")]
    pub(super) subject: Option<String>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) attempt: Option<u32>,
    #[prost(uint64, optional, tag = "7")]
    pub(super) backoff_ms: Option<u64>,
    #[prost(string, optional, tag = "8")]
    pub(super) reason: Option<String>,
    #[prost(message, optional, tag = "9")]
    pub(super) payload: Option<PayloadBody>,
    #[prost(bytes = "bytes", tag = "10")]
    pub(super) body: Bytes,
}
