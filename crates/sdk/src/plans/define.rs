//! A plan as code: its stages, and how it goes about its tasks.

use super::Task;
use crate::EngineBuilder;
use crate::workflow::{decode, encode};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::plan::{Settings, StopWhen};
use steadfast_kernel::{Code, Conflict, Failure, OnFailure, Payload, Policy, WorkflowName};
use steadfast_runtime as runtime;
use steadfast_runtime::host::{self, Context, UndoFn, Until};

type Carry = Arc<dyn Fn(Task) -> BoxFuture<'static, Result<Value, Failure>> + Send + Sync>;
type CarryBack = Arc<dyn Fn(Task) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

/// A plan as code: what is done for every tenant, stage by stage, and how many tenants at once.
///
/// ```
/// use steadfast::{Engine, Failure, Plan, Policy, SECOND, Task};
///
/// async fn drain(task: Task) -> Result<serde_json::Value, Failure> {
///     Ok(serde_json::json!({ "drained": format!("{} connections", task.tenant().len()) })) // kept in the checkpoint
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), steadfast::Error> {
/// # let clock = steadfast::VirtualClock::start();
/// let switch = Plan::new("switch")
///     .max_concurrency(2)
///     .canary(1)
///     .stage("drain", drain)
///     .retry(Policy::exponential(SECOND).max_attempts(3))
///     .undo(|_task| async { Ok::<_, Failure>(()) })
///     .stage("verify", |task: Task| async move {
///         let drained: String = task.checkpoint("drained")?;
///         Ok::<_, Failure>(serde_json::json!({ "verified": drained }))
///     });
/// let engine = Engine::in_memory()
/// #   .clock(clock)
///     .plan(switch)
///     .start()
///     .await?;
/// let plan = engine.create_plan("switch").tenants(["acme", "globex", "initech"]).await?;
/// plan.start().why("the new gateway").await?;
/// let ended = plan.ended().await?;
/// assert_eq!(ended.status, steadfast::PlanStatus::Completed);
/// # Ok(()) }
/// ```
#[must_use = "a plan does nothing until an engine has it"]
#[derive(Clone)]
pub struct Plan {
    pub(super) name: String,
    settings: Settings,
    stages: Vec<StageOf>,
    wrong: Option<String>,
}

#[derive(Clone)]
struct StageOf {
    name: String,
    does: Does,
    policy: Policy,
    timeout: Option<Duration>,
    undo: Option<(CarryBack, Policy)>,
}

#[derive(Clone)]
enum Does {
    Work(Carry),
    Wait(Duration),
    Approve { roles: Vec<String>, within: Option<Duration> },
}

impl Plan {
    /// A plan without stages.
    pub fn new(name: impl Into<String>) -> Self {
        Plan { name: name.into(), settings: Settings::default(), stages: Vec::new(), wrong: None }
    }

    /// Adds a stage. What it returns is a JSON object, which is kept in the checkpoint for the stages after it, or `()`. It may be made more than once: it should be
    /// safe to repeat, for example by the [key](Task::idempotency_key) that is the same for all attempts.
    pub fn stage<T, E, F, Fut>(mut self, name: impl Into<String>, stage: F) -> Self
    where
        T: Serialize,
        E: Into<Failure>,
        F: Fn(Task) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let left = |value: T| {
            serde_json::to_value(value).map_err(|error| {
                Failure::permanent(format!("what the stage returned cannot be written as JSON: {error}")).code(Code::InvalidArgument)
            })
        };
        let does = Does::Work(Arc::new(move |task| stage(task).map(move |outcome| outcome.map_err(Into::into).and_then(left)).boxed()));
        self.stages
            .push(StageOf { name: name.into(), does, policy: Policy::default(), timeout: None, undo: None });
        self
    }

    /// Adds a stage that only waits. A wait outlasts the process: the task is not interrupted by a restart.
    pub fn wait(mut self, name: impl Into<String>, time: Duration) -> Self {
        self.stages
            .push(StageOf { name: name.into(), does: Does::Wait(time), policy: Policy::default(), timeout: None, undo: None });
        self
    }

    /// Adds a stage that waits for a person's yes: a signal of its name to the task, `{"approved": true}`, by one in those roles, or by anybody if there are none. A no,
    /// or none in time, fails the task.
    pub fn approve(
        mut self,
        name: impl Into<String>,
        roles: impl IntoIterator<Item = impl Into<String>>,
        within: Option<Duration>,
    ) -> Self {
        let does = Does::Approve { roles: roles.into_iter().map(Into::into).collect(), within };
        self.stages
            .push(StageOf { name: name.into(), does, policy: Policy::default(), timeout: None, undo: None });
        self
    }

    /// What follows a failed attempt of the stage that was added last.
    pub fn retry(self, policy: Policy) -> Self {
        self.last("retry", |stage| stage.policy = policy)
    }

    /// How long one attempt of the stage that was added last may take.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.last("timeout", |stage| stage.timeout = Some(timeout))
    }

    /// How the stage that was added last is undone, if a person has the task rolled back. What the stage returned is the task's [output](Task::output) then.
    pub fn undo<E, F, Fut>(self, undo: F) -> Self
    where
        E: Into<Failure>,
        F: Fn(Task) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        let undo: CarryBack = Arc::new(move |task| undo(task).map(|done| done.map_err(Into::into)).boxed());
        self.last("undo", |stage| stage.undo = Some((undo, Policy::default())))
    }

    /// What follows a failed attempt to undo the stage that was added last; comes after [`undo`](Plan::undo).
    pub fn undo_retry(self, policy: Policy) -> Self {
        self.last("undo_retry", |stage| stage.undo.iter_mut().for_each(|undo| undo.1 = policy.clone()))
    }

    /// How many tasks may be under way at once: five, unless it is said.
    pub fn max_concurrency(mut self, tasks: u32) -> Self {
        self.settings.max_concurrency = tasks;
        self
    }

    /// That many tasks come first; the others begin once they have completed.
    pub fn canary(mut self, tasks: u32) -> Self {
        self.settings.canary = tasks;
        self
    }

    /// When no other task begins.
    pub fn stop_when(mut self, rule: StopWhen) -> Self {
        self.settings.stop_when = Some(rule);
        self
    }

    /// What it does about tenants that are locked.
    pub fn conflict(mut self, conflict: Conflict) -> Self {
        self.settings.conflict = conflict;
        self
    }

    /// What becomes of a tenant's lock if its task fails: it is kept until a person decides, unless something else is said.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings.on_failure = on_failure;
        self
    }

    /// How long it may take from its start before it pauses.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = Some(deadline);
        self
    }

    /// For how long a tenant's lock is a task's own without being renewed: two and a half hours, unless it is said. It is renewed at a third of that.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    fn last(mut self, what: &str, change: impl FnOnce(&mut StageOf)) -> Self {
        match self.stages.last_mut() {
            Some(stage) => change(stage),
            None => self.wrong = Some(format!("{what} of plan {} comes before its first stage", self.name)),
        }
        self
    }

    fn check(&self) -> Result<(), String> {
        let mut names = std::collections::BTreeSet::new();
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        if self.stages.is_empty() {
            return Err(format!("plan {} has no stages", self.name));
        }
        for stage in &self.stages {
            steadfast_kernel::StepId::new("", &stage.name, 1).map_err(|invalid| invalid.to_string())?;
            if !names.insert(&stage.name) {
                return Err(format!("plan {} has two stages named {}", self.name, stage.name));
            }
        }
        if self.settings.max_concurrency == 0 || self.settings.lease.is_zero() {
            return Err(format!("max_concurrency and lease of plan {} must be more than nothing", self.name));
        }
        Ok(())
    }
}

