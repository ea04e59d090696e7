//! `plans`: what lists need to know of a plan. Rows stand in the order of lists.

use super::{limit as rows, parsed, time};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use steadfast_kernel::{PlanId, PlanStatus, Timestamp};
use steadfast_store::{PlanCursor, PlanFilter, PlanRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE plans (
  plan       TEXT NOT NULL UNIQUE,
  shard      INTEGER NOT NULL,
  definition TEXT NOT NULL,
  status     TEXT NOT NULL,
  why        TEXT,             -- why it is paused or has failed
  created_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  started_at INTEGER,
  ended_at   INTEGER,          -- null while it is open
  PRIMARY KEY (created_at, plan)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX plans_status ON plans (status, created_at, plan)",
    "CREATE INDEX plans_definition ON plans (definition, created_at, plan)",
    "CREATE VIEW open_plans AS
SELECT plan, definition, status, why, strftime('%Y-%m-%dT%H:%M:%SZ', created_at / 1000000, 'unixepoch') AS created,
  strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
FROM plans WHERE ended_at IS NULL ORDER BY plan",
];

const PUT: &str = "INSERT OR REPLACE INTO plans (plan, shard, definition, status, why, created_at, started_at, ended_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const GET: &str = "SELECT * FROM plans WHERE plan = ?1";

/// Comes after every id.
const AFTER_ALL: &str = "~";

/// Puts a row; it replaces another of its plan.
pub(crate) fn put(db: &Connection, row: &PlanRow) -> rusqlite::Result<()> {
    let params = params![
        row.plan.as_str(),
        row.shard,
        row.definition,
        row.status.as_str(),
        row.why,
        row.created_at.as_micros(),
        row.started_at.map(Timestamp::as_micros),
        row.ended_at.map(Timestamp::as_micros),
    ];
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// The row of a plan.
pub(crate) fn get(db: &Connection, plan: &PlanId) -> rusqlite::Result<Option<PlanRow>> {
    db.prepare_cached(GET)?.query_row([plan.as_str()], row).optional()
}

/// The plans that the filter lets through, newest first, from the one after that place.
pub(crate) fn list(db: &Connection, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> rusqlite::Result<Vec<PlanRow>> {
    let (before_at, before) = after.map_or((i64::MAX, AFTER_ALL), |after| (after.created_at.as_micros(), after.plan.as_str()));
    let (status, limit) = (filter.status.map(PlanStatus::as_str), rows(limit));
    let mut params: Vec<(&str, &dyn ToSql)> = vec![(":before_at", &before_at), (":before", &before), (":limit", &limit)];
    params.extend(filter.shard.as_ref().map(|shard| (":shard", shard as &dyn ToSql)));
    params.extend(status.as_ref().map(|status| (":status", status as &dyn ToSql)));
    params.extend(filter.definition.as_ref().map(|definition| (":definition", definition as &dyn ToSql)));
    db.prepare_cached(&list_sql(filter))?.query_map(&params[..], row)?.collect()
}

/// The query has only what the filter asks for, so that SQLite finds the index for it.
fn list_sql(filter: &PlanFilter) -> String {
    let clauses = [
        filter.shard.map(|_| " AND shard = :shard"),
        filter.status.map(|_| " AND status = :status"),
        filter.definition.as_ref().map(|_| " AND definition = :definition"),
    ];
    let clauses: String = clauses.into_iter().flatten().collect();
    format!(
        "SELECT * FROM plans WHERE (created_at, plan) < (:before_at, :before){clauses} ORDER BY created_at DESC, plan DESC LIMIT :limit"
    )
}

fn row(row: &Row<'_>) -> rusqlite::Result<PlanRow> {
    let time_if = |column| row.get::<_, Option<i64>>(column).map(|time| time.map(Timestamp::from_micros));
    Ok(PlanRow {
        shard: row.get("shard")?,
        plan: parsed(row, "plan", |id| PlanId::new(id).ok())?,
        definition: row.get("definition")?,
        status: parsed(row, "status", PlanStatus::parse)?,
        why: row.get("why")?,
        created_at: time(row, "created_at")?,
        started_at: time_if("started_at")?,
        ended_at: time_if("ended_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;
    use rusqlite::params_from_iter;

    fn list_plan(filter: &PlanFilter) -> String {
        let (db, sql) = (database(), list_sql(filter));
        let params = db.prepare(&sql).unwrap().parameter_count();
        plan(&db, &sql, params_from_iter(vec![""; params]))
    }

    const PLACE: &str = "(created_at,plan)<(?,?)";

    #[test]
    fn a_plan_is_found_by_its_id() {
        assert_eq!(plan(&database(), GET, ["a"]), "SEARCH plans USING INDEX sqlite_autoindex_plans_1 (plan=?)");
    }

    #[test]
    fn a_list_of_plans_is_a_piece_of_the_table_or_of_an_index() {
        let by = |set: fn(&mut PlanFilter), how: &str| {
            let mut filter = PlanFilter::default();
            set(&mut filter);
            assert_eq!(list_plan(&filter), format!("SEARCH plans USING {how}{PLACE})"));
        };
        by(|_| {}, "PRIMARY KEY (");
        by(|filter| filter.shard = Some(1), "PRIMARY KEY (");
        by(|filter| filter.status = Some(PlanStatus::Running), "INDEX plans_status (status=? AND ");
        by(|filter| filter.definition = Some("bill".into()), "INDEX plans_definition (definition=? AND ");
    }

    #[test]
    fn no_list_of_plans_is_sorted_or_read_as_a_whole() {
        for asked in 0..8 {
            let filter = PlanFilter {
                shard: (asked & 1 > 0).then_some(1),
                status: (asked & 2 > 0).then_some(PlanStatus::Paused),
                definition: (asked & 4 > 0).then(|| "bill".into()),
            };
            let plan = list_plan(&filter);
            assert!(plan.starts_with("SEARCH plans USING ") && plan.ends_with(&format!("{PLACE})")), "{filter:?}: {plan}");
        }
    }
}
