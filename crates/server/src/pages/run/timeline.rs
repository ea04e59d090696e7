//! Steps in time: a bar per attempt, hatched where it waits for the next one, a mark where that is due.
//!
//! Positions are attributes of SVG elements, because styles have to be in the stylesheet.

use super::axis::Axis;
use super::{Shown, stands};
use crate::pages::{mark, words};
use crate::shapes::{Step, StepStatus, Try};
use maud::{Markup, html};
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// No bar is thinner than that, in per cent.
const WIDTH_MIN: f64 = 0.5;

/// A bar has its pattern if it is wider than that, in per cent.
const WIDTH_OF_PATTERN: f64 = 1.0;

/// A bar has its number written on it if it is wider than that, in per cent.
const WIDTH_OF_NUMBER: f64 = 3.0;

/// More steps than that are not drawn: the last ones are.
pub(super) const STEPS_MAX: usize = 200;

/// What is to come has this much of the axis at most, or a second.
const AHEAD_MAX: f64 = 0.4;

/// A stretch of a line.
struct Bar {
    class: &'static str,
    from: Timestamp,
    to: Timestamp,
    number: Option<u32>,
    title: String,
}

pub(super) fn section(shown: &Shown) -> Markup {
    if shown.steps.is_empty() {
        return html! {};
    }
    let last = &shown.steps[shown.steps.len().saturating_sub(STEPS_MAX)..];
    let axis = axis(last, shown);
    let moves = last.iter().any(|step| step.status == StepStatus::Running && !step.tries.is_empty());
    html! {
        section.card.timeline aria-labelledby="timeline" data-moves[moves] {
            h2 #timeline { "Timeline" }
            (patterns())
            @if last.len() < shown.steps.len() { p.fine { "The last " (STEPS_MAX) " of " (shown.steps.len()) " steps." } }
            ol.lanes {
                li.axis aria-hidden="true" { span {} (scale(&axis)) span {} }
                @for step in last { (lane(step, &axis, shown)) }
            }
            (legend())
        }
    }
}

/// From the beginning of the first to the end of the last; while it goes on, until now and some way ahead.
fn axis(steps: &[Step], shown: &Shown) -> Axis {
    let from = steps
        .iter()
        .filter_map(|step| step.started_at)
        .min()
        .map(|at| at.0)
        .unwrap_or(shown.view.started_at);
    let open = shown.view.ended.is_none();
    let to = steps.iter().filter_map(|step| step.ended_at).max().map_or(from, |at| at.0);
    let to = if open { to.max(shown.now) } else { to };
    let ahead = steps.iter().filter_map(|step| step.next_attempt_at).max().map(|at| at.0).filter(|_| open);
    let most = to.saturating_since(from).mul_f64(AHEAD_MAX).max(Duration::from_secs(1));
    let to = ahead.map_or(to, |ahead| to.saturating_add(ahead.saturating_since(to).min(most)));
    Axis::new(from, to)
}

fn scale(axis: &Axis) -> Markup {
    html! {
        svg.scale height="18" {
            @for (place, label) in axis.ticks() {
                @let anchor = if place > 92.0 { "end" } else if place < 4.0 { "start" } else { "middle" };
                text x=(percent(place)) y="12" text-anchor=(anchor) { (label) }
            }
        }
    }
}

fn lane(step: &Step, axis: &Axis, shown: &Shown) -> Markup {
    let bars = bars(step, shown.now);
    let name = step.label();
    let told = format!("{name}, {}: {}", mark::word(stands(step)), bars.iter().map(|bar| &*bar.title).collect::<Vec<_>>().join("; "));
    let ended = step.ended_at.map_or(shown.now, |at| at.0);
    let took = step
        .started_at
        .filter(|_| step.status != StepStatus::Skipped)
        .map(|at| ended.saturating_since(at.0));
    let open = shown.view.ended.is_none();
    html! {
        li data-key={ "lane " (step.path) } {
            span class={ "name " (mark::class(stands(step))) } title=(step.path) { span.bead {} (name) }
            svg.lane height="24" role="img" aria-label=(told) {
                @for (place, _) in axis.ticks() { line.grid x1=(percent(place)) x2=(percent(place)) y1="0" y2="24" {} }
                @for bar in &bars { (drawn(bar, axis)) }
                @if open { line.now x1=(percent(axis.place(shown.now))) x2=(percent(axis.place(shown.now))) y1="0" y2="24" {} }
                @if let Some(at) = step.next_attempt_at.filter(|_| open) { (next(step, at.0, axis, shown.now)) }
            }
            span.took { @if let Some(took) = took { (words::lasted(took)) } }
        }
    }
}