impl EngineBuilder {
    /// Adds a plan. Plans and workflows have their names in common.
    pub fn plan(mut self, plan: Plan) -> Self {
        let registered = WorkflowName::new(&plan.name).map_err(runtime::Error::from).and_then(|name| {
            plan.check().map_err(runtime::Error::InvalidSetting)?;
            match self.inner.registry.get(&name) {
                Some(_) => Err(runtime::Error::InvalidSetting(format!("{name} is registered twice"))),
                None => Ok(name),
            }
        });
        match registered {
            Ok(name) => drop(self.inner.registry.insert(name, runtime::Registered::plan(Arc::new(Hosted(Arc::new(plan)))))),
            Err(wrong) => self.wrong = Some(wrong),
        }
        self
    }
}

/// A plan as the host sees it: the code of its tasks.
struct Hosted(Arc<Plan>);

impl host::Code for Hosted {
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        carry_out(Arc::clone(&self.0), context, input).boxed()
    }

    fn terms(&self, input: &Payload) -> Result<runtime::Terms, Failure> {
        decode::<Map<String, Value>>(input, "the variables of the plan")?;
        Ok(runtime::Terms { plan: self.plan().map(Box::new), ..runtime::Terms::default() })
    }

    fn plan(&self) -> Option<runtime::PlanSpec> {
        let stages = self.0.stages.iter().map(|stage| stage.name.clone()).collect();
        let undoable = self.0.stages.iter().map(|stage| stage.undo.is_some()).collect();
        Some(runtime::PlanSpec { stages, undoable, settings: self.0.settings.clone() })
    }
}

