//! The beginning and the end of a run: its terms, its input, its result.

use super::{Play, decode, encode, task};
use crate::definition::{Concurrency, Definition};
use crate::kinds::Tools;
use crate::template::{Scope, value};
use minijinja::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_kernel::random::digest;
use steadfast_kernel::{Code, Failure, LimitKey, Payload};
use steadfast_runtime::host::{Context, Terms};

/// What goes for a run that is started with that input.
///
/// # Errors
/// If the input is not what the definition asks for.
pub(crate) fn terms(definition: &Definition, vars: &Value, input: &Payload) -> Result<Terms, Failure> {
    if let Some(settings) = &definition.plan {
        return task::terms(definition, settings, input);
    }
    let input = checked(definition, input)?;
    let scope = Scope::default().with("input", value(&input)).with("vars", vars.clone());
    let limit = definition.concurrency.as_ref().map(|concurrency| limit(concurrency, &scope)).transpose()?;
    Ok(Terms {
        recovery: Some(definition.recovery),
        deadline: definition.deadline,
        limits: limit.into_iter().collect(),
        definition: Some(definition.hash.clone()),
        plan: None,
    })
}

fn limit(concurrency: &Concurrency, scope: &Scope) -> Result<(String, u32), Failure> {
    let key = concurrency.key.text(scope, "", "concurrency.key")?;
    let key = if LimitKey::of_key(&key).is_ok() { key } else { digest(&key) }; // keys are e-mail addresses, names, anything
    Ok((key, concurrency.limit))
}

/// Carries the definition out.
pub(crate) async fn begin(
    definition: Arc<Definition>,
    vars: Value,
    tools: Arc<Tools>,
    context: Context,
    input: Payload,
) -> Result<Payload, Failure> {
    if definition.is_plan() {
        return task::begin(definition, &vars, tools, context, input).await;
    }
    if context.definition().is_none() {
        terms(&definition, &vars, &input)?; // a child whose terms were refused begins all the same, without any: here it is told why
    }
    let input = checked(&definition, &input)?;
    let run = Value::from(BTreeMap::from([("id", Value::from(context.run_id().as_str()))]));
    let scope = Scope::default().with("input", value(&input)).with("vars", vars).with("run", run);
    let play = Play { definition, context, tools, scope };
    let outputs = play.walk().await?;
    match &play.definition.output {
        Some(output) => {
            let scope = play.scope_of(0..outputs.len(), &outputs);
            Ok(encode(&output.render(&scope, "", "output")?))
        }
        None => Ok(encode(&Json::Null)),
    }
}

fn checked(definition: &Definition, input: &Payload) -> Result<Json, Failure> {
    let input = decode(input, "the input")?;
    let wrong =
        |why: String| Failure::permanent(format!("the input is not what {} asks for: {why}", definition.name)).code(Code::InvalidArgument);
    match &definition.input {
        Some(schema) => schema.check(&input).map_err(wrong).map(|()| input),
        None => Ok(input),
    }
}
