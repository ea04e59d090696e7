//! `shards`: who may write, and the number of the last batch.

use super::{count, integer};
use rusqlite::{Connection, OptionalExtension, named_params};
use steadfast_store::{Fence, Head, ShardId};

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE shards (
  id   INTEGER PRIMARY KEY,
  term INTEGER NOT NULL, -- rises with every claim
  seq  INTEGER NOT NULL  -- the number of the last batch
) STRICT"];

/// Whether a fence fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// It does, and the shard has moved on.
    Done,
    /// Another claim has the shard.
    Fenced,
    /// The batch does not follow on from the last one.
    Gap,
}

const ADVANCE: &str = "UPDATE shards SET seq = :upto WHERE id = :shard AND term = :term AND seq = :after";

/// Moves the shard on if the fence fits.
pub(crate) fn advance(db: &Connection, fence: &Fence) -> rusqlite::Result<Advance> {
    let &Fence { shard, term, after, upto } = fence;
    let params = named_params! {":shard": shard, ":term": integer(term), ":after": integer(after), ":upto": integer(upto)};
    if db.prepare_cached(ADVANCE)?.execute(params)? == 1 {
        return Ok(Advance::Done);
    }
    let head = head(db, shard)?;
    if head.term != term {
        return Ok(Advance::Fenced);
    }
    if head.seq != after {
        return Ok(Advance::Gap);
    }
    put(db, shard, Head { term, seq: upto })?; // a shard that nobody has claimed yet has no row
    Ok(Advance::Done)
}

/// Raises the term.
pub(crate) fn claim(db: &Connection, shard: ShardId) -> rusqlite::Result<Head> {
    let Head { term, seq } = head(db, shard)?;
    let claimed = Head { term: term + 1, seq };
    put(db, shard, claimed)?;
    Ok(claimed)
}

/// Where the shard stands.
pub(crate) fn head(db: &Connection, shard: ShardId) -> rusqlite::Result<Head> {
    let mut statement = db.prepare_cached("SELECT term, seq FROM shards WHERE id = ?1")?;
    let head = statement
        .query_row([shard], |row| Ok(Head { term: count(row, "term")?, seq: count(row, "seq")? }))
        .optional()?;
    Ok(head.unwrap_or(Head { term: 0, seq: 0 }))
}

fn put(db: &Connection, shard: ShardId, head: Head) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached("INSERT OR REPLACE INTO shards (id, term, seq) VALUES (?1, ?2, ?3)")?;
    statement.execute((shard, integer(head.term), integer(head.seq))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::testing::database;
    use super::*;

    #[test]
    fn a_fence_that_does_not_fit_changes_nothing() {
        let db = database();
        claim(&db, 3).unwrap();
        let fence = |term, after| Fence { shard: 3, term, after, upto: after + 1 };
        assert_eq!(advance(&db, &fence(1, 0)).unwrap(), Advance::Done);
        assert_eq!(advance(&db, &fence(2, 1)).unwrap(), Advance::Fenced);
        assert_eq!(advance(&db, &fence(1, 0)).unwrap(), Advance::Gap);
        assert_eq!(head(&db, 3).unwrap(), Head { term: 1, seq: 1 });
    }
}
