//! What the code of a stage is given.

use crate::Ctx;
use crate::workflow::encode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use steadfast_kernel::{Code, Failure, Payload, TaskOptions};
use steadfast_runtime::host::Context;

/// What a stage knows of the task that it is part of.
#[derive(Clone)]
pub struct Task {
    ctx: Ctx,
    options: Arc<TaskOptions>,
    vars: Arc<Map<String, Value>>,
    pub(super) stage: String,
    kept: Arc<Map<String, Value>>,
    output: Arc<Value>,
}

impl Task {
    pub(super) fn of(context: &Context, vars: Map<String, Value>) -> Self {
        let options = match context.task() {
            Some(options) => options.clone(),
            None => unreachable!("no run of a plan's code is started but by a plan"),
        };
        Task {
            ctx: Ctx::new(context.clone()),
            options: Arc::new(options),
            vars: Arc::new(vars),
            stage: String::new(),
            kept: Arc::default(),
            output: Arc::new(Value::Null),
        }
    }

    /// Whose turn it is.
    pub fn tenant(&self) -> &str {
        self.options.tenant.as_str()
    }

    /// The id of the plan.
    pub fn plan(&self) -> &str {
        self.options.plan.as_str()
    }

    /// The name of the stage.
    pub fn stage(&self) -> &str {
        &self.stage
    }

    /// A variable that the plan was created with.
    ///
    /// # Errors
    /// A permanent failure if there is none, or it is something else than a `T`.
    pub fn var<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        read(&self.vars, name, "there is no such variable, or it is something else")
    }

    /// What an earlier stage has left.
    ///
    /// # Errors
    /// A permanent failure if there is nothing, or it is something else than a `T`.
    pub fn checkpoint<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        read(&self.kept, name, "no earlier stage has left it, or it is something else")
    }

    /// In an undo: what the stage returned.
    ///
    /// # Errors
    /// A permanent failure if it is something else than a `T`.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_value((*self.output).clone()).map_err(|_| wrong("the output", "it is something else"))
    }

    /// The key that is the same for all attempts of this stage of this task, and for no other; nothing outside of a stage.
    pub fn idempotency_key(&self) -> Option<String> {
        self.ctx.idempotency_key()
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.ctx.attempt()
    }

    /// How a long stage says that it lives, and how far it has come.
    pub fn heartbeat(&self) -> crate::Heartbeat {
        self.ctx.heartbeat()
    }

    /// Keeps what a stage has returned for those after it.
    pub(super) fn keep(&mut self, left: Value) -> Result<(), Failure> {
        match left {
            Value::Null => Ok(()),
            Value::Object(left) => {
                Arc::make_mut(&mut self.kept).extend(left);
                Ok(())
            }
            _ => Err(wrong(&format!("what stage {} returned", self.stage), "return an object, or nothing")),
        }
    }

    pub(super) fn data(&self) -> Result<Payload, Failure> {
        encode(&*self.kept, "the checkpoint")
    }

    pub(super) fn returned(mut self, output: Value) -> Self {
        self.output = Arc::new(output);
        self
    }
}

fn read<T: DeserializeOwned>(from: &Map<String, Value>, name: &str, why: &str) -> Result<T, Failure> {
    let value = from.get(name).cloned().unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|_| wrong(name, why))
}

fn wrong(what: &str, why: &str) -> Failure {
    Failure::permanent(format!("{what} cannot be used: {why}")).code(Code::InvalidArgument)
}
