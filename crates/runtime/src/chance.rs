//! Where the ids and seeds of new runs come from: a stream that the system has seeded once, so that a start costs no call of the system.

use crate::error::Error;
use parking_lot::Mutex;
use rand::rngs::{ChaCha8Rng, SysRng};
use rand::{Rng, SeedableRng, TryRng};
use steadfast_kernel::random::Seed;
use steadfast_kernel::{RunId, Timestamp};

pub(crate) struct Chance {
    stream: Mutex<ChaCha8Rng>,
    /// In tests, seeds follow from the ids of the runs and this.
    fixed: Option<Seed>,
}

impl Chance {
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn new(fixed: Option<Seed>) -> Result<Self, Error> {
        let mut seed = [0; 32];
        SysRng
            .try_fill_bytes(&mut seed)
            .map_err(|error| Error::InvalidSetting(format!("the system gives no random numbers: {error}")))?;
        Ok(Chance { stream: Mutex::new(ChaCha8Rng::from_seed(seed)), fixed })
    }

    /// An id that sorts by time and does not collide within a microsecond.
    pub(crate) fn id(&self, now: Timestamp) -> Result<RunId, Error> {
        let millis = u64::try_from(now.as_micros() / 1000).unwrap_or_default();
        let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &self.bytes()).into_uuid();
        Ok(RunId::new(uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()))?)
    }

    /// Where the chance of a run comes from.
    pub(crate) fn seed(&self, run: &RunId) -> Seed {
        match self.fixed {
            Some(fixed) => fixed.derive(run.as_str(), "run"),
            None => Seed(self.bytes()),
        }
    }

    fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.lock().fill_bytes(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_made_in_the_same_moment_are_different_and_sort_by_time() {
        let chance = Chance::new(None).unwrap();
        let (now, later) = (Timestamp::from_micros(1_767_225_600_000_000), Timestamp::from_micros(1_767_225_600_001_000));
        let ids: BTreeSet<_> = (0..10_000).map(|_| chance.id(now).unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.last() < Some(&chance.id(later).unwrap()));
    }

    #[test]
    fn no_two_engines_have_the_same_chance_unless_it_is_fixed() {
        let run = RunId::new("a").unwrap();
        let seed = |fixed| Chance::new(fixed).unwrap().seed(&run);
        assert!(seed(None) != seed(None));
        assert!(seed(Some(Seed([7; 32]))) == seed(Some(Seed([7; 32]))));
    }
}
