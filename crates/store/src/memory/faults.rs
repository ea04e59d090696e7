//! Faults on demand: what the next commits and the next steps of sweeps do instead of succeeding.

use crate::{Batch, ShardId, Sweep};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What a commit or a step of a sweep does instead of succeeding at once.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing is applied, and the caller is told so.
    Fail,
    /// Applied, but the caller is told that it failed: an answer that got lost.
    Doubt,
    /// Applied, but the caller hears of it only when the gate is opened: a slow disk.
    Hold(Gate),
    /// Applied only when the gate is opened: nobody who reads before sees it. A sweep is as with `Hold`.
    Late(Gate),
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
    sweeps: Vec<SweepRule>,
    sweep_entries: Option<usize>,
    unreadable: Option<ShardId>,
}

/// Tells what is to happen to a commit.
type Rule = Box<dyn FnMut(&Batch) -> Option<Fault> + Send>;

/// Tells what is to happen to a step of a sweep.
type SweepRule = Box<dyn FnMut(&[Sweep]) -> Option<Fault> + Send>;

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

    /// Asks about every step of a sweep from here on.
    pub fn sweep_rule(&self, rule: impl FnMut(&[Sweep]) -> Option<Fault> + Send + 'static) {
        self.0.lock().sweeps.push(Box::new(rule));
    }

    /// Lets a step of a sweep remove only so many entries, at least one.
    pub fn sweep_entries(&self, entries: usize) {
        self.0.lock().sweep_entries = Some(entries.max(1));
    }

    /// Nobody who has this handle can open that shard: it has something that is not understood there.
    pub fn unreadable(&self, shard: ShardId) {
        self.0.lock().unreadable = Some(shard);
    }

    pub(super) fn is_unreadable(&self, shard: ShardId) -> bool {
        self.0.lock().unreadable == Some(shard)
    }

    /// Forgets what was planned.
    pub fn clear(&self) {
        *self.0.lock() = Plan::default();
    }

    pub(super) fn next(&self, batch: &Batch) -> Option<Fault> {
        let mut plan = self.0.lock();
        let Plan { line, rules, .. } = &mut *plan;
        let ruled = rules.iter_mut().filter_map(|rule| rule(batch)).last(); // every rule hears of every commit
        line.pop_front().flatten().or(ruled)
    }

    /// What is to happen to that step, and how many entries it removes if that was said.
    pub(super) fn next_sweep(&self, runs: &[Sweep]) -> (Option<Fault>, Option<usize>) {
        let mut plan = self.0.lock();
        let ruled = plan.sweeps.iter_mut().filter_map(|rule| rule(runs)).last(); // every rule hears of every step
        (ruled, plan.sweep_entries)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0.lock();
        f.debug_struct("Faults")
            .field("line", &plan.line)
            .field("rules", &plan.rules.len())
            .field("sweeps", &plan.sweeps.len())
            .finish()
    }
}
