//! `swept`: runs and plans that are not there any more and of which something is left; and how they are removed.
//!
//! A step removes so many rows and bytes, and then lets commits through. It takes away the row first, so that nobody finds the run or the plan; the table here has those
//! whose journal was too long for one step, so that nobody reads the rest of it and a restart finds it.

use super::{Read, Steps, get, parsed, parsed_if, small, time_if};
use crate::migrate;
use crate::session::param;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::{EntityId, PlanId, PlanStatus, RunId, Status, Timestamp};
use steadfast_store::{ShardId, Sweep, Swept};
use tokio_postgres::Row;

/// How many rows one step removes, and how many bytes of payload; a single entry may have more.
pub(crate) const ROWS: usize = 300;
const BYTES: i64 = 1 << 20;

/// What one costs beside its journal.
const ROWS_BESIDE: usize = 5;

/// How many are looked at in one step.
pub(crate) const MOST: usize = ROWS / ROWS_BESIDE;

/// With the schema as it is now: a newer program may keep more of a run than is removed here.
pub(crate) const LOCK: &str = "SELECT s.term, s.seq, newest.version, newest.compatible_from FROM steadfast.shards s
CROSS JOIN (SELECT max(version) AS version, max(compatible_from) AS compatible_from FROM steadfast.migrations) AS newest
WHERE s.id = $1 FOR NO KEY UPDATE OF s";

/// The sizes are known without reading the payloads.
pub(crate) const LOOK: &str =
    "SELECT coalesce(r.shard, p.shard) AS shard, coalesce(r.status, p.status) AS status, coalesce(r.ended_at, p.ended_at) AS ended_at,
  ARRAY(SELECT t.workflow_id FROM steadfast.workflow_state t WHERE t.plan_id = f.plan ORDER BY t.workflow_id LIMIT $5) AS tasks,
  EXISTS (SELECT FROM steadfast.outbox o WHERE o.from_id = f.id) AS speaks,
  EXISTS (SELECT FROM steadfast.swept s WHERE s.workflow_id = f.id AND s.shard = $4) AS is_half,
  e.sequences, e.sizes
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS f(id, run, plan, nth)
LEFT JOIN steadfast.workflow_state r ON r.workflow_id = f.run
LEFT JOIN steadfast.plans p ON p.plan_id = f.plan
CROSS JOIN LATERAL (
  SELECT coalesce(array_agg(w.sequence), '{}') AS sequences, coalesce(array_agg(w.size), '{}') AS sizes
  FROM (SELECT sequence, coalesce(octet_length(payload_bytes), 0) AS size FROM steadfast.workflow_events
    WHERE workflow_id = f.id ORDER BY sequence LIMIT $6) w
) e
ORDER BY f.nth";

pub(crate) const HALF: &str = "SELECT workflow_id FROM steadfast.swept WHERE shard = $1 ORDER BY workflow_id";

const RUNS: &str = "DELETE FROM steadfast.workflow_state WHERE workflow_id = ANY ($1) AND steadfast.begun()";
const PLANS: &str = "DELETE FROM steadfast.plans WHERE plan_id = ANY ($1) AND steadfast.begun()";
const TIMERS: &str = "DELETE FROM steadfast.timers WHERE workflow_id = ANY ($1) AND steadfast.begun()";
const SNAPSHOTS: &str = "DELETE FROM steadfast.snapshots WHERE workflow_id = ANY ($1) AND steadfast.begun()";
const EVENTS: &str = "DELETE FROM steadfast.workflow_events e USING unnest($1::text[], $2::bigint[]) AS f(id, upto)
WHERE e.workflow_id = f.id AND e.sequence <= f.upto AND steadfast.begun()";
const BEGUN: &str = "INSERT INTO steadfast.swept (workflow_id, shard) SELECT id, $2 FROM unnest($1::text[]) AS f(id) WHERE steadfast.begun() ON CONFLICT DO NOTHING";
const DONE: &str = "DELETE FROM steadfast.swept WHERE workflow_id = ANY ($1) AND steadfast.begun()";

/// What was found of one that is to be removed.
pub(crate) struct Found {
    shard: Option<ShardId>,
    is_over: bool,
    ended_at: Option<Timestamp>,
    tasks: Vec<String>,
    speaks: bool,
    is_half: bool,
    sequences: Vec<i64>,
    sizes: Vec<i32>,
}

/// The version of the schema, if it is one that this program must not remove anything from.
pub(crate) fn too_new(row: &Row) -> Read<Option<u32>> {
    let is_too_new = get::<i32>(row, "compatible_from")? > migrate::known();
    Ok(Some(small(row, "version")?).filter(|_| is_too_new))
}

/// What is asked about each: its id, and that of the run or plan that it is.
pub(crate) fn asked(sweeps: &[Sweep]) -> (Vec<String>, Vec<Option<&str>>, Vec<Option<&str>>) {
    let ids = sweeps.iter().map(|sweep| sweep.entity.to_string()).collect();
    let runs = sweeps.iter().map(|sweep| sweep.entity.run().map(RunId::as_str)).collect();
    let plans = sweeps.iter().map(|sweep| plan(&sweep.entity).map(PlanId::as_str)).collect();
    (ids, runs, plans)
}

