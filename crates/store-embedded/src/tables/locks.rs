//! `locks`: the locks that somebody has.

use super::{count, integer, limit as rows, parsed, time};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_kernel::{Lease, PlanId, RunId, TenantId};
use steadfast_store::{LockChange, LockRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE locks (
  tenant     TEXT PRIMARY KEY,
  shard      INTEGER NOT NULL,
  plan       TEXT NOT NULL,    -- whose task has it
  task       TEXT NOT NULL,
  epoch      INTEGER NOT NULL,
  fence      INTEGER NOT NULL, -- the number of this holding
  lease_us   INTEGER NOT NULL, -- for how long it holds without being renewed, in microseconds
  expires_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  since      INTEGER NOT NULL,
  waiting    INTEGER NOT NULL  -- how many wait for it
) STRICT, WITHOUT ROWID",
    "CREATE VIEW held_locks AS
SELECT tenant, plan, task, fence, strftime('%Y-%m-%dT%H:%M:%SZ', since / 1000000, 'unixepoch') AS held_since,
  strftime('%Y-%m-%dT%H:%M:%SZ', expires_at / 1000000, 'unixepoch') AS expires, waiting
FROM locks ORDER BY tenant",
];

const PUT: &str = "INSERT OR REPLACE INTO locks (tenant, shard, plan, task, epoch, fence, lease_us, expires_at, since, waiting)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

const REMOVE: &str = "DELETE FROM locks WHERE tenant = ?1";

const GET: &str = "SELECT * FROM locks WHERE tenant = ?1";

const LIST: &str = "SELECT * FROM locks WHERE tenant > ?1 ORDER BY tenant LIMIT ?2";

/// Puts or removes.
pub(crate) fn change(db: &Connection, change: &LockChange) -> rusqlite::Result<()> {
    match change {
        LockChange::Put(row) => put(db, row),
        LockChange::Remove(tenant) => db.prepare_cached(REMOVE)?.execute([tenant.as_str()]).map(drop),
    }
}

fn put(db: &Connection, LockRow { shard, tenant, lease, since, waiting }: &LockRow) -> rusqlite::Result<()> {
    let params = params![
        tenant.as_str(),
        shard,
        lease.plan.as_str(),
        lease.task.as_str(),
        integer(lease.epoch.into()),
        integer(lease.fence),
        i64::try_from(lease.lease.as_micros()).unwrap_or(i64::MAX),
        lease.expires_at.as_micros(),
        since.as_micros(),
        waiting,
    ];
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// Those of the tenants' locks that somebody has, by tenant.
pub(crate) fn get(db: &Connection, tenants: &[TenantId]) -> rusqlite::Result<Vec<LockRow>> {
    let mut statement = db.prepare_cached(GET)?;
    let mut found = Vec::new();
    for tenant in tenants.iter().collect::<BTreeSet<_>>() {
        found.extend(statement.query_map([tenant.as_str()], row)?.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

/// Locks by tenant, from the one after that.
pub(crate) fn list(db: &Connection, after: Option<&TenantId>, limit: usize) -> rusqlite::Result<Vec<LockRow>> {
    let after = after.map_or("", TenantId::as_str);
    db.prepare_cached(LIST)?.query_map((after, rows(limit)), row)?.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<LockRow> {
    let lease = Lease {
        plan: parsed(row, "plan", |id| PlanId::new(id).ok())?,
        task: parsed(row, "task", |id| RunId::new(id).ok())?,
        epoch: row.get("epoch")?,
        fence: count(row, "fence")?,
        lease: Duration::from_micros(count(row, "lease_us")?),
        expires_at: time(row, "expires_at")?,
    };
    Ok(LockRow {
        shard: row.get("shard")?,
        tenant: parsed(row, "tenant", |id| TenantId::new(id).ok())?,
        lease,
        since: time(row, "since")?,
        waiting: row.get("waiting")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn locks_are_read_in_order_without_sorting() {
        assert_eq!(plan(&database(), LIST, ("a", 10)), "SEARCH locks USING PRIMARY KEY (tenant>?)");
        assert_eq!(plan(&database(), GET, ["a"]), "SEARCH locks USING PRIMARY KEY (tenant=?)");
        assert_eq!(plan(&database(), REMOVE, ["a"]), "SEARCH locks USING PRIMARY KEY (tenant=?)");
    }
}
