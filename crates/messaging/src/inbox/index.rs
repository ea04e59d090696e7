//! Finds entries by their hash.
//!
//! Many small tables instead of a large one, because a table that grows moves all that it has: here that is a small part.
//! Part of the hash stands in the table, so that neither growing nor looking for what is not there has to look at entries.

use hashbrown::HashTable;

const TABLES: usize = 64;

/// Tables of this size are kept when they are empty.
const SMALL: usize = 64;

#[derive(Clone, Copy)]
struct Cell {
    place: u32,
    tag: u32,
}

pub(super) struct Index {
    tables: Box<[HashTable<Cell>]>,
}

impl Default for Index {
    fn default() -> Self {
        Index { tables: std::iter::repeat_with(HashTable::new).take(TABLES).collect() }
    }
}

impl Index {
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = hash as u32;
        let cell = self.tables[table(hash)].find(spread(tag), |cell| cell.tag == tag && is(cell.place))?;
        Some(cell.place)
    }

    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let tag = hash as u32;
        self.tables[table(hash)].insert_unique(spread(tag), Cell { place, tag }, |cell| spread(cell.tag));
    }

    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let found = self.tables[table(hash)].find_entry(spread(hash as u32), |cell| cell.place == place);
        if let Ok(cell) = found {
            cell.remove();
        }
    }

    /// Gives the memory of tables back that have been large, when nothing is in them any more.
    pub(super) fn trim(&mut self) {
        if self.tables[0].capacity() > SMALL {
            *self = Index::default();
        }
    }
}

/// Which table. The tag has other bits.
fn table(hash: u64) -> usize {
    (hash >> 32) as usize % TABLES
}

/// Tables look at the highest and the lowest bits of a hash.
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(tag)
}
