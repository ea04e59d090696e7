//! The samples of one route: the newest win, one after the other.

use super::route::{Incoming, SampleHandler};
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

pub(crate) struct Samples {
    handler: SampleHandler,
    count_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Incoming>,
    running: bool,
}

impl Samples {
    pub(crate) fn new(handler: SampleHandler, count_max: usize) -> Self {
        Samples { handler, count_max: count_max.max(1), state: Mutex::default() }
    }

    /// Deals with a sample when its turn comes, unless too many newer ones come before that.
    pub(crate) fn take(self: &Arc<Self>, sample: Incoming) {
        let mut state = self.state.lock();
        if state.waiting.len() >= self.count_max {
            state.waiting.pop_front();
        }
        state.waiting.push_back(sample);
        if !std::mem::replace(&mut state.running, true) {
            drop(state);
            tokio::spawn(Arc::clone(self).work());
        }
    }

    async fn work(self: Arc<Self>) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.waiting.pop_front();
                state.running = next.is_some();
                next
            };
            let Some(sample) = next else { return };
            let handled = AssertUnwindSafe(async { (self.handler)(sample).await });
            if handled.catch_unwind().await.is_err() {
                tracing::warn!("a handler of samples panicked");
            }
        }
    }
}
