//! `outbox`: what one entity has to tell another, until it was heard.

use super::{count, integer, limit as rows, parsed};
use rusqlite::{Connection, Row, named_params};
use steadfast_kernel::{EntityId, Envelope, Message};
use steadfast_store::{OutboxChange, ShardId};

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE outbox (
  from_entity TEXT NOT NULL,
  seq         INTEGER NOT NULL, -- counted per sender
  shard       INTEGER NOT NULL, -- of the sender
  to_entity   TEXT NOT NULL,
  kind        TEXT NOT NULL,
  body        BLOB NOT NULL,    -- protobuf
  PRIMARY KEY (from_entity, seq)
) STRICT, WITHOUT ROWID"];

const ADD: &str = "INSERT OR REPLACE INTO outbox (from_entity, seq, shard, to_entity, kind, body)
VALUES (:from, :seq, :shard, :to, :kind, :body)";

const SETTLE: &str = "DELETE FROM outbox WHERE from_entity = ?1 AND seq = ?2";

/// Few messages are there at a time, and here one shard has them all; so an index by shard would cost more than it gives.
const LIST: &str = "SELECT from_entity, seq, to_entity, kind, body FROM outbox
WHERE shard = :shard AND (from_entity, seq) > (:from, :seq) ORDER BY from_entity, seq LIMIT :limit";

const WAITING: &str = "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE shard = ?1 LIMIT ?2)";

/// How many messages of a shard are not settled, counted up to that number.
pub(crate) fn waiting(db: &Connection, shard: ShardId, most: u64) -> rusqlite::Result<u64> {
    let count: i64 = db.prepare_cached(WAITING)?.query_row((shard, integer(most)), |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Adds or settles.
pub(crate) fn change(db: &Connection, change: &OutboxChange) -> rusqlite::Result<()> {
    match change {
        OutboxChange::Add { shard, envelope } => add(db, *shard, envelope),
        OutboxChange::Settle { from, seq } => db.prepare_cached(SETTLE)?.execute((from.to_string(), integer(*seq))).map(drop),
    }
}

fn add(db: &Connection, shard: ShardId, envelope: &Envelope) -> rusqlite::Result<()> {
    let params = named_params! {
        ":from": envelope.from.to_string(),
        ":seq": integer(envelope.seq),
        ":shard": shard,
        ":to": envelope.to.to_string(),
        ":kind": envelope.message.kind(),
        ":body": &envelope.message.encode()[..],
    };
    db.prepare_cached(ADD)?.execute(params).map(drop)
}

/// The messages of a shard from the one after that place.
pub(crate) fn list(db: &Connection, shard: ShardId, after: Option<&(EntityId, u64)>, limit: usize) -> rusqlite::Result<Vec<Envelope>> {
    let params = named_params! {
        ":shard": shard,
        ":from": after.map(|(from, _)| from.to_string()).unwrap_or_default(), // every sender comes after the empty text
        ":seq": after.map_or(0, |(_, seq)| integer(*seq)),
        ":limit": rows(limit),
    };
    db.prepare_cached(LIST)?.query_map(params, envelope)?.collect()
}

fn envelope(row: &Row<'_>) -> rusqlite::Result<Envelope> {
    let body: Vec<u8> = row.get("body")?;
    Ok(Envelope {
        from: parsed(row, "from_entity", EntityId::from_stored)?,
        seq: count(row, "seq")?,
        to: parsed(row, "to_entity", EntityId::from_stored)?,
        message: parsed(row, "kind", |kind| Message::decode(kind, &body))?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn messages_are_read_in_order_without_sorting() {
        let params = named_params! {":shard": 0, ":from": "", ":seq": 0, ":limit": 10};
        assert_eq!(plan(&database(), LIST, params), "SEARCH outbox USING PRIMARY KEY ((from_entity,seq)>(?,?))");
    }

    #[test]
    fn a_message_that_cannot_be_read_is_not_shown() {
        let db = database();
        let insert = "INSERT INTO outbox VALUES ('a', 1, 0, 'b', 'secret', x'')";
        db.execute(insert, []).unwrap();
        let error = list(&db, 0, None, 1).unwrap_err().to_string();
        assert!(error.contains("column kind") && !error.contains("secret"), "{error}");
    }
}
