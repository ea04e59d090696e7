//! A step inside a run: its attempts are polled inside the workflow's future, so they may borrow from it.
//!
//! Tested by `crates/sdk/tests/it/panics.rs`.
//! Tested by `crates/sdk/tests/it/timing.rs`.

use super::board::{Ask, Board, Gate, Key, Undo};
use super::doubt::{Doubt, Word};
use super::{Attempted, Context};
use crate::clock::Clock;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{Attempt, Code, Failure, Payload, Policy, Timestamp};

/// Makes the attempts of a step, one at a time.
pub type Attempts<'a> = Box<dyn FnMut() -> BoxFuture<'a, Result<Payload, Failure>> + Send + 'a>;

/// Tells whether an attempt that is in doubt happened, and what came of it.
pub type Probe<'a> = Box<dyn FnMut() -> BoxFuture<'a, Result<Option<Payload>, Failure>> + Send + 'a>;

/// Undoes a step, given what it returned.
pub type UndoFn = Arc<dyn Fn(Payload) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

/// A step that the code waits for. It ends with the recorded outcome; attempts that fail on the way are between host and engine.
pub struct StepCall<'a> {
    context: Context,
    board: Arc<Board>,
    clock: Arc<dyn Clock>,
    key: Key,
    policy: Policy,
    undo: Option<Undo>,
    not_repeatable: bool,
    payload_bytes_max: usize,
    attempts: Attempts<'a>,
    asked: bool,
    running: Option<Running<'a>>,
    doubt: Doubt<'a>,
    heartbeat_timeout: Option<Duration>,
    /// Why the attempt that is in doubt was cut off, if it was: should it not have happened, that is its failure.
    cut_off: Option<Failure>,
}

