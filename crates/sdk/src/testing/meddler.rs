//! Who stands between steps and their attempts: notes the calls, makes attempts fail, and lets nobody act after the process died.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::future::{Future, pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use steadfast_kernel::{Failure, Payload, StepId};
use steadfast_runtime::host::{Attempts, Code, Context, Meddler, Terms};
use steadfast_store::memory::Memory;

/// A call of the closure of a step, or of its undo.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The run.
    pub run: String,
    /// The step: `charge#1`; for an undo `charge#1/undo`.
    pub step: String,
    /// The number of the attempt. One that was cut off by a crash is made again with the same number.
    pub attempt: u32,
    /// What [`Ctx::idempotency_key`](crate::Ctx::idempotency_key) says in it.
    pub key: String,
}

/// Whether somebody who says `wanted` means that step: by its name, or by its whole id.
pub(super) fn is_meant(step: &str, wanted: &str) -> bool {
    step == wanted || name(step) == wanted
}

/// The name of a step without its branch and occurrence; for an undo with what it is.
fn name(step: &str) -> String {
    let (step, undo) = step.strip_suffix("/undo").map_or((step, ""), |step| (step, "/undo"));
    let last = step.rsplit('/').next().unwrap_or(step);
    format!("{}{undo}", last.split('#').next().unwrap_or(last))
}

/// What outlives the processes of a lab: the calls that were made, and what is to go wrong.
#[derive(Default)]
pub(super) struct Book {
    calls: Mutex<Vec<Call>>,
    mishaps: Mutex<Vec<Mishap>>,
}

/// An attempt that is to go wrong.
pub(super) struct Mishap {
    pub(super) step: String,
    pub(super) attempt: u32,
    pub(super) failure: Failure,
    /// The closure is called, and its answer gets lost.
    pub(super) after: bool,
    pub(super) came: bool,
}

impl Book {
    pub(super) fn plan(&self, mishap: Mishap) {
        lock(&self.mishaps).push(mishap);
    }

    /// Nothing of what was planned comes any more.
    pub(super) fn forget(&self) {
        lock(&self.mishaps).clear();
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }

    /// What was planned and never came.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing = |mishap: &&Mishap| !mishap.came;
        let text = |mishap: &Mishap| format!("attempt {} of step {} was to fail", mishap.attempt, mishap.step);
        lock(&self.mishaps).iter().filter(missing).map(text).collect()
    }

    fn mishap(&self, step: &str, attempt: u32) -> Option<(Failure, bool)> {
        let mut mishaps = lock(&self.mishaps);
        let mishap = mishaps.iter_mut().find(|mishap| mishap.attempt == attempt && is_meant(step, &mishap.step))?;
        mishap.came = true;
        Some((mishap.failure.clone(), mishap.after))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The meddler of one process.
#[derive(Clone)]
pub(super) struct OfLab {
    pub(super) store: Memory,
    pub(super) book: Arc<Book>,
}

impl OfLab {
    /// Goes on with that as long as the process lives.
    fn mortal<'a, T>(&self, mut future: BoxFuture<'a, T>) -> impl Future<Output = T> + Send + use<'a, T> {
        let store = self.store.clone();
        poll_fn(move |cx| if store.is_dead() { Poll::Pending } else { future.as_mut().poll(cx) })
    }
}

impl Meddler for OfLab {
    fn attempts<'a>(&self, step: StepId, context: &Context, mut attempts: Attempts<'a>) -> Attempts<'a> {
        let (this, context) = (self.clone(), context.clone());
        Box::new(move || {
            if this.store.is_dead() {
                return pending().boxed();
            }
            let attempt = context.attempt().unwrap_or_default();
            let mishap = this.book.mishap(step.as_str(), attempt);
            if let Some((failure, false)) = mishap {
                return async { Err(failure) }.boxed();
            }
            let key = context.idempotency_key().unwrap_or_default();
            lock(&this.book.calls).push(Call { run: context.run_id().to_string(), step: step.to_string(), attempt, key });
            let answer = this.mortal(attempts());
            match mishap {
                Some((failure, _)) => answer.map(|_lost| Err(failure)).boxed(),
                None => answer.boxed(),
            }
        })
    }
}

/// Code whose process can die.
pub(super) struct Mortal {
    pub(super) code: Arc<dyn Code>,
    pub(super) meddler: OfLab,
}

impl Code for Mortal {
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        context.meddle(Arc::new(self.meddler.clone()));
        self.meddler.mortal(self.code.begin(context, input)).boxed()
    }

    fn terms(&self, input: &Payload) -> Result<Terms, Failure> {
        self.code.terms(input)
    }

    fn versions(&self) -> Option<BTreeSet<String>> {
        self.code.versions()
    }

    fn knows(&self, definition: Option<&str>) -> bool {
        self.code.knows(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_acts_after_the_process_has_died() {
        let meddler = OfLab { store: Memory::new(), book: Arc::default() };
        let (first, second) = (meddler.mortal(async { 1 }.boxed()), meddler.mortal(async { 2 }.boxed()));
        assert_eq!(first.now_or_never(), Some(1));
        meddler.store.crash();
        assert_eq!(second.now_or_never(), None);
    }

    #[test]
    fn a_step_is_meant_by_its_name_or_by_its_whole_id() {
        assert!(is_meant("charge#1", "charge") && is_meant("join#1.0/charge#2", "charge") && is_meant("charge#1/undo", "charge/undo"));
        assert!(is_meant("charge#2", "charge#2") && is_meant("a#1/charge#1/undo", "a#1/charge#1/undo"));
        assert!(!is_meant("charge#1", "charge#2") && !is_meant("charge#1/undo", "charge") && !is_meant("a#1/charge#1", "a"));
    }
}
