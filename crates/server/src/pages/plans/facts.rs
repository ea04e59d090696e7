//! What a plan is, and why it stands where it stands.

use super::bar;
use super::grid::needs_a_person;
use super::show::{Asked, Shown};
use crate::pages::{data, mark, words, workflows};
use crate::shapes::{Plan, PlanStatus, StopWhen};
use maud::{Markup, html};
use std::time::Duration;
use steadfast_kernel::Origin;
use steadfast_kernel::plan::{Cause, Phase};

pub(super) fn head(plan: &Plan) -> Markup {
    html! {
        div.head.run {
            p.crumb { a href="/plans" { "Plans" } " / " a href={ "/plans?definition=" (plan.definition) } { (plan.definition) } }
            div.line { h1 { (plan.id) } (mark::status(plan.status.as_str())) }
        }
    }
}

/// Where it stands, in a sentence, and how far it has come.
pub(super) fn callout(plan: &Plan, stands: &Markup) -> Markup {
    let waiting = plan.tenants.iter().filter(|task| needs_a_person(task)).count() as u64;
    html! {
        section class={ "why " (mark::class(plan.status.as_str())) } aria-label="Where it stands" {
            p.first { (stands) }
            (bar::bar(&plan.progress))
            p { (bar::words(&plan.progress)) }
            @if waiting > 0 {
                p { a href=(Asked { show: Some("person".into()), ..Asked::default() }.link(&plan.id)) {
                    (words::count(waiting, "tenant")) @if waiting == 1 { " needs a person" } @else { " need a person" }
                } }
            }
        }
    }
}

pub(super) fn stands(shown: &Shown) -> Markup {
    match &shown.state.phase {
        Phase::New if shown.plan.status == PlanStatus::Created => html! { "Its tasks are being made." },
        Phase::New => html! { "It waits to be started." },
        Phase::Running => html! { "It is under way." },
        Phase::Paused { cause, origin, since } => html! {
            "Paused " (words::relative(*since, shown.now)) (because(*cause, origin))
            @if let Some(why) = &origin.why { ": " span.message { (why) } }
            " " span.tag { (mark::word(cause.as_str())) }
        },
        Phase::Ending { undo: true } => html! { "It is being rolled back: what its tasks did is undone, newest first." },
        Phase::Ending { undo: false } => html! { "It is being called off." },
        Phase::Ended { failure: Some(failure), .. } => html! { "It has failed: " span.message { (failure.message) } },
        Phase::Ended { .. } => match shown.plan.status {
            PlanStatus::Completed => html! { "It has completed." },
            PlanStatus::Cancelled => html! { "It was called off." },
            _ => html! { "It has failed." },
        },
    }
}

fn because(cause: Cause, origin: &Origin) -> Markup {
    match cause {
        Cause::Person => html! { " by " (origin.by.as_deref().unwrap_or("somebody")) },
        Cause::Restart => html! { " by a restart" },
        Cause::StopWhen => html! { " because too many tasks have failed" },
        Cause::Canary => html! { " because a canary has not completed" },
        Cause::Deadline => html! { " because its time is over" },
        Cause::Interrupted => html! { " because a task was interrupted" },
    }
}

pub(super) fn facts(shown: &Shown) -> Markup {
    let (plan, now) = (&shown.plan, shown.now);
    html! {
        dl.facts {
            @if let Some(hash) = &plan.definition_hash { (fact("Definition", html! { code title=(hash) { (workflows::short(hash)) } })) }
            (fact("Created", html! { (words::relative(plan.created_at.0, now)) (by(&shown.state.created.origin)) }))
            @if let Some(at) = plan.started_at {
                (fact("Started", html! { (words::relative(at.0, now)) @if let Some(origin) = &shown.started { (by(origin)) } }))
            }
            @if let Some(at) = plan.ended_at {
                (fact("Ended", words::relative(at.0, now)))
                @if let Some(began) = plan.started_at { (fact("Took", html! { (words::lasted(at.0.saturating_since(began.0))) })) }
            }
            (settings(plan))
        }
    }
}

pub(super) fn settings(plan: &Plan) -> Markup {
    let tasks = |number: u32| words::count(number.into(), "tenant");
    html! {
        (fact("At once", html! { (tasks(plan.max_concurrency)) }))
        @if let Some(canary) = plan.canary.filter(|canary| *canary > 0) { (fact("Canary", html! { "the first " (tasks(canary)) })) }
        @if let Some(stop) = plan.stop_when {
            (fact("Pauses once", match stop {
                StopWhen::Failed(number) => html! { (tasks(number)) " failed" },
                StopWhen::FailedPercent(percent) => html! { (percent) "% failed" },
            }))
        }
        @if let Some(deadline) = plan.deadline_ms { (fact("Deadline", html! { (words::lasted(Duration::from_millis(deadline))) " from its start" })) }
        @if let Some(conflict) = &plan.conflict { (fact("Locked tenants", html! { @if conflict == "skip" { "are left out" } @else { "are not taken" } })) }
        @if let Some(on_failure) = &plan.on_failure {
            (fact("Lock of a failed task", html! { @if on_failure == "release" { "is given back" } @else { "is kept" } }))
        }
        @if let Some(lease) = plan.lease_ms { (fact("Lease", html! { (words::lasted(Duration::from_millis(lease))) })) }
    }
}

/// Who wanted it, and why.
pub(super) fn by(origin: &Origin) -> Markup {
    html! {
        @if let Some(by) = &origin.by { " by " (by) }
        @if let Some(why) = &origin.why { ": " span.message { (why) } }
    }
}

pub(super) fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// What its tasks are given, and whom it leaves out.
pub(super) fn more(plan: &Plan) -> Markup {
    html! {
        section.card aria-label="Vars" {
            (data::fold("vars", "Vars", &plan.vars, &in_api(&plan.id)))
            @if !plan.skipped.is_empty() {
                p { "Left out, because others had their lock: "
                    @for (place, locked) in plan.skipped.iter().take(50).enumerate() {
                        @if place > 0 { ", " } (super::tenant(&locked.tenant_id)) " (" (locked.holder) ")"
                    }
                    @if plan.skipped.len() > 50 { " and " (plan.skipped.len() - 50) " more" } "."
                }
            }
        }
    }
}

/// Where a plan is in the API: its id is one part of the path there, whatever it ends with.
pub(super) fn in_api(id: &str) -> String {
    format!("/v1/plans/{}", id.replace('/', "%2F"))
}
