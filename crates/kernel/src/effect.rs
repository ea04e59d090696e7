//! What is to be done once the events are durable. Effects may be lost in a crash and are then derived again from state.

use crate::{Attempt, Envelope, Failure, Payload, Revision, Seq, StepId, Timer, TimerName, Timestamp};

/// What is to be done after the commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Keep this timer; it replaces one of the same name. The row is part of the commit, the keeper hears of it afterwards.
    Arm(Timer),
    /// Forget this timer.
    Disarm(TimerName),
    /// Give the run, which has only just begun, to a host that has its code.
    Open,
    /// Give the run to a host that has its code, from its journal.
    Host,
    /// Tell the host to begin nothing new.
    Pause,
    /// Tell the host to go on.
    Resume,
    /// What was heard cannot be: the one who said it has to hear this before it is settled.
    Bounce(Box<Envelope>),
    /// Start that attempt.
    StartAttempt {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: Attempt,
    },
    /// Hand a completion to the host, which delivers it in its next turn.
    Deliver(Completion),
    /// Take the run away from its host: nothing it does counts any more.
    Close,
    /// Tell of that expiry.
    CallBack {
        /// The revision that expired.
        revision: Revision,
        /// The attempt.
        attempt: Attempt,
    },
    /// Nothing of the key has to be known any more: forget it after a while, by a timer of this revision.
    Retire(Seq),
    /// Remove the journal before that entry; it is not needed to know the state. Part of the commit.
    Shorten(Seq),
    /// Remove everything there is of the entity. Part of the commit.
    Forget,
    /// Tell the one who asked.
    Answer(Answer),
    /// Tell those who wait for the result.
    AnnounceEnd,
}

/// Something that the code of a run is told and that did not come from the code's own attempts.
#[derive(Clone, Debug, PartialEq)]
pub enum Completion {
    /// A step has failed for good.
    StepFailed {
        /// The step.
        step: StepId,
        /// Its last attempt.
        attempt: Attempt,
        /// Why.
        failure: Failure,
    },
    /// A sleep, or the wait for a signal, is over.
    TimerFired {
        /// The sleep or wait.
        sleep: StepId,
    },
    /// A signal has arrived.
    SignalReceived {
        /// The sequence of its arrival.
        signal: Seq,
        /// Its name.
        name: String,
        /// What it says.
        payload: Payload,
    },
    /// A child has ended.
    ChildEnded {
        /// What the code knows it by.
        child: StepId,
        /// How.
        outcome: Result<Payload, Failure>,
    },
    /// The run is to end: called off, or out of time.
    Stopped {
        /// Why; nothing if it was called off.
        failure: Option<Failure>,
        /// Of a task: what it did is to be undone.
        undo: bool,
    },
}

/// What the one who asked is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Answer {
    /// The run has begun.
    Created,
    /// There was this run already, with the same workflow and input.
    Exists,
    /// The turn is recorded: what it asked for may begin.
    TurnTaken,
    /// The failure is recorded and the next attempt has its time.
    RetryScheduled,
    /// The signal is on record.
    SignalReceived,
    /// A signal of that id is on record already.
    SignalKnown,
    /// It is on record that the run is to be called off.
    CancelRequested,
    /// The timer is gone or was replaced.
    Superseded,
    /// It is on record that the run has ended.
    Terminated,
    /// It is on record that the run begins nothing new.
    Paused,
    /// It is on record that the run goes on.
    Resumed,
    /// Another life of the run has begun.
    Retried,
    /// It is on record that the run does not go on by itself, or it does.
    Interrupted,
    /// What the attempt says is on record.
    HeartbeatRecorded,
    /// What another entity said is on record, or is of no concern.
    Heard,
    /// The letter is gone.
    Dropped,
    /// The letter is tried again.
    Redriven,
    /// The letter is there.
    Kept {
        /// The sequence of its arrival.
        letter: Seq,
    },
    /// It is on record what is wanted of the plan.
    Operated,
    /// It is on record that what the task did is undone.
    RollingBack,
    /// It is on record that another instance goes on with the task.
    HandedOver,
    /// The lock is not its holder's any more.
    Broken,
    /// The key has its value.
    Put {
        /// Its revision.
        revision: Revision,
        /// Until then.
        expires_at: Timestamp,
    },
    /// The key has its time.
    Renewed {
        /// Its revision.
        revision: Revision,
        /// Until then.
        expires_at: Timestamp,
    },
    /// The key is gone.
    Deleted {
        /// The revision that is gone.
        revision: Revision,
    },
    /// The key has expired.
    Expired,
    /// There is no such key, or no such callback.
    NotFound,
    /// The key was changed or made anew, or the attempt is not the one to come.
    Mismatch,
    /// What became of the callback is on record.
    Reported,
}
