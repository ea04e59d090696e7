//! The order of writing over all entities, for those who follow what happens.

use steadfast_kernel::{EntityId, PlanId, Record};

/// A place in the order of writing. Places rise; there may be gaps. Before the first entry is the default, zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// A journal entry with its place in the order of writing.
#[derive(Clone, Debug, PartialEq)]
pub struct Fed {
    /// Its place.
    pub position: Position,
    /// Whose journal it stands in.
    pub entity: EntityId,
    /// Whose work the run is; nothing for what is not a run.
    pub tenant: Option<String>,
    /// The plan that the run is a task of; nothing if it is none.
    pub plan: Option<PlanId>,
    /// The entry.
    pub record: Record,
}
