//! `locks`: the locks that somebody has.

use super::{Read, Steps, all, column, count, integer, net, parsed, small, time};
use crate::session::param;
use crate::types::At;
use std::time::Duration;
use steadfast_kernel::{Lease, PlanId, RunId, TenantId};
use steadfast_store::{Batch, LockChange, LockRow};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.locks (tenant, shard, plan_id, task, epoch, fence, lease_us, expires_at, since, waiting)
SELECT * FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::bigint[], $8::timestamptz[], $9::timestamptz[],
  $10::int[])
WHERE steadfast.begun() ON CONFLICT (tenant) DO UPDATE SET shard = EXCLUDED.shard, plan_id = EXCLUDED.plan_id, task = EXCLUDED.task, epoch = EXCLUDED.epoch,
  fence = EXCLUDED.fence, lease_us = EXCLUDED.lease_us, expires_at = EXCLUDED.expires_at, since = EXCLUDED.since, waiting = EXCLUDED.waiting";

const REMOVE: &str = "DELETE FROM steadfast.locks WHERE tenant = ANY ($1) AND steadfast.begun()";

pub(crate) const GET: &str = "SELECT * FROM steadfast.locks WHERE tenant = ANY ($1) ORDER BY tenant";

pub(crate) const LIST: &str = "SELECT * FROM steadfast.locks WHERE tenant > $1 ORDER BY tenant LIMIT $2";

/// Puts and removes.
pub(crate) fn change<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let changes = all(batches, |batch| &batch.locks).map(|change| match change {
        LockChange::Put(row) => (row.tenant.as_str(), Some(&**row)),
        LockChange::Remove(tenant) => (tenant.as_str(), None),
    });
    let (put, removed) = net(changes);
    if !removed.is_empty() {
        steps.add(REMOVE, [param(removed)]);
    }
    if put.is_empty() {
        return;
    }
    let rows: Vec<&LockRow> = put.into_iter().map(|(_, row)| row).collect();
    let lease = |row: &&LockRow| i64::try_from(row.lease.lease.as_micros()).unwrap_or(i64::MAX);
    steps.add(
        PUT,
        [
            param(column(&rows, |row| row.tenant.as_str())),
            param(column(&rows, |row| row.shard.cast_signed())),
            param(column(&rows, |row| row.lease.plan.as_str())),
            param(column(&rows, |row| row.lease.task.as_str())),
            param(column(&rows, |row| row.lease.epoch.cast_signed())),
            param(column(&rows, |row| integer(row.lease.fence))),
            param(column(&rows, lease)),
            param(column(&rows, |row| At(row.lease.expires_at))),
            param(column(&rows, |row| At(row.since))),
            param(column(&rows, |row| row.waiting.cast_signed())),
        ],
    );
}

pub(crate) fn row(row: &Row) -> Read<LockRow> {
    let lease = Lease {
        plan: parsed(row, "plan_id", |id| PlanId::new(id).ok())?,
        task: parsed(row, "task", |id| RunId::new(id).ok())?,
        epoch: small(row, "epoch")?,
        fence: count(row, "fence")?,
        lease: Duration::from_micros(count(row, "lease_us")?),
        expires_at: time(row, "expires_at")?,
    };
    Ok(LockRow {
        shard: small(row, "shard")?,
        tenant: parsed(row, "tenant", |id| TenantId::new(id).ok())?,
        lease,
        since: time(row, "since")?,
        waiting: small(row, "waiting")?,
    })
}
