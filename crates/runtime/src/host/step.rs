//! A step inside a run: its attempts are polled inside the workflow's future, so they may borrow from it.

use super::board::{Ask, Board, Gate, Key};
use crate::clock::Clock;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{Attempt, Code, Failure, Payload, Policy, StepId, Timestamp};

type Attempts<'a> = Box<dyn FnMut(Attempt) -> BoxFuture<'a, Result<Payload, Failure>> + Send + 'a>;

/// A step that the code waits for. It ends with the recorded outcome; attempts that fail on the way are between host and engine.
pub struct StepCall<'a> {
    board: Arc<Board>,
    clock: Arc<dyn Clock>,
    key: Key,
    policy: Policy,
    payload_bytes_max: usize,
    attempts: Attempts<'a>,
    asked_at: Option<Timestamp>,
    running: Option<Running<'a>>,
}

/// An attempt in flight.
struct Running<'a> {
    number: Attempt,
    future: BoxFuture<'a, Result<Payload, Failure>>,
    timeout: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl<'a> StepCall<'a> {
    pub(super) fn new(
        board: Arc<Board>,
        clock: Arc<dyn Clock>,
        id: StepId,
        policy: Policy,
        payload_bytes_max: usize,
        attempts: Attempts<'a>,
    ) -> Self {
        StepCall { board, clock, key: Key::Step(id), policy, payload_bytes_max, attempts, asked_at: None, running: None }
    }

    /// Replaces the policy. Has no effect once the step is polled.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The policy as it is now.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn ask(&mut self) {
        if self.asked_at.is_none() {
            let asked_at = self.board.now();
            self.asked_at = Some(asked_at);
            self.board.ask(&self.key, Ask::Step { policy: self.policy.clone(), asked_at });
        }
    }

    /// Polls the attempt of that number, and begins it first if need be.
    fn attempt(&mut self, number: Attempt, cx: &mut TaskContext<'_>) -> Poll<Result<Payload, Failure>> {
        if self.running.as_ref().is_none_or(|running| running.number != number) {
            match catch_unwind(AssertUnwindSafe(|| (self.attempts)(number))) {
                Ok(future) => self.running = Some(Running { number, future, timeout: self.timeout() }),
                Err(panic) => return Poll::Ready(Err(panicked("a step", &*panic))),
            }
        }
        let Some(running) = &mut self.running else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| running.future.as_mut().poll(cx))) {
            Ok(Poll::Ready(Ok(output))) => Poll::Ready(bounded(output, self.payload_bytes_max)),
            Ok(Poll::Ready(Err(failure))) => Poll::Ready(Err(failure)),
            Ok(Poll::Pending) => running.out_of_time(cx).map(Err),
            Err(panic) => Poll::Ready(Err(panicked("a step", &*panic))),
        }
    }

    /// One attempt may take as long as the policy says, and never longer than the time that all of them have left.
    fn timeout(&self) -> Option<(Duration, BoxFuture<'static, ()>)> {
        let deadline = self.asked_at.and_then(|asked_at| self.policy.deadline_at(asked_at));
        let left = deadline.map(|deadline| deadline.saturating_since(self.clock.now()));
        let limit = self.policy.attempt_timeout_for().into_iter().chain(left).min()?;
        Some((limit, self.clock.sleep(limit)))
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
                if let Poll::Ready(outcome) = this.attempt(number, cx) {
                    this.running = None;
                    this.board.hand_over(&this.key, number, outcome, cx.waker());
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for StepCall<'_> {
    fn drop(&mut self) {
        if self.asked_at.is_some() {
            self.board.abandon(&self.key);
        }
    }
}

/// The output, unless it is larger than allowed.
pub(super) fn bounded(output: Payload, max: usize) -> Result<Payload, Failure> {
    let bytes = output.len();
    if bytes <= max {
        return Ok(output);
    }
    let message = format!("the output has {bytes} bytes, at most {max} are allowed; keep large data elsewhere and return its address");
    Err(Failure::permanent(message).code(Code::ResourceExhausted))
}

/// The failure that a panic of user code becomes. It may pass: the policy decides how often that is tried.
pub(super) fn panicked(who: &str, panic: &(dyn Any + Send)) -> Failure {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(Code::Internal, format!("{who} panicked: {}", message.unwrap_or("(no message)")))
}
