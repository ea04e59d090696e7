//! `steadfast run show`: where a run stands and why, its steps and attempts.

use super::Context;
use super::why::{bare, sentence, told};
use crate::client::shapes::{Failure, Run, Step};
use crate::duration;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table, cut, width_of_terminal, wrap};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;

/// How many characters a timeline has.
const TIMELINE: usize = 20;
/// Below this width there is no room for timelines.
const WIDE: usize = 100;
/// How much of an input or a result is shown; `--json` has all of it.
const DATA_MAX: usize = 400;

pub(super) async fn run(context: &Context, run: &str) -> Result<(), Error> {
    let (answer, run) = context.look(run).await?;
    if context.json {
        output::data(answer.text);
    } else {
        output::data(page(&run, width_of_terminal(), time::now()));
    }
    Ok(())
}

fn page(run: &Run, width: Option<usize>, now: Timestamp) -> String {
    let status = style::paint(style::of_status(&run.status), &run.status);
    let mut lines = vec![format!("{}  {}  {status}", style::paint(style::BOLD, &run.id), run.workflow)];
    lines.extend(wrap(&sentence(run, now), width.unwrap_or(usize::MAX)));
    lines.push(String::new());
    lines.extend(facts(run, width, now));
    if !run.steps.is_empty() {
        lines.extend([String::new(), steps(run, width, now).within(width)]);
    }
    if let Some(failure) = &run.failure {
        lines.push(String::new());
        lines.extend(failed(failure));
    }
    lines.join("\n")
}

