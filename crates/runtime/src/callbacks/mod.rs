//! Callbacks: who is told of the end of a key, and how.
//!
//! The shard decides what is to be told, and what follows a failure; here are the ones who are told. `lanes.rs` keeps targets apart, so that a sick one delays no other,
//! `handlers.rs` has the handlers of this process, `caller.rs` is who can reach an address, and `courier.rs` makes one attempt.

mod caller;
mod courier;
mod handlers;
mod lanes;

pub use caller::{Call, Caller};
pub(crate) use courier::Courier;
pub use handlers::{Expired, Handler, Handlers};
pub(crate) use lanes::{Errand, How, Lane, Lanes};

use std::time::Duration;
use steadfast_kernel::{Jitter, Policy};

/// How callbacks are made.
#[derive(Clone, Debug)]
pub struct Callbacks {
    /// What follows a failed attempt.
    pub policy: Policy,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// How many attempts are made at once, per target. What waits for its turn takes little memory.
    pub in_flight_max: usize,
}

impl Default for Callbacks {
    /// 20 attempts, the first retry after a second, then twice as long each time up to five minutes, never sooner and up to half a second later: a target may be away for about
    /// an hour. An attempt may take ten seconds.
    fn default() -> Self {
        let policy = Policy::exponential(Duration::from_secs(1))
            .max_attempts(20)
            .max_delay(Duration::from_secs(300))
            .jitter(Jitter::Additive);
        Callbacks { policy, attempt_timeout: Duration::from_secs(10), in_flight_max: 64 }
    }
}

impl Callbacks {
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.policy.validate().map_err(|invalid| format!("the policy of callbacks: {invalid}"))?;
        if self.attempt_timeout.is_zero() {
            return Err("the time of a callback's attempt is 0; no attempt could succeed".into());
        }
        if self.in_flight_max == 0 {
            return Err("no callback may be in flight, which lets nothing through; it must be at least 1".into());
        }
        Ok(())
    }
}
