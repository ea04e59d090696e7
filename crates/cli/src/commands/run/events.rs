//! `steadfast run events`: the journal, as it is or as it goes on.

use super::{Context, path};
use crate::args::Events;
use crate::duration;
use crate::error::Error;
use crate::live::Watch;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use serde_json::value::RawValue;
use std::time::Duration;
use steadfast_server::shapes::{Event, EventPayload};

/// How many are asked for at once.
const PAGE: usize = 500;

pub(super) async fn run(context: &Context, args: &Events) -> Result<(), Error> {
    if args.follow {
        return follow(context, args).await;
    }
    let events = read(context, args, args.after).await?;
    if context.json {
        output::data(serde_json::to_string(&events).unwrap_or_default());
        return Ok(());
    }
    output::data(table(&parsed(&events)?).to_text());
    Ok(())
}

/// All events after that one.
async fn read(context: &Context, args: &Events, after: u64) -> Result<Vec<Box<RawValue>>, Error> {
    let mut all: Vec<Box<RawValue>> = Vec::new();
    let mut last = after;
    loop {
        let mut query = vec![("after", last.to_string()), ("limit", PAGE.to_string())];
        query.extend(args.attempt.map(|attempt| ("attempt", attempt.to_string())));
        let page: Vec<Box<RawValue>> = context.client.get(&path(&args.run.run, "events"), query).await?.read()?;
        let more = page.len() == PAGE;
        last = parsed(&page)?.last().map_or(last, |event| event.sequence);
        all.extend(page);
        if !more {
            return Ok(all);
        }
    }
}

fn parsed(events: &[Box<RawValue>]) -> Result<Vec<Event>, Error> {
    let confused = |error| Error::failed("the server's answer cannot be understood", &error);
    events.iter().map(|event| serde_json::from_str(event.get()).map_err(confused)).collect()
}

/// A line per event until the run has ended.
async fn follow(context: &Context, args: &Events) -> Result<(), Error> {
    let mut watch = Watch::new(&context.client, &args.run.run);
    let mut after = args.after;
    loop {
        watch.connect().await;
        let events = read(context, args, after).await?;
        let told = parsed(&events)?;
        for (raw, event) in events.iter().zip(&told) {
            output::data(if context.json { raw.get().to_owned() } else { line(event) });
            after = event.sequence;
        }
        if context.look(&args.run.run).await?.1.status.is_final() && read(context, args, after).await?.is_empty() {
            return Ok(());
        }
        watch.changed(Duration::from_secs(15)).await;
    }
}

fn line(event: &Event) -> String {
    let kind = style::paint(style_of(&event.event_type), format_args!("{:<20}", event.event_type));
    format!("{:>5}  {}  {kind}  {:<16}  {}", event.sequence, time::of_day(event.timestamp.0), subject(event), detail(event))
        .trim_end()
        .into()
}

fn table(events: &[Event]) -> Table {
    let mut table = Table::new(vec![
        Column::whole("SEQ"),
        Column::whole("TIME (UTC)"),
        Column::whole("EVENT"),
        Column::cut("ABOUT"),
        Column::whole("ATTEMPT"),
        Column::wrap("DETAIL"),
    ]);
    for event in events {
        let attempt = is_of_an_attempt(&event.event_type).then(|| event.attempt_number.to_string());
        table.row(vec![
            event.sequence.to_string().into(),
            time::of_day(event.timestamp.0).into(),
            Cell::styled(event.event_type.clone(), style_of(&event.event_type)),
            subject(event).into(),
            attempt.unwrap_or_default().into(),
            detail(event).into(),
        ]);
    }
    table
}

fn is_of_an_attempt(event_type: &str) -> bool {
    let kinds = ["STEP_", "UNDO_", "RETRY_"];
    event_type != "STEP_SKIPPED" && kinds.iter().any(|kind| event_type.starts_with(kind))
}

fn style_of(event_type: &str) -> anstyle::Style {
    match event_type {
        kind if kind.ends_with("FAILED") || kind == "RUN_INTERRUPTED" => style::BAD,
        kind if kind.ends_with("COMPLETED") => style::GOOD,
        "RETRY_SCHEDULED" | "RUN_PAUSED" | "RUN_CANCELLED" | "RUN_CANCEL_REQUESTED" => style::WARNING,
        _ => style::PLAIN,
    }
}

/// What an event is about: the step, sleep, wait or child.
fn subject(event: &Event) -> &str {
    let EventPayload { path, signal, task_id, .. } = &event.payload;
    super::why::bare(path.as_ref().or(signal.as_ref()).or(task_id.as_ref()).map(String::as_str).unwrap_or_default())
}

/// What else people want to know first.
fn detail(event: &Event) -> String {
    let EventPayload { of, by, reason, run, note, due_at, .. } = &event.payload;
    let mut parts = Vec::new();
    if let Some(delay) = event.backoff_delay_ms {
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        parts.push(format!("attempt {}{of} in {}", event.attempt_number, duration::rough(Duration::from_millis(delay))));
    } else if let Some(due) = due_at {
        parts.push(format!("due in {}", duration::rough(due.0.saturating_since(event.timestamp.0))));
    }
    parts.extend(by.as_ref().map(|by| format!("by {by}")));
    parts.extend(event.failure_reason.clone().or_else(|| reason.clone()));
    parts.extend(run.as_ref().map(|run| format!("run {run}")));
    parts.extend(note.clone());
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_retry_says_when_and_why() {
        let event: Event = serde_json::from_str(
            r#"{"workflowId":"wf-12345","eventType":"RETRY_SCHEDULED","sequence":5,"epoch":1,"timestamp":"2025-11-18T10:30:15Z",
                "payload":{"taskId":"processPayment","path":"processPayment#1","reason":"Connection timeout","of":5,"dueAt":"2025-11-18T10:30:17Z"},
                "attemptNumber":2,"backoffDelayMs":2347,"failureReason":"Connection timeout"}"#,
        )
        .unwrap();
        assert_eq!(subject(&event), "processPayment");
        assert_eq!(detail(&event), "attempt 2 of 5 in 2.35 s: Connection timeout");
        let line = anstream::adapter::strip_str(&line(&event)).to_string();
        assert_eq!(line, "    5  10:30:15.000  RETRY_SCHEDULED       processPayment    attempt 2 of 5 in 2.35 s: Connection timeout");
    }
}