fn plan(entity: &EntityId) -> Option<&PlanId> {
    match entity {
        EntityId::Plan(plan) => Some(plan),
        _ => None,
    }
}

pub(crate) fn found(row: &Row, sweep: &Sweep) -> Read<Found> {
    let shard = get::<Option<i32>>(row, "shard")?.map(i32::cast_unsigned);
    let is_over = match sweep.entity {
        EntityId::Run(_) => parsed_if(row, "status", Status::parse)?.is_some_and(Status::is_final),
        EntityId::Plan(_) => parsed_if(row, "status", PlanStatus::parse)?.is_some_and(PlanStatus::is_final),
        _ => false,
    };
    Ok(Found {
        shard,
        is_over,
        ended_at: time_if(row, "ended_at")?,
        tasks: get(row, "tasks")?,
        speaks: get(row, "speaks")?,
        is_half: get(row, "is_half")?,
        sequences: get(row, "sequences")?,
        sizes: get(row, "sizes")?,
    })
}

/// What one step does, once it was looked.
#[derive(Default)]
pub(crate) struct Removal {
    pub(crate) swept: Vec<Swept>,
    runs: BTreeSet<String>,
    plans: Vec<String>,
    /// Of which the row goes.
    entities: Vec<String>,
    /// And so much of the journal.
    events: Vec<(String, i64)>,
    begun: Vec<String>,
    done: Vec<String>,
}

impl Removal {
    /// Decides about as many as one step can do.
    pub(crate) fn of(shard: ShardId, sweeps: &[Sweep], found: &[Found]) -> Self {
        let (mut removal, mut rows, mut bytes) = (Removal::default(), ROWS, BYTES);
        let mut seen = BTreeMap::new();
        for (sweep, found) in sweeps.iter().zip(found) {
            if rows == 0 || bytes <= 0 {
                break;
            }
            rows = rows.saturating_sub(ROWS_BESIDE);
            let swept = match seen.get(&sweep.entity) {
                Some(Swept::Gone) => Swept::Gone,
                _ => removal.decide(shard, sweep, found, &mut rows, &mut bytes),
            };
            seen.insert(sweep.entity.clone(), swept);
            removal.swept.push(swept);
            if swept == Swept::Half {
                break;
            }
        }
        removal
    }

    fn decide(&mut self, shard: ShardId, sweep: &Sweep, found: &Found, rows: &mut usize, bytes: &mut i64) -> Swept {
        let id = sweep.entity.to_string();
        let is_there = found.shard.is_some() || (sweep.entity.run().is_none() && plan(&sweep.entity).is_none());
        let has_tasks = found.tasks.iter().any(|task| !self.runs.contains(task));
        let may_go = found.shard == Some(shard) && found.is_over && found.ended_at == Some(sweep.ended_at) && !found.speaks && !has_tasks;
        match (is_there, may_go) {
            (true, false) => return Swept::Kept,
            (false, _) if !found.is_half => return Swept::Gone,
            (true, true) => {
                match &sweep.entity {
                    EntityId::Plan(plan) => self.plans.push(plan.to_string()),
                    _ => drop(self.runs.insert(id.clone())),
                }
                self.entities.push(id.clone());
            }
            (false, _) => {}
        }
        let is_whole = self.take_entries(&id, found, rows, bytes);
        match (is_whole, found.is_half) {
            (true, true) => self.done.push(id),
            (false, false) => self.begun.push(id),
            _ => {}
        }
        if is_whole { Swept::Gone } else { Swept::Half }
    }

    /// Takes entries from the front of a journal, at least one. True if that was all.
    fn take_entries(&mut self, id: &str, found: &Found, rows: &mut usize, bytes: &mut i64) -> bool {
        let most = (*rows).max(1);
        let mut upto = None;
        for (nth, (sequence, size)) in found.sequences.iter().zip(&found.sizes).enumerate() {
            if nth > 0 && (nth == most || *bytes <= 0) {
                self.events.extend(upto.map(|upto| (id.to_owned(), upto)));
                return false;
            }
            upto = Some(*sequence);
            *rows = rows.saturating_sub(1);
            *bytes -= i64::from(*size);
        }
        self.events.extend(upto.map(|upto| (id.to_owned(), upto)));
        true
    }

    /// As statements.
    pub(crate) fn steps(&self, shard: ShardId) -> Steps<'_> {
        let mut steps = Steps::default();
        let mut remove = |sql: &'static str, ids: &[String]| {
            if !ids.is_empty() {
                steps.add(sql, [param(ids.to_vec())]);
            }
        };
        remove(RUNS, &self.runs.iter().cloned().collect::<Vec<_>>());
        remove(PLANS, &self.plans);
        remove(TIMERS, &self.entities);
        remove(SNAPSHOTS, &self.entities);
        remove(DONE, &self.done);
        if !self.begun.is_empty() {
            steps.add(BEGUN, [param(self.begun.clone()), param(shard.cast_signed())]);
        }
        if !self.events.is_empty() {
            let (ids, upto): (Vec<_>, Vec<_>) = self.events.iter().cloned().unzip();
            steps.add(EVENTS, [param(ids), param(upto)]);
        }
        steps
    }
}

pub(crate) fn half(row: &Row) -> Read<EntityId> {
    parsed(row, "workflow_id", EntityId::from_stored)
}
