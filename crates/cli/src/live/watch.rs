//! When to look at a run or a plan again: when the change feed says so, or after a while if there is no feed.

use crate::client::{Client, Feed};
use crate::output::time;
use std::time::Duration;

/// How often to look if there is no feed.
const POLL: Duration = Duration::from_secs(1);
/// Before a feed that broke off is connected again.
const PAUSE: Duration = Duration::from_millis(200);
/// What changes together in a run is looked at once.
const TOGETHER: Duration = Duration::from_millis(30);
/// A plan with many tasks always changes; to look at it is more work.
const TOGETHER_IN_PLANS: Duration = Duration::from_millis(250);

/// Watches a run, or a plan with its tasks.
pub(crate) struct Watch {
    feed: Feed,
    connected: bool,
    together: Duration,
}

impl Watch {
    pub(crate) fn new(client: &Client, run: &str) -> Self {
        Watch { feed: Feed::of_run(client, run), connected: false, together: TOGETHER }
    }

    pub(crate) fn of_plan(client: &Client, plan: &str) -> Self {
        Watch { feed: Feed::of_plan(client, plan), connected: false, together: TOGETHER_IN_PLANS }
    }

    /// Connects to the feed if it can. Who looks after this misses nothing that happens later.
    pub(crate) async fn connect(&mut self) {
        if !self.connected {
            self.connected = self.feed.connect().await.is_ok();
        }
    }

    /// Waits until something may have changed, that long at the most. False if nothing has.
    pub(crate) async fn changed(&mut self, at_most: Duration) -> bool {
        if !self.connected {
            time::pass(at_most.min(POLL)).await;
            return true; // nobody knows
        }
        tokio::select! {
            biased;
            change = self.feed.next() => self.connected = change.is_some(),
            () = time::pass(at_most) => return false,
        }
        if !self.connected {
            time::pass(at_most.min(PAUSE)).await;
            return true; // something may have been missed
        }
        let rest = async { while self.feed.next().await.is_some() {} };
        let _more_may_come = tokio::time::timeout(self.together, rest).await;
        true
    }
}
