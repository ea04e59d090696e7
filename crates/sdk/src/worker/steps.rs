//! Single steps that a worker brings: each is a workflow of one step, so that what goes for runs goes for it.

use super::{WorkerBuilder, wrong};
use crate::means::Means;
use crate::messages::step_name;
use crate::workflow::{decode, encode};
use crate::{Ctx, Settings};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use steadfast_kernel::{Failure, Payload, Policy, WorkflowName};
use steadfast_runtime as runtime;
use steadfast_runtime::host;

impl WorkerBuilder {
    /// Adds a single step, which workflows that are hosted elsewhere use: definitions by `start: { workflow: NAME, input: … }`, code by
    /// [`Ctx::start_and_wait`](Ctx::start_and_wait). The handler is called once per attempt, with the default policy; [`step_with`](Self::step_with) says otherwise.
    ///
    /// ```no_run
    /// use steadfast::worker::Worker;
    /// use steadfast::{Ctx, Failure};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Failure> {
    /// let charge = |ctx: Ctx, amount: u64| async move {
    ///     Ok::<_, Failure>(format!("charged {amount} as {}", ctx.idempotency_key().unwrap_or_default()))
    /// };
    /// let worker = Worker::of("http://127.0.0.1:7373").name("till-1").step("charge", charge).start().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Durability
    /// It is a workflow of that one step: each use of it is a run of its own, which waits with the reason `NO_WORKER` while nobody has the step, goes to another worker if its own is lost,
    /// and whose outcome is recorded once. What the handler has of [`Ctx`] is what goes for the attempt: its key, whether it is [redelivered](Ctx::redelivered), its heartbeat.
    pub fn step<I, T, E, F, Fut>(self, name: &str, handler: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        T: Serialize + 'static,
        E: Into<Failure> + 'static,
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.step_with(name, Policy::default(), handler)
    }

    /// The same, with what follows a failed attempt.
    pub fn step_with<I, T, E, F, Fut>(self, name: &str, policy: Policy, handler: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        T: Serialize + 'static,
        E: Into<Failure> + 'static,
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let single = Single { name: step_name(name), policy, handler: Arc::new(handler), means: self.means.clone(), input: PhantomData };
        self.add(name, Arc::new(single), Settings::default())
    }

    /// Adds code under that name.
    pub(super) fn add(mut self, name: &str, code: Arc<dyn host::Code>, settings: Settings) -> Self {
        match (WorkflowName::new(name), settings.slots()) {
            (_, Some(0)) => self.wrong = Some(wrong(format!("the limit of workflow {name} is 0; it needs at least one slot"))),
            (Ok(name), _) if self.worker.registry.get(&name).is_some() => {
                self.wrong = Some(wrong(format!("workflow {name} is registered twice")))
            }
            (Ok(name), slots) => {
                let registered = runtime::Registered { code, recovery: settings.recovery(), slots, is_plan: false };
                self.worker.registry.insert(name, registered);
            }
            (Err(invalid), _) => self.wrong = Some(wrong(invalid.to_string())),
        }
        self
    }
}

/// A step as the host sees it.
struct Single<I, F> {
    name: String,
    policy: Policy,
    handler: Arc<F>,
    means: Means,
    input: PhantomData<fn(I)>,
}

impl<I, T, E, F, Fut> host::Code for Single<I, F>
where
    I: DeserializeOwned + Send + 'static,
    T: Serialize + 'static,
    E: Into<Failure> + 'static,
    F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
{
    fn begin(&self, context: host::Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        let (ctx, handler) = (Ctx::with(context, self.means.clone()), Arc::clone(&self.handler));
        let (name, policy) = (self.name.clone(), self.policy.clone());
        async move {
            let attempt = || {
                let handled = decode(&input, "the input").map(|input: I| handler(ctx.clone(), input));
                async move { encode(&handled?.await.map_err(Into::into)?, "the step's output") }
            };
            ctx.step_of_bytes(&name, policy, attempt).await
        }
        .boxed()
    }
}
