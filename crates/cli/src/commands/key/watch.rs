//! `steadfast key watch`: what happens to keys, as it happens.

use super::Context;
use crate::client::Feed;
use crate::duration;
use crate::error::Error;
use crate::output::{self, style, time};
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Change, Event};

/// How long a server that does not answer any more is waited for: a restart takes less.
const RESTART_MAX: Duration = Duration::from_secs(60);
/// Before a feed that broke off is connected again.
const PAUSE: Duration = Duration::from_millis(200);

/// A line per change until somebody stops it, or the server stays away.
pub(super) async fn run(context: &Context, prefix: &str) -> Result<(), Error> {
    let mut feed = Feed::of_keys(&context.client, prefix);
    feed.connect().await?;
    let which = if prefix.is_empty() { "all keys".into() } else { format!("keys that begin with {prefix}") };
    output::say(format_args!("watching {which}; Ctrl-C ends it"));
    loop {
        while let Some(change) = feed.next().await {
            output::data(if context.json { change.data } else { line(&read(&change.data)?) });
        }
        output::say("the server does not answer; trying again (nothing is missed)");
        again(&mut feed, time::now()).await?;
        output::say("it answers again");
    }
}

/// Connects again, and goes on after the last change that was seen.
async fn again(feed: &mut Feed, since: Timestamp) -> Result<(), Error> {
    loop {
        time::pass(PAUSE).await;
        match feed.connect().await {
            Err(Error::Unreachable(_)) if time::now().saturating_since(since) < RESTART_MAX => {}
            other => return other,
        }
    }
}

fn read(data: &str) -> Result<Change, Error> {
    serde_json::from_str(data).map_err(|error| Error::failed("the server's answer cannot be understood", &error))
}

fn line(change: &Change) -> String {
    let event = &change.event;
    let kind = style::paint(style_of(&event.event_type), format_args!("{:<16}", event.event_type));
    format!("{}  {kind}  {:<24}  {}", time::of_day(event.timestamp.0), change.id, output::plain(&detail(event)))
        .trim_end()
        .into()
}

fn style_of(event_type: &str) -> anstyle::Style {
    match event_type {
        "KEY_EXPIRED" => style::BUSY,
        "CALLBACK_SETTLED" => style::GOOD,
        "CALLBACK_FAILED" => style::WARNING,
        "LETTER_ADDED" => style::BAD,
        _ => style::PLAIN,
    }
}

/// What else people want to know first.
fn detail(event: &Event) -> String {
    let payload = &event.payload;
    let mut parts = Vec::new();
    parts.extend(payload.revision.map(|revision| format!("revision {revision}")));
    parts.extend(
        payload
            .expires_at
            .map(|at| format!("{} left", duration::rough(at.0.saturating_since(event.timestamp.0)))),
    );
    if let Some(due) = payload.due_at {
        let of = payload.of.map(|of| format!(" of {of}")).unwrap_or_default();
        let delay = duration::rough(due.0.saturating_since(event.timestamp.0));
        parts.push(format!("attempt {}{of} has failed, the next one is in {delay}", event.attempt_number));
    }
    parts.extend(payload.owner.as_ref().map(|owner| format!("owner {owner}")));
    parts.extend(payload.with.as_ref().map(|with| format!("with {with}")));
    parts.extend(payload.run.as_ref().map(|run| format!("run {run}")));
    parts.extend(event.failure_reason.clone().or_else(|| payload.reason.clone()));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_callback_says_when_it_is_made_again_and_why_it_failed() {
        let change = read(
            r#"{"kind":"key","id":"carts/7","event":{"workflowId":"carts/7","eventType":"CALLBACK_FAILED","sequence":3,"epoch":1,
                "timestamp":"2026-01-01T10:30:15Z","payload":{"revision":17,"of":20,"dueAt":"2026-01-01T10:30:16.5Z"},
                "attemptNumber":1,"backoffDelayMs":1500,"failureReason":"http://x answered 503"}}"#,
        )
        .unwrap();
        let line = anstream::adapter::strip_str(&line(&change)).to_string();
        let detail = "revision 17, attempt 1 of 20 has failed, the next one is in 1.5 s, http://x answered 503";
        assert_eq!(line, format!("10:30:15.000  CALLBACK_FAILED   carts/7                   {detail}"));
    }
}
