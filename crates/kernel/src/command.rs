//! What is asked of an entity. Commands are imperatives; each has its own file, in the folder of its machine, that decides on it.

use crate::key::Target;
use crate::plan::PlanCreated;
use crate::random::Seed;
use crate::run::Verb;
use crate::{
    Attempt, Envelope, Epoch, Event, Failure, InstanceId, KeyName, Letter, LetterId, Origin, Payload, Policy, Revision, RunId, RunOptions,
    Seq, StepId, TenantId, TimerName, Timestamp, WorkflowName,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is asked of an entity. What others than its own shard's host, keeper and relay may ask can be carried to the instance that has the shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Begin a run, or find the one of that id.
    StartRun(StartRun),
    /// Record what a turn of the host delivered and proposed.
    #[serde(skip)]
    TakeTurn(TakeTurn),
    /// An attempt has failed: again, or enough?
    #[serde(skip)]
    ReportFailure(ReportFailure),
    /// A timer is due.
    #[serde(skip)]
    FireTimer(FireTimer),
    /// Tell the code something.
    SendSignal(SendSignal),
    /// Call the run off.
    CancelRun(CancelRun),
    /// End the run at once; nothing is undone.
    TerminateRun(Origin),
    /// Begin nothing new until the run is resumed.
    PauseRun(Origin),
    /// Go on with the time that was left.
    ResumeRun(Origin),
    /// Begin another life of the run.
    RetryRun(RetryRun),
    /// The run's process has died.
    #[serde(skip)]
    InterruptRun,
    /// Keep what an attempt says of how far it has come.
    #[serde(skip)]
    RecordHeartbeat(RecordHeartbeat),
    /// Undo what a task did.
    RollBackRun(Origin),
    /// Create a plan, or find the one of that id.
    CreatePlan(Box<CreatePlan>),
    /// Do something with a plan, because a person wants it.
    OperatePlan(OperatePlan),
    /// The plan's process has died.
    #[serde(skip)]
    InterruptPlan,
    /// Take a lock away from its holder.
    BreakLock(Origin),
    /// A person has taken a lock away from a holder of another instance.
    #[serde(skip)]
    BreakElsewhere {
        /// Who had it.
        holder: String,
        /// Who wants it, and why.
        origin: Origin,
    },
    /// Of a lock: the same, where the commons say who has it.
    #[serde(skip)]
    Shared(Box<Command>),
    /// The commons say who has a lock.
    #[serde(skip)]
    SettleClaim(SettleClaim),
    /// The commons say that a holding is over.
    #[serde(skip)]
    LoseLock {
        /// Of this holding.
        fence: u64,
        /// Who found that, and what.
        origin: Origin,
    },
    /// Take a task up that another instance began.
    #[serde(skip)]
    AdoptRun(Box<AdoptRun>),
    /// Another instance goes on with a task.
    #[serde(skip)]
    HandOverRun(HandOver),
    /// The commons are away, or are back: those who watch a plan have to know.
    #[serde(skip)]
    AlertPlan {
        /// They are away.
        degraded: bool,
        /// What was found, and what follows.
        why: String,
    },
    /// Hear what another entity says.
    #[serde(skip)]
    Hear(Box<Envelope>),
    /// Throw a dead letter away.
    DropLetter(DropLetter),
    /// Something that nobody will try again by itself is tried again: of a key, or of a message that was delivered after all.
    RedriveLetter(RedriveLetter),
    /// Of a route: keep a message that nobody will try again by itself.
    AddLetter(Box<Letter>),
    /// Of a route: a letter was tried again, and failed again.
    FailLetter(FailLetter),
    /// Give a key a value.
    PutKey(PutKey),
    /// Give a key another time.
    RenewKey(RenewKey),
    /// Remove a key.
    DeleteKey(DeleteKey),
    /// The time of a key is over.
    #[serde(skip)]
    ExpireKey(ExpireKey),
    /// The directory of a key has ended, and the key with it.
    EndKey(EndKey),
    /// An attempt to tell of an expiry is over.
    #[serde(skip)]
    ReportCallback(ReportCallback),
}

impl Command {
    /// Whether the same again is one, because it has an id or makes something that has: whoever does not know what became of it may ask again.
    pub fn is_one_again(&self) -> bool {
        match self {
            Command::StartRun(_) | Command::CreatePlan(_) => true,
            Command::SendSignal(signal) => signal.id.is_some(),
            Command::CancelRun(CancelRun { origin, .. })
            | Command::RetryRun(RetryRun { origin, .. })
            | Command::OperatePlan(OperatePlan { origin, .. })
            | Command::TerminateRun(origin)
            | Command::PauseRun(origin)
            | Command::ResumeRun(origin) => origin.command.is_some(),
            _ => false,
        }
    }
}

