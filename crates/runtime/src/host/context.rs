//! What the code of a run holds: its way to ask for things.

use super::board::Board;
use super::{SleepCall, StepCall};
use crate::clock::Clock;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::random::Stream;
use steadfast_kernel::{Attempt, Failure, InvalidId, Payload, Policy, RunId, StepId, Timestamp};

/// What the code of a run holds. Clones are the same run and the same branch.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    run: RunId,
    branch: String,
    board: Arc<Board>,
    clock: Arc<dyn Clock>,
    payload_bytes_max: usize,
    counts: Mutex<Counts>,
}

/// How often each name was used, and how far each stream was drawn; per branch.
#[derive(Default)]
struct Counts {
    steps: BTreeMap<String, u32>,
    sleeps: u32,
    streams: BTreeMap<String, Stream>,
}

impl Counts {
    fn count_step(&mut self, name: &str) -> u32 {
        let count = self.steps.entry(name.to_string()).or_default();
        *count += 1;
        *count
    }
}

impl Context {
    pub(super) fn new(run: RunId, board: Arc<Board>, clock: Arc<dyn Clock>, payload_bytes_max: usize) -> Self {
        let inner = Inner { run, branch: String::new(), board, clock, payload_bytes_max, counts: Mutex::default() };
        Context { inner: Arc::new(inner) }
    }

    /// The id of the run.
    pub fn run_id(&self) -> &RunId {
        &self.inner.run
    }

    /// The time of what was delivered last: the same in replay.
    pub fn now(&self) -> Timestamp {
        self.inner.board.now()
    }

    /// The next number of the stream of that name in this branch: the same in replay.
    pub fn random(&self, stream: &str) -> u64 {
        let mut counts = self.inner.counts.lock();
        if let Some(stream) = counts.streams.get_mut(stream) {
            return stream.next_u64();
        }
        let mut new = Stream::new(&self.inner.board.seed, &self.inner.branch, stream);
        let number = new.next_u64();
        counts.streams.insert(stream.to_string(), new);
        number
    }

    /// A step: `attempt` is called once per attempt, until one succeeds or the policy says enough.
    pub fn step<'a>(
        &self,
        name: &str,
        policy: Policy,
        attempt: impl FnMut(Attempt) -> BoxFuture<'a, Result<Payload, Failure>> + Send + 'a,
    ) -> Result<StepCall<'a>, InvalidId> {
        let occurrence = self.inner.counts.lock().count_step(name);
        let id = StepId::new(&self.inner.branch, name, occurrence)?;
        let (board, clock) = (Arc::clone(&self.inner.board), Arc::clone(&self.inner.clock));
        Ok(StepCall::new(board, clock, id, policy, self.inner.payload_bytes_max, Box::new(attempt)))
    }

    /// Sleeps, durably.
    pub fn sleep(&self, duration: Duration) -> SleepCall {
        let mut counts = self.inner.counts.lock();
        counts.sleeps += 1;
        SleepCall::new(Arc::clone(&self.inner.board), StepId::sleep(&self.inner.branch, counts.sleeps), duration)
    }
}
