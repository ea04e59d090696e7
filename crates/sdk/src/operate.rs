//! What operators ask of a run, a plan, a lock or a dead letter: who wants it and why is kept on record, and the same command again is one.

use crate::{Error, Preview, Run};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::future::IntoFuture;
use steadfast_kernel::run::Verb as Wanted;
use steadfast_kernel::{LetterId, Origin, Payload, PlanId, RetryFrom, RetryRun, RunId, StepId, TenantId};
use steadfast_runtime as runtime;

/// Something asked of a run, a plan, a lock or a dead letter, that is being put together. Await it: when it returns, it is on record.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Act {
    engine: runtime::Engine,
    verb: Result<Verb, runtime::Error>,
    origin: Origin,
}

/// What is asked, and of whom.
pub(crate) enum Verb {
    Cancel(RunId),
    Terminate(RunId),
    Pause(RunId),
    Resume(RunId),
    Redrive(LetterId),
    Drop(LetterId),
    RollBack(RunId),
    Plan(PlanId, Wanted),
    BreakLock(TenantId),
    HandOver(TenantId),
}

impl Act {
    pub(crate) fn new(engine: &runtime::Engine, verb: Result<Verb, runtime::Error>) -> Self {
        Act { engine: engine.clone(), verb, origin: Origin::default() }
    }

    /// Who wants it; kept on record.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.origin.by = Some(who.into());
        self
    }

    /// Why; kept on record.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.origin.why = Some(why.into());
        self
    }

    /// What tells this command from others: the same again changes nothing, so that it can be sent until it is acknowledged.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.origin.command = Some(id.into());
        self
    }
}

impl IntoFuture for Act {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let Act { engine, verb, origin } = self;
            match verb? {
                Verb::Cancel(run) => engine.cancel(&run, origin).await?,
                Verb::Terminate(run) => engine.terminate(&run, origin).await?,
                Verb::Pause(run) => engine.pause(&run, origin).await?,
                Verb::Resume(run) => engine.resume(&run, origin).await?,
                Verb::RollBack(run) => engine.roll_back(&run, origin).await?,
                Verb::Plan(plan, wanted) => engine.operate_plan(&plan, wanted, origin).await?,
                Verb::BreakLock(tenant) => engine.break_lock(&tenant, origin).await?,
                Verb::HandOver(tenant) => drop(engine.hand_over(&tenant, origin).await?),
                Verb::Redrive(letter) => engine.redrive(&letter, origin).await?,
                Verb::Drop(letter) => engine.drop_letter(&letter, origin).await?,
            }
            Ok(())
        }
        .boxed()
    }
}

/// Another life of a run, that is being put together. Await it to have it begin, or [`preview`](Retry::preview) it.
#[must_use = "nothing is retried until this is awaited"]
pub struct Retry {
    run: Run,
    command: RetryRun,
    wrong: Option<Error>,
    /// It is to be taken up first.
    take_up: Option<TenantId>,
}

impl Retry {
    pub(crate) fn new(run: Run) -> Self {
        Retry { run, command: RetryRun::default(), wrong: None, take_up: None }
    }

    /// The task of that tenant is another instance's, and has to be taken up first.
    pub(crate) fn taking_up(mut self, tenant: TenantId) -> Self {
        self.take_up = Some(tenant);
        self
    }

    async fn begin(self) -> Result<(), Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if let Some(tenant) = self.take_up {
            let wanted = match self.command.from {
                RetryFrom::Start => runtime::Wanted::RetryFromStart,
                _ => runtime::Wanted::Retry,
            };
            self.run.engine.own_task_to(&tenant, Some(wanted), &self.command.origin).await?;
        }
        Ok(self.run.engine.retry(&self.run.id, self.command).await?)
    }

    /// Begins at that step, named as in the journal: `BRANCH/NAME#OCCURRENCE`; a name alone is its first occurrence in the code outside of branches.
    pub fn from_step(mut self, step: &str) -> Self {
        self.command.from = RetryFrom::Step(step_id(step));
        self
    }

    /// Begins from the start; nothing is kept.
    pub fn from_start(mut self) -> Self {
        self.command.from = RetryFrom::Start;
        self
    }

    /// Begins from the start with another input.
    pub fn input<I: Serialize + ?Sized>(mut self, input: &I) -> Self {
        self.command.input = self.encode("the input", input);
        self
    }

    /// Has a step not executed: this is what it is to have returned.
    pub fn output<T: Serialize + ?Sized>(mut self, step: &str, output: &T) -> Self {
        if let Some(output) = self.encode(&format!("the output of step {step}"), output) {
            self.command.outputs.push((step_id(step), output));
        }
        self
    }

    /// Who wants it; kept on record.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.command.origin.by = Some(who.into());
        self
    }

    /// Why; kept on record.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.command.origin.why = Some(why.into());
        self
    }

    /// What tells this command from others: the same again changes nothing, so that it can be sent until it is acknowledged.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.command.origin.command = Some(id.into());
        self
    }

    /// What would be executed again, what would be kept, and who would be touched; nothing changes.
    ///
    /// # Errors
    /// As the retry itself.
    pub async fn preview(self) -> Result<Preview, Error> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.run.engine.preview(&self.run.id, self.command).await?),
        }
    }

    fn encode<T: Serialize + ?Sized>(&mut self, what: &str, value: &T) -> Option<Payload> {
        match serde_json::to_vec(value) {
            Ok(bytes) => Some(Payload::json(bytes)),
            Err(source) => {
                self.wrong = Some(Error::Unreadable { what: what.into(), source });
                None
            }
        }
    }
}

impl IntoFuture for Retry {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.begin().boxed()
    }
}

fn step_id(step: &str) -> StepId {
    if step.contains('#') { StepId::from_stored(step) } else { StepId::from_stored(&format!("{step}#1")) }
}