/// Begin a run, or find the one of that id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRun {
    /// Its id.
    pub run: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// What the code is given.
    pub input: Payload,
    /// Where its chance comes from.
    pub seed: Seed,
    /// How long it may take in all.
    pub deadline: Option<Duration>,
    /// What else is known of it.
    pub options: RunOptions,
}

/// Record what a turn of the host delivered and proposed: one list, one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct TakeTurn {
    /// The life of the run that the host knows.
    pub epoch: Epoch,
    /// What happened, in the order in which the future saw it. An end comes last.
    pub proposals: Vec<Proposal>,
    /// How many attempts are in flight once this turn is committed, as far as the host knows.
    pub in_flight: u32,
    /// Those of them that begin only once this turn is committed, and the run is not paused.
    pub asked: u32,
    /// Those of them whose failure was reported before and not yet answered: the engine knows which of them are to be retried.
    pub unanswered: Vec<(StepId, Attempt)>,
    /// What the code no longer waits for; a child is named as a sleep is.
    pub abandoned: Vec<TimerName>,
    /// The host asks once more for what was not recorded to begin because the run is paused. An older one does not, and begins it: then it has to be on record.
    pub asks_again: bool,
}

/// One thing that happened in a turn: an event to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// When the host delivered it.
    pub at: Timestamp,
    /// What the journal is to hold.
    pub event: Event,
}

/// An attempt has failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportFailure {
    /// The life of the run that the host knows.
    pub epoch: Epoch,
    /// The step.
    pub step: StepId,
    /// The attempt that failed; any other than the one to come is stale.
    pub attempt: Attempt,
    /// Why.
    pub failure: Failure,
    /// What the code wants to follow.
    pub policy: Policy,
    /// When the code asked for the step: the policy's deadline counts from here.
    pub asked_at: Timestamp,
    /// How many attempts of the run are still in flight, as far as the host knows.
    pub in_flight: u32,
    /// Those of them that begin only if the run is not paused.
    pub asked: u32,
    /// Those of them whose failure was reported before and not yet answered: the engine knows which of them are to be retried.
    pub unanswered: Vec<(StepId, Attempt)>,
    /// What the attempt said last of how far it had come.
    pub details: Option<Payload>,
}

/// A timer is due.
#[derive(Clone, Debug, PartialEq)]
pub struct FireTimer {
    /// Which.
    pub name: TimerName,
    /// As it was armed; another one means that it was replaced.
    pub revision: Seq,
}

/// Tell the code something. It is kept until the code asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendSignal {
    /// Its name.
    pub name: String,
    /// What it says.
    pub payload: Payload,
    /// What tells it from others: the same again is dropped.
    pub id: Option<String>,
    /// Who sends it.
    pub by: Option<String>,
    /// Why.
    pub why: Option<String>,
}

/// Call the run off: what it did is undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelRun {
    /// Who wants it, and why.
    pub origin: Origin,
    /// Its code cannot go on here, so nobody can put the end in its place.
    pub blocked: bool,
}

/// Begin another life of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RetryRun {
    /// Who wants it, and why.
    pub origin: Origin,
    /// Where it begins.
    pub from: RetryFrom,
    /// What the code is given instead of its input; then it begins from the start.
    pub input: Option<Payload>,
    /// Steps that are not executed, and what they are to have returned.
    pub outputs: Vec<(StepId, Payload)>,
    /// Its code cannot go on here: such a run counts as one that waits.
    pub blocked: bool,
    /// An attempt has begun after its delay, which is no event: such a run does not wait.
    pub in_flight: bool,
}

/// Where another life of a run begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum RetryFrom {
    /// At the step that it failed at, or where it stopped.
    #[default]
    Failed,
    /// At that step, child, wait or sleep, as if it had not been executed.
    Step(StepId),
    /// At several of them, side by side.
    Steps(Vec<StepId>),
    /// At the step of a dead letter, if the run has not got over it in the meantime.
    Letter {
        /// The letter.
        letter: LetterId,
        /// Its step.
        step: StepId,
        /// The number of the message that it came with, if it is in its box: if not, only the same command again is answered.
        number: Option<u64>,
    },
    /// From the start.
    Start,
}

/// Create a plan, or find the one of that id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreatePlan {
    /// What it is to be.
    #[serde(with = "with_input")]
    pub created: Box<PlanCreated>,
    /// Those of its tenants whose lock somebody else has, and who.
    pub locked: Vec<(TenantId, String)>,
}

