//! The run machine: one durable workflow, from its start to its end, and from one life to the next.
//!
//! `docs/machines.md` has every arrow; a file here has those of its command. [`decide`] is the way in. What it does not list is a [`Refusal`].
//! [`evolve`] is the fold: the same function live and at recovery; what it does not list is an
//! [`IllegalTransition`](crate::machine::IllegalTransition). [`script`] is what of a journal still counts after retries.

mod adopt;
mod cancel;
mod evolve;
mod fire_timer;
mod hear;
mod heartbeat;
mod interrupt;
mod order;
mod pause;
mod report_failure;
mod retry;
mod roll_back;
mod said;
mod script;
mod signal;
mod start;
mod state;
mod status;
mod steps;
mod task;
mod terminate;
mod turn;

pub use evolve::{advance, begin_with, evolve};
pub use retry::{Preview, preview, too_late};
pub use script::{script, script_from};
pub use signal::SIGNALS_MAX;
pub(crate) use start::is_same;
pub use state::{
    Await, Child, Deadline, Ended, Generations, How, Open, Past, Paused, Phase, RetryContext, Run, Settled, Sleep, Slots, Stage, Step, Verb,
};
pub use status::{Recover, Status};
pub use steps::{StepKind, StepStatus, StepView, Try, steps};
pub use task::{HandedOver, Task};

use crate::machine::Decision;
use crate::{Command, Entry, Event, Refusal, RunId, Seq, Timestamp};

/// Decides on a command: pure, and touches exactly this run. `state` is `None` where there is no run of that id yet.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(id: &RunId, state: Option<&Run>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match (state, command) {
        (None, Command::StartRun(command)) => Ok(start::begin(command, now)),
        (Some(run), Command::StartRun(command)) => start::repeat(run, &command),
        (state, Command::AdoptRun(command)) => adopt::decide(id, state, *command, now),
        (state, Command::Hear(envelope)) => Ok(hear::decide(id, state, *envelope, now)),
        (None, _) => Err(Refusal::RunNotFound { run: id.clone() }),
        (Some(run), Command::TakeTurn(command)) => turn::decide(run, command),
        (Some(run), Command::ReportFailure(command)) => report_failure::decide(run, command, now),
        (Some(run), Command::FireTimer(command)) => Ok(fire_timer::decide(run, &command, now)),
        (Some(run), Command::SendSignal(command)) => signal::decide(run, command, now),
        (Some(run), Command::CancelRun(command)) => cancel::decide(run, command, now),
        (Some(run), Command::TerminateRun(origin)) => terminate::decide(run, origin, now),
        (Some(run), Command::PauseRun(origin)) => pause::pause(run, origin, now),
        (Some(run), Command::ResumeRun(origin)) => pause::resume(run, origin, now),
        (Some(run), Command::RetryRun(command)) => retry::decide(run, command, now),
        (Some(run), Command::InterruptRun) => Ok(interrupt::decide(run, now)),
        (Some(run), Command::RecordHeartbeat(command)) => heartbeat::decide(run, command, now),
        (Some(run), Command::RollBackRun(origin)) => roll_back::decide(run, origin, now),
        (Some(run), Command::HandOverRun(command)) => adopt::hand_over(run, command, now),
        (
            Some(_),
            Command::DropLetter(_)
            | Command::RedriveLetter(_)
            | Command::AddLetter(_)
            | Command::FailLetter(_)
            | Command::PutKey(_)
            | Command::RenewKey(_)
            | Command::DeleteKey(_)
            | Command::ExpireKey(_)
            | Command::EndKey(_)
            | Command::ReportCallback(_)
            | Command::CreatePlan(_)
            | Command::OperatePlan(_)
            | Command::InterruptPlan
            | Command::BreakLock(_)
            | Command::BreakElsewhere { .. }
            | Command::Shared(_)
            | Command::SettleClaim(_)
            | Command::LoseLock { .. }
            | Command::AlertPlan { .. },
        ) => Ok(Decision::default()), // of other machines
    }
}

impl Run {
    fn entry(&self, offset: usize, at: Timestamp, in_flight: Option<u32>, event: Event) -> Entry {
        Entry { in_flight, ..Entry::new(self.seq + 1 + offset as Seq, self.epoch, at, event) }
    }
}
