//! `steadfast run retry`.

use super::{Context, verbs};
use crate::args::Retry;
use crate::client::{Body, json_argument};
use crate::error::Error;
use crate::output;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use steadfast_server::shapes::RetryPreview;

pub(super) async fn run(context: &Context, args: Retry) -> Result<(), Error> {
    let from = if args.from_start { Some(String::new()) } else { args.from };
    let input = args.input.map(|input| json_argument("--input", &input)).transpose()?;
    let outputs: BTreeMap<String, Box<RawValue>> = args.outputs.iter().map(|output| supplied(output)).collect::<Result<_, _>>()?;
    let body = Body::default()
        .with("fromStep", from)
        .with("dryRun", args.dry_run.then_some(true))
        .with("input", input)
        .with("outputs", (!outputs.is_empty()).then_some(outputs));
    let answer = context.verb(&args.verb.run.run, "retry", body, &args.verb.why).await?;
    if !args.dry_run || context.json {
        return verbs::told(context, &answer, "begins another life");
    }
    output::data(told(&answer.read()?));
    Ok(())
}

/// `STEP=JSON`.
fn supplied(text: &str) -> Result<(String, Box<RawValue>), Error> {
    match text.split_once('=') {
        Some((step, json)) if !step.is_empty() => Ok((step.into(), json_argument("--output", json)?)),
        _ => Err(Error::Usage(format!("--output {text}: write it as STEP=JSON, like 'charge={{\"id\":5}}'"))),
    }
}

/// What a retry would do.
fn told(preview: &RetryPreview) -> String {
    let mut text = format!("life {} would begin; nothing was changed", preview.epoch);
    for (what, which) in [
        ("done again", &preview.runs_again),
        ("kept", &preview.kept),
        ("in doubt", &preview.in_doubt),
        ("supplied", &preview.supplied),
        ("keys sent again", &preview.repeated_keys),
        ("new keys", &preview.new_keys),
        ("children called off", &preview.cancelled_children),
        ("children started anew", &preview.restarted_children),
        ("signals to send again", &preview.signals_asked_again),
        ("slots to wait for", &preview.slots),
    ] {
        if !which.is_empty() {
            text += &format!("\n  {what:<22} {}", which.join(", "));
        }
    }
    text
}
