//! `letters`: the dead letters, as far as lists show them. Their bytes are in the journals of their boxes and keys.
//!
//! Since there are keys and routes, `workflow` is where a letter is kept: a workflow, `key:KEY` or `route:ROUTE`. The letter of an expiry has `key:KEY` as its run and
//! the revision as its step; that of a message has `route:ROUTE` and `DIRECTION KIND PEER REQUEST`.

use super::keys::past;
use super::{count, integer, limit as rows, parsed, time};
use rusqlite::types::{Type, Value, ValueRef};
use rusqlite::{Connection, Error, OptionalExtension, Row, ToSql, named_params};
use steadfast_kernel::{Direction, EntityId, Failure, LetterAbout, LetterHome, LetterId, MessageKind, StepId, Timestamp};
use steadfast_store::{LetterChange, LetterCursor, LetterFilter, LetterKind, LetterRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE letters (
  workflow TEXT NOT NULL,    -- whose box it is in
  seq      INTEGER NOT NULL, -- the sequence of its arrival there
  shard    INTEGER NOT NULL,
  run      TEXT NOT NULL,
  step     TEXT NOT NULL,
  tenant   TEXT,
  class    TEXT NOT NULL,
  code     TEXT NOT NULL,
  message  TEXT NOT NULL,
  failure  BLOB NOT NULL,    -- all of it, as protobuf
  added_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  PRIMARY KEY (workflow, seq)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX letters_time ON letters (added_at, workflow, seq)",
    "CREATE VIEW dead_letters AS
SELECT workflow || '.' || seq AS letter, strftime('%Y-%m-%dT%H:%M:%SZ', added_at / 1000000, 'unixepoch') AS added,
  run, step, tenant, class, code, message
FROM letters ORDER BY added_at DESC, workflow DESC, seq DESC",
];

const PUT: &str = "INSERT OR REPLACE INTO letters (workflow, seq, shard, run, step, tenant, class, code, message, failure, added_at)
VALUES (:workflow, :seq, :shard, :run, :step, :tenant, :class, :code, :message, :failure, :added_at)";

const REMOVE: &str = "DELETE FROM letters WHERE workflow = ?1 AND seq = ?2";

const GET: &str = "SELECT * FROM letters WHERE workflow = ?1 AND seq = ?2";

const FAIL: &str = "UPDATE letters SET class = ?3, code = ?4, message = ?5, failure = ?6 WHERE workflow = ?1 AND seq = ?2";

/// In which order letters are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    NewestFirst,
    OldestFirst,
}

/// Puts or removes.
pub(crate) fn change(db: &Connection, change: &LetterChange) -> rusqlite::Result<()> {
    match change {
        LetterChange::Put(row) => put(db, row),
        LetterChange::Fail(letter, failure) => {
            let (workflow, seq) = key(letter);
            let why = (failure.class.as_str(), failure.code.as_str(), &failure.message, failure.encode());
            db.prepare_cached(FAIL)?.execute((workflow, seq, why.0, why.1, why.2, &why.3[..])).map(drop)
        }
        LetterChange::Remove(letter) => db.prepare_cached(REMOVE)?.execute(key(letter)).map(drop),
    }
}

