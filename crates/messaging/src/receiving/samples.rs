//! The samples of one route: the newest win, one after the other.

use super::route::{Incoming, SampleHandler};
use crate::newest::Newest;
use crate::time;
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How long a handler has for one sample: newer ones wait for it.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Samples {
    handler: SampleHandler,
    state: Mutex<State>,
}

struct State {
    waiting: Newest<Incoming>,
    running: bool,
}

impl Samples {
    pub(crate) fn new(handler: SampleHandler, waiting: Newest<Incoming>) -> Self {
        Samples { handler, state: Mutex::new(State { waiting, running: false }) }
    }

    /// Deals with a sample when its turn comes, unless too many newer ones come before that.
    pub(crate) fn take(self: &Arc<Self>, sample: Incoming) {
        let mut state = self.state.lock();
        let bytes = sample.payload.len();
        state.waiting.push(sample, bytes);
        if !std::mem::replace(&mut state.running, true) {
            drop(state);
            tokio::spawn(Arc::clone(self).work());
        }
    }

    async fn work(self: Arc<Self>) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.waiting.pop();
                state.running = next.is_some();
                next
            };
            let Some(sample) = next else { return };
            let ends_at = time::after(TIMEOUT);
            let handled = AssertUnwindSafe(async { (self.handler)(Incoming { ends_at, ..sample }).await });
            match tokio::time::timeout_at(ends_at, handled.catch_unwind()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::warn!("a handler of samples panicked"),
                Err(_) => tracing::warn!("a handler of samples did not end in time"),
            }
        }
    }
}
