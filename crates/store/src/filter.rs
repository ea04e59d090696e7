//! Which runs a list shows, which a search finds, and where they go on.

use crate::{RunRow, ShardId};
use steadfast_kernel::{RunId, Status, Timestamp, WorkflowName};

/// Which runs a list shows: those to which all of it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In that status.
    pub status: Option<Status>,
    /// Of that workflow.
    pub workflow: Option<WorkflowName>,
    /// Of that tenant.
    pub tenant: Option<String>,
    /// With that primary wait reason: `BACKOFF`, `SIGNAL`, …
    pub wait: Option<String>,
    /// Begun at that time or later.
    pub since: Option<Timestamp>,
    /// Begun before that time.
    pub until: Option<Timestamp>,
}

impl RunFilter {
    /// Whether it lets that run through. What a store answers must agree with this.
    pub fn lets_through(&self, row: &RunRow) -> bool {
        self.status.is_none_or(|status| row.status == status)
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.tenant.as_ref().is_none_or(|tenant| row.tenant.as_ref() == Some(tenant))
            && self.wait.as_ref().is_none_or(|wait| row.wait.as_ref() == Some(wait))
            && self.since.is_none_or(|since| row.started_at >= since)
            && self.until.is_none_or(|until| row.started_at < until)
    }
}

impl RunRow {
    /// Whether that text is in the id, the workflow, the tenant, or in why it failed or what it said last. Letters are the same in either case, as far as they are
    /// ASCII. What a search of a store finds must agree with this.
    pub fn has(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let fields = [Some(self.run.as_str()), Some(self.workflow.as_str()), self.tenant.as_deref(), self.text.as_deref()];
        fields.into_iter().flatten().any(|field| field.to_ascii_lowercase().contains(&text))
    }
}

/// How many runs a search looks at before it answers with what it has found. No index has pieces of texts, so each of them is read, and whoever looks at a list is to
/// have an answer within fifty milliseconds, also if nothing is found.
pub const EXAMINED_MAX: usize = 10_000;

/// How many of them are asked for at a time. PostgreSQL reads as many in a millisecond if they say nothing, and in twelve if each says as much as it
/// [may](crate::TEXT_MAX); so how far an answer comes depends on what the runs say, and how long it takes does not.
pub const EXAMINED_STEP: usize = 500;

/// A page of a list of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPage {
    /// The runs, newest first.
    pub rows: Vec<RunRow>,
    /// Where the list goes on; nothing if this is the last page. A page may have a next one though it is not full, and even if it is empty.
    pub next: Option<RunCursor>,
}

impl RunPage {
    /// The page that these rows are, of which one more was read than it may have.
    pub fn cut(mut rows: Vec<RunRow>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(RunCursor::from);
        RunPage { rows, next }
    }

    /// Searches rows, which are read one by one, for as long as the page is not full and no more than so many are examined.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn search<E>(rows: impl IntoIterator<Item = Result<RunRow, E>>, text: &str, limit: usize, examined_max: usize) -> Result<Self, E> {
        let (mut found, mut last) = (Vec::new(), None);
        for (examined, row) in (1..).zip(rows.into_iter().take(examined_max)) {
            let row = row?;
            last = (examined == examined_max).then(|| RunCursor::from(&row));
            if row.has(text) {
                found.push(row);
            }
            if found.len() > limit {
                break;
            }
        }
        Ok(Self::found(found, limit, last))
    }

    /// The page of what a search has found: one more than the page may have, or everything among those that it has examined, of which that was the last if there may
    /// be others after it.
    pub fn found(rows: Vec<RunRow>, limit: usize, examined: Option<RunCursor>) -> Self {
        let page = Self::cut(rows, limit);
        let next = page.next.or(examined);
        RunPage { next, ..page }
    }
}

/// Which ended runs somebody looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedFilter {
    /// Of that shard.
    pub shard: ShardId,
    /// In that status.
    pub status: Status,
    /// Those that are tasks of a plan, or those that are none.
    pub tasks: bool,
    /// Ended at that time or before.
    pub until: Timestamp,
}

impl EndedFilter {
    /// Whether it lets that run through. What a store answers must agree with this.
    pub fn lets_through(&self, row: &RunRow) -> bool {
        row.shard == self.shard
            && row.status == self.status
            && row.task.is_some() == self.tasks
            && row.ended_at.is_some_and(|ended_at| ended_at <= self.until)
    }
}

/// The place of a run among those that have ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedCursor {
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its id.
    pub run: RunId,
}

impl EndedCursor {
    /// The place of that run, if it has ended.
    pub fn of(row: &RunRow) -> Option<Self> {
        row.ended_at.map(|ended_at| EndedCursor { ended_at, run: row.run.clone() })
    }
}

/// The place of a run in lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunCursor {
    /// When it began.
    pub started_at: Timestamp,
    /// Its id.
    pub run: RunId,
}

impl From<&RunRow> for RunCursor {
    fn from(row: &RunRow) -> Self {
        RunCursor { started_at: row.started_at, run: row.run.clone() }
    }
}
