//! Keeps the entities in memory, and finds the last one again without a hash.

use super::Seat;
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use std::cell::Cell;
use steadfast_kernel::EntityId;

/// The entities in memory, in an order that does not depend on chance.
#[derive(Default)]
pub(super) struct ResidentEntities {
    map: IndexMap<EntityId, Seat, DefaultHashBuilder>,
    /// The index of the last lookup: one command looks the same entity up many times. Every use compares the id first.
    last: Cell<usize>,
}

impl ResidentEntities {
    fn index_of(&self, id: &EntityId) -> Option<usize> {
        let last = self.last.get();
        if self.map.get_index(last).is_some_and(|(there, _)| there == id) {
            return Some(last);
        }
        let index = self.map.get_index_of(id)?;
        self.last.set(index);
        Some(index)
    }

    pub(super) fn get(&self, id: &EntityId) -> Option<&Seat> {
        Some(&self.map[self.index_of(id)?])
    }

    pub(super) fn get_mut(&mut self, id: &EntityId) -> Option<&mut Seat> {
        let index = self.index_of(id)?;
        Some(&mut self.map[index])
    }

    pub(super) fn get_or_add(&mut self, id: &EntityId) -> &mut Seat {
        let index = self.index_of(id).unwrap_or_else(|| self.map.insert_full(id.clone(), Seat::default()).0);
        self.last.set(index);
        &mut self.map[index]
    }

    pub(super) fn remove(&mut self, id: &EntityId) -> Option<Seat> {
        let index = self.index_of(id)?;
        self.map.swap_remove_index(index).map(|(_, seat)| seat)
    }

    pub(super) fn contains(&self, id: &EntityId) -> bool {
        self.index_of(id).is_some()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &EntityId> {
        self.map.keys()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&EntityId, &Seat)> {
        self.map.iter()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Seat> {
        self.map.values_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::RunId;

    fn id(name: &str) -> EntityId {
        RunId::new(name).unwrap().into()
    }

    /// Removal moves the last entity into the gap, so the remembered index points to another one.
    #[test]
    fn removed_entity_is_not_found() {
        let mut seats = ResidentEntities::default();
        for (changed, name) in ["a", "b", "c"].into_iter().enumerate() {
            seats.get_or_add(&id(name)).changed = changed as u64;
        }
        assert_eq!(seats.get(&id("a")).map(|seat| seat.changed), Some(0));
        assert_eq!(seats.remove(&id("a")).map(|seat| seat.changed), Some(0));
        assert!(!seats.contains(&id("a")));
        assert_eq!(seats.get(&id("c")).map(|seat| seat.changed), Some(2), "it has the index of the removed one");
        assert_eq!(seats.get_mut(&id("b")).map(|seat| seat.changed), Some(1));
        assert_eq!(seats.keys().cloned().collect::<Vec<_>>(), [id("c"), id("b")]);
        assert_eq!(seats.get_or_add(&id("a")).changed, 0, "a new one");
    }
}
