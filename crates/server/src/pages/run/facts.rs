//! What a run is, in short.

use super::Shown;
use crate::pages::{mark, plans, words, workflows};
use crate::shapes::Failure;
use maud::{Markup, html};
use steadfast_kernel::Recovery;

pub(super) fn head(shown: &Shown) -> Markup {
    let view = &shown.view;
    html! {
        div.head.run {
            p.crumb { a href="/" { "Runs" } " / " a href={ "/?workflow=" (view.workflow) } { (view.workflow) } }
            div.line { h1 { (view.id) } (mark::status(view.status.as_str())) }
            @if let Some(note) = &view.note { p.lead { (note) } }
            @if let Some(task) = &view.task {
                p.lead { "A task of the plan " (plans::plan(task.options.plan.as_str())) " for the tenant " (plans::tenant(task.options.tenant.as_str())) "." }
            }
        }
    }
}

pub(super) fn facts(shown: &Shown) -> Markup {
    let (view, now) = (&shown.view, shown.now);
    let ended = view.ended.as_ref().map(|ended| ended.at);
    html! {
        dl.facts {
            @if let Some(hash) = &view.definition { (fact("Definition", html! { code title=(hash) { (workflows::short(hash)) } })) }
            @if let Some(tenant) = &view.tenant { (fact("Tenant", html! { a href={ "/?tenant=" (tenant) } { (tenant) } })) }
            (fact("Started", words::relative(view.started_at, now)))
            @if let Some(at) = ended {
                (fact("Ended", words::relative(at, now)))
                (fact("Took", html! { (words::lasted(at.saturating_since(view.started_at))) }))
            }
            @if let Some(at) = view.deadline_at.filter(|_| ended.is_none()) { (fact("Deadline", words::relative(at, now))) }
            @if view.epoch > 1 { (fact("Life", html! { (view.epoch) })) }
            @if view.recovery == Recovery::Manual { (fact("After a crash", html! { "a person decides" })) }
            @if let Some(parent) = &view.parent { (fact("Started by", html! { a href={ "/runs/" (parent) } { (parent) } })) }
            @if !view.children.is_empty() {
                (fact("Has started", html! {
                    @for (place, (step, run)) in view.children.iter().enumerate() {
                        @if place > 0 { ", " }
                        a href={ "/runs/" (run) } title=(step) { (run) }
                    }
                }))
            }
        }
    }
}

fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// What went wrong, with what lies behind it.
pub(in crate::pages) fn failure(failure: &Failure) -> Markup {
    html! {
        div.failure {
            p { span.message { (failure.message) } " " span.tag { (failure.class) } " " code.tag { (failure.code) } }
            @if !failure.causes.is_empty() {
                ul.causes aria-label="What lies behind it" { @for cause in &failure.causes { li { (cause) } } }
            }
            @match failure.max_attempts {
                Some(max) => { p.fine { "All of its " (words::count(max.into(), "attempt")) " failed." } }
                None if failure.attempts > 1 => { p.fine { "After " (words::count(failure.attempts.into(), "attempt")) "." } }
                None => {}
            }
        }
    }
}
