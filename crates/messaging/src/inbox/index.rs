//! Finds entries by their hash.
//!
//! Many small tables instead of a large one, because a table that grows moves all that it has: here that is a small part.
//! A table has cells of a few bytes one behind the other, and what has no room in its own cell is in one of the next. So whatever is looked for, one line of
//! memory has nearly always to be fetched, and no more: with a million entries, nothing else takes as long. Part of the hash stands in the cell, so that neither
//! growing nor looking for what is not there has to look at entries.

use super::slab::NONE;
use std::hint::black_box;

const TABLES: usize = 64;

/// Tables begin with so many cells, and those of this size are kept when they are empty.
const SMALL: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    place: u32,
    tag: u32,
}

const FREE: Cell = Cell { place: NONE, tag: 0 };

#[derive(Default)]
struct Table {
    /// A power of two, at least a quarter of them free; nothing before the first entry.
    cells: Box<[Cell]>,
    taken: usize,
}

pub(super) struct Index {
    tables: Box<[Table]>,
}

impl Default for Index {
    fn default() -> Self {
        Index { tables: std::iter::repeat_with(Table::default).take(TABLES).collect() }
    }
}

impl Index {
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = hash as u32;
        let table = &self.tables[table(hash)];
        table.of_home(tag).find(|(_, cell)| cell.tag == tag && is(cell.place)).map(|(_, cell)| cell.place)
    }

    /// The first with a hash like that, which nearly always is the one.
    pub(super) fn first_like(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// Has the memory brought near where that hash belongs.
    pub(super) fn fetch(&self, hash: u64) {
        let table = &self.tables[table(hash)];
        black_box(table.cells.get(table.home(hash as u32)).copied());
    }

    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        self.tables[table(hash)].insert(Cell { place, tag: hash as u32 });
    }

    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        self.tables[table(hash)].remove(Cell { place, tag: hash as u32 });
    }

    /// Gives the memory of tables back that have been large, when nothing is in them any more.
    pub(super) fn trim(&mut self) {
        if self.tables.iter().any(|table| table.cells.len() > SMALL) {
            *self = Index::default();
        }
    }
}

impl Table {
    /// The cells that are taken from that where the tag belongs on, and where they are.
    fn of_home(&self, tag: u32) -> impl Iterator<Item = (usize, Cell)> {
        let mut at = self.home(tag);
        std::iter::from_fn(move || {
            let found = (at, *self.cells.get(at)?);
            at = self.after(at);
            Some(found).filter(|(_, cell)| *cell != FREE)
        })
    }

    fn insert(&mut self, cell: Cell) {
        if (self.taken + 1) * 4 > self.cells.len() * 3 {
            self.grow();
        }
        self.put(cell);
        self.taken += 1;
    }

    fn put(&mut self, cell: Cell) {
        let mut at = self.home(cell.tag);
        while self.cells[at] != FREE {
            at = self.after(at);
        }
        self.cells[at] = cell;
    }

    /// Those behind it move up, as far as each of them may, so that all are found without a gap before them.
    fn remove(&mut self, cell: Cell) {
        let Some((mut gap, _)) = self.of_home(cell.tag).find(|(_, other)| *other == cell) else { return };
        self.taken -= 1;
        let mut at = self.after(gap);
        while self.cells[at] != FREE {
            if self.distance(self.home(self.cells[at].tag), at) >= self.distance(gap, at) {
                self.cells[gap] = self.cells[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.cells[gap] = FREE;
    }

    fn grow(&mut self) {
        let larger = vec![FREE; (self.cells.len() * 2).max(SMALL)].into();
        let cells = std::mem::replace(&mut self.cells, larger);
        for cell in cells.into_iter().filter(|cell| *cell != FREE) {
            self.put(cell);
        }
    }

    /// The cell where a tag belongs. Without cells there is none.
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.cells.len().wrapping_sub(1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.cells.len() - 1)
    }

    /// How many steps it is from a cell to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.cells.len() - 1)
    }
}

/// Which table. The tag has other bits.
fn table(hash: u64) -> usize {
    (hash >> 32) as usize % TABLES
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashbrown::HashMap;
    use steadfast_kernel::random::{Seed, Stream};

    /// Hashes of few values, so that most of them want a cell that is taken.
    #[test]
    fn it_finds_what_a_map_finds_however_hashes_meet() {
        for seed in 0..20 {
            let mut random = Stream::new(&Seed([seed; 32]), "", "index");
            let (mut index, mut known) = (Index::default(), HashMap::new());
            for place in 0..4000_u32 {
                let hash = ((random.next_u64() % 3) << 32) | (random.next_u64() % (1 << (2 + seed % 9)));
                index.insert(hash, place);
                known.insert(place, hash);
                if random.next_u64().is_multiple_of(2) {
                    let gone = (random.next_u64() % u64::from(place + 1)) as u32;
                    if let Some(hash) = known.remove(&gone) {
                        index.remove(hash, gone);
                    }
                    index.remove(hash, u32::MAX - 1); // one that was never there
                }
                let looked_for = (random.next_u64() % u64::from(place + 1)) as u32;
                let hash = known.get(&looked_for).copied();
                let found = index.find(hash.unwrap_or(7), |place| place == looked_for);
                assert_eq!(found, hash.map(|_| looked_for), "seed {seed}, {place} inserted");
            }
            for (place, hash) in &known {
                assert_eq!(index.find(*hash, |other| other == *place), Some(*place), "seed {seed}");
            }
            assert_eq!(index.tables.iter().map(|table| table.taken).sum::<usize>(), known.len());
            known.iter().for_each(|(place, hash)| index.remove(*hash, *place));
            assert!(index.tables.iter().all(|table| table.taken == 0 && table.cells.iter().all(|cell| *cell == FREE)), "seed {seed}");
            index.trim();
            assert!(index.tables.iter().all(|table| table.cells.is_empty()));
        }
    }
}
