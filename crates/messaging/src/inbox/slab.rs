//! Values in places with numbers. It grows by a piece at a time, so that nothing is ever copied, and shrinks when it has become empty.

use std::ops::{Index, IndexMut};

/// The number of no place.
pub(super) const NONE: u32 = u32::MAX;

/// Values in places with numbers, so many to a piece. A place that is free has the value of `Default`.
pub(super) struct Slab<T, const PIECE: usize> {
    pieces: Vec<Box<[T]>>,
    /// Places that were freed, the latest last: it is taken first, because it is still in the cache.
    free: Vec<u32>,
    /// Places from here on were never taken.
    fresh: usize,
}

impl<T, const PIECE: usize> Default for Slab<T, PIECE> {
    fn default() -> Self {
        Slab { pieces: Vec::new(), free: Vec::new(), fresh: 0 }
    }
}

impl<T: Default, const PIECE: usize> Slab<T, PIECE> {
    pub(super) fn len(&self) -> usize {
        self.fresh - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| self.grow());
        self[place] = value;
        place
    }

    pub(super) fn remove(&mut self, place: u32) -> T {
        let value = std::mem::take(&mut self[place]);
        self.free.push(place);
        if self.len() == 0 {
            (self.free, self.fresh) = (Vec::new(), 0);
        }
        value
    }

    pub(super) fn get(&self, place: u32) -> Option<&T> {
        self.pieces.get(place as usize / PIECE)?.get(place as usize % PIECE)
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.pieces.get_mut(place as usize / PIECE)?.get_mut(place as usize % PIECE)
    }

    /// Gives one piece back that is not needed any more, if there is one.
    pub(super) fn trim(&mut self) {
        if self.pieces.len() > self.fresh / PIECE + 1 {
            self.pieces.pop();
        }
    }

    fn grow(&mut self) -> u32 {
        if self.fresh == self.pieces.len() * PIECE {
            self.pieces.push(std::iter::repeat_with(T::default).take(PIECE).collect());
        }
        self.fresh += 1;
        (self.fresh - 1) as u32
    }
}

impl<T, const PIECE: usize> Index<u32> for Slab<T, PIECE> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.pieces[place as usize / PIECE][place as usize % PIECE]
    }
}

impl<T, const PIECE: usize> IndexMut<u32> for Slab<T, PIECE> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.pieces[place as usize / PIECE][place as usize % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_pieces_are_given_back() {
        let mut slab = Slab::<_, 1024>::default();
        let places: Vec<u32> = (0..3000).map(|value| slab.insert(value)).collect();
        assert_eq!((slab.len(), slab.pieces.len(), slab[2999]), (3000, 3, 2999));
        assert_eq!(slab.remove(7), 7);
        assert_eq!(slab.insert(70), 7, "the place that was freed last");
        for place in places {
            slab.remove(place);
        }
        assert_eq!((slab.len(), slab.pieces.len()), (0, 3));
        (0..9).for_each(|_| slab.trim());
        assert_eq!((slab.pieces.len(), slab.insert(1)), (1, 0));
    }
}
