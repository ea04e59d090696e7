//! What workflow code holds: steps, sleeps, time and chance.

use crate::every::Every;
use crate::means::Means;
use crate::workflow::{decode, encode};
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{Failure, Payload, Policy, RunId, Timestamp};
use steadfast_runtime::host::{CannotAsk, Context, Fork, Probe, SignalCall, SleepCall, StepCall, UndoFn, Until};

/// What workflow code holds: its way to do things durably.
#[derive(Clone)]
pub struct Ctx {
    context: Context,
    #[cfg_attr(not(feature = "messages"), expect(dead_code, reason = "it is empty without messages"))]
    pub(crate) means: Means,
}

impl Ctx {
    /// For code that is hosted in another way than by `#[workflow]`.
    #[doc(hidden)]
    pub fn new(context: Context) -> Self {
        Ctx::with(context, Means::default())
    }

    pub(crate) fn with(context: Context, means: Means) -> Self {
        Ctx { context, means }
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
        let attempts = Box::new(move || {
            attempt()
                .map(|outcome| outcome.map_err(Into::into).and_then(|output| encode(&output, "the step's output")))
                .boxed()
        });
        Step::new(self.context.step(name, attempts))
    }

    /// A step whose output is bytes already.
    pub(crate) async fn step_of_bytes<'a, Fut>(
        &self,
        name: &str,
        policy: Policy,
        mut attempt: impl FnMut() -> Fut + Send + 'a,
    ) -> Result<Payload, Failure>
    where
        Fut: Future<Output = Result<Payload, Failure>> + Send + 'a,
    {
        let mut call = self.context.step(name, Box::new(move || attempt().boxed())).map_err(|error| error.failure())?;
        call.set_policy(policy);
        call.await
    }

    /// Sleeps, durably: however long it is, and whatever happens to the process meanwhile.
    ///
    /// # Errors
    /// If it is asked for outside of the workflow's own future.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep(self.context.sleep(Until::After(duration)))
    }

    /// Sleeps, durably, until that time; not at all if it has passed. If the run is paused meanwhile, it sleeps for as much longer.
    ///
    /// # Errors
    /// If it is asked for outside of the workflow's own future.
    pub fn sleep_until(&self, at: Timestamp) -> Sleep {
        Sleep(self.context.sleep(Until::At(at)))
    }

    /// Ticks, durably, that often, for work that is done again and again: the first time one period from now. Late ticks do not move those after them.
    ///
    /// ```
    /// # use steadfast::{workflow, Ctx, Failure, HOUR};
    /// # async fn check() -> Result<(), Failure> { Ok(()) }
    /// #[workflow]
    /// async fn watch(ctx: Ctx, hours: u64) -> Result<(), Failure> {
    ///     let mut every = ctx.every(HOUR);
    ///     while every.tick().await?.number < hours {
    ///         ctx.step("check", || check()).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn every(&self, period: Duration) -> Every {
        Every::new(self, period)
    }

    /// Waits to be told something: the first signal of that name that nobody has taken, also one that came before it was asked for.
    ///
    /// # Errors
    /// When [`within`](Signal::within) is over, with the code `DEADLINE_EXCEEDED`; or if what was sent is not a `T`.
    pub fn signal<T: DeserializeOwned>(&self, name: &str) -> Signal<T> {
        Signal { call: self.context.signal(name), payload: PhantomData }
    }

    /// Waits for a person's yes or no: a signal of that name, which one in those roles may send, or everybody if there are none. Until then the run waits with the
    /// reason `APPROVAL`.
    ///
    /// # Errors
    /// As [`signal`](Ctx::signal).
    pub fn approval<T: DeserializeOwned>(&self, name: &str, roles: impl IntoIterator<Item = impl Into<String>>) -> Signal<T> {
        Signal { call: self.context.approval(name, roles.into_iter().map(Into::into).collect()), payload: PhantomData }
    }

    /// Leaves a step out that is not needed this time, and says so: the journal has `STEP_SKIPPED` for it. It costs no commit.
    ///
    /// # Panics
    /// If its name is not allowed, or it is said outside of the workflow's own future.
    #[track_caller]
    pub fn skip(&self, name: &str) {
        self.context.skip(name).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Which version of a change this run is on, for changing code while runs of it are under way.
    ///
    /// A run that comes here for the first time is on the last version, and stays on it. A run that had come past this place before the change was made
    /// is on the first.
    ///
    /// ```
    /// # use steadfast::{Ctx, Failure, workflow};
    /// #[workflow]
    /// async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> {
    ///     if ctx.version("insure", 1..=2) >= 2 {
    ///         ctx.step("insure", || async { Ok::<_, Failure>(()) }).await?;
    ///     }
    ///     ctx.step("send", || async { Ok::<_, Failure>(format!("sent {order}")) }).await
    /// }
    /// ```
    ///
    /// Once no run is on version 1 any more, `2..=3` says so: a run that is waits with the reason `MISMATCH`.
    ///
    /// # Panics
    /// If its name is not allowed, or it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn version(&self, change: &str, versions: RangeInclusive<u32>) -> u32 {
        self.context.version(change, versions).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The time of the event that this turn delivers: the same when the run is replayed.
    pub fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// A random number: the same when the run is replayed. Branches have streams of their own.
    ///
    /// # Panics
    /// If it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn random(&self) -> u64 {
        self.draw("random")
    }

    /// A random UUID (version 4): the same when the run is replayed.
    ///
    /// # Panics
    /// If it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn uuid(&self) -> uuid::Uuid {
        let bits = (u128::from(self.draw("uuid")) << 64) | u128::from(self.draw("uuid"));
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    #[track_caller]
    fn draw(&self, stream: &str) -> u64 {
        self.context.random(stream).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Branches below the current one.
    #[track_caller]
    pub(crate) fn fork(&self, name: &str) -> Fork {
        self.context.fork(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Inside a step: the number of the attempt that is being made, from 1. Outside of a step it is 0.
    pub fn attempt(&self) -> u32 {
        self.context.attempt().unwrap_or_default()
    }

    /// Inside a step: whether this attempt may have begun before, in a process that ended without a word about it. Then whatever it does may already be done: look before
    /// doing it, or do what can be done twice. Outside of a step it is false.
    ///
    /// It is true if the run was opened again from its journal, because its process has crashed or was restarted, its [worker](crate::worker) was lost or a person has retried it, and
    /// this attempt could begin before that and has no record. It is false in the first process that has the run, in attempts after a failure that is on record, in
    /// steps that come later, and if the run has only left memory for a while. It may be true though nothing had begun; it is never false though something had.
    pub fn redelivered(&self) -> bool {
        self.context.redelivered()
    }

    /// The id of this run.
    pub fn run_id(&self) -> &RunId {
        self.context.run_id()
    }

    /// Inside a step or an undo: the key that is equal for all attempts of this execution, also after a crash, and for no other. Whoever is called can tell
    /// by it that it is the same work. It changes only if a recorded success was discarded on purpose, by a retry of the run.
    pub fn idempotency_key(&self) -> Option<String> {
        self.context.idempotency_key()
    }

    /// Says how far the code has come; shown with the run, and in lists. It is recorded with the turn that is being taken and costs no commit.
    ///
    /// # Panics
    /// If it is said outside of the workflow's own future.
    #[track_caller]
    pub fn note(&self, text: impl Into<String>) {
        self.context.note(text.into()).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Begins again with another input and without a past, under the same id: for loops without end, whose journal would grow for ever. Return what this
    /// gives.
    ///
    /// ```
    /// # use steadfast::{Ctx, DAY, Failure, workflow};
    /// #[workflow]
    /// async fn daily(ctx: Ctx, day: u64) -> Result<(), Failure> {
    ///     ctx.step("report", || async move { Ok::<_, Failure>(day) }).await?;
    ///     ctx.sleep(DAY).await?;
    ///     ctx.continue_as_new(&(day + 1))
    /// }
    /// ```
    ///
    /// Signals that were not taken stay; what had an undo is not undone any more; children that have not ended are left to themselves.
    ///
    /// # Errors
    /// Always: the failure that tells the host.
    pub fn continue_as_new<I: Serialize + ?Sized, T>(&self, input: &I) -> Result<T, Failure> {
        let input = encode(input, "the input")?;
        Err(self.context.continue_as_new(input).unwrap_or_else(|error| error.failure()))
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

/// A step on its way. Await it for its result.
#[must_use = "a step does nothing unless it is awaited"]
pub struct Step<'a, T> {
    call: Result<StepCall<'a>, CannotAsk>,
    timeout: Option<Duration>,
    output: PhantomData<fn() -> T>,
}

impl<'a, T> Step<'a, T> {
    pub(crate) fn new(call: Result<StepCall<'a>, CannotAsk>) -> Self {
        Step { call, timeout: None, output: PhantomData }
    }

    /// Replaces the policy.
    fn set_policy(&mut self, policy: Policy) {
        if let Ok(call) = &mut self.call {
            call.set_policy(policy);
        }
    }

    /// What follows a failed attempt.
    pub fn retry(mut self, policy: Policy) -> Self {
        let policy = match self.timeout {
            Some(timeout) => policy.attempt_timeout(timeout),
            None => policy,
        };
        self.set_policy(policy);
        self
    }

    /// How long one attempt may take. One that takes longer is dropped and counts as failed with `DEADLINE_EXCEEDED`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        if let Ok(call) = &self.call {
            let policy = call.policy().clone().attempt_timeout(timeout);
            self.set_policy(policy);
        }
        self
    }

    /// How long an attempt may go without a [heartbeat](Ctx::heartbeat). One that is silent for longer is dropped, at the latest after twice that time, and
    /// counts as failed with `DEADLINE_EXCEEDED`.
    pub fn heartbeat_timeout(mut self, timeout: Duration) -> Self {
        if let Ok(call) = &mut self.call {
            call.set_heartbeat_timeout(timeout);
        }
        self
    }

    /// How the step is undone, given what it returned, if the run fails or is cancelled after it.
    ///
    /// Undos run one at a time, the newest outcome first, after the workflow's own code has been dropped; each is recorded and retried by the default
    /// policy, or by that of [`undo_retry`](Step::undo_retry). One that fails for good waits for a person.
    pub fn undo<F, Fut, E>(mut self, undo: F) -> Self
    where
        T: DeserializeOwned,
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure>,
    {
        let undo: UndoFn = Arc::new(move |output: Payload| match decode(&output, "the step's recorded output") {
            Ok(output) => undo(output).map(|done| done.map_err(Into::into)).boxed(),
            Err(failure) => async { Err(failure) }.boxed(),
        });
        if let Ok(call) = &mut self.call {
            call.set_undo(undo, Policy::default());
        }
        self
    }

    /// What follows a failed attempt to undo the step; comes after [`undo`](Step::undo).
    pub fn undo_retry(mut self, policy: Policy) -> Self {
        if let Ok(call) = &mut self.call
            && let Some(undo) = call.undo_policy()
        {
            *undo = policy;
        }
        self
    }

    /// Says that an attempt which may have happened must not simply be made again.
    ///
    /// That each attempt begins is recorded first, which costs a commit. If the process dies during one, the step is in doubt: its
    /// [`probe`](Step::probe) is asked what happened, or else a person, by [`Run::resolve`](crate::Run::resolve).
    ///
    /// An attempt that returns a failure counts as one that did not happen, and the policy decides whether there is another. One that panics or takes longer than
    /// its [`timeout`](Step::timeout) is in doubt as after a crash; if it turns out not to have happened, that is its failure.
    pub fn not_repeatable(mut self) -> Self {
        if let Ok(call) = &mut self.call {
            call.set_not_repeatable();
        }
        self
    }

    /// Who can tell what became of an attempt that is in doubt: `Some` of what it returned, or `None` if it did not happen and is to be made.
    pub fn probe<F, Fut, E>(mut self, mut probe: F) -> Self
    where
        T: Serialize,
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<Option<T>, E>> + Send + 'a,
        E: Into<Failure>,
    {
        let probe: Probe<'a> = Box::new(move || {
            let found = |output: Option<T>| output.map(|output| encode(&output, "the step's output")).transpose();
            probe().map(move |outcome| outcome.map_err(Into::into).and_then(found)).boxed()
        });
        if let Ok(call) = &mut self.call {
            call.set_probe(probe);
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
            Err(error) => Poll::Ready(Err(error.failure())),
        }
    }
}

/// A sleep on its way. Await it.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep(Result<SleepCall, CannotAsk>);

impl Future for Sleep {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(call) => Pin::new(call).poll(cx).map(Ok),
            Err(error) => Poll::Ready(Err(error.failure())),
        }
    }
}

/// A wait for a signal. Await it for what it says.
#[must_use = "a signal is not waited for unless this is awaited"]
pub struct Signal<T> {
    call: Result<SignalCall, CannotAsk>,
    payload: PhantomData<fn() -> T>,
}

impl<T> Signal<T> {
    /// How long to wait at the most.
    pub fn within(mut self, within: Duration) -> Self {
        if let Ok(call) = &mut self.call {
            call.set_within(within);
        }
        self
    }
}

impl<T: DeserializeOwned> Future for Signal<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match &mut self.call {
            Ok(call) => Pin::new(call).poll(cx).map(|outcome| outcome.and_then(|payload| decode(&payload, "the signal"))),
            Err(error) => Poll::Ready(Err(error.failure())),
        }
    }
}
