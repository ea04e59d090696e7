//! The order of writing over all entities, for those who follow what happens.

use crate::ShardId;
use steadfast_kernel::{EntityId, PlanId, Record};

/// A place in the order of writing, which is one of its own in every shard. Numbers of a shard rise from 1; there may be gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// In whose order. A store whose shards share one order says 0.
    pub shard: ShardId,
    /// How far in it.
    pub number: u64,
}

/// How far somebody has come: a place in every shard. The default is before everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position(Vec<Place>); // by shard; none has the number 0

/// A journal entry with its place in the order of writing.
#[derive(Clone, Debug, PartialEq)]
pub struct Fed {
    /// Its place.
    pub place: Place,
    /// Whose journal it stands in.
    pub entity: EntityId,
    /// Whose work the run is; nothing for what is not a run.
    pub tenant: Option<String>,
    /// The plan that the run is a task of; nothing if it is none.
    pub plan: Option<PlanId>,
    /// The entry.
    pub record: Record,
}

impl Position {
    /// The number up to which it reaches in a shard; 0 is before the first.
    pub fn number(&self, shard: ShardId) -> u64 {
        self.find(shard).map_or(0, |at| self.0[at].number)
    }

    /// Where it is in every shard in which it is not before the first.
    pub fn places(&self) -> &[Place] {
        &self.0
    }

    /// Whether what stands at that place lies behind.
    pub fn covers(&self, place: Place) -> bool {
        place.number <= self.number(place.shard)
    }

    /// Whether it is at least as far in every shard.
    pub fn includes(&self, other: &Position) -> bool {
        other.0.iter().all(|place| self.covers(*place))
    }

    /// Goes on to that place, if it is not there yet.
    pub fn advance(&mut self, place: Place) {
        match self.find(place.shard) {
            Ok(at) => self.0[at].number = self.0[at].number.max(place.number),
            Err(_) if place.number == 0 => {}
            Err(at) => self.0.insert(at, place),
        }
    }

    /// Goes on in every shard to where the other one is.
    pub fn join(&mut self, other: &Position) {
        other.0.iter().for_each(|place| self.advance(*place));
    }

    /// As bytes. With places of shard 0 alone it is the number as text; otherwise a zero, and of every shard how far it is from the one before and its number.
    pub fn encode(&self) -> Vec<u8> {
        if self.0.iter().all(|place| place.shard == 0) {
            return self.number(0).to_string().into_bytes();
        }
        let (mut bytes, mut next) = (vec![0], 0);
        for place in &self.0 {
            put(&mut bytes, (place.shard - next).into());
            put(&mut bytes, place.number);
            next = place.shard.saturating_add(1);
        }
        bytes
    }

    /// What [`encode`](Self::encode) made.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Some(mut rest) = bytes.strip_prefix(&[0]) else {
            let number = std::str::from_utf8(bytes).ok()?.parse().ok()?;
            return Some(Position::from_iter([Place { shard: 0, number }]));
        };
        let (mut position, mut next) = (Position::default(), 0_u32);
        while !rest.is_empty() {
            let shard = next.checked_add(take(&mut rest)?.try_into().ok()?)?;
            position.advance(Place { shard, number: take(&mut rest)? });
            next = shard.saturating_add(1);
        }
        Some(position)
    }

    fn find(&self, shard: ShardId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&shard, |place| place.shard)
    }
}

/// The position that covers all of them.
impl FromIterator<Place> for Position {
    fn from_iter<I: IntoIterator<Item = Place>>(places: I) -> Self {
        let mut position = Position::default();
        places.into_iter().for_each(|place| position.advance(place));
        position
    }
}

/// Seven bits at a time, the lowest first; a set top bit means that there is more.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(places: &[(ShardId, u64)]) -> Position {
        places.iter().map(|&(shard, number)| Place { shard, number }).collect()
    }

    #[test]
    fn a_position_never_goes_back() {
        let mut at = position(&[(3, 7), (1, 2)]);
        at.advance(Place { shard: 3, number: 5 });
        at.advance(Place { shard: 2, number: 0 });
        assert_eq!(at, position(&[(1, 2), (3, 7)]));
        at.join(&position(&[(1, 1), (2, 9), (3, 8)]));
        assert_eq!(at, position(&[(1, 2), (2, 9), (3, 8)]));
    }

    #[test]
    fn positions_of_several_shards_are_not_in_one_order() {
        let (a, b) = (position(&[(0, 5), (1, 2)]), position(&[(0, 4), (1, 3)]));
        assert!(!a.includes(&b) && !b.includes(&a) && a.includes(&Position::default()));
        assert!(a.covers(Place { shard: 0, number: 5 }) && !a.covers(Place { shard: 1, number: 3 }));
    }

    #[test]
    fn a_position_comes_back_from_its_bytes() {
        let many: Vec<_> = (0..64).map(|shard| (shard, 1_000_000 + u64::from(shard))).collect();
        for places in [&[][..], &[(0, 7)], &[(5, 7)], &[(0, 1), (63, u64::MAX)], &[(u32::MAX, 1)], &many] {
            let at = position(places);
            assert_eq!(Position::decode(&at.encode()), Some(at));
        }
        assert_eq!(position(&[(0, 7)]).encode(), b"7");
        assert!(position(&many).encode().len() < 300);
        for foreign in [&b""[..], b"-1", b"x", &[0, 1], &[0, 0x80], &[0, 0xff, 0xff, 0xff, 0xff, 0x7f, 1], &[0; 99][..2]] {
            assert_eq!(Position::decode(foreign), None, "{foreign:?}");
        }
    }
}
