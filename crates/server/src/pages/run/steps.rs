//! The steps of a run, in a table.

use super::{Shown, facts, in_api, timeline};
use crate::pages::{data, mark, words};
use crate::shapes::{Data, step_name};
use maud::{Markup, html};
use steadfast_kernel::RunId;
use steadfast_runtime::{StepKind, StepView};

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
                    th.number scope="col" { "Took" } th scope="col" { "Next try" } th scope="col" { "Outcome" } } }
                tbody { @for step in last { (line(step, shown)) } }
            }
            @if last.len() < shown.steps.len() {
                p.fine { "The last " (timeline::STEPS_MAX) " of " (shown.steps.len()) ". " a href=(in_api(&shown.view.id)) { "See all of them" } }
            }
        }
    }
}

fn line(step: &StepView, shown: &Shown) -> Markup {
    let (name, now) = (step_name(&step.id), shown.now);
    html! {
        tr data-key={ "step " (step.id) } {
            th scope="row" {
                code title=(step.id) { (name) }
                @if step.id.as_str() != format!("{name}#1") { " " span.fine { (step.id) } }
                @if step.kind != StepKind::Step { " " span.tag { (step.kind.as_str()) } }
            }
            td { (mark::status(step.status.as_str())) }
            td.number data-name="Attempts" { @if step.kind == StepKind::Step { (step.attempts) } }
            td data-name="Began" { (words::offset(step.started_at, shown.view.started_at)) }
            td.number data-name="Took" { @if let Some(ended) = step.ended_at { (words::lasted(ended.saturating_since(step.started_at))) } }
            td data-name="Next try" { @if let Some(at) = step.next_attempt_at { (words::relative(at, now)) } }
            td.outcome { (outcome(step, &shown.view.id)) }
        }
    }
}

fn outcome(step: &StepView, run: &RunId) -> Markup {
    html! {
        @if let Some(failure) = &step.failure { (facts::failure(failure)) }
        @if let Some(output) = step.output.as_ref().filter(|_| step.kind != StepKind::Sleep) {
            (data::fold(&format!("output {}", step.id), "Output", &Data::from(output), &in_api(run)))
        }
    }
}
