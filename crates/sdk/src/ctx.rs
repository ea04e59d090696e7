//! What workflow code holds: steps, sleeps, time and chance.

use crate::workflow::{decode, encode};
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{Code, Failure, InvalidId, Policy, RunId, Timestamp};
use steadfast_runtime::host::{Context, SleepCall, StepCall};

/// What workflow code holds: its way to do things durably.
#[derive(Clone)]
pub struct Ctx(Context);

impl Ctx {
    pub(crate) fn new(context: Context) -> Self {
        Ctx(context)
    }

    /// A step: a named side effect whose result is recorded once.
    ///
    /// `attempt` is called once per attempt, until one succeeds or the policy says enough. Any error it returns becomes a [`Failure`]; one
    /// that is not a `Failure` already counts as transient. The name has 1 to 128 characters of `A-Z a-z 0-9 . _ -`; steps of the same name are
    /// told apart by their order.
    ///
    /// Without [`retry`](Step::retry) there are five attempts, from one second apart, doubling.
    ///
    /// # Errors
    /// The last failure, when no further attempt is made.
    ///
    /// # Durability
    /// When the step returns, its result is part of the turn that is being recorded; nothing that follows begins before it is durable.
    ///
    /// # Cancellation
    /// Dropping the step drops the attempt in flight; it is then as if it had not been asked for.
    pub fn step<'a, T, E, F, Fut>(&self, name: &str, mut attempt: F) -> Step<'a, T>
    where
        T: Serialize + DeserializeOwned + 'a,
        E: Into<Failure>,
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a,
    {
        let call = self.0.step(name, Policy::default(), move |_| {
            attempt()
                .map(|outcome| outcome.map_err(Into::into).and_then(|output| encode(&output, "the step's output")))
                .boxed()
        });
        Step { call, timeout: None, output: PhantomData }
    }

    /// Sleeps, durably: however long it is, and whatever happens to the process meanwhile.
    ///
    /// # Errors
    /// None yet; a sleep that is called off will say so here.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep(self.0.sleep(duration))
    }

    /// The time of the event that this turn delivers: the same when the run is replayed.
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// A random number: the same when the run is replayed.
    pub fn random(&self) -> u64 {
        self.0.random("random")
    }

    /// A random UUID (version 4): the same when the run is replayed.
    pub fn uuid(&self) -> uuid::Uuid {
        let bits = (u128::from(self.0.random("uuid")) << 64) | u128::from(self.0.random("uuid"));
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// The id of this run.
    pub fn run_id(&self) -> &RunId {
        self.0.run_id()
    }
}

/// A step on its way. Await it for its result.
#[must_use = "a step does nothing unless it is awaited"]
pub struct Step<'a, T> {
    call: Result<StepCall<'a>, InvalidId>,
    timeout: Option<Duration>,
    output: PhantomData<fn() -> T>,
}

impl<T> Step<'_, T> {
    /// What follows a failed attempt.
    pub fn retry(mut self, policy: Policy) -> Self {
        let policy = match self.timeout {
            Some(timeout) => policy.attempt_timeout(timeout),
            None => policy,
        };
        if let Ok(call) = &mut self.call {
            call.set_policy(policy);
        }
        self
    }

    /// How long one attempt may take. One that takes longer is dropped and counts as failed with `DEADLINE_EXCEEDED`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        if let Ok(call) = &mut self.call {
            let policy = call.policy().clone().attempt_timeout(timeout);
            call.set_policy(policy);
        }
        self
    }
}

impl<T: DeserializeOwned> Future for Step<'_, T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match &mut self.call {
            Ok(call) => Pin::new(call)
                .poll(cx)
                .map(|outcome| outcome.and_then(|output| decode(&output, "the step's recorded output"))),
            Err(invalid) => Poll::Ready(Err(Failure::permanent(invalid).code(Code::InvalidArgument))),
        }
    }
}

/// A sleep on its way. Await it.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep(SleepCall);

impl Future for Sleep {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Ok)
    }
}
