//! What one commit makes durable: whole, or absent.

use crate::ShardId;
use steadfast_kernel::{Record, Run, RunId, Status, Timer, TimerName, Timestamp, WorkflowName};

/// One durable commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// One per shard concerned.
    pub fences: Vec<Fence>,
    /// Journal entries; those of one run are in order.
    pub events: Vec<Append>,
    /// Rows put; a later one of the same run replaces an earlier one.
    pub runs: Vec<RunRow>,
    /// Timers armed and disarmed, applied in order.
    pub timers: Vec<TimerChange>,
}

/// Who writes a shard, and which of its batches these are: applied only if the shard stands at (`term`, `after`), which then is (`term`, `upto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The shard.
    pub shard: ShardId,
    /// The writer's claim.
    pub term: u64,
    /// The number of the shard's batch before this one.
    pub after: u64,
    /// The number of the last batch in this one.
    pub upto: u64,
}

/// A journal entry of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    /// Whose journal.
    pub run: RunId,
    /// The entry.
    pub record: Record,
}

/// What lists and recovery need to know of a run without reading its journal. Put when it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// The shard it lives in.
    pub shard: ShardId,
    /// Its id.
    pub run: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// Its status.
    pub status: Status,
    /// The reason of its primary wait, if it only waits: such a run need not be hosted.
    pub wait: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl RunRow {
    /// The row of a run in that state.
    pub fn of(shard: ShardId, run: &Run) -> Self {
        let status = run.status();
        let wait = run.is_waiting().then(|| run.waits().first().map(|wait| wait.reason().to_string())).flatten();
        RunRow {
            shard,
            run: run.id.clone(),
            workflow: run.workflow.clone(),
            status,
            wait,
            started_at: run.started_at,
            ended_at: run.ended().map(|ended| ended.at),
        }
    }
}

/// A timer armed or disarmed.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerChange {
    /// Put it; it replaces one of the same run and name.
    Arm {
        /// The shard of its run.
        shard: ShardId,
        /// The timer.
        timer: Timer,
    },
    /// Remove it, if it is there.
    Disarm {
        /// Whose it is.
        run: RunId,
        /// Which one.
        name: TimerName,
    },
}

impl Batch {
    /// Adds a batch that follows on from this one. Batches of one shard are merged in their order.
    pub fn merge(&mut self, next: Batch) {
        for fence in next.fences {
            match self.fences.iter_mut().find(|mine| mine.shard == fence.shard && mine.term == fence.term) {
                Some(mine) if mine.upto == fence.after => mine.upto = fence.upto,
                _ => self.fences.push(fence),
            }
        }
        self.events.extend(next.events);
        self.runs.extend(next.runs);
        self.timers.extend(next.timers);
    }

    /// A rough number of bytes, for bounding how much is merged.
    pub fn size(&self) -> usize {
        let event = |append: &Append| 128 + append.record.body.len() + append.record.payload.as_ref().map_or(0, |payload| payload.len());
        self.events.iter().map(event).sum::<usize>() + 128 * (self.runs.len() + self.timers.len())
    }
}
