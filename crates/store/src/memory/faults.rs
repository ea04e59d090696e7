//! Faults on demand: what the next commits do instead of succeeding.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What a commit does instead of succeeding at once.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing is applied, and the caller is told so.
    Fail,
    /// Applied, but the caller is told that it failed: an answer that got lost.
    Doubt,
    /// Applied, but the caller hears of it only when the gate is opened: a slow disk.
    Hold(Gate),
    /// Nothing is applied, and the store is dead.
    CrashBefore,
    /// Applied, but the caller is not told, and the store is dead.
    CrashAfter,
}

/// Keeps outcomes back until it is opened.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Gate(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Lets everything through, now and later.
    pub fn open(&self) {
        self.0.close();
    }

    pub(super) async fn opened(&self) {
        let _closed = self.0.acquire().await; // ends with an error when the semaphore is closed, which is what "open" means here
    }
}

/// The plan of faults of a store: skipped commits, then faults one by one, then none.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<VecDeque<Option<Fault>>>>);

impl Faults {
    /// Lets that many commits through, then does `fault` to the one after them.
    pub fn after(&self, commits: usize, fault: Fault) {
        let mut plan = self.0.lock();
        plan.extend(std::iter::repeat_n(None, commits));
        plan.push_back(Some(fault));
    }

    /// Forgets what was planned.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    pub(super) fn next(&self) -> Option<Fault> {
        self.0.lock().pop_front().flatten()
    }
}