/// An attempt in flight.
struct Running<'a> {
    number: Attempt,
    /// When it began, if somebody wants to know.
    began_at: Option<Timestamp>,
    future: BoxFuture<'a, Result<Payload, Failure>>,
    timeout: Option<(Duration, BoxFuture<'static, ()>)>,
    /// How often it had said something when the wait for its next word began, and how long that may take.
    silence: Option<(u64, Duration, BoxFuture<'static, ()>)>,
}

/// How an attempt has come to its end.
enum Ended {
    /// It said so.
    Told(Result<Payload, Failure>),
    /// By a panic, or because it took too long.
    CutOff(Failure),
}

impl<'a> StepCall<'a> {
    pub(super) fn new(
        context: Context,
        board: Arc<Board>,
        clock: Arc<dyn Clock>,
        key: Key,
        payload_bytes_max: usize,
        attempts: Attempts<'a>,
    ) -> Self {
        StepCall {
            context,
            doubt: Doubt::new(Arc::clone(&board), key.id().clone()),
            board,
            clock,
            key,
            policy: Policy::default(),
            undo: None,
            not_repeatable: false,
            payload_bytes_max,
            attempts,
            asked: false,
            running: None,
            heartbeat_timeout: None,
            cut_off: None,
        }
    }

    /// Replaces the policy. Has no effect once the step is polled.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The policy as it is now.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Says how it is undone. Has no effect once the step is polled.
    pub fn set_undo(&mut self, undo: UndoFn, policy: Policy) {
        self.undo = Some(Undo { undo, policy });
    }

    /// The policy of its undo, if it has one.
    pub fn undo_policy(&mut self) -> Option<&mut Policy> {
        self.undo.as_mut().map(|undo| &mut undo.policy)
    }

    /// An attempt of it that may have happened is not simply made again. Has no effect once the step is polled.
    pub fn set_not_repeatable(&mut self) {
        self.not_repeatable = true;
    }

    /// Who can tell what became of an attempt that is in doubt.
    pub fn set_probe(&mut self, probe: Probe<'a>) {
        self.doubt.set_probe(probe);
    }

    /// How long an attempt may be silent. Has no effect once the step is polled.
    pub fn set_heartbeat_timeout(&mut self, timeout: Duration) {
        self.heartbeat_timeout = Some(timeout);
    }

    fn ask(&mut self) {
        if !self.asked {
            self.asked = true;
            let asked_at = self.board.now();
            let (policy, undo, not_repeatable) = (self.policy.clone(), self.undo.clone(), self.not_repeatable);
            self.board.ask(&self.key, Ask::Step { policy, asked_at, undo, not_repeatable });
        }
    }

    /// Polls the attempt of that number, and begins it first if need be.
    fn attempt(&mut self, number: Attempt, cx: &mut TaskContext<'_>) -> Poll<Ended> {
        if self.running.as_ref().is_none_or(|running| running.number != number) {
            match catch_unwind(AssertUnwindSafe(|| (self.attempts)())) {
                Ok(future) => {
                    let future = self.after_the_gate(future);
                    let began_at = self.context.observer().map(|_| self.clock.now());
                    self.running = Some(Running { number, began_at, future, timeout: self.timeout(), silence: self.silence() });
                }
                Err(panic) => return Poll::Ready(Ended::CutOff(panicked("a step", &*panic))),
            }
        }
        let Some(running) = &mut self.running else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| running.future.as_mut().poll(cx))) {
            Ok(Poll::Ready(outcome)) => {
                Poll::Ready(Ended::Told(outcome.and_then(|output| bounded("the output", output, self.payload_bytes_max))))
            }
            Ok(Poll::Pending) => match running.out_of_time(cx) {
                Poll::Ready(failure) => Poll::Ready(Ended::CutOff(failure)),
                Poll::Pending => self.silent_for_too_long(cx).map(Ended::CutOff),
            },
            Err(panic) => Poll::Ready(Ended::CutOff(panicked("a step", &*panic))),
        }
    }

    /// A stage of a task whose tenant is shared begins once others could go on from where it stands.
    fn after_the_gate(&self, attempt: BoxFuture<'a, Result<Payload, Failure>>) -> BoxFuture<'a, Result<Payload, Failure>> {
        let Some(gate) = self.context.inner.gate.clone() else { return attempt };
        let run = self.context.run_id().clone();
        Box::pin(async move {
            gate.pass(&run).await?;
            attempt.await
        })
    }

    /// One attempt may take as long as the policy says, and never longer than the time that all of them have left.
    fn timeout(&self) -> Option<(Duration, BoxFuture<'static, ()>)> {
        let asked_at = self.board.asked_at(&self.key);
        let deadline = asked_at.and_then(|asked_at| self.policy.deadline_at(asked_at));
        let left = deadline.map(|deadline| deadline.saturating_since(self.clock.now()));
        let limit = self.policy.attempt_timeout_for().into_iter().chain(left).min()?;
        Some((limit, self.clock.sleep(limit)))
    }

    fn silence(&self) -> Option<(u64, Duration, BoxFuture<'static, ()>)> {
        self.heartbeat_timeout.map(|limit| (self.board.beats(&self.key), limit, self.clock.sleep(limit)))
    }

    /// An attempt that says nothing for too long is stuck. Every word begins the wait anew.
    fn silent_for_too_long(&mut self, cx: &mut TaskContext<'_>) -> Poll<Failure> {
        loop {
            let Some(Running { silence: Some((beats, limit, wait)), .. }) = &mut self.running else { return Poll::Pending };
            let limit = *limit;
            if wait.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if self.board.beats(&self.key) == *beats {
                return Poll::Ready(Failure::new(Code::DeadlineExceeded, format!("the attempt said nothing for {limit:?}")));
            }
            let silence = self.silence();
            if let Some(running) = &mut self.running {
                running.silence = silence;
            }
        }
    }

    /// Tells who follows traces that an attempt has ended.
    fn observe(&self, attempt: Attempt, began_at: Option<Timestamp>, ended: &Ended) {
        let (Some(observer), Some(began_at), Some(step)) = (self.context.observer(), began_at, self.key.attempted()) else { return };
        let failure = match ended {
            Ended::Told(outcome) => outcome.as_ref().err(),
            Ended::CutOff(failure) => Some(failure),
        };
        let (run, span, ended_at) = (self.context.run_id(), self.context.span_of(&self.key, attempt), self.clock.now());
        observer.attempted(&Attempted { run, step: &step, attempt, span: &span, began_at, ended_at, failure });
    }

    /// An attempt has come to its end. One that was cut off may have happened all the same, which matters if it may not be repeated.
    fn end(&mut self, number: Attempt, ended: Ended, cx: &TaskContext<'_>) {
        match ended {
            Ended::CutOff(failure) if self.not_repeatable => {
                self.cut_off = Some(failure);
                self.board.doubt(&self.key, number);
                cx.waker().wake_by_ref(); // to find out
            }
            Ended::CutOff(failure) => self.board.hand_over(&self.key, number, Err(failure), cx.waker()),
            Ended::Told(outcome) => self.board.hand_over(&self.key, number, outcome, cx.waker()),
        }
    }

    /// What somebody who knows says about an attempt that is in doubt.
    fn settle_doubt(&mut self, attempt: Attempt, word: Word, cx: &TaskContext<'_>) {
        match word {
            Word::Happened(outcome) => self.board.hand_over(&self.key, attempt, outcome, cx.waker()),
            Word::Repeat => match self.cut_off.take() {
                Some(failure) => self.board.hand_over(&self.key, attempt, Err(failure), cx.waker()),
                None => self.board.repeat(&self.key, attempt, cx.waker()),
            },
        }
    }
}

