//! Why a run does not move, in a sentence each.

use super::{Shown, facts, failed};
use crate::pages::{mark, words};
use crate::shapes::step_name;
use maud::{Markup, html};
use steadfast_kernel::{Status, StepId, Timestamp, Wait, WorkflowName};

pub(super) fn callout(shown: &Shown) -> Markup {
    let view = &shown.view;
    let failure = view.ended.as_ref().and_then(|ended| ended.outcome.as_ref().err());
    html! {
        section class={ "why " (mark::class(view.status.as_str())) } aria-label="Why" {
            @for (place, line) in lines(shown).into_iter().enumerate() {
                p.first[place == 0] { (line) }
            }
            @if let Some(failure) = failure { (facts::failure(&failure.into())) }
        }
    }
}

fn lines(shown: &Shown) -> Vec<Markup> {
    let view = &shown.view;
    let own = match view.status {
        Status::Completed => html! { "It has completed." },
        Status::Failed => match failed(&shown.steps) {
            Some(step) => html! { "It has failed at the step " code title=(step.path) { (step.label()) } "." },
            None => html! { "It has failed." },
        },
        Status::Cancelled => html! { "It was called off." },
        Status::Interrupted => html! { "Its process died with work under way, and it does not go on by itself. Retry it, or cancel it." },
        Status::Compensating => html! { "What it did is being undone, newest first." },
        Status::Running => running(shown),
        Status::Ready | Status::Waiting | Status::Paused => html! {},
    };
    let own = Some(own).filter(|own| !own.0.is_empty());
    let lines: Vec<Markup> = own.into_iter().chain(view.waits.iter().map(|wait| one(wait, shown))).collect();
    if lines.is_empty() { vec![html! { "It is about to go on." }] } else { lines }
}

fn running(shown: &Shown) -> Markup {
    match &shown.view.in_flight[..] {
        [] => html! { "Its code is at work." },
        [(step, 1)] => html! { (name(step)) " is under way." },
        [(step, attempt)] => html! { (name(step)) " is under way, attempt " (attempt) "." },
        all => html! { (words::count(all.len() as u64, "step")) " are under way." },
    }
}

fn one(wait: &Wait, shown: &Shown) -> Markup {
    match wait {
        Wait::NoWorker { workflow, version } => no_worker(workflow, version.as_deref(), shown.workers),
        wait => waits(wait, shown.now),
    }
}

/// Why nobody hosts it, and what to do about it.
fn no_worker(workflow: &WorkflowName, version: Option<&str>, workers: usize) -> Markup {
    let goes_on = "It then goes on by itself.";
    match (version, workers) {
        (Some(version), _) => html! {
            "Nobody here has the version " code { (version) } " of " code { (workflow) } ", with which it began. Bring that back, or start a " (link()) " that has it. " (goes_on)
        },
        (None, 0) => html! {
            "Nobody here has the code of " code { (workflow) } ". Start a " (link()) " that has it, or put a definition of that name into the definitions folder. " (goes_on)
        },
        (None, workers) => html! {
            (words::sentence(&words::count(workers as u64, "worker"))) " here " @if workers == 1 { "has" } @else { "have" } " the code of " code { (workflow) }
            ", and no room for it. Start another " (link()) ", or let it host more runs. " (goes_on)
        },
    }
}

fn link() -> Markup {
    html! { a href="/workers" { "worker" } }
}

/// What it waits for, in a sentence.
pub(in crate::pages) fn waits(wait: &Wait, now: Timestamp) -> Markup {
    let until = |until: &Option<Timestamp>| html! { @if let Some(until) = until { "; that lapses " (words::relative(*until, now)) } };
    match wait {
        Wait::Backoff { step, attempt, of, due_at, failure } => html! {
            (name(step)) " failed (" span.message { (failure.message) } ") and is tried again " (words::relative(*due_at, now)) ": attempt " (attempt) " of " (of) "."
        },
        Wait::Timer { due_at } => html! { "It sleeps; it goes on " (words::relative(*due_at, now)) "." },
        Wait::Signal { name, until: at } => html! { "It waits for the signal " code { (name) } (until(at)) "." },
        Wait::Approval { name, roles, until: at } => html! {
            @if roles.is_empty() { "Somebody" } @else { "One who is " (roles.join(" or ")) }
            " has to approve " code { (name) } (until(at)) "."
        },
        Wait::InDoubt { step, attempt } => {
            html! { "Nobody knows whether attempt " (attempt) " of " (name(step)) " happened. Somebody has to say so." }
        }
        Wait::Paused { by, why, since } => html! {
            "Paused " (words::relative(*since, now)) " by " (by.as_deref().unwrap_or("somebody"))
            @if let Some(why) = why { ": " span.message { (why) } } ". Nothing new is begun until it is resumed."
        },
        Wait::Child { run } => html! { "It waits for the end of " a href={ "/runs/" (run) } { (run) } "." },
        Wait::Slot { .. } | Wait::Lock { .. } | Wait::Plan { .. } | Wait::NoWorker { .. } | Wait::Mismatch { .. } => {
            html! { (words::sentence(&wait.to_string())) "." }
        }
    }
}

fn name(step: &StepId) -> Markup {
    html! { code title=(step) { (step_name(step)) } }
}
