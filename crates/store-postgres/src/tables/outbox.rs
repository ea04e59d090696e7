//! `outbox`: what one entity has to tell another, until it was heard.

use super::{Read, Steps, all, column, count, get, integer, net, parsed};
use crate::session::param;
use steadfast_kernel::{EntityId, Envelope, Message};
use steadfast_store::{Batch, OutboxChange};
use tokio_postgres::Row;

const ADD: &str = "INSERT INTO steadfast.outbox (from_id, seq, shard, to_id, kind, body)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::bytea[])
WHERE steadfast.begun() ON CONFLICT (from_id, seq) DO UPDATE SET shard = EXCLUDED.shard, to_id = EXCLUDED.to_id, kind = EXCLUDED.kind, body = EXCLUDED.body";

const SETTLE: &str = "DELETE FROM steadfast.outbox o USING unnest($1::text[], $2::bigint[]) AS g(from_id, seq)
WHERE o.from_id = g.from_id AND o.seq = g.seq AND steadfast.begun()";

pub(crate) const LIST: &str = "SELECT from_id, seq, to_id, kind, body FROM steadfast.outbox
WHERE shard = $1 AND (from_id, seq) > ($2, $3) ORDER BY from_id, seq LIMIT $4";

/// Adds and settles.
pub(crate) fn change<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let changes = all(batches, |batch| &batch.outbox).map(|change| match change {
        OutboxChange::Add { shard, envelope } => ((envelope.from.to_string(), integer(envelope.seq)), Some((*shard, envelope))),
        OutboxChange::Settle { from, seq } => ((from.to_string(), integer(*seq)), None),
    });
    let (added, settled) = net(changes);
    if !settled.is_empty() {
        let (senders, seqs): (Vec<_>, Vec<_>) = settled.into_iter().unzip();
        steps.add(SETTLE, [param(senders), param(seqs)]);
    }
    if !added.is_empty() {
        let (keys, messages): (Vec<_>, Vec<_>) = added.into_iter().unzip();
        let (senders, seqs): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        steps.add(
            ADD,
            [
                param(senders),
                param(seqs),
                param(column(&messages, |(shard, _)| shard.cast_signed())),
                param(column(&messages, |(_, envelope)| envelope.to.to_string())),
                param(column(&messages, |(_, envelope)| envelope.message.kind())),
                param(column(&messages, |(_, envelope)| envelope.message.encode().to_vec())),
            ],
        );
    }
}

pub(crate) fn envelope(row: &Row) -> Read<Envelope> {
    let body: &[u8] = get(row, "body")?;
    Ok(Envelope {
        from: parsed(row, "from_id", EntityId::from_stored)?,
        seq: count(row, "seq")?,
        to: parsed(row, "to_id", EntityId::from_stored)?,
        message: parsed(row, "kind", |kind| Message::decode(kind, body))?,
    })
}
