//! A plan that is being created.

use super::PlanHandle;
use crate::{Engine, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::future::IntoFuture;
use steadfast_kernel::{Answer, Origin, Payload};
use steadfast_runtime as runtime;

impl Engine {
    /// Creates a plan of a registered definition, with a task for every tenant. Await it: when it returns, the plan and its tasks are durable. Nothing of it begins before it is
    /// [started](PlanHandle::start).
    pub fn create_plan(&self, definition: &str) -> CreatePlan {
        let plan = runtime::CreatePlan {
            definition: definition.into(),
            tenants: Vec::new(),
            id: None,
            input: Payload::json("{}"),
            max_concurrency: None,
            origin: Origin::default(),
        };
        CreatePlan { engine: self.clone(), plan, wrong: None }
    }
}

/// A plan that is being created. Await it.
#[must_use = "a plan is created when this is awaited"]
pub struct CreatePlan {
    engine: Engine,
    plan: runtime::CreatePlan,
    wrong: Option<Error>,
}

impl CreatePlan {
    /// Whom it is for, in that order. One who is named twice is one.
    pub fn tenants(mut self, tenants: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.plan.tenants.extend(tenants.into_iter().map(Into::into));
        self
    }

    /// Names the plan, which makes its creation idempotent: the same again gives the same plan. Without it an id is made.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.plan.id = Some(id.into());
        self
    }

    /// What its stages can ask for by name: an object.
    pub fn vars<T: Serialize + ?Sized>(mut self, vars: &T) -> Self {
        match serde_json::to_vec(vars) {
            Ok(bytes) => self.plan.input = Payload::json(bytes),
            Err(source) => self.wrong = Some(Error::Unreadable { what: "the variables of the plan".into(), source }),
        }
        self
    }

    /// How many tasks may be under way at once; as the definition says if nothing is said here.
    pub fn max_concurrency(mut self, tasks: u32) -> Self {
        self.plan.max_concurrency = Some(tasks);
        self
    }

    /// Who wants it; kept on record.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.plan.origin.by = Some(who.into());
        self
    }

    /// Why; kept on record.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.plan.origin.why = Some(why.into());
        self
    }

    async fn send(self) -> Result<PlanHandle, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let (id, answer) = self.engine.inner.create_plan(self.plan).await?;
        Ok(PlanHandle { engine: self.engine, id, is_new: answer == Answer::Created })
    }
}

impl IntoFuture for CreatePlan {
    type Output = Result<PlanHandle, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}
