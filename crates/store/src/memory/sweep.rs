//! Sweeping, step by step as in stores where it takes time.

use super::tables::Tables;
use crate::{EndedCursor, EndedFilter, Error, RunCursor, RunRow, ShardId, Sweep, Swept};
use std::ops::Bound;
use steadfast_kernel::{EntityId, PlanId, Seq};

/// How many entries one step removes: few, so that tests see runs that are half swept.
pub(super) const STEP: usize = 100;

impl Tables {
    pub(super) fn ended(&self, filter: &EndedFilter, after: Option<&EndedCursor>, limit: usize) -> Vec<RunRow> {
        let follows = |row: &&RunRow| after.is_none_or(|after| EndedCursor::of(row).as_ref() > Some(after));
        let mut rows: Vec<_> = self.runs.values().filter(|row| filter.lets_through(row)).filter(follows).cloned().collect();
        rows.sort_by_key(EndedCursor::of);
        rows.truncate(limit);
        rows
    }

    pub(super) fn oldest(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Vec<RunRow> {
        let follows = |row: &&RunRow| row.shard == shard && after.is_none_or(|after| RunCursor::from(*row) > *after);
        let mut rows: Vec<_> = self.runs.values().filter(follows).cloned().collect();
        rows.sort_by_key(|row| RunCursor::from(row));
        rows.truncate(limit);
        rows
    }

    pub(super) fn half_swept(&self, shard: ShardId) -> Vec<EntityId> {
        self.half_swept.iter().filter(|(_, of)| **of == shard).map(|(entity, _)| entity.clone()).collect()
    }

    pub(super) fn sweep(&mut self, shard: ShardId, term: u64, runs: &[Sweep], entries: usize) -> Result<Vec<Swept>, Error> {
        match self.head(shard).term == term {
            true => Ok(self.sweep_step(shard, runs, entries)),
            false => Err(Error::Fenced { shard, term }),
        }
    }

    /// One step by who has the shard, which removes so many entries at the most.
    pub(super) fn sweep_step(&mut self, shard: ShardId, runs: &[Sweep], entries: usize) -> Vec<Swept> {
        let (mut swept, mut left) = (Vec::new(), entries);
        for sweep in runs {
            if left == 0 {
                break;
            }
            swept.push(self.sweep_one(shard, sweep, &mut left));
        }
        swept
    }

    fn sweep_one(&mut self, shard: ShardId, sweep: &Sweep, left: &mut usize) -> Swept {
        let entity = &sweep.entity;
        match self.may_go(shard, sweep) {
            Some(false) => return Swept::Kept,
            Some(true) => {
                match entity {
                    EntityId::Run(run) => drop(self.runs.remove(run)),
                    EntityId::Plan(plan) => drop(self.plans.remove(plan)),
                    EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Key(_) | EntityId::Lock(_) | EntityId::Route(_) => {}
                }
                self.timers.retain(|(of, _), _| of != entity);
                self.snapshots.remove(entity);
                self.half_swept.insert(entity.clone(), shard);
            }
            None if self.half_swept.get(entity) != Some(&shard) => return Swept::Gone,
            None => {}
        }
        let range = (Bound::Included((entity.clone(), 0)), Bound::Included((entity.clone(), Seq::MAX)));
        let keys: Vec<_> = self.events.range(range).take(*left).map(|(key, _)| key.clone()).collect();
        *left -= keys.len();
        for key in &keys {
            if let Some((place, _)) = self.events.remove(key) {
                self.places.remove(&place);
            }
        }
        if *left == 0 {
            return Swept::Half; // there may be more
        }
        self.half_swept.remove(entity);
        Swept::Gone
    }

    /// Whether it may be removed; nothing if it is not there.
    fn may_go(&self, shard: ShardId, sweep: &Sweep) -> Option<bool> {
        let has_tasks = |plan: &PlanId| self.runs.values().filter_map(|row| row.task.as_ref()).any(|task| task.plan == *plan);
        let is_over = match &sweep.entity {
            EntityId::Run(run) => self.runs.get(run).map(|row| row.shard == shard && sweep.fits(row))?,
            EntityId::Plan(plan) => {
                let row = self.plans.get(plan)?;
                row.shard == shard && sweep.fits_plan(row) && !has_tasks(plan)
            }
            EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Key(_) | EntityId::Lock(_) | EntityId::Route(_) => false,
        };
        Some(is_over && !self.speaks(&sweep.entity))
    }

    /// True if somebody has yet to hear what it said.
    fn speaks(&self, entity: &EntityId) -> bool {
        let from = entity.to_string();
        self.outbox.range((from.clone(), 0)..=(from, u64::MAX)).next().is_some()
    }
}