fn facts(run: &Run, width: Option<usize>, now: Timestamp) -> Vec<String> {
    let at = |at: &Option<String>| at.as_deref().map(|at| format!("{at} ({})", time::relative(at, now)));
    let data = |raw: &Option<Box<serde_json::value::RawValue>>| raw.as_ref().map(|raw| one_line(raw.get()));
    [
        ("started", at(&run.started_at)),
        ("ended", at(&run.ended_at)),
        ("deadline", at(&run.deadline_at).filter(|_| !run.is_over())),
        ("life", (run.epoch > 1).then(|| run.epoch.to_string())),
        ("tenant", run.tenant.clone()),
        ("parent", run.parent.clone()),
        ("note", run.note.clone()),
        ("input", data(&run.input).filter(|input| input != "null")),
        ("result", data(&run.result)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .map(|(name, value)| {
        let room = width.map_or(DATA_MAX, |width| width.saturating_sub(10).max(20));
        format!("{}{}", style::paint(style::FAINT, format_args!("{name:<10}")), cut(&value, room))
    })
    .collect()
}

/// JSON as it came, without its line breaks; nothing in it may steer the terminal.
fn one_line(json: &str) -> String {
    json.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect()
}

fn steps(run: &Run, width: Option<usize>, now: Timestamp) -> Table {
    let mut columns = vec![
        Column::whole(""),
        Column::cut("STEP"),
        Column::whole("STATUS"),
        Column::whole("ATTEMPTS"),
        Column::whole("TOOK"),
        Column::wrap("WHY"),
    ];
    let timelines = width.is_none_or(|width| width >= WIDE);
    if timelines {
        columns.insert(5, Column::whole("TIMELINE"));
    }
    let mut table = Table::new(columns);
    for step in &run.steps {
        let took = time::took(step.started_at.as_deref(), step.ended_at.as_deref(), now)
            .filter(|_| !["PENDING", "SKIPPED"].contains(&&*step.status));
        let attempts = if step.attempts == 0 { String::new() } else { step.attempts.to_string() };
        let mut row: Vec<Cell> = vec![
            Cell::styled(style::sign(&step.status), style::of_status(&step.status)),
            bare(&step.path).into(),
            Cell::status(&step.status),
            attempts.into(),
            took.map(duration::rough).unwrap_or_default().into(),
            why(step, now).into(),
        ];
        if timelines {
            row.insert(5, Cell::styled(timeline(run, step, now), style::of_status(&step.status)));
        }
        table.row(row);
    }
    table
}

/// What is to be said about a step beside its status.
fn why(step: &Step, now: Timestamp) -> String {
    let failure = step.failure.as_ref().map(told).unwrap_or_default();
    match &step.next_attempt_at {
        Some(at) if step.status == "BACKOFF" => format!("again {}: {failure}", time::relative(at, now)),
        _ => failure,
    }
}

/// The attempts of a step between the beginning and the end of its run: `━` while one was under way, `╌` between two.
fn timeline(run: &Run, step: &Step, now: Timestamp) -> String {
    let parse = |at: &Option<String>| at.as_deref().and_then(time::parse);
    let Some(begin) = parse(&run.started_at) else { return String::new() };
    let end = parse(&run.ended_at).unwrap_or(now);
    let whole = end.saturating_since(begin).as_micros().max(1);
    let place = |at: Timestamp| (at.saturating_since(begin).as_micros() * TIMELINE as u128 / whole).min(TIMELINE as u128 - 1) as usize;
    let mut bar = [' '; TIMELINE];
    let mut fill = |from: Timestamp, to: Timestamp, sign: char| bar[place(from)..=place(to).max(place(from))].fill(sign);
    let Some(from) = parse(&step.started_at).filter(|_| step.status != "SKIPPED") else { return String::new() };
    fill(from, parse(&step.ended_at).unwrap_or(end), if step.tries.is_empty() { '━' } else { '╌' });
    for attempt in &step.tries {
        if let Some(from) = parse(&attempt.started_at) {
            fill(from, parse(&attempt.ended_at).unwrap_or(end), if attempt.failure.is_some() { '×' } else { '━' });
        }
    }
    bar.iter().collect()
}

/// A failure with everything behind it.
fn failed(failure: &Failure) -> Vec<String> {
    let mut lines = vec![style::paint(style::BAD, format_args!("{} [{}, {}]", failure.message, failure.code, failure.class))];
    lines.extend(failure.causes.iter().map(|cause| format!("  caused by: {cause}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn run() -> Run {
        serde_json::from_value(serde_json::json!({
            "id": "order-17", "workflow": "checkout", "status": "FAILED", "epoch": 2, "startedAt": "2026-01-01T11:00:00Z",
            "endedAt": "2026-01-01T11:00:10Z", "input": {"order": 17, "text": "x".repeat(200)},
            "failure": {"class": "permanent", "code": "HTTP_404", "message": "not found", "causes": ["no such order"], "attempts": 2},
            "steps": [
                {"name": "charge", "path": "charge#1", "status": "COMPLETED", "attempts": 1, "startedAt": "2026-01-01T11:00:00Z", "endedAt": "2026-01-01T11:00:05Z"},
                {"name": "ship", "path": "ship#2", "status": "FAILED", "attempts": 2, "startedAt": "2026-01-01T11:00:05Z", "endedAt": "2026-01-01T11:00:10Z",
                 "failure": {"class": "permanent", "code": "HTTP_404", "message": "not found", "causes": [], "attempts": 2},
                 "tries": [{"startedAt": "2026-01-01T11:00:05Z", "endedAt": "2026-01-01T11:00:06Z", "failure": {"message": "x"}},
                           {"startedAt": "2026-01-01T11:00:09Z", "endedAt": "2026-01-01T11:00:10Z", "failure": {"message": "x"}}]},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn a_run_is_shown_within_the_width() {
        let now = time::parse("2026-01-01T12:00:00Z").unwrap();
        for width in [80, 140] {
            let text = anstream::adapter::strip_str(&page(&run(), Some(width), now)).to_string();
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            for part in ["order-17  checkout  FAILED", "life      2", "ship#2", "HTTP_404", "caused by: no such order"] {
                assert!(text.contains(part), "{part} is not in\n{text}");
            }
            assert_eq!(text.contains("TIMELINE"), width == 140, "{text}");
        }
    }

    #[test]
    fn a_timeline_shows_attempts_and_the_time_between_them() {
        let (run, now) = (run(), time::parse("2026-01-01T12:00:00Z").unwrap());
        assert_eq!(timeline(&run, &run.steps[0], now), "━━━━━━━━━━━         ");
        assert_eq!(timeline(&run, &run.steps[1], now), "          ×××╌╌╌╌╌××");
    }
}
