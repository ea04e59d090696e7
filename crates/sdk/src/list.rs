//! Lists of runs: newest first, page by page.

use crate::{Engine, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use steadfast_kernel::{RunId, Status, Timestamp, WorkflowName};
use steadfast_runtime as runtime;
use steadfast_store::{RunCursor, RunFilter, RunRow};

/// How many runs a page has unless somebody says otherwise, and how many it may have.
const PAGE: usize = 50;
const PAGE_MAX: usize = 1000;

/// A list of runs that is being put together. Await it for its first page, or the one after a cursor.
#[must_use = "a list is read when this is awaited"]
pub struct ListRuns {
    engine: Engine,
    filter: RunFilter,
    text: Option<String>,
    limit: usize,
    after: Option<RunCursor>,
    wrong: Option<runtime::Error>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPage {
    /// The runs, newest first.
    pub items: Vec<RunRow>,
    /// Where the list goes on, if it does.
    pub next: Option<String>,
}

impl Engine {
    /// Lists runs, newest first. Everything that is said about them has to apply.
    pub fn list(&self) -> ListRuns {
        ListRuns { engine: self.clone(), filter: RunFilter::default(), text: None, limit: PAGE, after: None, wrong: None }
    }
}

impl ListRuns {
    /// Those in that status.
    pub fn status(mut self, status: Status) -> Self {
        self.filter.status = Some(status);
        self
    }

    /// Those of that workflow.
    pub fn workflow(mut self, workflow: &str) -> Self {
        match WorkflowName::new(workflow) {
            Ok(workflow) => self.filter.workflow = Some(workflow),
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Those of that tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.filter.tenant = Some(tenant.into());
        self
    }

    /// Those that wait for that reason before others: `BACKOFF`, `SIGNAL`, …
    pub fn wait(mut self, reason: impl Into<String>) -> Self {
        self.filter.wait = Some(reason.into());
        self
    }

    /// Those with that text in their id, workflow or tenant, in why they, or a step that is tried again, failed, or in what they said last of how far they had
    /// come. At most 10,000 runs are looked at for a page, so one may have fewer than its limit, or none, and a [`next`](RunPage::next) one all the same.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Those begun at that time or later.
    pub fn since(mut self, since: Timestamp) -> Self {
        self.filter.since = Some(since);
        self
    }

    /// Those begun before that time.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.filter.until = Some(until);
        self
    }

    /// How many at most: 50 unless this says otherwise, and never more than 1,000.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.clamp(1, PAGE_MAX);
        self
    }

    /// Goes on where a page ended: its [`next`](RunPage::next).
    pub fn after(mut self, cursor: &str) -> Self {
        match parse(cursor) {
            Some(after) => self.after = Some(after),
            None => self.wrong = Some(runtime::Error::InvalidSetting(format!("{cursor:?} is not a cursor that a list has given"))),
        }
        self
    }

    async fn read(self) -> Result<RunPage, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        let page = self.engine.inner.list(&self.filter, self.text.as_deref(), self.after.as_ref(), self.limit).await?;
        let next = page.next.map(|next| format!("{}.{}", next.started_at.as_micros(), next.run));
        Ok(RunPage { items: page.rows, next })
    }
}

fn parse(cursor: &str) -> Option<RunCursor> {
    let (started_at, run) = cursor.split_once('.')?;
    Some(RunCursor { started_at: Timestamp::from_micros(started_at.parse().ok()?), run: RunId::new(run).ok()? })
}

impl IntoFuture for ListRuns {
    type Output = Result<RunPage, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.read().boxed()
    }
}
