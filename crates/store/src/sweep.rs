//! Sweeping: ended runs and plans are removed after their time, piece by piece.
//!
//! A sweep removes what belongs to a run or a plan: its row, its journal, its timers. It is done in steps that are short enough for commits not to be held up by them. The first step
//! takes the row away, and from then on it has no journal either, whoever asks; what is left of it is found by [`half_swept`](crate::Store::half_swept).

use crate::{PlanRow, RunRow};
use steadfast_kernel::{EntityId, Timestamp};

/// A run or a plan that is to be removed: the end it had when that was decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sweep {
    /// The run or the plan; nothing else is removed.
    pub entity: EntityId,
    /// When it ended. What has begun another life since is kept.
    pub ended_at: Timestamp,
}

/// What became of something that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// Nothing is left of it.
    Gone,
    /// It is not there any more, and something of it is left: sweep it again.
    Half,
    /// It is kept: it has not ended, or not at that time, or somebody has yet to hear what it said; or it is a plan that has tasks.
    Kept,
}

impl Sweep {
    /// True if the run of that row may be removed, as far as its row tells.
    pub fn fits(&self, row: &RunRow) -> bool {
        row.status.is_final() && row.ended_at == Some(self.ended_at)
    }

    /// True if the plan of that row may be removed, as far as its row tells.
    pub fn fits_plan(&self, row: &PlanRow) -> bool {
        row.status.is_final() && row.ended_at == Some(self.ended_at)
    }
}
