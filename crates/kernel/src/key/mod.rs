//! The key machine: a value with a time to live, an owner and a revision; and what is still to be told of its ends.
//!
//! ```text
//!   –, gone, held --PutKey----> held   KEY_PUT; before it KEY_EXPIRED, if the time of what was there is over
//!   held  --RenewKey----------> held   KEY_RENEWED
//!   held  --DeleteKey---------> gone   KEY_DELETED
//!   held  --ExpireKey---------> gone   KEY_EXPIRED | (another revision, or too early: no event)
//!   held  --EndKey------------> gone   KEY_EXPIRED | KEY_DELETED, as its directory | (put after that: no event)
//!   any   --ReportCallback----> same   CALLBACK_SETTLED | CALLBACK_FAILED, and another attempt | LETTER_ADDED
//!   any   --FireTimer---------> same   (the next attempt of a callback begins, or all is forgotten: no event)
//!   any   --RedriveLetter-----> same   LETTER_REDRIVEN, and the first attempt begins
//!   any   --DropLetter--------> same   LETTER_DROPPED
//! ```
//!
//! Expiry and callback are two things. At its time a key is removed by a commit that is guarded by its revision; in the same commit its callback becomes an
//! item of its own, `KEY/REVISION`, which lives until it is settled or a dead letter, whatever happens to a later key of that name.
//!
//! The journal of a key does not grow for ever: now and then a change says all there is to be known, and what came before is removed; of a key that is
//! gone nothing is kept once its callbacks are settled and a while has passed. Revisions never repeat for all that: they are given by the shard.

mod callback;
mod delete;
mod end;
mod evolve;
mod expire;
mod fire_timer;
mod letters;
mod put;
mod renew;
mod state;

pub use evolve::{advance, begin_with};
pub use state::{Below, Callback, Failed, Held, Key, Target};

use crate::machine::Decision;
use crate::{Answer, Command, KeyName, Refusal, Timestamp};

/// How many entries of a journal are kept at least, for those who follow it.
const KEPT: u64 = 64;

/// How many ends of a key may be owed, dead letters among them, before it takes another value: its state is read and written as a whole.
pub const OWED_MAX: usize = 1_000;

/// How many bytes of values they may have in all.
pub const OWED_BYTES_MAX: usize = 16 << 20;

/// Decides on a command.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(name: &KeyName, key: Option<&Key>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match command {
        Command::PutKey(command) => put::decide(name, key, command, now),
        Command::RenewKey(command) => renew::decide(name, key, &command, now),
        Command::DeleteKey(command) => delete::decide(name, key, &command, now),
        Command::ExpireKey(command) => Ok(key.map_or_else(not_found, |key| expire::decide(key, command, now))),
        Command::EndKey(command) => Ok(key.map_or_else(not_found, |key| end::decide(key, &command, now))),
        Command::ReportCallback(command) => Ok(key.map_or_else(not_found, |key| callback::decide(key, command, now))),
        Command::FireTimer(command) => Ok(key.map_or_else(not_found, |key| fire_timer::decide(key, &command, now))),
        Command::RedriveLetter(command) => letters::redrive(name, key, command, now),
        Command::DropLetter(command) => letters::throw_away(name, key, command, now),
        Command::StartRun(_)
        | Command::TakeTurn(_)
        | Command::ReportFailure(_)
        | Command::SendSignal(_)
        | Command::CancelRun(_)
        | Command::TerminateRun(_)
        | Command::PauseRun(_)
        | Command::ResumeRun(_)
        | Command::RetryRun(_)
        | Command::InterruptRun
        | Command::RecordHeartbeat(_)
        | Command::RollBackRun(_)
        | Command::CreatePlan(_)
        | Command::OperatePlan(_)
        | Command::InterruptPlan
        | Command::BreakLock(_)
        | Command::BreakElsewhere { .. }
        | Command::Shared(_)
        | Command::SettleClaim(_)
        | Command::LoseLock { .. }
        | Command::AdoptRun(_)
        | Command::HandOverRun(_)
        | Command::AlertPlan { .. }
        | Command::AddLetter(_)
        | Command::FailLetter(_)
        | Command::Hear(_) => Ok(Decision::answer(Answer::Heard)),
    }
}

fn not_found() -> Decision {
    Decision::answer(Answer::NotFound)
}
