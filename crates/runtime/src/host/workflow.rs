//! The future of a run, and how it is polled.
//!
//! Tested by `crates/sdk/tests/it/panics.rs`.

use super::board::Board;
use super::branch::Branch;
use super::step::{bounded, panicked};
use super::undo::compensate;
use super::{Code, Context, Observer, Opening};
use crate::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::task::{ArcWake, AtomicWaker, waker};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};
use steadfast_kernel::{Class, Event, Failure, Payload};

/// A future that keeps waking itself is polled this often before others get their turn on the thread.
const POLLS_BEFORE_YIELD: usize = 128;

/// The future of a run, and the board it meets us at.
pub(super) struct Workflow {
    pub(super) board: Arc<Board>,
    context: Context,
    future: Option<BoxFuture<'static, Result<Payload, Failure>>>,
    woken: Arc<Woken>,
    payload_bytes_max: usize,
    pub(super) outcome: Option<Result<Payload, Failure>>,
    /// If it is being undone: why; nothing if it was called off.
    pub(super) undoing: Option<Option<Failure>>,
}

/// Remembers that the future was woken, and wakes the session's task.
#[derive(Default)]
struct Woken {
    flag: AtomicBool,
    task: AtomicWaker,
}

impl ArcWake for Woken {
    fn wake_by_ref(this: &Arc<Self>) {
        this.flag.store(true, Ordering::Release);
        this.task.wake();
    }
}

impl Workflow {
    /// Begins the code of a run from the first entry of its journal.
    pub(super) fn begin(
        code: &dyn Code,
        opening: &Opening,
        clock: Arc<dyn Clock>,
        payload_bytes_max: usize,
        observer: Option<Arc<dyn Observer>>,
    ) -> Option<Self> {
        let first = opening.script.first()?;
        let Event::RunStarted { input, seed, .. } = &first.event else { return None };
        let board = Arc::new(Board::new(*seed, first.at, opening));
        let context = Context::new(opening, Arc::clone(&board), clock, payload_bytes_max, observer);
        let mut workflow = Workflow {
            board,
            context: context.clone(),
            future: None,
            woken: Arc::default(),
            payload_bytes_max,
            outcome: None,
            undoing: None,
        };
        match catch_unwind(AssertUnwindSafe(|| code.begin(context, input.clone()))) {
            Ok(future) => workflow.future = Some(future),
            Err(panic) => workflow.outcome = Some(Err(panicked_workflow(&*panic))),
        }
        Some(workflow)
    }

    /// Puts the undoing of what the code did in the place of the code.
    pub(super) fn undo(&mut self) {
        self.close();
        self.board.forget_children();
        self.board.enter(Arc::new(Branch::default()));
        self.outcome = None;
        self.future = Some(compensate(self.context.clone(), self.board.take_undos()).boxed());
        self.wake();
    }

    /// Wakes the future for its very first poll.
    pub(super) fn wake(&self) {
        self.woken.flag.store(true, Ordering::Release);
    }

    /// Polls as often as it is worth on the spot.
    pub(super) fn poll_now(&mut self) {
        let _quiet = self.poll();
    }

    /// Polls until nothing moves without a new completion.
    pub(super) async fn settle(&mut self) {
        poll_fn(|cx| if self.poll_for(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Polls on behalf of a task, which is woken when the future is. False if others are to have the thread first.
    pub(super) fn poll_for(&mut self, cx: &TaskContext<'_>) -> bool {
        self.woken.task.register(cx.waker());
        let quiet = self.poll();
        if !quiet {
            cx.waker().wake_by_ref();
        }
        quiet
    }

    /// Polls the future while it has been woken. False if it was still waking itself when its share was used up.
    fn poll(&mut self) -> bool {
        let waker = waker(Arc::clone(&self.woken));
        let mut cx = TaskContext::from_waker(&waker);
        for _ in 0..POLLS_BEFORE_YIELD {
            let Some(future) = &mut self.future else { return true };
            if !self.woken.flag.swap(false, Ordering::AcqRel) {
                return true;
            }
            self.board.polled_by(Some(std::thread::current().id()));
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
            self.board.polled_by(None);
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(outcome)) => {
                    self.outcome = Some(outcome.and_then(|output| bounded("the result", output, self.payload_bytes_max)))
                }
                Err(panic) => self.outcome = Some(Err(panicked_workflow(&*panic))),
            }
            if self.outcome.is_some() {
                self.close();
            }
        }
        false
    }

    /// Drops the future and with it every attempt in flight.
    pub(super) fn close(&mut self) {
        if let Some(future) = self.future.take() {
            let _a_panic_while_dropping_changes_nothing = catch_unwind(AssertUnwindSafe(|| drop(future)));
        }
    }
}

/// A panic of workflow code ends the run: polled again it would only panic again.
fn panicked_workflow(panic: &(dyn std::any::Any + Send)) -> Failure {
    panicked("the workflow", panic).class(Class::Permanent)
}
