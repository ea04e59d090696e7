//! Who renews a lease, and tells of its loss.
//!
//! ```text
//!   held --renewed in time--> held        held --its key is gone or somebody else's, its time is over, the engine stops, released--> lost
//! ```

use super::Lost;
use super::claim::{Claim, Renewed};
use crate::Error;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Revision, Timestamp};
use tokio::sync::watch;

/// How soon a store that is away is asked again, if it does not say so itself.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Where a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// It is held for certain before that: nobody else can have it yet.
    pub(super) until: Timestamp,
    /// The revision that its key had when somebody told us last.
    pub(super) revision: Revision,
    /// Why it is held no more. It is lost once, and never found again.
    pub(super) lost: Option<Lost>,
}

impl State {
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        self.lost.is_none() && now < self.until
    }

    /// True if that is news.
    pub(super) fn lose(&mut self, why: Lost) -> bool {
        let news = self.lost.is_none();
        self.lost.get_or_insert(why);
        news
    }
}

pub(super) struct Keeper {
    pub(super) claim: Arc<Claim>,
    pub(super) state: Arc<watch::Sender<State>>,
}

impl Keeper {
    /// Renews the lease until it is lost.
    pub(super) async fn run(self) {
        let why = loop {
            let State { until, .. } = *self.state.borrow();
            let renewal = tokio::select! {
                biased;
                renewal = self.renew() => renewal,
                () = self.over(until) => Err(Lost::Expired),
            };
            match renewal {
                Ok(next) => self.state.send_modify(|state| (state.until, state.revision) = (next.until, next.revision)),
                Err(why) => break why,
            }
        };
        self.state.send_if_modified(|state| state.lose(why));
    }

    /// Renews once, at a third of the time; again and again while the store is away.
    async fn renew(&self) -> Result<State, Lost> {
        let clock = &self.claim.engine.clock;
        clock.sleep(self.rest()).await;
        loop {
            let (asked_at, revision) = (self.claim.now(), self.state.borrow().revision);
            match self.claim.renew(revision).await {
                Ok(Renewed::To(revision)) => {
                    return Ok(State { until: asked_at.saturating_add(self.claim.ttl), revision, lost: None });
                }
                Ok(Renewed::Gone) => return Err(if self.is_over() { Lost::Expired } else { Lost::Taken }),
                Ok(Renewed::Taken) => return Err(Lost::Taken),
                Err(error) => clock.sleep(self.pause(&error)?).await,
            }
        }
    }

    /// How long until a third of the time is over.
    fn rest(&self) -> Duration {
        let left = self.state.borrow().until.saturating_since(self.claim.now());
        left.saturating_sub(self.claim.ttl - self.claim.ttl / 3)
    }

    /// How long to wait after store trouble.
    fn pause(&self, error: &Error) -> Result<Duration, Lost> {
        match error.retry_after() {
            Some(pause) => Ok(pause.max(Duration::from_millis(1)).min(self.claim.ttl / 10 + Duration::from_millis(1))),
            None if error.code() == steadfast_kernel::code::STOPPED => Err(Lost::Stopped),
            None => Ok(RETRY_AFTER), // what it is about is seen to elsewhere; until then the time runs
        }
    }

    fn is_over(&self) -> bool {
        self.claim.now() >= self.state.borrow().until
    }

    /// Ends when it is not held for certain any more. The clock may be set, or the machine may have slept, so it is looked at now and then.
    async fn over(&self, until: Timestamp) {
        let clock = &self.claim.engine.clock;
        loop {
            match until.saturating_since(self.claim.now()) {
                Duration::ZERO => return,
                left => clock.sleep(left.min(clock.steady_for())).await,
            }
        }
    }
}
