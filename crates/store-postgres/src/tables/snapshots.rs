//! `snapshots`: the last saved fold of each entity with a long journal.

use super::{Read, Steps, all, bytes, column, count, integer, net, parsed, small};
use crate::session::param;
use steadfast_kernel::{EntityId, Snapshot};
use steadfast_store::Batch;
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.snapshots (workflow_id, sequence, fold, state)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::bytea[])
WHERE steadfast.begun() ON CONFLICT (workflow_id) DO UPDATE SET sequence = EXCLUDED.sequence, fold = EXCLUDED.fold, state = EXCLUDED.state";

const FORGET: &str = "DELETE FROM steadfast.snapshots WHERE workflow_id = ANY ($1) AND steadfast.begun()";

pub(crate) const GET: &str = "SELECT * FROM steadfast.snapshots WHERE workflow_id = $1";

/// Puts what was saved.
pub(crate) fn put<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let (saved, _none) = net(all(batches, |batch| &batch.snapshots).map(|snapshot| (&snapshot.entity, Some(snapshot))));
    if saved.is_empty() {
        return;
    }
    let saved: Vec<&Snapshot> = saved.into_iter().map(|(_, snapshot)| snapshot).collect();
    steps.add(
        PUT,
        [
            param(column(&saved, |snapshot| snapshot.entity.to_string())),
            param(column(&saved, |snapshot| integer(snapshot.seq))),
            param(column(&saved, |snapshot| snapshot.fold.cast_signed())),
            param(column(&saved, |snapshot| &snapshot.state[..])),
        ],
    );
}

/// Removes what was saved of journals that are removed as a whole.
pub(crate) fn forget<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let whole = all(batches, |batch| &batch.forgotten).filter(|forgotten| forgotten.before.is_none());
    let entities: Vec<_> = whole.map(|forgotten| forgotten.entity.to_string()).collect();
    if !entities.is_empty() {
        steps.add(FORGET, [param(entities)]);
    }
}

pub(crate) fn row(row: &Row) -> Read<Snapshot> {
    Ok(Snapshot {
        entity: parsed(row, "workflow_id", EntityId::from_stored)?,
        seq: count(row, "sequence")?,
        fold: small(row, "fold")?,
        state: bytes(row, "state")?,
    })
}
