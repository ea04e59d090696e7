//! A worker: this process has the code of workflows and hosts runs for a server.
//!
//! It is the other end of `host/remote`. A session here is the same as one in the server's own process; only what it says and is told travels over a line.
//!
//! The server gives a worker's runs to others when it has not heard of it for a while, whether the line still stands or has ended. So a worker lets go of them before that by
//! itself: it says something three times as often, the server says which of that it has heard, and what counts is the time at which the worker *said* it. Whatever is lost or
//! late on the way, the server was silent for longer than the worker thinks, never for shorter. When the line ends it lets go of them at once; if it comes again after that,
//! or says goodbye, the server need not wait.

mod lease;
mod parted;
mod places;
mod serve;
mod time;

pub use parted::Parted;
pub use places::Places;

use super::wire::{Hello, VERSION};
use super::{Observer, Registry};
use crate::clock::{Clock, SystemClock};
use rand::TryRng;
use rand::rngs::SysRng;
use std::sync::Arc;
use std::time::Duration;

/// A process that hosts runs for a server.
#[derive(Clone)]
pub struct Worker {
    /// What it is called. It has to be the same after it has lost its line, and no other's: who comes with the name of another takes its place.
    pub name: String,
    /// Which process it is, by chance: what the server held back for the lines that it has lost, it may have at once when it comes again.
    pub process: u64,
    /// The workflows that it has the code of. Plans among them are left out: their tasks are carried out where the plan was made.
    pub registry: Registry,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who hears of attempts, for traces.
    pub observer: Option<Arc<dyn Observer>>,
    /// How many runs it hosts at once, over all lines that share its [`places`](Self::places).
    pub sessions_max: u32,
    /// What it hosts over all of its lines: a clone shares them, so that it can serve several servers with one limit.
    pub places: Places,
    /// How long it may be silent before the server gives its runs to others.
    pub heartbeat: Duration,
    /// How long it waits for attempts in flight when it drains.
    pub patience: Duration,
}

impl Worker {
    /// A worker of that name with that code, the machine's clock and limits that are safe for a small machine.
    pub fn new(name: impl Into<String>, registry: Registry) -> Self {
        Worker {
            name: name.into(),
            process: SysRng.try_next_u64().unwrap_or(0),
            registry,
            clock: Arc::new(SystemClock),
            observer: None,
            sessions_max: 1000,
            places: Places::default(),
            heartbeat: Duration::from_secs(15),
            patience: Duration::from_secs(30),
        }
    }

    /// What it says when it opens a line.
    pub fn hello(&self) -> Hello {
        let offers = Hello::offers(&self.registry);
        let (name, process) = (self.name.clone(), self.process);
        Hello { version: VERSION, name, process, offers, sessions_max: self.sessions_max, heartbeat: self.heartbeat }
    }
}
