//! Runs that are started by a run.

use crate::Ctx;
use crate::workflow::{decode, encode};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::{Future, IntoFuture, ready};
use std::time::Duration;
use steadfast_kernel::{Code, Failure, LimitKey, Limiting, RunId, check_tenant};
use steadfast_runtime::host::{self, CannotAsk};

impl Ctx {
    /// Starts another run. Await it: the child is on record with the turn that is being taken, and begins after that.
    ///
    /// The child is a run of its own: with its own id, journal and retries. Its id is made of this run's, unless [`id`](StartChild::id) says otherwise. If
    /// this run fails or is cancelled, children that have not ended are cancelled too, unless they are [detached](StartChild::detached); if it completes,
    /// they go on.
    ///
    /// ```
    /// # use steadfast::{Ctx, Failure, workflow};
    /// #[workflow]
    /// async fn order(ctx: Ctx, id: String) -> Result<String, Failure> {
    ///     let shipping = ctx.start("ship", &id).await?;
    ///     ctx.start("notify", &id).detached().await?;
    ///     shipping.result().await
    /// }
    /// ```
    ///
    /// # Errors
    /// If the workflow's name or a setting is not allowed, or it is asked for outside of the workflow's own future.
    pub fn start<I: Serialize + ?Sized>(&self, workflow: &str, input: &I) -> StartChild {
        let child = encode(input, "the input of a child")
            .and_then(|input| self.context().start(workflow, input).map_err(|error: CannotAsk| error.failure()));
        StartChild(child)
    }

    /// Starts another run and waits for its result.
    ///
    /// # Errors
    /// As [`start`](Ctx::start), and the failure of the child if it fails.
    pub fn start_and_wait<I: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        workflow: &str,
        input: &I,
    ) -> impl Future<Output = Result<T, Failure>> + Send + 'static {
        let child = self.start(workflow, input);
        async move { child.await?.result().await }
    }
}

/// A child that is about to be started. Await it.
#[must_use = "a child is started when this is awaited"]
pub struct StartChild(Result<host::StartChild, Failure>);

impl StartChild {
    /// Names the child. If there is a run of that id that is not this child, the child counts as failed with `FAILED_PRECONDITION`. A child that was named is not
    /// started anew in a later life of this run: what became of it counts, so retry the child before its parent.
    pub fn id(self, id: &str) -> Self {
        let id = RunId::new(id).map_err(|error| CannotAsk::from(error).failure());
        self.set(|child| id.map(|id| child.run = Some(id)))
    }

    /// How long the child may take in all.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.set(|child| {
            child.deadline = Some(deadline);
            Ok(())
        })
    }

    /// Whose work it is; that of the parent's tenant unless this says otherwise.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        let tenant = tenant.into();
        self.set(|child| {
            check_tenant(&tenant).map_err(|error| CannotAsk::from(error).failure())?;
            child.tenant = Some(tenant);
            Ok(())
        })
    }

    /// Has the child wait for a slot: of all runs with that key, so many may be under way at once.
    pub fn limit(self, key: &str, slots: u32) -> Self {
        let key = LimitKey::of_key(key).map_err(|error| CannotAsk::from(error).failure());
        self.set(|child| {
            if slots == 0 {
                return Err(Failure::permanent("a limit needs at least one slot").code(Code::InvalidArgument));
            }
            child.limits.push(Limiting { key: key?, slots });
            Ok(())
        })
    }

    /// Nobody waits for the child, and it goes on when this run fails or is cancelled.
    pub fn detached(self) -> Self {
        self.set(|child| {
            child.detached = true;
            Ok(())
        })
    }

    fn set(mut self, set: impl FnOnce(&mut host::StartChild) -> Result<(), Failure>) -> Self {
        if let Ok(child) = &mut self.0
            && let Err(failure) = set(child)
        {
            self.0 = Err(failure);
        }
        self
    }
}

impl IntoFuture for StartChild {
    type Output = Result<Child, Failure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        ready(())
            .map(|()| self.0.and_then(|child| Ok(Child { detached: child.detached, child: child.start()? })))
            .boxed()
    }
}

/// A child that was started.
pub struct Child {
    child: host::Child,
    detached: bool,
}

impl Child {
    /// The id of the run.
    pub fn run_id(&self) -> &RunId {
        self.child.run_id()
    }

    /// Waits for the child's result, however long it takes.
    ///
    /// # Errors
    /// The failure of the child if it fails or is cancelled; or if its result is not a `T`, or it is detached.
    pub async fn result<T: DeserializeOwned>(self) -> Result<T, Failure> {
        if self.detached {
            return Err(Failure::permanent("the child is detached: nobody is told its result"));
        }
        decode(&self.child.await?, "the result of a child")
    }
}
