//! The names of callers, each of them once, for as long as it has an entry.

use super::slab::Slab;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

#[derive(Default)]
struct Caller {
    name: Box<str>,
    entries: usize,
    /// How long their ids and results are together.
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Callers {
    names: Slab<Caller, 16>,
    by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
    bytes: usize,
}

impl Callers {
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.by_name.find(self.hasher.hash_one(name), |place| &*self.names[*place].name == name).copied()
    }

    /// One entry more has that name, with so many bytes.
    pub(super) fn hold(&mut self, name: &str, bytes: usize) -> u32 {
        let place = self.find(name).unwrap_or_else(|| self.add(name));
        self.names[place].entries += 1;
        self.names[place].bytes += bytes;
        place
    }

    /// An entry of that name has so many bytes more.
    pub(super) fn grow(&mut self, place: u32, bytes: usize) {
        self.names[place].bytes += bytes;
    }

    /// One entry less has that name, which had so many bytes.
    pub(super) fn release(&mut self, place: u32, bytes: usize) {
        self.names[place].entries -= 1;
        self.names[place].bytes -= bytes;
        if self.names[place].entries == 0 {
            self.drop(place);
        }
    }

    /// How many entries have that name, and their bytes.
    pub(super) fn load(&self, place: u32) -> (usize, usize) {
        (self.names[place].entries, self.names[place].bytes)
    }

    /// How long all names are together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    fn add(&mut self, name: &str) -> u32 {
        let place = self.names.insert(Caller { name: name.into(), ..Caller::default() });
        let rehash = |place: &u32| self.hasher.hash_one(&*self.names[*place].name);
        self.by_name.insert_unique(self.hasher.hash_one(name), place, rehash);
        self.bytes += name.len();
        place
    }

    fn drop(&mut self, place: u32) {
        let Caller { name, .. } = self.names.remove(place);
        self.bytes -= name.len();
        if let Ok(found) = self.by_name.find_entry(self.hasher.hash_one(&*name), |other| *other == place) {
            found.remove();
        }
        self.names.trim();
    }
}
