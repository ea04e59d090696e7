//! `steadfast run show`: where a run stands and why, its steps and attempts.

use super::Context;
use super::why::{sentence, told};
use crate::duration;
use crate::error::Error;
use crate::live::steps;
use crate::output::table::{Cell, Column, Table, cut, width_of_terminal, wrap};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Data, Failure, Run, Step, StepStatus, Time};

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
    let status = style::paint(style::of_status(run.status.as_str()), run.status.as_str());
    let mut lines = vec![format!("{}  {}  {status}", style::paint(style::BOLD, &run.id), run.workflow)];
    lines.extend(wrap(&sentence(run, now), width.unwrap_or(usize::MAX)));
    lines.push(String::new());
    lines.extend(facts(run, width, now));
    if !steps::of(run).is_empty() {
        lines.extend([String::new(), table(run, width, now).within(width)]);
    }
    if let Some(failure) = &run.failure {
        lines.push(String::new());
        lines.extend(failed(failure));
    }
    lines.join("\n")
}

fn facts(run: &Run, width: Option<usize>, now: Timestamp) -> Vec<String> {
    let at = |at: Time| format!("{at} ({})", time::relative(at.0, now));
    let data = |data: &Data| one_line(data.as_str());
    [
        ("started", Some(at(run.started_at))),
        ("ended", run.ended_at.map(at)),
        ("deadline", run.deadline_at.filter(|_| !run.status.is_final()).map(at)),
        ("life", (run.epoch > 1).then(|| run.epoch.to_string())),
        ("tenant", run.tenant.clone()),
        ("parent", run.parent.clone()),
        ("note", run.note.clone()),
        ("input", Some(data(&run.input)).filter(|input| input != "null")),
        ("result", run.result.as_ref().map(data)),
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

fn table(run: &Run, width: Option<usize>, now: Timestamp) -> Table {
    let mut columns = vec![
        Column::whole(""),
        Column::cut("STEP"),
        Column::whole("STATUS"),
        Column::whole("ATTEMPTS"),
        Column::spare("TOOK"),
        Column::wrap("WHY"),
    ];
    let timelines = width.is_none_or(|width| width >= WIDE);
    if timelines {
        columns.insert(5, Column::whole("TIMELINE"));
    }
    let mut table = Table::new(columns);
    for step in steps::of(run) {
        let (status, took) = (step.status.as_str(), steps::took(step, now));
        let attempts = if step.attempts == 0 { String::new() } else { step.attempts.to_string() };
        let mut row: Vec<Cell> = vec![
            Cell::styled(style::sign(status), style::of_status(status)),
            step.label().into(),
            Cell::status(status),
            attempts.into(),
            took.map(duration::rough).unwrap_or_default().into(),
            why(step, now).into(),
        ];
        if timelines {
            row.insert(5, Cell::styled(timeline(run, step, now), style::of_status(status)));
        }
        table.row(row);
    }
    table
}

/// What is to be said about a step beside its status.
fn why(step: &Step, now: Timestamp) -> String {
    let failure = step.failure.as_ref().map(told).unwrap_or_default();
    match step.next_attempt_at {
        Some(at) if step.status == StepStatus::Backoff => format!("again {}: {failure}", time::relative(at.0, now)),
        _ => failure,
    }
}

/// The attempts of a step between the beginning and the end of its run: `━` while one was under way, `╌` between two.
fn timeline(run: &Run, step: &Step, now: Timestamp) -> String {
    let Some(from) = step.started_at.filter(|_| step.status != StepStatus::Skipped) else { return String::new() };
    let (begin, end) = (run.started_at.0, run.ended_at.map_or(now, |at| at.0));
    let whole = end.saturating_since(begin).as_micros().max(1);
    let place = |at: Timestamp| (at.saturating_since(begin).as_micros() * TIMELINE as u128 / whole).min(TIMELINE as u128 - 1) as usize;
    let mut bar = [' '; TIMELINE];
    let mut fill = |from: Time, to: Option<Time>, sign: char| {
        let (from, to) = (place(from.0), place(to.map_or(end, |at| at.0)));
        bar[from..=to.max(from)].fill(sign);
    };
    fill(from, step.ended_at, if step.tries.is_empty() { '━' } else { '╌' });
    for attempt in &step.tries {
        if let Some(from) = attempt.started_at {
            fill(from, attempt.ended_at, if attempt.failure.is_some() { '×' } else { '━' });
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
    use crate::client::sample::{self, failure};
    use unicode_width::UnicodeWidthStr;

    fn run() -> Run {
        let failed =
            |from: &str, to: &str| serde_json::json!({"attempt": 1, "startedAt": from, "endedAt": to, "failure": failure("x", "X", 0)});
        let mut cause = failure("not found", "HTTP_404", 2);
        cause["causes"] = serde_json::json!(["no such order"]);
        sample::run(serde_json::json!({
            "id": "order-17", "workflow": "checkout", "status": "FAILED", "epoch": 2, "endedAt": "2026-01-01T11:00:10Z",
            "input": {"order": 17, "text": "x".repeat(200)},
            "failure": cause,
            "steps": [
                {"name": "charge", "path": "charge#1", "status": "COMPLETED", "attempts": 1, "startedAt": "2026-01-01T11:00:00Z", "endedAt": "2026-01-01T11:00:05Z"},
                {"name": "ship", "path": "ship#2", "status": "FAILED", "attempts": 2, "startedAt": "2026-01-01T11:00:05Z", "endedAt": "2026-01-01T11:00:10Z",
                 "failure": failure("not found", "HTTP_404", 2),
                 "tries": [failed("2026-01-01T11:00:05Z", "2026-01-01T11:00:06Z"), failed("2026-01-01T11:00:09Z", "2026-01-01T11:00:10Z")]},
            ],
        }))
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
        assert_eq!(timeline(&run, &steps::of(&run)[0], now), "━━━━━━━━━━━         ");
        assert_eq!(timeline(&run, &steps::of(&run)[1], now), "          ×××╌╌╌╌╌××");
    }
}
