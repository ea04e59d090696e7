//! `definitions`: the texts of definitions, by their hash.

use super::{Read, Steps, all, column, free, parsed, time};
use crate::session::param;
use crate::types::{At, Free};
use std::collections::BTreeMap;
use steadfast_kernel::WorkflowName;
use steadfast_store::{Batch, Definition};
use tokio_postgres::Row;

const KEEP: &str = "INSERT INTO steadfast.definitions (hash, workflow, text, kept_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) WHERE steadfast.begun() ON CONFLICT DO NOTHING";

pub(crate) const LIST: &str = "SELECT * FROM steadfast.definitions ORDER BY kept_at, hash";

/// Keeps texts unless they are there. All programs do, so they go in order.
pub(crate) fn keep<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let mut first = BTreeMap::new();
    for definition in all(batches, |batch| &batch.definitions) {
        first.entry(&definition.hash).or_insert(definition);
    }
    if first.is_empty() {
        return;
    }
    let kept: Vec<&Definition> = first.into_values().collect();
    steps.add(
        KEEP,
        [
            param(column(&kept, |definition| Free(&definition.hash))),
            param(column(&kept, |definition| definition.workflow.as_str())),
            param(column(&kept, |definition| Free(&definition.text))),
            param(column(&kept, |definition| At(definition.kept_at))),
        ],
    );
}

pub(crate) fn row(row: &Row) -> Read<Definition> {
    Ok(Definition {
        hash: free(row, "hash")?,
        workflow: parsed(row, "workflow", |name| WorkflowName::new(name).ok())?,
        text: free(row, "text")?,
        kept_at: time(row, "kept_at")?,
    })
}
