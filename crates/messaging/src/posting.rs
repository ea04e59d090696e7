//! How a node has its dead letters kept: at once if that works, and tried again if it does not.
//!
//! The letter of a tell is owed: this side has said that it has taken it, or has told its sender that it failed. It waits for as long as an outage may take, and what the tell held
//! stays held meanwhile, which bounds how many there are. Bytes that are no message, and calls that are poison, are owed to nobody and come from anybody: so many of them wait for a while.

use crate::letters::Letter;
use crate::node::Inner;
use crate::time;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steadfast_kernel::{Code, Failure, Policy, Timestamp, Verdict};

/// Letters that are owed to nobody and wait to be kept, and their bytes: more come only from somebody who means harm, or if nothing can be kept.
const UNOWED_MAX: usize = 4096;
const UNOWED_BYTES_MAX: usize = 64 << 20;

/// How often it is tried to keep a letter that is owed: for about a quarter of an hour. A box that is full does not become empty by being asked.
const OWED_ATTEMPTS: u32 = 20;

/// The letters that are being kept.
#[derive(Default)]
pub(crate) struct Postings {
    all: AtomicUsize,
    unowed: AtomicUsize,
    unowed_bytes: AtomicUsize,
}

impl Postings {
    pub(crate) fn count(&self) -> usize {
        self.all.load(Ordering::SeqCst)
    }
}

impl Inner {
    /// Keeps a letter that is owed to nobody, unless too many wait for that.
    pub(crate) fn post(self: &Arc<Self>, letter: Letter) {
        let posting = Posting::begin(self, &letter);
        match Unowed::take(self, letter.payload.len()) {
            Some(unowed) => posting.keep(letter, Policy::default(), unowed),
            None => posting.lost(&letter, &Failure::new(Code::ResourceExhausted, "too many letters wait to be kept")),
        }
    }

    /// Keeps the letter of a tell. What the tell held is dropped when that is done.
    pub(crate) fn post_owed(self: &Arc<Self>, letter: Letter, held: impl Send + 'static) {
        Posting::begin(self, &letter).keep(letter, Policy::default().max_attempts(OWED_ATTEMPTS), held);
    }
}

/// Whether there is no room for more letters, and nobody says when there will be.
fn is_full(failure: &Failure) -> bool {
    failure.code == Code::ResourceExhausted && failure.retry_after.is_none()
}

/// A letter that is being kept: whoever closes the node waits for it.
struct Posting(Arc<Inner>);

impl Posting {
    fn begin(node: &Arc<Inner>, letter: &Letter) -> Self {
        node.postings.all.fetch_add(1, Ordering::SeqCst);
        node.tally.posted();
        tracing::warn!(route = letter.route, peer = letter.peer, code = %letter.failure.code, "a message is a dead letter");
        Posting(Arc::clone(node))
    }

    fn keep(self, letter: Letter, policy: Policy, held: impl Send + 'static) {
        drop(tokio::spawn(async move {
            if let Err(failure) = self.try_to_keep(&letter, &policy).await {
                self.lost(&letter, &failure);
            }
            drop(held);
        }));
    }

    async fn try_to_keep(&self, letter: &Letter, policy: &Policy) -> Result<(), Failure> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let kept = AssertUnwindSafe(async { self.0.letters.post(letter.clone()).await }).catch_unwind().await;
            let Err(failure) = kept.unwrap_or_else(|_| Err(Failure::transient("whoever keeps letters panicked"))) else { return Ok(()) };
            let policy = if is_full(&failure) { &Policy::default() } else { policy };
            match policy.after(attempt, &failure, Timestamp::EPOCH, None, self.0.draw()) {
                Verdict::RetryIn { delay, .. } => time::until(time::after(delay)).await,
                Verdict::GiveUp(_) => return Err(failure),
            }
        }
    }

    fn lost(&self, letter: &Letter, failure: &Failure) {
        self.0.tally.lost();
        tracing::error!(route = letter.route, id = letter.id, peer = letter.peer, %failure, "a dead letter is lost");
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        if self.0.postings.all.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// A place among the letters that are owed to nobody.
struct Unowed {
    node: Arc<Inner>,
    bytes: usize,
}

impl Unowed {
    fn take(node: &Arc<Inner>, bytes: usize) -> Option<Self> {
        let Postings { unowed, unowed_bytes, .. } = &node.postings;
        let (count, before) = (unowed.fetch_add(1, Ordering::Relaxed), unowed_bytes.fetch_add(bytes, Ordering::Relaxed));
        let place = Unowed { node: Arc::clone(node), bytes };
        (count < UNOWED_MAX && before <= UNOWED_BYTES_MAX).then_some(place)
    }
}

impl Drop for Unowed {
    fn drop(&mut self) {
        let Postings { unowed, unowed_bytes, .. } = &self.node.postings;
        unowed.fetch_sub(1, Ordering::Relaxed);
        unowed_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
