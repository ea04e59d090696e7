//! Which runs a list is to show.

use super::query::nearest;
use crate::problem::Problem;
use crate::shapes::{Status, Wait};
use steadfast_kernel::WorkflowName;
use steadfast_store::RunFilter;

/// What a list of runs can be narrowed by; all that is given has to apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Narrow {
    pub(crate) status: Option<Status>,
    pub(crate) workflow: Option<String>,
    pub(crate) tenant: Option<String>,
    /// The primary wait reason.
    pub(crate) wait: Option<String>,
}

impl Narrow {
    /// The filter for the store, if all of it can be understood.
    pub(crate) fn filter(self) -> Result<RunFilter, Problem> {
        self.tenant.as_deref().map(steadfast_kernel::check_tenant).transpose()?;
        if let Some(wait) = self.wait.as_deref().filter(|wait| !Wait::REASONS.contains(wait)) {
            let meant = nearest(wait, &Wait::REASONS).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
            return Err(Problem::bad_request(format!("no run waits for that; {meant}wait has to be one of {}", Wait::REASONS.join(", "))));
        }
        Ok(RunFilter {
            status: self.status.map(Into::into),
            workflow: self.workflow.map(WorkflowName::new).transpose()?,
            tenant: self.tenant,
            wait: self.wait,
            since: None,
            until: None,
        })
    }
}
