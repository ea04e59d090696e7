//! `steadfast run pause|resume|cancel|replay`.

use super::{Context, path};
use crate::args::{Cancel, Verb};
use crate::client::{Answer, Ask, Body};
use crate::error::Error;
use crate::output;
use steadfast_server::shapes::{Mismatch, Replayed, Run};

pub(super) async fn run(context: &Context, verb: &str, args: &Verb) -> Result<(), Error> {
    let answer = context.verb(&args.run.run, verb, Body::default(), &args.why).await?;
    told(context, &answer, if verb == "pause" { "is paused; it goes on with: steadfast run resume" } else { "goes on" })
}

pub(super) async fn cancel(context: &Context, args: &Cancel) -> Result<(), Error> {
    let Cancel { verb: Verb { run, why }, now } = args;
    let body = Body::default().with("terminate", now.then_some(true));
    let answer = context.verb(&run.run, "cancel", body, why).await?;
    told(context, &answer, if *now { "was ended at once" } else { "is called off; what it did is undone" })
}

/// Says what became of a run, or what the server answered.
pub(super) fn told(context: &Context, answer: &Answer, what: &str) -> Result<(), Error> {
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    let run: Run = answer.read()?;
    let what = if what.ends_with("resume") { format!("{what} {}", run.id) } else { what.into() };
    output::say(format_args!("{} {what}", run.id));
    Ok(())
}

pub(super) async fn replay(context: &Context, run: &str) -> Result<(), Error> {
    let answer = context
        .client
        .post(&path(run, "replay"), Ask { body: Some(Body::default()), ..Ask::default() })
        .await?;
    let replayed: Replayed = answer.read()?;
    if context.json {
        output::data(&answer.text);
    }
    match replayed {
        Replayed { consistent: true, events, .. } if context.json || events == 0 => Ok(()),
        Replayed { consistent: true, events, .. } => {
            output::data(format_args!("consistent: {events} events are what the definition does now"));
            Ok(())
        }
        _ if context.json => Err(Error::Said(1)),
        Replayed { mismatch, .. } => Err(Error::Failed(match mismatch {
            Some(Mismatch { at, expected, found }) => {
                format!("the definition parts from the journal at event {at}: that is {expected}, but {found}")
            }
            None => "the definition does not do what the journal says".into(),
        })),
    }
}