impl Running<'_> {
    fn out_of_time(&mut self, cx: &mut TaskContext<'_>) -> Poll<Failure> {
        match &mut self.timeout {
            Some((limit, timeout)) => {
                let limit = *limit;
                timeout
                    .as_mut()
                    .poll(cx)
                    .map(|()| Failure::new(Code::DeadlineExceeded, format!("the attempt took longer than {limit:?}")))
            }
            None => Poll::Pending,
        }
    }
}

impl Future for StepCall<'_> {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.ask();
        match this.board.poll(&this.key, cx.waker()) {
            Gate::Wait => Poll::Pending,
            Gate::Done(outcome) => {
                this.running = None;
                Poll::Ready(outcome)
            }
            Gate::Run(number) => {
                this.board.attempting(Some((this.key.clone(), number)));
                let polled = this.attempt(number, cx);
                this.board.attempting(None);
                if let Poll::Ready(ended) = polled {
                    let running = this.running.take();
                    this.observe(number, running.and_then(|running| running.began_at), &ended);
                    this.end(number, ended, cx);
                }
                Poll::Pending
            }
            Gate::Doubt { attempt, ask_a_person } => {
                this.board.attempting(Some((this.key.clone(), attempt))); // a probe is not the code of the run either
                let polled = this.doubt.poll(ask_a_person, cx);
                this.board.attempting(None);
                match polled {
                    Poll::Ready(word) => this.settle_doubt(attempt, word, cx),
                    Poll::Pending if this.doubt.is_with_a_person() => this.board.ask_a_person(&this.key),
                    Poll::Pending => {}
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for StepCall<'_> {
    fn drop(&mut self) {
        if self.asked {
            self.board.abandon(&self.key);
        }
    }
}

/// The payload, unless it is larger than allowed.
pub(super) fn bounded(what: &str, payload: Payload, max: usize) -> Result<Payload, Failure> {
    let bytes = payload.len();
    if bytes <= max {
        return Ok(payload);
    }
    let message = format!("{what} has {bytes} bytes, at most {max} are allowed; keep large data elsewhere and pass its address");
    Err(Failure::permanent(message).code(Code::ResourceExhausted))
}

/// The failure that a panic of user code becomes. It may pass: the policy decides how often that is tried.
pub(super) fn panicked(who: &str, panic: &(dyn Any + Send)) -> Failure {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(Code::Internal, format!("{who} panicked: {}", message.unwrap_or("(no message)")))
}
