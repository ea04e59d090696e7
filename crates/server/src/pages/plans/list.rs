//! `/plans`: plans, newest first, as far as they are asked for.

use super::{Tab, bar, link, tabs};
use crate::app::App;
use crate::ask::{Query, within};
use crate::cursor;
use crate::pages::layout::{Page, Part};
use crate::pages::run::quoted;
use crate::pages::{mark, run, words};
use crate::problem::Problem;
use crate::shapes::{PlanStatus, PlanSummary};
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{Timestamp, WorkflowName};
use steadfast_store::{PlanCursor, PlanFilter};

/// In the order of a plan's life.
const STATUSES: [PlanStatus; 6] =
    [PlanStatus::Ready, PlanStatus::Running, PlanStatus::Paused, PlanStatus::Failed, PlanStatus::Completed, PlanStatus::Cancelled];

/// What can change a line of the list.
const FEED: &str = "/v1/events?types=PLAN_CREATED,PLAN_STARTED,PLAN_PAUSED,PLAN_RESUMED,PLAN_CANCEL_REQUESTED,PLAN_ROLLBACK_REQUESTED,PLAN_COMPLETED,\
                    PLAN_FAILED,PLAN_CANCELLED,TASK_CHANGED";

/// Which plans: those to which all of it applies.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Asked {
    status: Option<PlanStatus>,
    definition: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(in crate::pages) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let after: Option<PlanCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let definition = asked.definition.as_ref().map(WorkflowName::new).transpose()?.map(|name| name.to_string());
    let filter = PlanFilter { shard: None, status: asked.status.map(Into::into), definition };
    let (plans, next) = app.some_plans(&filter, after.as_ref(), limit).await?;
    let content = html! {
        div.head { h1 { "Plans" } p.lead { "The same for many tenants, stage by stage, so many tenants at once." } }
        (tabs(Tab::Plans))
        (chips(&asked))
        @if plans.is_empty() { (nothing(&app, &asked)) } @else { (table(&plans, words::now())) }
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() { a.button href=(Asked { cursor: None, ..asked.clone() }.link()) { "Newest" } }
            @if let Some(next) = next {
                a.button rel="next" href=(Asked { cursor: Some(cursor::encode(&next)), ..asked.clone() }.link()) { "Older" }
            }
        }
    };
    let title = asked
        .status
        .map_or_else(|| "Plans".into(), |status| format!("{} plans", mark::word(status.as_str())));
    Ok(Page { part: Part::Plans, title, follows: Some(FEED.into()), content }.respond(&app))
}

impl Asked {
    fn link(&self) -> String {
        link(
            "/plans",
            &[
                ("status", self.status.map(|status| status.as_str().into())),
                ("definition", self.definition.clone()),
                ("limit", self.limit.map(|limit| limit.to_string())),
                ("cursor", self.cursor.clone()),
            ],
        )
    }
}

fn chips(asked: &Asked) -> Markup {
    let chip = |status: Option<PlanStatus>| {
        let link = Asked { status, cursor: None, ..asked.clone() }.link();
        html! {
            a.chip href=(link) aria-current=[(asked.status == status).then_some("true")] {
                @match status { Some(status) => { (mark::status(status.as_str())) } None => { "All" } }
            }
        }
    };
    html! {
        nav.chips aria-label="Status" {
            (chip(None))
            @for status in STATUSES { (chip(Some(status))) }
            @if let Some(definition) = &asked.definition {
                a.chip href=(Asked { definition: None, cursor: None, ..asked.clone() }.link()) aria-current="true" { "of " (definition) " ×" }
            }
        }
    }
}

fn table(plans: &[PlanSummary], now: Timestamp) -> Markup {
    html! {
        table.runs.plans {
            thead { tr { th scope="col" { "Status" } th scope="col" { "Plan" } th scope="col" { "Definition" } th scope="col" { "Tenants" }
                th scope="col" { "Created" } th.number scope="col" { "Took" } } }
            tbody { @for plan in plans { (line(plan, now)) } }
        }
    }
}

fn line(plan: &PlanSummary, now: Timestamp) -> Markup {
    let took = plan.started_at.zip(plan.ended_at).map(|(began, ended)| ended.0.saturating_since(began.0));
    html! {
        tr data-key={ "plan " (plan.id) } data-status=(plan.status.as_str()) {
            td.state { (mark::status(plan.status.as_str())) }
            th.id scope="row" { (super::plan(&plan.id)) }
            td.workflow { a href=(Asked { definition: Some(plan.definition.clone()), ..Asked::default() }.link()) { (plan.definition) } }
            td.word {
                (bar::bar(&plan.progress))
                span title=(bar::words(&plan.progress)) { (bar::words(&plan.progress)) }
                @if let Some(why) = &plan.why { span.message title=(why) { (why) } }
            }
            td.when { (words::relative(plan.created_at.0, now)) }
            td.number.took { @if let Some(took) = took { (words::lasted(took)) } }
        }
    }
}

/// What to do where nothing is to be seen.
fn nothing(app: &App, asked: &Asked) -> Markup {
    let is_narrow = asked.status.is_some() || asked.definition.is_some() || asked.cursor.is_some();
    let definition = app.engine.workflows().into_iter().find(|(_, registered)| registered.is_plan).map(|(name, _)| name);
    html! {
        div.nothing {
            @if is_narrow {
                h2 { "No such plans" }
                p { "Nothing fits these filters now. What begins to fit appears here by itself." }
                p { a.button href="/plans" { "All plans" } }
            } @else {
                h2 { "No plans yet" }
                @match &definition {
                    None => { p { "No plan is defined. Put a definition with " code { "plan:" } " into the definitions folder, or register one in code. Then create one, and it appears here by itself:" } }
                    Some(_) => { p { "Create one, and it appears here by itself:" } }
                }
                (run::command(&format!("steadfast plan apply {} --tenant acme --tenant globex", quoted(definition.as_ref().map_or("DEFINITION", |name| name.as_str())))))
            }
        }
    }
}
