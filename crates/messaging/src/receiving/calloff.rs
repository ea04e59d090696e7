//! Calling a request off: told by whoever does not wait any more, heard by the one that runs.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// Whether a request is called off. Clones are of the same request; one of them waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallOff {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    off: AtomicBool,
    waker: AtomicWaker,
}

impl CallOff {
    /// Calls it off.
    pub(super) fn call_off(&self) {
        self.shared.off.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// Ends when it is called off.
    pub(super) async fn called_off(&self) {
        poll_fn(|cx| {
            self.shared.waker.register(cx.waker());
            if self.shared.off.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
