//! `workflow_events`: the journals of all entities.

use super::{Read, Steps, all, bytes, column, count, free_if, get, integer, parsed, shards, small, small_if, time};
use crate::readable::readable;
use crate::session::param;
use crate::types::{At, Free, Json};
use steadfast_kernel::{Encoding, Payload, Record};
use steadfast_store::Batch;
use tokio_postgres::Row;

/// The shard has been moved on to the place of the last one already; `back` is how many come after each.
const APPEND: &str = "INSERT INTO steadfast.workflow_events (workflow_id, sequence, event_type, payload, occurred_at, attempt_number,
  backoff_delay_ms, failure_reason, epoch, subject, shard, place, encoding, payload_bytes, body)
SELECT e.workflow_id, e.sequence, e.event_type, e.payload, e.occurred_at, e.attempt_number, e.backoff_delay_ms, e.failure_reason, e.epoch,
  e.subject, s.id, s.place - e.back, e.encoding, e.payload_bytes, e.body
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::jsonb[], $5::timestamptz[], $6::int[], $7::bigint[], $8::text[], $9::int[], $10::text[],
  $11::int[], $12::bigint[], $13::text[], $14::bytea[], $15::bytea[])
  AS e(workflow_id, sequence, event_type, payload, occurred_at, attempt_number, backoff_delay_ms, failure_reason, epoch, subject, shard, back,
  encoding, payload_bytes, body)
JOIN steadfast.shards s ON s.id = e.shard WHERE steadfast.begun()";

const FORGET: &str = "DELETE FROM steadfast.workflow_events e USING unnest($1::text[], $2::bigint[]) AS f(workflow_id, before)
WHERE e.workflow_id = f.workflow_id AND e.sequence < f.before AND steadfast.begun()";

/// What is left of a run that is being removed is no journal.
pub(crate) const JOURNAL: &str =
    "SELECT sequence, epoch, event_type, occurred_at, subject, attempt_number, backoff_delay_ms, failure_reason, encoding,
  payload_bytes, body
FROM steadfast.workflow_events WHERE workflow_id = $1 AND sequence > $2
  AND NOT EXISTS (SELECT FROM steadfast.swept WHERE swept.workflow_id = $1)
ORDER BY sequence LIMIT $3";

/// Which of these are there.
pub(crate) const THERE: &str = "SELECT e.workflow_id, e.sequence FROM unnest($1::text[], $2::bigint[]) AS f(workflow_id, sequence)
JOIN steadfast.workflow_events e ON e.workflow_id = f.workflow_id AND e.sequence = f.sequence";

/// Adds entries to journals. What people see of their payloads may be left out.
pub(crate) fn append<'a>(batches: &'a [Batch], shows_payloads: bool, steps: &mut Steps<'a>) {
    let appends: Vec<_> = all(batches, |batch| &batch.events).collect();
    if appends.is_empty() {
        return;
    }
    let mut left = shards::events(batches);
    let back = appends.iter().map(|append| {
        let left = left.entry(append.shard).or_default();
        *left -= 1;
        *left
    });
    let back: Vec<i64> = back.collect();
    let records = column(&appends, |append| &append.record);
    let shown = |record: &&'a Record| record.payload.as_ref().filter(|_| shows_payloads).and_then(readable).map(Json);
    steps.add(
        APPEND,
        [
            param(column(&appends, |append| append.entity.to_string())),
            param(column(&records, |record| integer(record.seq))),
            param(column(&records, |record| record.kind.as_str())),
            param(column(&records, shown)),
            param(column(&records, |record| At(record.at))),
            param(column(&records, |record| record.attempt.map(u32::cast_signed))),
            param(column(&records, |record| record.backoff_ms.map(integer))),
            param(column(&records, |record| record.reason.as_deref().map(Free))),
            param(column(&records, |record| record.epoch.cast_signed())),
            param(column(&records, |record| record.subject.as_deref().map(Free))),
            param(column(&appends, |append| append.shard.cast_signed())),
            param(back),
            param(column(&records, |record| record.payload.as_ref().map(|payload| payload.encoding.as_str()))),
            param(column(&records, |record| record.payload.as_ref().map(|payload| &payload.bytes[..]))),
            param(column(&records, |record| &record.body[..])),
        ],
    );
}

/// Removes journals, or the beginnings of some.
pub(crate) fn forget<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let forgotten: Vec<_> = all(batches, |batch| &batch.forgotten).collect();
    if forgotten.is_empty() {
        return;
    }
    let entities = column(&forgotten, |forgotten| forgotten.entity.to_string());
    let before = column(&forgotten, |forgotten| forgotten.before.map_or(i64::MAX, integer));
    steps.add(FORGET, [param(entities), param(before)]);
}

pub(crate) fn record(row: &Row) -> Read<Record> {
    Ok(Record {
        seq: count(row, "sequence")?,
        epoch: small(row, "epoch")?,
        kind: get(row, "event_type")?,
        at: time(row, "occurred_at")?,
        subject: free_if(row, "subject")?,
        attempt: small_if(row, "attempt_number")?,
        backoff_ms: get::<Option<i64>>(row, "backoff_delay_ms")?.map(i64::cast_unsigned),
        reason: free_if(row, "failure_reason")?,
        payload: payload(row, "payload_bytes")?,
        body: bytes(row, "body")?,
    })
}

/// The exact bytes, and what they are.
pub(super) fn payload(row: &Row, column: &str) -> Read<Option<Payload>> {
    match get::<Option<&[u8]>>(row, column)? {
        None => Ok(None),
        Some(_) => Ok(Some(Payload { encoding: parsed(row, "encoding", Encoding::parse)?, bytes: bytes(row, column)? })),
    }
}
