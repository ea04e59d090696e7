//! Calling a request off: told by whoever does not wait any more, heard by the one that runs, or by the line in which it waits.

use super::Lane;
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;

/// Whether a request is called off. Clones are of the same request; one of them waits.
#[derive(Clone, Default)]
pub(crate) struct CallOff {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    off: AtomicBool,
    waker: AtomicWaker,
    /// Where it waits for its turn, and by which number, if it does.
    place: OnceLock<(Weak<Lane>, u64)>,
}

impl CallOff {
    /// Calls it off.
    pub(super) fn call_off(&self) {
        self.shared.off.store(true, Ordering::SeqCst);
        self.shared.waker.wake();
        if let Some((lane, number)) = self.shared.place.get()
            && let Some(lane) = lane.upgrade()
        {
            lane.call_off(*number);
        }
    }

    /// Whether that is of the same request, and of the same run of it.
    pub(super) fn is(&self, other: &CallOff) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// It waits there for its turn; true if it is called off already, and whoever did that may not have seen where it waits.
    pub(super) fn waits(&self, lane: &Arc<Lane>, number: u64) -> bool {
        let _it_waits_once = self.shared.place.set((Arc::downgrade(lane), number));
        self.is_off()
    }

    /// Whether it is called off.
    pub(super) fn is_off(&self) -> bool {
        self.shared.off.load(Ordering::SeqCst)
    }

    /// Ends when it is called off.
    pub(super) async fn called_off(&self) {
        poll_fn(|cx| {
            self.shared.waker.register(cx.waker());
            if self.is_off() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
