//! A saved fold: what a journal comes to, up to an entry, so that a long one need not be read from its beginning.
//!
//! It never replaces the journal. One that cannot be read, or that another version of the fold has made, is as good as none.

use crate::{Entity, EntityId, Seq};
use bytes::Bytes;

/// The version of the fold. It rises whenever a journal comes to another state than before, or a state is written in another way: what was saved
/// until then is not used any more.
pub const FOLD: u32 = 7;

/// The state of an entity after an entry, as a store keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Whose state.
    pub entity: EntityId,
    /// The last entry that is part of it.
    pub seq: Seq,
    /// The [`FOLD`] that has made it.
    pub fold: u32,
    /// The state, as JSON.
    pub state: Bytes,
}

impl Snapshot {
    /// Saves a state; nothing if it cannot be written, which is no loss.
    pub fn of(id: &EntityId, entity: &Entity) -> Option<Self> {
        let state = serde_json::to_vec(entity).ok()?;
        Some(Snapshot { entity: id.clone(), seq: entity.seq(), fold: FOLD, state: state.into() })
    }

    /// The state that was saved, if this version can use it.
    pub fn restore(&self) -> Option<Entity> {
        if self.fold != FOLD {
            return None;
        }
        let entity: Entity = serde_json::from_slice(&self.state).ok()?;
        (entity.seq() == self.seq && entity.is(&self.entity)).then_some(entity)
    }
}