/// One task: stage after stage, each with its checkpoint.
async fn carry_out(plan: Arc<Plan>, context: Context, input: Payload) -> Result<Payload, Failure> {
    let mut task = Task::of(&context, decode(&input, "the variables of the plan")?);
    let done = match context.adopted() {
        Some((done, left)) => {
            task.keep(decode(left, "the checkpoint")?)?;
            done
        }
        None => 0,
    };
    for (index, stage) in plan.stages.iter().enumerate() {
        if index < done {
            stage.recall(&context, &task).await?;
            continue;
        }
        context.stage_started(index).map_err(|error| error.failure())?;
        task.stage.clone_from(&stage.name);
        let done = match stage.carry_out(&context, &task).await {
            Ok(left) => task.keep(left).and_then(|()| context.stage_completed(index, task.data()?)),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = done {
            context.stage_failed(index, &failure).map_err(|error| error.failure())?;
            return Err(failure);
        }
    }
    task.data()
}

impl StageOf {
    async fn carry_out(&self, context: &Context, task: &Task) -> Result<Value, Failure> {
        match &self.does {
            Does::Work(carry) => self.work(context, carry, task).await,
            Does::Wait(time) => {
                context.sleep(Until::After(*time)).map_err(|error| error.failure())?.await;
                Ok(Value::Null)
            }
            Does::Approve { roles, within } => {
                let mut call = context.approval(&self.name, roles.clone()).map_err(|error| error.failure())?;
                if let Some(within) = within {
                    call.set_within(*within);
                }
                match decode::<Value>(&call.await?, "the answer")?.get("approved") {
                    Some(Value::Bool(true)) => Ok(Value::Null),
                    _ => Err(Failure::permanent(format!("{} was not approved", self.name)).code(Code::FailedPrecondition)),
                }
            }
        }
    }

    /// Another instance has carried it out: it is on record as a step that has returned nothing, and can be undone.
    async fn recall(&self, context: &Context, task: &Task) -> Result<(), Failure> {
        let unknown: Carry = Arc::new(|_| async { Err(Failure::permanent("another instance has carried the stage out")) }.boxed());
        let mut task = task.clone();
        task.stage.clone_from(&self.name);
        self.work(context, &unknown, &task).await.map(drop)
    }

    async fn work(&self, context: &Context, carry: &Carry, task: &Task) -> Result<Value, Failure> {
        let (does, of_attempts) = (Arc::clone(carry), task.clone());
        let attempts = Box::new(move || {
            let attempt = does(of_attempts.clone());
            async move { encode(&attempt.await?, "what the stage returned") }.boxed()
        });
        let mut call = context.step(&self.name, attempts).map_err(|error| error.failure())?;
        call.set_policy(match self.timeout {
            Some(timeout) => self.policy.clone().attempt_timeout(timeout),
            None => self.policy.clone(),
        });
        if let Some((undo, policy)) = &self.undo {
            let (undo, task) = (Arc::clone(undo), task.clone());
            let undo: UndoFn = Arc::new(move |output: Payload| match decode(&output, "what the stage returned") {
                Ok(output) => undo(task.clone().returned(output)),
                Err(failure) => async { Err(failure) }.boxed(),
            });
            call.set_undo(undo, policy.clone());
        }
        decode(&call.await?, "what the stage returned")
    }
}
