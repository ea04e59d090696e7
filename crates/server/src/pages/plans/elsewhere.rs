//! `/plans/{id}` of a plan that another instance has: how far its tenants have come, and where something can be done about it.

use super::facts;
use super::grid::{self, Grid};
use super::show::Asked;
use crate::app::App;
use crate::pages::layout::{Page, Part};
use crate::pages::{mark, words, workflows};
use crate::problem::Problem;
use crate::shapes::{Plan, PlanStatus};
use axum::response::Response;
use maud::{Markup, html};
use steadfast_kernel::{PlanId, Timestamp};

pub(super) async fn page(app: &App, id: &PlanId, asked: &Asked, rows: usize) -> Result<Response, Problem> {
    let plan = app.plan(id).await?;
    let is_new = matches!(plan.status, PlanStatus::Created | PlanStatus::Ready);
    let content = html! {
        (facts::head(&plan))
        (facts::callout(&plan, &stands(&plan)))
        (about(&plan, words::now()))
        (grid::section(&Grid { plan: &plan, asked, rows, is_new }))
        (facts::more(&plan))
    };
    let title = format!("{} · {}", id, mark::word(plan.status.as_str()));
    Ok(Page { part: Part::Plans, title, follows: None, content }.respond(app))
}

/// Where it is, and what follows from that.
fn stands(plan: &Plan) -> Markup {
    let owner = html! { "Instance " code { (plan.instance.as_deref().unwrap_or("?")) } };
    match plan.owner_lives {
        Some(true) => {
            html! { (owner) " has this plan. It is shown as that instance has shared it; what is to be done with the plan is done there." }
        }
        _ if plan.status.is_final() => html! { (owner) " had this plan, and is gone." },
        _ => html! {
            (owner) " had this plan, and is gone: no other task of it begins. Its tenants can be gone on with here, one by one: open one, and retry it."
        },
    }
}

fn about(plan: &Plan, now: Timestamp) -> Markup {
    html! {
        dl.facts {
            (facts::fact("Instance", html! {
                code { (plan.instance.as_deref().unwrap_or("?")) } @if plan.owner_lives == Some(true) { ", which lives" } @else { ", which is gone" }
            }))
            @if let Some(hash) = &plan.definition_hash { (facts::fact("Definition", html! { code title=(hash) { (workflows::short(hash)) } })) }
            @if plan.stages.is_empty() { (facts::fact("Stages", html! { "not known: this version of the definition is not here" })) }
            (facts::fact("Created", words::relative(plan.created_at.0, now)))
            @if let Some(at) = plan.started_at { (facts::fact("Started", words::relative(at.0, now))) }
            (facts::settings(plan))
        }
    }
}
