//! How a task has ended, where the entry alone does not say it.

use crate::error::Error;
use steadfast_kernel::{EntityId, Entry, Event, Record, Seq};
use steadfast_store::Store;

/// How many entries are looked at at once, backwards.
const BACK: u64 = 64;

/// Whether that entry of a task's journal ends its being rolled back: what was asked for last in this life says so.
pub(super) async fn a_roll_back(store: &dyn Store, task: &EntityId, end: &Entry) -> Result<bool, Error> {
    if !matches!(end.event, Event::RunCancelled | Event::RunFailed { .. }) {
        return Ok(false);
    }
    let mut before: Seq = end.seq; // what stands there was looked at
    while before > 1 {
        let after = before.saturating_sub(BACK + 1);
        let records = store.journal(task, after, usize::try_from(before - 1 - after).unwrap_or(usize::MAX)).await;
        let records = records.map_err(Error::from_store)?;
        if let Some(undo) = records.iter().rev().find_map(|record| asked(record, end)) {
            return Ok(undo);
        }
        before = after + 1;
    }
    Ok(false)
}

/// Whether it is to be undone, if that is where it was said; a life in which nobody asked for anything is not.
fn asked(record: &Record, end: &Entry) -> Option<bool> {
    if record.epoch != end.epoch {
        return Some(false);
    }
    let is_asked = record.kind == "RUN_CANCEL_REQUESTED";
    is_asked.then(|| matches!(Entry::try_from(record).map(|entry| entry.event), Ok(Event::RunCancelRequested { undo: true, .. })))
}
