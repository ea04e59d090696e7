//! `steadfast run start`: and, if wanted, how it goes and what came of it.

use super::why::told;
use super::{Context, path};
use crate::args::Start;
use crate::client::{Answer, Ask, Body, fresh_key, json_argument};
use crate::error::Error;
use crate::live::{Away, View, Watch, steps};
use crate::output::{self, time};
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Run, Status, StepStatus};

/// How long it may be silent before it is looked at anyway.
const SILENCE_MAX: Duration = Duration::from_secs(15);

pub(super) async fn run(context: &Context, args: Start) -> Result<(), Error> {
    let input = args.input.as_ref().map(|input| json_argument("--input", input)).transpose()?;
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // With an id of its own, a start whose answer got lost can be sent again.
    let id = args.id.clone().map_or_else(fresh_key, Ok)?;
    let body = Body::default()
        .with("workflow", Some(&args.workflow))
        .with("input", input)
        .with("id", Some(&id))
        .with("tenant", args.tenant.as_ref())
        .with("deadlineMs", args.deadline.map(millis));
    let answer = context.client.post("/v1/runs", Ask { body: Some(body), ..Ask::default() }).await?;
    let Some(wait) = args.wait else { return started(context, &answer) };
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(left(&id)),
        ended = ended(context, &id, wait) => {
            let (answer, run) = ended?;
            outcome(context, &answer, &run)
        }
    }
}

fn started(context: &Context, answer: &Answer) -> Result<(), Error> {
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    let run: Run = answer.read()?;
    output::data(&run.id);
    let what = if answer.status.as_u16() == 200 { "it was there already" } else { "started" };
    output::hint(format_args!("{what}; look at it with: steadfast run show {}", run.id));
    Ok(())
}

fn left(id: &str) -> Error {
    output::say(format_args!(
        "\nthe run goes on without you; look at it with: steadfast run show {id}\ncall it off with: steadfast run cancel {id}"
    ));
    Error::Said(130)
}

/// Shows how a run goes until it is over, a person has to decide, or the time is up.
async fn ended(context: &Context, id: &str, wait: Duration) -> Result<(Answer, Run), Error> {
    let until = time::now().saturating_add(wait);
    let (mut watch, mut view, mut away) = (Watch::new(&context.client, id), View::new(), Away::default());
    let mut last: Option<(Answer, Run)> = None;
    let mut look = true;
    loop {
        if look {
            watch.connect().await;
            match context.client.get(&path(id, ""), Vec::new()).await {
                Ok(answer) => {
                    let run = answer.read()?;
                    last = Some((answer, run));
                    away.is_back();
                }
                Err(error) => {
                    if away.tolerate(error)? {
                        view.say("the server does not answer; trying again (the run is kept)");
                    }
                }
            }
        }
        let now = time::now();
        if let Some((_, run)) = &last {
            view.show(run, now);
        }
        match last.take() {
            Some((answer, run)) if run.status.is_final() || run.status == Status::Interrupted => return Ok((answer, run)),
            other => last = other,
        }
        let rest = until.saturating_since(now);
        if rest.is_zero() {
            let what = format!("{id} has not ended in that time; it goes on, look at it with: steadfast run show {id}");
            return Err(Error::Failed(what));
        }
        let pause = if view.ticks() { Duration::from_secs(1) } else { SILENCE_MAX };
        let changed = watch.changed(pause.min(rest)).await;
        look = changed || !view.ticks() || away.is_away() || last.as_ref().is_some_and(|(_, run)| is_due(run, time::now()));
    }
}

/// Whether a step is tried again by now: that an attempt begins is no event, so nobody is told.
fn is_due(run: &Run, now: Timestamp) -> bool {
    let tried_again = steps::of(run).iter().filter(|step| step.status == StepStatus::Backoff);
    tried_again.filter_map(|step| step.next_attempt_at).any(|due| due.0 <= now)
}

/// The result to stdout, or why there is none.
fn outcome(context: &Context, answer: &Answer, run: &Run) -> Result<(), Error> {
    let result = run.result.as_ref().map_or("null", |result| result.as_str());
    if context.json {
        output::data(&answer.text);
    } else if run.status == Status::Completed {
        output::data(pretty(result));
    }
    match run.status {
        Status::Completed => Ok(()),
        _ if context.json => Err(Error::Said(1)),
        Status::Failed => Err(Error::Failed(format!(
            "{} failed{}\n  see what happened with: steadfast run show {}",
            run.id,
            run.failure.as_ref().map(|failure| format!(": {}", told(failure))).unwrap_or_default(),
            run.id
        ))),
        status => Err(Error::Failed(format!("{} is {}; see: steadfast run show {}", run.id, status.as_str().to_lowercase(), run.id))),
    }
}

/// JSON in many lines for people, as it came for programs.
pub(crate) fn pretty(json: &str) -> String {
    let value = || serde_json::from_str::<serde_json::Value>(json).ok();
    let pretty = || value().and_then(|value| serde_json::to_string_pretty(&value).ok());
    if output::is_read_by_a_person() { pretty().unwrap_or_else(|| json.into()) } else { json.into() }
}