fn bars(step: &Step, now: Timestamp) -> Vec<Bar> {
    if !step.tries.is_empty() {
        return step.tries.iter().flat_map(|tried| attempt(tried, step)).map(|bar| clipped(bar, now)).collect();
    }
    let Some(from) = step.started_at.map(|at| at.0).filter(|_| step.status != StepStatus::Skipped) else { return Vec::new() };
    let to = step.ended_at.map_or(now, |at| at.0);
    let class = if step.status == StepStatus::Failed { "bar bad" } else { "bar idle" };
    let title = format!("{}, {}", step.kind, words::lasted(to.saturating_since(from)));
    vec![Bar { class, from, to, number: None, title }]
}

/// An attempt, and the delay after it.
fn attempt(tried: &Try, step: &Step) -> Vec<Bar> {
    let Some(began) = tried.started_at.map(|at| at.0) else { return Vec::new() };
    let ended = tried.ended_at.map(|at| at.0);
    let to = ended.unwrap_or(Timestamp::MAX);
    let (class, outcome) = match (&tried.failure, ended, step.status) {
        (Some(failure), ..) => ("bar bad", format!("failed: {}", failure.message)),
        (None, Some(_), _) => ("bar good", "succeeded".into()),
        (None, None, StepStatus::InDoubt) => ("bar doubt", "in doubt".into()),
        (None, None, _) => ("bar busy", "under way".into()),
    };
    let lasted = ended.map(|at| format!(" after {}", words::lasted(at.saturating_since(began)))).unwrap_or_default();
    let title = format!("attempt {} {outcome}{lasted}", tried.attempt);
    let mut bars = vec![Bar { class, from: began, to, number: Some(tried.attempt), title }];
    if let (Some(from), Some(delay)) = (ended, tried.backoff_ms.map(Duration::from_millis)) {
        let title = format!("backoff of {}", words::lasted(delay));
        bars.push(Bar { class: "backoff", from, to: from.saturating_add(delay), number: None, title });
    }
    bars
}

/// What has not ended ends now; a delay is drawn to its end.
fn clipped(bar: Bar, now: Timestamp) -> Bar {
    let to = if bar.class == "backoff" { bar.to } else { bar.to.min(now.max(bar.from)) };
    Bar { to, ..bar }
}

fn drawn(bar: &Bar, axis: &Axis) -> Markup {
    let (from, to) = (axis.place(bar.from), axis.place(bar.to));
    let width = (to - from).max(WIDTH_MIN);
    let from = from.min(100.0 - width);
    let (top, height) = match bar.class {
        "backoff" => ("9", "6"),
        "bar bad" => ("2", "20"), // higher, for where it is too thin for a pattern
        _ => ("4", "16"),
    };
    let pattern = match bar.class {
        "backoff" => Some("url(#hatched)"),
        "bar bad" => Some("url(#crossed)"),
        "bar busy" => Some("url(#striped)"),
        "bar doubt" => Some("url(#dotted)"),
        _ => None,
    };
    html! {
        g class=(bar.class) {
            title { (bar.title) }
            rect x=(percent(from)) y=(top) width=(percent(width)) height=(height) rx="3" {}
            @if let Some(pattern) = pattern.filter(|_| width > WIDTH_OF_PATTERN) {
                rect.pattern x=(percent(from)) y=(top) width=(percent(width)) height=(height) rx="3" fill=(pattern) {}
            }
            @if let Some(number) = bar.number.filter(|_| width > WIDTH_OF_NUMBER) {
                text x=(percent(from + width / 2.0)) y="16" text-anchor="middle" { (number) }
            }
        }
    }
}

/// When the next attempt is due; at the edge if that is beyond the axis.
fn next(step: &Step, at: Timestamp, axis: &Axis, now: Timestamp) -> Markup {
    let what = if step.tries.is_empty() { "over" } else { "next attempt" };
    let title = format!("{what} {} ({})", words::distance(at, now), words::exact(at));
    let beyond = axis.is_before(at);
    let place = if beyond { "100%".into() } else { percent(axis.place(at)) };
    html! {
        svg.next x=(place) y="0" width="1" height="24" overflow="visible" {
            title { (title) }
            @if beyond { path d="M-9 6l6 6-6 6" {} path d="M-15 6l6 6-6 6" {} } @else { path d="M0 3l6 9-6 9-6-9z" {} }
        }
    }
}

