//! A task of a plan: stage after stage, each with what it leaves for those after it.
//!
//! What a stage leaves follows from what is on record, so that it is the same when the code is replayed. It is said in the turn in which the stage is
//! done: the outcome, the end of the stage and its checkpoint are one commit.

use super::{Outputs, Play, decode, encode};
use crate::definition::{Definition, Step};
use crate::kinds::{Kind, Tools};
use crate::template::{Scope, value};
use minijinja::Value;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_kernel::plan::Settings;
use steadfast_kernel::{Code, Failure, Payload, Recovery};
use steadfast_runtime::host::{Context, PlanSpec, Terms};

/// What goes for a plan that is created with those variables.
///
/// # Errors
/// If they are not what the definition asks for.
pub(super) fn terms(definition: &Definition, settings: &Settings, input: &Payload) -> Result<Terms, Failure> {
    checked(definition, input)?;
    Ok(Terms {
        recovery: Some(Recovery::Manual),
        definition: Some(definition.hash.clone()),
        plan: Some(Box::new(spec(definition, settings))),
        ..Terms::default()
    })
}

/// What goes for a plan, whatever it is given.
pub(crate) fn spec(definition: &Definition, settings: &Settings) -> PlanSpec {
    let stages = definition.steps.iter().map(|stage| stage.name.clone()).collect();
    let undoable = definition.steps.iter().map(|stage| stage.undo.is_some()).collect();
    PlanSpec { stages, undoable, settings: settings.clone() }
}

/// Carries a task out.
pub(super) async fn begin(
    definition: Arc<Definition>,
    vars: &Value,
    tools: Arc<Tools>,
    context: Context,
    input: Payload,
) -> Result<Payload, Failure> {
    let Some(task) = context.task() else {
        let message = format!("{} is a plan: it is created for tenants, not started by itself", definition.name);
        return Err(Failure::permanent(message).code(Code::InvalidArgument));
    };
    let given = checked(&definition, &input)?;
    let with_id = |id: &str| Value::from(BTreeMap::from([("id", Value::from(id))]));
    let scope = Scope::default()
        .with("tenant", task.tenant.as_str())
        .with("plan", with_id(task.plan.as_str()))
        .with("run", with_id(context.run_id().as_str()))
        .with("vars", merged(vars, &given))
        .with("input", value(&Json::Object(given)));
    Play { definition, context, tools, scope }.stages().await
}

impl Play {
    /// Carries out all stages. What they have left is the result.
    async fn stages(&self) -> Result<Payload, Failure> {
        let count = self.definition.steps.len();
        let (mut outputs, mut left): (Outputs, _) = (vec![None; count], Map::new());
        let mut done = 0;
        if let Some((stages, kept)) = self.context.adopted() {
            done = stages;
            if let Json::Object(kept) = decode(kept, "the checkpoint")? {
                left = kept;
            }
        }
        for index in 0..count {
            if index < done {
                let scope = self.scope_of([], &outputs).with("checkpoint", value(&Json::Object(left.clone())));
                self.recalled(index, scope).await?;
                outputs[index] = Some(Value::from(())); // it was returned elsewhere
                continue;
            }
            self.context.stage_started(index).map_err(|error| error.failure())?;
            let scope = self.scope_of(self.step(index).sees.iter().copied(), &outputs);
            let done = self.stage(index, scope.with("checkpoint", value(&Json::Object(left.clone()))), &mut left).await;
            match done {
                Ok(output) => outputs[index] = Some(output),
                Err(failure) => {
                    self.context.stage_failed(index, &failure).map_err(|error| error.failure())?;
                    return Err(failure);
                }
            }
        }
        Ok(encode(&Json::Object(left)))
    }

    /// Carries out one stage, and adds to what the stages before it have left. Nothing is awaited once its outcome is known.
    async fn stage(&self, index: usize, scope: Scope, left: &mut Map<String, Json>) -> Result<Value, Failure> {
        let stage = self.step(index);
        let output = self.carry_out(index, scope.clone()).await?;
        if let Some(output) = &output {
            check_approved(stage, output)?;
            left.extend(leaves(stage, scope, output)?);
        }
        let completed = self.context.stage_completed(index, encode(&Json::Object(left.clone())));
        completed.map_err(|mut failure| {
            failure.message = format!("step {}: {}", stage.name, failure.message);
            failure
        })?;
        Ok(value(&output.unwrap_or_default()))
    }
}

/// What a stage that is done leaves for those after it.
fn leaves(stage: &Step, scope: Scope, output: &Json) -> Result<Map<String, Json>, Failure> {
    let Some(checkpoint) = &stage.checkpoint else { return Ok(Map::new()) };
    match checkpoint.render(&scope.with("output", value(output)), &stage.name, "checkpoint")? {
        Json::Object(leaves) => Ok(leaves),
        _ => Ok(Map::new()), // it is a map, which was checked
    }
}

/// Only a yes lets a task go on.
fn check_approved(stage: &Step, answer: &Json) -> Result<(), Failure> {
    let is_gate = matches!(&*stage.kind, Kind::Approve(_));
    if is_gate && answer.get("approved") != Some(&Json::Bool(true)) {
        return Err(Failure::permanent(format!("{} was not approved", stage.name)).code(Code::FailedPrecondition));
    }
    Ok(())
}

/// The variables that the plan was given; none is as good as an empty map.
fn checked(definition: &Definition, input: &Payload) -> Result<Map<String, Json>, Failure> {
    let wrong = |why: &str| {
        let message = format!("the vars are not what {} asks for: {why}", definition.name);
        Err(Failure::permanent(message).code(Code::InvalidArgument))
    };
    let given = match decode(input, "the vars")? {
        Json::Object(given) => Json::Object(given),
        Json::Null => Json::Object(Map::new()),
        _ => return wrong("they have to be a map of names and values"),
    };
    match (definition.input.as_ref().map_or(Ok(()), |schema| schema.check(&given)), given) {
        (Err(why), _) => wrong(&why),
        (Ok(()), Json::Object(given)) => Ok(given),
        (Ok(()), _) => Ok(Map::new()),
    }
}

/// The server's variables and those that the plan was given, which win.
fn merged(of_server: &Value, given: &Map<String, Json>) -> Value {
    let names = of_server.try_iter().into_iter().flatten();
    let of_server = names.filter_map(|name| Some((name.as_str()?.to_string(), of_server.get_item(&name).ok()?)));
    let given = given.iter().map(|(name, given)| (name.clone(), value(given)));
    Value::from(of_server.chain(given).collect::<BTreeMap<String, Value>>())
}