/// A plan as it travels: a record has its input as its payload, and a command does not.
mod with_input {
    use super::PlanCreated;
    use crate::Payload;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(created: &PlanCreated, to: S) -> Result<S::Ok, S::Error> {
        (created, &created.input).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<PlanCreated>, D::Error> {
        let (created, input): (PlanCreated, Payload) = Deserialize::deserialize(from)?;
        Ok(Box::new(PlanCreated { input, ..created }))
    }
}

/// Do something with a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatePlan {
    /// What.
    pub verb: Verb,
    /// Who wants it, and why.
    pub origin: Origin,
    /// For a start: those of its tenants whose lock somebody else has, and who.
    pub locked: Vec<(TenantId, String)>,
}

/// The commons say who has a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleClaim {
    /// Who asked for it.
    pub task: RunId,
    /// The sequence of the event by which it asked.
    pub asked: Seq,
    /// What they say.
    pub claimed: Claimed,
}

/// What the commons say of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is the task's.
    Granted {
        /// The number of the holding; the next one if it was granted without the commons.
        fence: Option<u64>,
    },
    /// It is somebody else's.
    Held {
        /// Whose.
        holder: String,
    },
}

/// Take a task up that another instance began. It is interrupted then: what becomes of it is for the person to say who wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct AdoptRun {
    /// The task, as its plan would begin it.
    pub start: StartRun,
    /// Whose it was.
    pub from: Option<InstanceId>,
    /// Who wants it, and why.
    pub origin: Origin,
    /// When it first began.
    pub started_at: Option<Timestamp>,
    /// The number under which it is this instance's.
    pub fence: u64,
    /// For each stage that is done, in order, whether it can be undone.
    pub done: Vec<bool>,
    /// Some of it may be undone: nobody can go on from there, but what is left can be undone.
    pub half_undone: bool,
    /// What those stages have left.
    pub data: Payload,
    /// Its plan is not here: it begins when a person says so.
    pub alone: bool,
}

/// Another instance goes on with a task.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOver {
    /// Which; whoever wants it, if there is none.
    pub to: Option<InstanceId>,
    /// Who wants it or found it, and why.
    pub origin: Origin,
}

/// Keep what an attempt says of how far it has come.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordHeartbeat {
    /// The life of the run that the host knows.
    pub epoch: Epoch,
    /// The step.
    pub step: StepId,
    /// The attempt; any other than the one to come is stale.
    pub attempt: Attempt,
    /// What it says.
    pub details: Payload,
}

/// Throw a dead letter away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropLetter {
    /// The sequence of its arrival.
    pub letter: Seq,
    /// Who, and why.
    pub origin: Origin,
}

/// A letter was tried again, and failed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailLetter {
    /// The sequence of its arrival.
    pub letter: Seq,
    /// Why.
    pub failure: Failure,
}

/// Something that nobody will try again by itself is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RedriveLetter {
    /// The sequence of its arrival.
    pub letter: Seq,
    /// Who wants it, and why.
    pub origin: Origin,
}

/// Give a key a value, a time to live, and what is to happen at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PutKey {
    /// What number this change has if it happens: higher than that of every change before it, also of a key that is gone.
    pub revision: Revision,
    /// Its value.
    pub value: Payload,
    /// For how long it lives.
    pub ttl: Duration,
    /// Who may change it; everybody if there is none.
    pub owner: Option<String>,
    /// The keys below it end with it.
    pub directory: bool,
    /// Who is told of its expiry.
    pub on_expire: Option<Target>,
    /// Only if that is its revision; 0 if there is to be no such key.
    pub if_revision: Option<Revision>,
    /// The process has a handler for its expiry.
    pub handled: bool,
}

/// Give a key another time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewKey {
    /// What number this change has if it happens.
    pub revision: Revision,
    /// For how long it lives from now on.
    pub ttl: Duration,
    /// Who asks for it.
    pub owner: Option<String>,
    /// Only if that is its revision.
    pub if_revision: Option<Revision>,
}

/// Remove a key. Nobody is called back for that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteKey {
    /// Who asks for it.
    pub owner: Option<String>,
    /// Only if that is its revision.
    pub if_revision: Option<Revision>,
}

/// The time of a key is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpireKey {
    /// The revision whose time it is; another one means that the key was changed or made anew.
    pub revision: Revision,
    /// The process has a handler for it.
    pub handled: bool,
}

/// The directory of a key has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndKey {
    /// The directory.
    pub directory: KeyName,
    /// When it ended; what was put after that is not concerned.
    pub ended_at: Timestamp,
    /// It was removed; it expired if not.
    pub deleted: bool,
    /// The process has a handler for the key's expiry.
    pub handled: bool,
}

/// An attempt to tell of an expiry is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportCallback {
    /// The revision that expired.
    pub revision: Revision,
    /// The attempt; any other than the one to come is stale.
    pub attempt: Attempt,
    /// How it went; the run, if one was started.
    pub outcome: Result<Option<RunId>, Failure>,
    /// What follows a failure.
    pub policy: Policy,
}