fn percent(place: f64) -> String {
    format!("{place:.3}%")
}

fn patterns() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" {
            defs {
                pattern #hatched width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" { rect width="2" height="6" {} }
                pattern #crossed width="7" height="7" patternUnits="userSpaceOnUse" { path d="M0 0l7 7M7 0l-7 7" {} }
                pattern #striped width="10" height="10" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)" { rect width="5" height="10" {} }
                pattern #dotted width="6" height="6" patternUnits="userSpaceOnUse" { circle cx="3" cy="3" r="1.2" {} }
            }
        }
    }
}

fn legend() -> Markup {
    let sample = |class: &str, pattern: Option<&str>, name: &str| {
        let (top, height) = if class == "backoff" { ("4", "6") } else { ("1", "12") };
        html! {
            li { svg width="22" height="14" aria-hidden="true" { g class=(class) {
                rect x="0" y=(top) width="22" height=(height) rx="3" {}
                @if let Some(pattern) = pattern { rect.pattern x="0" y=(top) width="22" height=(height) rx="3" fill=(pattern) {} }
            } } (name) }
        }
    };
    html! {
        ul.legend aria-label="Legend" {
            (sample("bar good", None, "succeeded"))
            (sample("bar bad", Some("url(#crossed)"), "failed"))
            (sample("bar busy", Some("url(#striped)"), "under way"))
            (sample("backoff", Some("url(#hatched)"), "backoff"))
            (sample("bar idle", None, "sleeps or waits"))
            li { svg width="14" height="14" aria-hidden="true" { path.next d="M7 0l5 7-5 7-5-7z" {} } "next try" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::Time;
    use steadfast_kernel::Failure;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + ms * 1_000)
    }

    fn tried(attempt: u32, from: i64, to: Option<i64>, backoff_ms: Option<u64>) -> Try {
        let failure = backoff_ms.map(|_| (&Failure::transient("no answer")).into());
        Try { attempt, started_at: Some(Time(at(from))), ended_at: to.map(|to| Time(at(to))), failure, backoff_ms }
    }

    fn step(status: StepStatus, tries: Vec<Try>) -> Step {
        Step {
            name: "charge".into(),
            path: "charge#1".into(),
            kind: "http".into(),
            status,
            attempts: 0,
            started_at: Some(Time(at(0))),
            ended_at: None,
            next_attempt_at: None,
            output: None,
            failure: None,
            tries,
        }
    }

    #[test]
    fn an_attempt_is_a_bar_and_its_backoff_another() {
        let step = step(StepStatus::Running, vec![tried(1, 0, Some(20), Some(100)), tried(2, 120, None, None)]);
        let seen: Vec<_> = bars(&step, at(150)).into_iter().map(|bar| (bar.class, bar.from, bar.to, bar.title)).collect();
        let expected = [
            ("bar bad", at(0), at(20), "attempt 1 failed: no answer after 20 ms".to_string()),
            ("backoff", at(20), at(120), "backoff of 100 ms".into()),
            ("bar busy", at(120), at(150), "attempt 2 under way".into()),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_has_not_begun_or_is_left_out_has_no_bar() {
        let pending = Step { started_at: None, ..step(StepStatus::Pending, Vec::new()) };
        let waits = step(StepStatus::Running, Vec::new());
        let seen = [&pending, &step(StepStatus::Skipped, Vec::new()), &waits].map(|step| bars(step, at(90)).len());
        assert_eq!(seen, [0, 0, 1]);
        assert_eq!(bars(&waits, at(90))[0].title, "http, 90 ms");
    }

    #[test]
    fn short_bars_can_be_seen_and_stay_inside() {
        let axis = Axis::new(at(0), at(86_400_000));
        let bar = Bar { class: "bar good", from: at(86_400_000), to: at(86_400_000), number: Some(1), title: String::new() };
        let html = drawn(&bar, &axis).into_string();
        assert!(html.contains(r#"x="99.500%" y="4" width="0.500%""#), "{html}");
        assert!(!html.contains("<text"), "there is no room for a number: {html}");
    }
}
