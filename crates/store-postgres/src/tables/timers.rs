//! `timers`: what is to fire, in the order in which it is due.

use super::{Query, Read, Steps, all, column, count, free, integer, limit as rows, net, parsed, time};
use crate::session::param;
use crate::types::At;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use steadfast_kernel::{EntityId, Timer, TimerName};
use steadfast_store::{Batch, ShardId, TimerChange, TimerKey};
use tokio_postgres::Row;

const ARM: &str = "INSERT INTO steadfast.timers (workflow_id, name_key, name, shard, due_at, rank, revision)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::timestamptz[], $6::int[], $7::bigint[])
WHERE steadfast.begun() ON CONFLICT (workflow_id, name_key) DO UPDATE SET shard = EXCLUDED.shard, due_at = EXCLUDED.due_at, revision = EXCLUDED.revision";

const DISARM: &str = "DELETE FROM steadfast.timers t USING unnest($1::text[], $2::text[]) AS g(workflow_id, name_key)
WHERE t.workflow_id = g.workflow_id AND t.name_key = g.name_key AND steadfast.begun()";

/// The longest name that stands in an index as it is.
const NAME_MAX: usize = 500;

/// Arms and disarms.
pub(crate) fn change<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let changes = all(batches, |batch| &batch.timers).map(|change| match change {
        TimerChange::Arm { shard, timer } => ((timer.entity.to_string(), key(&timer.name)), Some((*shard, timer))),
        TimerChange::Disarm { entity, name } => ((entity.to_string(), key(name)), None),
    });
    let (armed, disarmed) = net(changes);
    if !disarmed.is_empty() {
        let (entities, names): (Vec<_>, Vec<_>) = disarmed.into_iter().unzip();
        steps.add(DISARM, [param(entities), param(names)]);
    }
    if !armed.is_empty() {
        let (keys, timers): (Vec<_>, Vec<_>) = armed.into_iter().unzip();
        let (entities, names): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let texts: Vec<_> = timers.iter().map(|(_, timer)| stored(&timer.name)).collect();
        steps.add(
            ARM,
            [
                param(entities),
                param(names),
                param(texts),
                param(column(&timers, |(shard, _)| shard.cast_signed())),
                param(column(&timers, |(_, timer)| At(timer.due))),
                param(column(&timers, |(_, timer)| i32::from(timer.name.rank()))),
                param(column(&timers, |(_, timer)| integer(timer.revision))),
            ],
        );
    }
}

fn stored(name: &TimerName) -> String {
    crate::types::stored(&name.to_string()).into_owned()
}

/// A name for an index: as it is, or its beginning and a hash of it.
fn key(name: &TimerName) -> String {
    let name = stored(name);
    if name.len() <= NAME_MAX {
        return name;
    }
    let end = name.floor_char_boundary(NAME_MAX / 2);
    format!("{}\u{2026}{}", &name[..end], HEXLOWER.encode(&Sha256::digest(&name)))
}

/// The timers of a shard from the one after that key.
pub(crate) fn list<'a>(shard: ShardId, after: Option<&'a TimerKey>, limit: usize) -> Query<'a> {
    let mut query = Query::new("SELECT workflow_id, name, due_at, revision FROM steadfast.timers");
    query.ask(" WHERE shard = $", [param(shard.cast_signed())]);
    if let Some(TimerKey { due, entity, name }) = after {
        let place = [param(At(*due)), param(entity.to_string()), param(i32::from(name.rank())), param(stored(name))];
        query.ask(" AND (due_at, workflow_id, rank, name) > ($, $, $, $)", place);
        query.ask(" AND due_at >= $", [param(At(*due))]); // the index has no names
    }
    query.ask(" ORDER BY due_at, workflow_id, rank, name LIMIT $", [param(rows(limit))]);
    query
}

pub(crate) fn timer(row: &Row) -> Read<Timer> {
    let name = free(row, "name")?;
    Ok(Timer {
        entity: parsed(row, "workflow_id", EntityId::from_stored)?,
        name: parsed(row, "name", |_| TimerName::from_stored(&name))?,
        due: time(row, "due_at")?,
        revision: count(row, "revision")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::StepId;

    #[test]
    fn long_names_have_short_keys_of_their_own() {
        let name = |end: &str| TimerName::Sleep(StepId::from_stored(&format!("{}{end}", "\u{e9}/".repeat(3000))));
        assert!(key(&name("a")).len() < 400);
        assert_ne!(key(&name("a")), key(&name("b")));
        assert_eq!(key(&TimerName::Deadline), TimerName::Deadline.to_string());
    }
}
