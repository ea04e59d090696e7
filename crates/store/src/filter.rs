//! Which runs a list shows, and where it goes on.

use crate::RunRow;
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
    /// With that text in the id, the workflow, the tenant, or in why it failed or what it said last. Letters are the same in either case.
    pub text: Option<String>,
    /// Begun at that time or later.
    pub since: Option<Timestamp>,
    /// Begun before that time.
    pub until: Option<Timestamp>,
}

impl RunFilter {
    /// Whether it lets that run through. What a store answers must agree with this.
    pub fn lets_through(&self, row: &RunRow) -> bool {
        let has = |text: &str| {
            let text = text.to_ascii_lowercase();
            let fields = [Some(row.run.as_str()), Some(row.workflow.as_str()), row.tenant.as_deref(), row.text.as_deref()];
            fields.into_iter().flatten().any(|field| field.to_ascii_lowercase().contains(&text))
        };
        self.status.is_none_or(|status| row.status == status)
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.tenant.as_ref().is_none_or(|tenant| row.tenant.as_ref() == Some(tenant))
            && self.wait.as_ref().is_none_or(|wait| row.wait.as_ref() == Some(wait))
            && self.text.as_deref().is_none_or(has)
            && self.since.is_none_or(|since| row.started_at >= since)
            && self.until.is_none_or(|until| row.started_at < until)
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
