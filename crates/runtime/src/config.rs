//! The engine's limits. Every queue has one.
//!
//! Tested by `crates/sdk/tests/it/limits.rs`.

use crate::callbacks::Callbacks;
use crate::host::Workers;
use crate::retention::Retention;
use std::time::Duration;

/// The limits of an engine. The defaults are safe for one process on a small machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many requests may wait for the shard, and how many starts for their commit. One more is refused and told when to come back.
    pub requests_max: usize,
    /// How many runs may be held in memory with their code. Starting one more is refused until some have ended. Children are not: a run that waits for
    /// its child would wait for room that it takes up itself.
    pub runs_live_max: usize,
    /// How many runs that only wait are kept in memory with their code. Beyond that the one that was not touched for longest is let go, and is replayed from
    /// its journal when something arrives for it.
    pub runs_idle_max: usize,
    /// After how many events what a journal comes to is saved, so that a long one is not read from its beginning. Large states are saved less often.
    pub snapshot_every: usize,
    /// How large an input, a step's output or a result may be.
    pub payload_bytes_max: usize,
    /// How often at most the heartbeats of one step are recorded. Of those in between, a crash forgets what they said.
    pub heartbeat_every: Duration,
    /// How long a shutdown waits for attempts in flight. What is not done by then is done again after the next start.
    pub shutdown_grace: Duration,
    /// How long runs are kept after their end; for ever unless it says otherwise, because what is removed cannot be brought back.
    pub retention: Retention,
    /// How many timers that are due are handed out at once, before others have their turn.
    pub expire_batch: usize,
    /// How many timers that could not be dealt with before are handed out again at once.
    pub retry_batch: usize,
    /// How those who are to be told of the end of a key are told.
    pub callbacks: Callbacks,
    /// How long the journal of a key is kept after the key is gone and all was told, for those who follow it.
    pub keys_kept_for: Duration,
    /// What goes for workers: other processes that host runs for this one.
    pub workers: Workers,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            requests_max: 4096,
            runs_live_max: 100_000,
            runs_idle_max: 10_000,
            snapshot_every: 100,
            payload_bytes_max: 4 << 20,
            heartbeat_every: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(10),
            retention: Retention::default(),
            expire_batch: 50,
            retry_batch: 10,
            callbacks: Callbacks::default(),
            keys_kept_for: Duration::from_secs(60 * 60),
            workers: Workers::default(),
        }
    }
}

impl Config {
    /// Checks that every limit lets something through.
    ///
    /// # Errors
    /// Names the setting and what it must be.
    pub fn validate(&self) -> Result<(), String> {
        let limits = [
            ("requests_max", self.requests_max),
            ("runs_live_max", self.runs_live_max),
            ("snapshot_every", self.snapshot_every),
            ("payload_bytes_max", self.payload_bytes_max),
            ("expire_batch", self.expire_batch),
            ("retry_batch", self.retry_batch),
        ];
        match limits.into_iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Err(format!("{name} is 0, which lets nothing through; it must be at least 1")),
            None => self
                .retention
                .validate()
                .and_then(|()| self.callbacks.validate())
                .and_then(|()| self.workers.validate()),
        }
    }
}
