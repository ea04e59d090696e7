//! What was saved is as good as what was read from the beginning.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use steadfast_kernel::run::{script, script_from};
use steadfast_kernel::{Entity, EntityId, Entry, Run, Snapshot};

/// A snapshot restores exactly the state that it was made of.
pub(super) fn a_snapshot_restores_the_state(id: &EntityId, entity: &Entity) -> TestCaseResult {
    let saved = Snapshot::of(id, entity).expect("every state can be saved");
    let restored = saved.restore().expect("it can be read");
    prop_assert_eq!(&restored, entity);
    Ok(())
}

/// What has to be read to replay a run is enough.
pub(super) fn what_is_read_to_replay_is_enough(journal: &[Entry], run: &Run) -> TestCaseResult {
    let counts = |entry: &&Entry| entry.seq >= run.past.continued || run.past.kept.contains(&entry.seq);
    let read = journal.iter().filter(counts).cloned().collect();
    prop_assert_eq!(script_from(run, read), script(journal.to_vec()));
    Ok(())
}
