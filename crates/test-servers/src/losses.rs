//! A bad network: what becomes of each connection, as it follows from a seed.

use std::ops::RangeInclusive;
use std::time::Duration;

/// What a [`Proxy`](crate::Proxy) does to the connections that it passes on. Equal seeds do the
/// same to the first connection, to the second, and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses {
    /// What all follows from; to be printed.
    pub seed: u64,
    /// How long connections live.
    pub cut_after: RangeInclusive<Duration>,
    /// For how long nothing is passed on, once in the life of a connection.
    pub stall: Duration,
    /// How likely the answers of a connection vanish from the middle of its life on while it stays
    /// open, from 0 to 1.
    pub swallow: f64,
}

impl Losses {
    /// Every connection is cut after a second and stalls for 200 ms; one in four loses its answers
    /// before that.
    pub fn new(seed: u64) -> Self {
        Losses { seed, cut_after: Duration::from_secs(1)..=Duration::from_secs(1), stall: Duration::from_millis(200), swallow: 0.25 }
    }

    /// What becomes of that connection.
    pub(crate) fn fate(&self, connection: u64) -> Fate {
        let mut draws = Draws(self.seed ^ connection.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (from, to) = (*self.cut_after.start(), *self.cut_after.end());
        let cut = from + to.saturating_sub(from).mul_f64(draws.next());
        let stall = cut.mul_f64(draws.next());
        let swallow = (draws.next() < self.swallow).then(|| cut / 2);
        Fate { cut: Some(cut), stall: Some(stall..=stall + self.stall), swallow }
    }
}

/// What becomes of a connection, by how old it is. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fate {
    pub(crate) cut: Option<Duration>,
    pub(crate) stall: Option<RangeInclusive<Duration>>,
    pub(crate) swallow: Option<Duration>,
}

/// Splitmix64: small, and the same everywhere.
struct Draws(u64);

impl Draws {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_follow_from_the_seed() {
        let fates = |seed| (0..100).map(|connection| Losses::new(seed).fate(connection)).collect::<Vec<_>>();
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        let swallowed = fates(1).iter().filter(|fate| fate.swallow.is_some()).count();
        assert!((10..40).contains(&swallowed), "{swallowed}");
        assert!(fates(1).iter().all(|fate| fate.cut == Some(Duration::from_secs(1))));
    }
}
