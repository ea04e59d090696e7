//! The gate before every stage: the checkpoint of the stage before it has to be where others can go on from, and the task has to be this instance's.
//!
//! Tested by `crates/sdk/tests/it/instances/outages/seen.rs`.

use crate::clock::Clock;
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Code, Failure, RunId, Timestamp};
use tokio::sync::watch;

/// The gate. Stages wait at it, and the one who speaks with the commons opens it.
pub(crate) struct Gate {
    clock: Arc<dyn Clock>,
    /// How long a stage waits before it has failed.
    patience: Duration,
    runs: Mutex<BTreeMap<RunId, Place>>,
    /// Wakes those who wait.
    pub(super) lets: watch::Sender<Lets>,
}

/// Whom the gate lets through.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lets {
    /// Those whose checkpoint is shared, until then: others take this instance for gone if it has said nothing for so long.
    Shared {
        /// From then on: if the clock was set back, nobody knows how long ago that was.
        from: Timestamp,
        /// Until then.
        until: Timestamp,
        /// Rises with every checkpoint that was shared.
        change: u64,
    },
    /// Everybody: the commons are away, and there is nobody else.
    Everybody,
    /// Nobody: the commons are away, or it is not known who else there is.
    Nobody {
        /// Why, for people.
        why: String,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    required: u64,
    reached: u64,
    /// It was found to be another's, and that is being put on record.
    shut: bool,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("lets", &*self.lets.borrow()).finish_non_exhaustive()
    }
}

impl Gate {
    pub(crate) fn new(clock: Arc<dyn Clock>, patience: Duration) -> Self {
        let lets = watch::channel(Lets::Nobody { why: "it was not reached since the start".into() }).0;
        Gate { clock, patience, runs: Mutex::default(), lets }
    }

    /// A checkpoint of that version has to be shared before the next stage.
    pub(crate) fn require(&self, run: &RunId, version: u64) {
        let mut runs = self.runs.lock();
        let place = runs.entry(run.clone()).or_default();
        place.required = place.required.max(version);
    }

    /// It is.
    pub(super) fn reached(&self, run: &RunId, version: u64) {
        if let Some(place) = self.runs.lock().get_mut(run) {
            place.reached = place.reached.max(version);
        }
    }

    /// The task or its lock was found to be another's: no stage of it begins until it has a lock again.
    pub(super) fn shut(&self, run: &RunId, shut: bool) {
        match self.runs.lock().entry(run.clone()) {
            Entry::Occupied(mut place) => place.get_mut().shut = shut,
            Entry::Vacant(place) if shut => {
                place.insert(Place { shut, ..Place::default() });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// The run has ended, or has another life.
    pub(super) fn forget(&self, run: &RunId) {
        self.runs.lock().remove(run);
    }

    fn is_shared(&self, run: &RunId) -> bool {
        self.runs.lock().get(run).is_none_or(|place| place.reached >= place.required)
    }

    fn is_shut(&self, run: &RunId) -> bool {
        self.runs.lock().get(run).is_some_and(|place| place.shut)
    }

    fn is_open(&self, run: &RunId, lets: &Lets) -> bool {
        match lets {
            _ if self.is_shut(run) => false,
            Lets::Everybody => true,
            Lets::Shared { from, until, .. } => (*from..*until).contains(&self.clock.now()) && self.is_shared(run),
            Lets::Nobody { .. } => false,
        }
    }

    /// Waits until a stage of that task may begin.
    ///
    /// # Errors
    /// A failure that may pass, if that takes too long.
    pub(crate) async fn pass(&self, run: &RunId) -> Result<(), Failure> {
        let mut lets = self.lets.subscribe();
        let opens = async {
            loop {
                if self.is_open(run, &lets.borrow_and_update()) {
                    return Ok(());
                }
                if lets.changed().await.is_err() {
                    return std::future::pending().await; // the engine stops
                }
            }
        };
        let too_late = self.clock.sleep(self.patience).map(|()| Err(self.failure(run)));
        futures_util::pin_mut!(opens, too_late);
        futures_util::future::select(opens, too_late).await.factor_first().0
    }

    fn failure(&self, run: &RunId) -> Failure {
        let why = match &*self.lets.borrow() {
            _ if self.is_shut(run) => "another has the task, or its lock".into(),
            Lets::Nobody { why } => why.clone(),
            Lets::Shared { .. } if !self.is_shared(run) => "the last checkpoint could not be written".into(),
            Lets::Shared { .. } | Lets::Everybody => "it does not answer in time".into(),
        };
        Failure::new(Code::Unavailable, format!("the stage was not begun, because others share its tenant and Redis cannot be used: {why}"))
    }
}

#[cfg(test)]
mod tests;
