//! `/plans/{id}`: one plan. Where it stands and why, how far its tenants have come, what can be done, and what was.

use super::grid::{self, Grid};
use super::{act, elsewhere, facts, history, link};
use crate::app::App;
use crate::ask::{Command, Form, Nothing, PlanPath, Query, within};
use crate::pages::layout::{Page, Part};
use crate::pages::{deed, mark, words};
use crate::problem::Problem;
use crate::shapes::Plan;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::plan::{Phase, PlanEvent};
use steadfast_kernel::{self as kernel, EntityId, Event, Origin, PlanId, Refusal, TaskStatus, Timestamp};
use steadfast_runtime as runtime;

/// How many tenants are on a page, unless somebody asks for others.
const ROWS: u64 = 200;

/// How many may be asked for.
pub(super) const ROWS_MAX: u64 = 1000;

/// Which tenants, and which part of the journal.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Asked {
    /// `person` for those that need one, or a status; all if it is left out.
    pub(super) show: Option<String>,
    /// The place of the first tenant among them, counted from 0.
    pub(super) from: Option<u64>,
    /// How many tenants at most.
    pub(super) limit: Option<u64>,
    /// `all` for everything; what people and the plan itself did if it is left out.
    pub(super) journal: Option<String>,
    /// Events before that one; the last ones if it is left out.
    pub(super) before: Option<u64>,
}

/// What there is to say about a plan at some time.
pub(super) struct Shown {
    pub(super) state: kernel::Plan,
    pub(super) plan: Plan,
    /// Who started it, and why.
    pub(super) started: Option<Origin>,
    pub(super) asked: Asked,
    /// How many tenants are on a page.
    pub(super) rows: usize,
    pub(super) now: Timestamp,
}

pub(in crate::pages) async fn page(
    State(app): State<Arc<App>>,
    PlanPath(id): PlanPath,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    asked.check()?;
    let rows = within("limit", asked.limit, 1..=ROWS_MAX, ROWS)? as usize;
    let tasks = match app.engine.tasks(&id).await {
        Err(runtime::Error::Refused(Refusal::PlanNotFound { .. })) => return elsewhere::page(&app, &id, &asked, rows).await,
        tasks => tasks?,
    };
    let state = app.engine.plan(&id).await?;
    let plan = Plan::of(&state, &tasks);
    let (started, history) = (started(&app, &state).await?, history::read(&app, &state, &asked).await?);
    let shown = Shown { state, plan, started, asked, rows, now: words::now() };
    let content = html! {
        (facts::head(&shown.plan))
        (facts::callout(&shown.plan, &facts::stands(&shown)))
        (facts::facts(&shown))
        (deed::section(&format!("/plans/{id}"), &act::deeds(&shown)))
        (grid::section(&Grid { plan: &shown.plan, asked: &shown.asked, rows: shown.rows, is_new: matches!(shown.state.phase, Phase::New) }))
        (facts::more(&shown.plan))
        (history::section(&shown, &history))
    };
    let title = format!("{} · {}", id, mark::word(shown.plan.status.as_str()));
    let mut feed = form_urlencoded::Serializer::new(String::new());
    let follows = Some(format!("/v1/events?{}", feed.append_pair("plan", id.as_str()).finish()));
    Ok(Page { part: Part::Plans, title, follows, content }.respond(&app))
}

impl Asked {
    fn check(&self) -> Result<(), Problem> {
        if self.show.as_deref().is_some_and(|show| show != "person" && TaskStatus::parse(show).is_none()) {
            return Err(Problem::bad_request("show has to be person, or the status of a task, for example FAILED"));
        }
        if self.journal.as_deref().is_some_and(|journal| journal != "all") {
            return Err(Problem::bad_request("journal has to be all, or be left out"));
        }
        Ok(())
    }

    /// The address of the page with that.
    pub(super) fn link(&self, id: &str) -> String {
        link(
            &format!("/plans/{id}"),
            &[
                ("show", self.show.clone()),
                ("from", self.from.filter(|from| *from > 0).map(|from| from.to_string())),
                ("limit", self.limit.map(|limit| limit.to_string())),
                ("journal", self.journal.clone()),
                ("before", self.before.map(|before| before.to_string())),
            ],
        )
    }
}

/// Who started it. It is said once all tasks have said that they are there, unless somebody was very quick.
async fn started(app: &App, plan: &kernel::Plan) -> Result<Option<Origin>, Problem> {
    if plan.started_at.is_none() {
        return Ok(None);
    }
    let made = plan.tasks.len();
    for (after, limit) in [(made as u64, 8), (0, made + 2)] {
        let entries = app.engine.entries(&EntityId::Plan(plan.id.clone()), after, limit).await?;
        for entry in entries {
            if let Event::Plan(event) = entry.event
                && let PlanEvent::Started { origin } = *event
            {
                return Ok(Some(origin));
            }
        }
    }
    Ok(None)
}

/// What the forms of the page send.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Sent {
    verb: act::Verb,
    reason: Option<String>,
    sure: Option<String>,
}

/// Does what somebody wants on the page.
pub(in crate::pages) async fn change(
    State(app): State<Arc<App>>,
    PlanPath(id): PlanPath,
    _: Query<Nothing>,
    command: Command,
    Form(Sent { verb, reason, sure }): Form<Sent>,
) -> Result<Response, Problem> {
    if verb.is_grave() {
        deed::is_sure(sure.as_deref())?;
    }
    app.engine.operate_plan(&id, verb.into(), deed::origin(command, reason)?).await?;
    Ok(see(&id))
}

fn see(id: &PlanId) -> Response {
    deed::see(&format!("/plans/{id}"))
}
