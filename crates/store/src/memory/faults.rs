//! Faults on demand: what the next commits do instead of succeeding.

use crate::Batch;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
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

/// The plan of faults of a store: skipped commits, then faults one by one, then none; and rules beside it.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    line: VecDeque<Option<Fault>>,
    rules: Vec<Rule>,
}

/// Tells what is to happen to a commit.
type Rule = Box<dyn FnMut(&Batch) -> Option<Fault> + Send>;

impl Faults {
    /// Lets that many commits through, then does `fault` to the one after them.
    pub fn after(&self, commits: usize, fault: Fault) {
        let line = &mut self.0.lock().line;
        line.extend(std::iter::repeat_n(None, commits));
        line.push_back(Some(fault));
    }

    /// Asks about every commit from here on.
    pub fn rule(&self, rule: impl FnMut(&Batch) -> Option<Fault> + Send + 'static) {
        self.0.lock().rules.push(Box::new(rule));
    }

    /// Forgets what was planned.
    pub fn clear(&self) {
        *self.0.lock() = Plan::default();
    }

    pub(super) fn next(&self, batch: &Batch) -> Option<Fault> {
        let mut plan = self.0.lock();
        let Plan { line, rules } = &mut *plan;
        let ruled = rules.iter_mut().filter_map(|rule| rule(batch)).last(); // every rule hears of every commit
        line.pop_front().flatten().or(ruled)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0.lock();
        f.debug_struct("Faults").field("line", &plan.line).field("rules", &plan.rules.len()).finish()
    }
}
