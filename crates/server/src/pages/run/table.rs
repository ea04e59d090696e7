//! The steps of a run, in a table.

use super::{Shown, facts, in_api, stands, timeline};
use crate::pages::{data, mark, words};
use crate::shapes::{Step, StepStatus};
use maud::{Markup, html};
use steadfast_kernel::RunId;

pub(super) fn section(shown: &Shown) -> Markup {
    if shown.steps.is_empty() {
        return html! {};
    }
    let last = &shown.steps[shown.steps.len().saturating_sub(timeline::STEPS_MAX)..];
    html! {
        section.card aria-labelledby="steps" {
            h2 #steps { "Steps" }
            table.steps {
                thead { tr { th scope="col" { "Step" } th scope="col" { "Status" } th.number scope="col" { "Attempts" } th scope="col" { "Began" }
                    th.number scope="col" { "Took" } th scope="col" { "Next" } th scope="col" { "Outcome" } } }
                tbody { @for step in last { (line(step, shown)) } }
            }
            @if last.len() < shown.steps.len() {
                p.fine { "The last " (timeline::STEPS_MAX) " of " (shown.steps.len()) ". " a href=(in_api(&shown.view.id)) { "See all of them" } }
            }
        }
    }
}

fn line(step: &Step, shown: &Shown) -> Markup {
    let (name, now) = (step.label(), shown.now);
    let done = step.status != StepStatus::Skipped;
    html! {
        tr data-key={ "step " (step.path) } {
            th scope="row" {
                code title=(step.path) { (name) }
                @if step.kind != "step" { " " span.tag { (step.kind) } }
            }
            td { (mark::status(stands(step))) }
            td.number data-name="Attempts" { @if !step.tries.is_empty() && done { (step.attempts) } }
            td data-name="Began" { @if let Some(began) = step.started_at.filter(|_| done) { (words::offset(began.0, shown.view.started_at)) } }
            td.number data-name="Took" { @if let Some((began, ended)) = step.started_at.zip(step.ended_at).filter(|_| done) { (words::lasted(ended.0.saturating_since(began.0))) } }
            td data-name="Next" { @if let Some(at) = step.next_attempt_at { @if step.tries.is_empty() { "ends " } (words::relative(at.0, now)) } }
            td.outcome { (outcome(step, &shown.view.id)) }
        }
    }
}

fn outcome(step: &Step, run: &RunId) -> Markup {
    html! {
        @if let Some(failure) = &step.failure { (facts::failure(failure)) }
        @if let Some(output) = step.output.as_ref().filter(|output| output.as_str() != "null") {
            (data::fold(&format!("output {}", step.path), "Output", output, &in_api(run)))
        }
    }
}