fn put(db: &Connection, row: &LetterRow) -> rusqlite::Result<()> {
    let (workflow, seq) = key(&row.letter);
    let (run, step) = match &row.about {
        LetterAbout::Step { run, step } => (run.to_string(), step.to_string()),
        LetterAbout::Expiry { key, revision } => (EntityId::Key(key.clone()).to_string(), revision.to_string()),
        LetterAbout::Message { route, direction, kind, peer, request } => {
            let step = format!("{} {} {peer} {request}", direction.as_str(), kind.as_str());
            (EntityId::Route(route.clone()).to_string(), step)
        }
    };
    let params = named_params! {
        ":workflow": workflow,
        ":seq": seq,
        ":shard": row.shard,
        ":run": run,
        ":step": step,
        ":tenant": row.tenant,
        ":class": row.failure.class.as_str(),
        ":code": row.failure.code.as_str(),
        ":message": row.failure.message,
        ":failure": &row.failure.encode()[..],
        ":added_at": row.added_at.as_micros(),
    };
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// A letter.
pub(crate) fn get(db: &Connection, letter: &LetterId) -> rusqlite::Result<Option<LetterRow>> {
    db.prepare_cached(GET)?.query_row(key(letter), row).optional()
}

/// The letters that the filter lets through, from the one after that place.
pub(crate) fn list(
    db: &Connection,
    filter: &LetterFilter,
    order: Order,
    after: Option<&LetterCursor>,
    limit: usize,
) -> rusqlite::Result<Vec<LetterRow>> {
    let (workflow, seq) = after.map(|after| key(&after.letter)).unwrap_or_default();
    let begin = if order == Order::NewestFirst { i64::MAX } else { i64::MIN }; // no letter is that late, or that early
    let added_at = after.map_or(begin, |after| after.added_at.as_micros());
    let limit = rows(limit);
    let (clauses, asked) = clauses(filter);
    let place: [(&str, &dyn ToSql); 4] = [(":added_at", &added_at), (":workflow", &workflow), (":seq", &seq), (":limit", &limit)];
    let params: Vec<(&str, &dyn ToSql)> = place.into_iter().chain(asked.iter().map(|(name, value)| (*name, value as &dyn ToSql))).collect();
    db.prepare_cached(&list_sql(&clauses, order))?.query_map(&params[..], row)?.collect()
}

/// How many letters the filter lets through.
pub(crate) fn count_of(db: &Connection, filter: &LetterFilter) -> rusqlite::Result<u64> {
    let (clauses, asked) = clauses(filter);
    let params: Vec<(&str, &dyn ToSql)> = asked.iter().map(|(name, value)| (*name, value as &dyn ToSql)).collect();
    let count: i64 = db
        .prepare_cached(&format!("SELECT count(*) FROM letters WHERE true{clauses}"))?
        .query_row(&params[..], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

fn list_sql(clauses: &str, order: Order) -> String {
    let (follows, direction) = if order == Order::NewestFirst { ("<", " DESC") } else { (">", "") };
    format!(
        "SELECT * FROM letters WHERE (added_at, workflow, seq) {follows} (:added_at, :workflow, :seq){clauses}
ORDER BY added_at{direction}, workflow{direction}, seq{direction} LIMIT :limit"
    )
}

/// What the filter asks for, and nothing else. The list is always read in the order of the index on time, so that no page has to be sorted: hence the `+`.
fn clauses(filter: &LetterFilter) -> (String, Vec<(&'static str, Value)>) {
    let (mut sql, mut params) = (String::new(), Vec::new());
    let mut ask = |clause: &str, asked: Vec<(&'static str, Value)>| {
        sql.push_str(clause);
        params.extend(asked);
    };
    let text = |text: &str| Value::Text(text.into());
    let time = |time: Timestamp| Value::Integer(time.as_micros());
    if let Some(home) = &filter.home {
        ask(" AND +workflow = :home", vec![(":home", text(&home.to_string()))]);
    }
    match filter.kind {
        Some(LetterKind::Step) => ask(" AND instr(workflow, ':') = 0", vec![]),
        Some(LetterKind::Expiry) => ask(" AND +workflow > 'key:' AND +workflow < 'key;'", vec![]),
        Some(LetterKind::Message) => ask(" AND +workflow > 'route:' AND +workflow < 'route;'", vec![]),
        None => {}
    }
    if let Some(prefix) = &filter.key_prefix {
        let from = format!("key:{prefix}");
        ask(" AND +workflow >= :from AND +workflow < :upto", vec![(":upto", text(&past(&from))), (":from", Value::Text(from))]);
    }
    if let Some(tenant) = &filter.tenant {
        ask(" AND tenant = :tenant", vec![(":tenant", text(tenant))]);
    }
    if let Some(class) = filter.class {
        ask(" AND class = :class", vec![(":class", text(class.as_str()))]);
    }
    if let Some(code) = filter.code {
        ask(" AND code = :code", vec![(":code", text(code.as_str()))]);
    }
    if let Some(since) = filter.since {
        ask(" AND added_at >= :since", vec![(":since", time(since))]);
    }
    if let Some(until) = filter.until {
        ask(" AND added_at < :until", vec![(":until", time(until))]);
    }
    (sql, params)
}

fn key(letter: &LetterId) -> (String, i64) {
    (letter.home.to_string(), integer(letter.seq))
}

fn row(row: &Row<'_>) -> rusqlite::Result<LetterRow> {
    let step: String = row.get("step")?;
    Ok(LetterRow {
        shard: row.get("shard")?,
        letter: LetterId { home: parsed(row, "workflow", LetterHome::parse)?, seq: count(row, "seq")? },
        about: parsed(row, "run", |run| about(EntityId::from_stored(run)?, &step))?,
        tenant: row.get("tenant")?,
        failure: failure(row)?,
        added_at: time(row, "added_at")?,
    })
}

fn about(entity: EntityId, step: &str) -> Option<LetterAbout> {
    match entity {
        EntityId::Run(run) => Some(LetterAbout::Step { run, step: StepId::from_stored(step) }),
        EntityId::Key(key) => Some(LetterAbout::Expiry { key, revision: step.parse().ok()? }),
        EntityId::Route(route) => {
            let mut words = step.splitn(4, ' ');
            let (direction, kind) = (Direction::parse(words.next()?)?, MessageKind::parse(words.next()?)?);
            Some(LetterAbout::Message { route, direction, kind, peer: words.next()?.into(), request: words.next()?.into() })
        }
        EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Plan(_) | EntityId::Lock(_) => None,
    }
}

fn failure(row: &Row<'_>) -> rusqlite::Result<Failure> {
    let failure = match row.get_ref("failure")? {
        ValueRef::Blob(bytes) => Failure::decode(bytes),
        _ => None,
    };
    failure.ok_or_else(|| Error::FromSqlConversionFailure(0, Type::Blob, "a failure that cannot be read".into()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;
    use steadfast_kernel::{Class, Code};

    #[test]
    fn letters_are_read_newest_first_without_sorting() {
        let params = named_params! {":added_at": 1, ":workflow": "", ":seq": 0, ":limit": 10};
        let plan = plan(&database(), &list_sql("", Order::NewestFirst), params);
        assert!(plan.starts_with("SEARCH letters USING INDEX letters_time ((added_at,workflow,seq)<(?,?,?))"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn whatever_is_asked_for_no_page_is_sorted() {
        let filter = LetterFilter {
            home: LetterHome::parse("route:mail"),
            key_prefix: Some("a".into()),
            kind: Some(LetterKind::Message),
            tenant: Some("acme".into()),
            class: Some(Class::Poison),
            code: Some(Code::Unavailable),
            since: Some(Timestamp::EPOCH),
            until: Some(Timestamp::MAX),
        };
        let (clauses, asked) = clauses(&filter);
        let place: [(&str, &dyn ToSql); 4] = [(":added_at", &1), (":workflow", &""), (":seq", &0), (":limit", &10)];
        let params: Vec<(&str, &dyn ToSql)> =
            place.into_iter().chain(asked.iter().map(|(name, value)| (*name, value as &dyn ToSql))).collect();
        for order in [Order::NewestFirst, Order::OldestFirst] {
            let plan = plan(&database(), &list_sql(&clauses, order), &params[..]);
            assert!(plan.contains("INDEX letters_time") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[test]
    fn a_failure_that_cannot_be_read_is_not_shown() {
        let db = database();
        let insert = "INSERT INTO letters VALUES ('bill', 1, 0, 'a', 's#1', NULL, 'secret', 'secret', 'secret', x'ff', 0)";
        db.execute(insert, []).unwrap();
        let error = list(&db, &LetterFilter::default(), Order::NewestFirst, None, 1).unwrap_err().to_string();
        assert!(error.contains("a failure that cannot be read") && !error.contains("secret"), "{error}");
    }
}
