//! One step of a sweep: a transaction with a look in between, all of it over one connection. If that breaks, the step is over; nothing goes on over another one.

use crate::session::Session;
use crate::tables::{Wrong, limit, shards, sweep};
use steadfast_store::{ShardId, Sweep, Swept};
use tokio_postgres::Row;

/// Why nothing was removed though the database answers.
pub(crate) enum Stopped {
    /// Another claim has the shard.
    Fenced,
    /// A newer program has changed the schema to that version, so that this one cannot go on.
    Newer(u32),
    /// Something is stored that cannot be.
    Wrong(Wrong),
}

impl From<Wrong> for Stopped {
    fn from(wrong: Wrong) -> Self {
        Stopped::Wrong(wrong)
    }
}

type Outcome = Result<Result<Vec<Swept>, Stopped>, tokio_postgres::Error>;

/// Removes as much as one step can do.
pub(crate) async fn step(session: &Session, shard: ShardId, term: u64, ended: &[Sweep]) -> Outcome {
    let ended = &ended[..ended.len().min(sweep::MOST)];
    let outcome = match session.begin().await {
        Ok(()) => removed(session, shard, term, ended).await,
        Err(error) => Err(error),
    };
    if !matches!(outcome, Ok(Ok(_))) {
        session.rollback().await?;
    }
    outcome
}

/// Whether the shard is still ours, and the schema one that is known, once its row is locked.
fn may_go_on(row: Option<&Row>, term: u64) -> Result<(), Stopped> {
    let row = row.ok_or(Stopped::Fenced)?;
    match sweep::too_new(row)? {
        Some(found) => Err(Stopped::Newer(found)),
        None if shards::head(row)?.term == term => Ok(()),
        None => Err(Stopped::Fenced),
    }
}

async fn removed(session: &Session, shard: ShardId, term: u64, ended: &[Sweep]) -> Outcome {
    let rows = session.connection.query(sweep::LOCK, &[&shard.cast_signed()]).await?;
    if let Err(stopped) = may_go_on(rows.first(), term) {
        return Ok(Err(stopped));
    }
    let (ids, runs, plans) = sweep::asked(ended);
    let (tasks, entries) = (limit(ended.len() + 1), limit(sweep::ROWS + 1));
    let rows = session
        .connection
        .query(sweep::LOOK, &[&ids, &runs, &plans, &shard.cast_signed(), &tasks, &entries])
        .await?;
    let found = rows.iter().zip(ended).map(|(row, sweep)| sweep::found(row, sweep));
    let removal = match found.collect::<Result<Vec<_>, _>>() {
        Ok(found) => sweep::Removal::of(shard, ended, &found),
        Err(wrong) => return Ok(Err(wrong.into())),
    };
    session.finish(&removal.steps(shard).0).await?;
    Ok(Ok(removal.swept))
}
