//! Bounds the region that callgrind counts.
//!
//! `cargo xtask bench counts` passes the names of [`counted`] and [`uncounted`] to callgrind: each
//! of them toggles the collection when it is entered and again when it is left.

use anyhow::Result;
use std::future::Future;
use std::hint::black_box;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The number of operations before the region: caches, lazily built tables and hash maps get their
/// size.
const WARM_UP: u32 = 64;

/// Whether the region has begun.
static COUNTING: AtomicBool = AtomicBool::new(false);

/// Counts operations in virtual time: a wait passes as soon as nothing else is to be done.
pub(crate) fn in_virtual_time<S>(
    operations: u32,
    prepare: impl AsyncFnOnce() -> Result<S>,
    operate: impl AsyncFn(&S, Range<u32>) -> Result<()>,
) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    measure(&runtime, operations, prepare, operate)
}

/// Counts operations that use sockets, in time that stands still.
pub(crate) fn in_frozen_time<S>(
    operations: u32,
    prepare: impl AsyncFnOnce() -> Result<S>,
    operate: impl AsyncFn(&S, Range<u32>) -> Result<()>,
) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
    // Paused time leaps to the next timer when all tasks wait, also for a socket. It does not while
    // blocking work is under way.
    let (thaw, is_frozen) = oneshot::channel::<()>();
    let frozen = runtime.spawn_blocking(move || is_frozen.blocking_recv());
    let outcome = measure(&runtime, operations, prepare, operate);
    drop(thaw);
    let _ended = runtime.block_on(frozen);
    outcome
}

fn measure<S>(
    runtime: &Runtime,
    operations: u32,
    prepare: impl AsyncFnOnce() -> Result<S>,
    operate: impl AsyncFn(&S, Range<u32>) -> Result<()>,
) -> Result<()> {
    let subject = runtime.block_on(prepare())?;
    runtime.block_on(operate(&subject, 0..WARM_UP))?;
    let operations = pin!(operate(&subject, WARM_UP..WARM_UP + operations));
    COUNTING.store(true, Ordering::Relaxed);
    let outcome = counted(runtime, operations);
    COUNTING.store(false, Ordering::Relaxed);
    outcome
}

/// The region. `black_box` keeps the compiler from ending it with a jump, which callgrind would not
/// see as its end.
#[inline(never)]
fn counted(runtime: &Runtime, operations: Pin<&mut dyn Future<Output = Result<()>>>) -> Result<()> {
    black_box(runtime.block_on(operations))
}

/// A future that the region leaves out: the client of a server, or the server of a client.
pub(crate) struct Uncounted<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Uncounted<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Uncounted(Box::pin(future))
    }
}

impl<T> Future for Uncounted<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let (mut polled, future) = (Poll::Pending, &mut self.0);
        let mut poll = || polled = future.as_mut().poll(context);
        if COUNTING.load(Ordering::Relaxed) {
            uncounted(&mut poll)
        } else {
            poll()
        }
        polled
    }
}

/// A gap in the region.
#[inline(never)]
fn uncounted(work: &mut dyn FnMut()) {
    work();
    black_box(());
}
