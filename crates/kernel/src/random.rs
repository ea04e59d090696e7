//! Chance that is derived, never redrawn: the same run seed, branch, stream name and index give the same number for ever.
//!
//! A stream is ChaCha8 keyed by HKDF-SHA-256 over the run's seed, with branch and stream name as the context. Only `next_u64` of the
//! generator is used; every mapping to something else is our own. The known-answer tests below must never change.
//!
//! Tested by `crates/sdk/tests/it/determinism.rs`.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;

/// The seed of a run: drawn once when the run starts and kept in `RUN_STARTED`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub [u8; 32]);

impl Seed {
    /// A seed of its own for something that belongs to this one: the same for ever.
    #[must_use]
    pub fn derive(&self, branch: &str, name: &str) -> Seed {
        let mut stream = Stream::new(self, branch, name);
        let mut derived = [0; 32];
        for chunk in derived.chunks_mut(8) {
            chunk.copy_from_slice(&stream.next_u64().to_le_bytes());
        }
        Seed(derived)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}

/// A short name for a text that is too long: 32 hexadecimal digits, the same for ever.
pub fn digest(text: &str) -> String {
    digest_of(text.as_bytes())
}

/// A short name for bytes: 32 hexadecimal digits, the same for ever.
pub fn digest_of(bytes: &[u8]) -> String {
    use sha2::Digest;
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A stream of numbers that belongs to one branch of one run and has a name.
#[derive(Clone)]
pub struct Stream {
    key: [u8; 32],
    next: u64,
}

impl Stream {
    /// The stream of that name in that branch, at its beginning.
    pub fn new(seed: &Seed, branch: &str, name: &str) -> Self {
        let mut key = [0; 32];
        let length = (branch.len() as u64).to_le_bytes(); // so that ("a", "bc") and ("ab", "c") differ
        let info = [b"steadfast/stream/1".as_slice(), &length, branch.as_bytes(), name.as_bytes()];
        if hkdf::Hkdf::<Sha256>::new(None, &seed.0).expand_multi_info(&info, &mut key).is_err() {
            unreachable!("32 bytes are within what HKDF-SHA-256 can give");
        }
        Stream { key, next: 0 }
    }

    /// The number at that index, counted from 0, without the ones before it.
    pub fn at(&self, index: u64) -> u64 {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_word_pos(u128::from(index) * 2);
        rng.next_u64()
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        let number = self.at(self.next);
        self.next += 1;
        number
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEED: Seed = Seed([7; 32]);

    #[test]
    fn known_answers() {
        let mut stream = Stream::new(&SEED, "", "backoff");
        let first: Vec<_> = (0..4).map(|_| stream.next_u64()).collect();
        assert_eq!(first, KNOWN_BACKOFF);
        let mut stream = Stream::new(&Seed([0; 32]), "left/inner", "random");
        let first: Vec<_> = (0..4).map(|_| stream.next_u64()).collect();
        assert_eq!(first, KNOWN_RANDOM);
    }

    /// Computed by an independent implementation of RFC 5869 and ChaCha8.
    const KNOWN_BACKOFF: [u64; 4] = [9307347016890902001, 13524516784618053243, 4475598205089318771, 10598629050718423733];
    const KNOWN_RANDOM: [u64; 4] = [9670072601139585874, 2917566033764334809, 15870894753291879560, 9926982995818411150];

    #[test]
    fn branch_and_name_do_not_run_together() {
        let first = |branch, name| Stream::new(&SEED, branch, name).at(0);
        assert_ne!(first("a", "bc"), first("ab", "c"));
        assert_ne!(first("a", ""), first("", "a"));
    }

    #[test]
    fn secrets_of_a_run_are_not_shown() {
        assert_eq!(format!("{SEED:?} {:?}", Stream::new(&SEED, "", "x")), "Seed(…) Stream(…)");
    }

    proptest! {
        #[test]
        fn same_seed_same_draw(seed: [u8; 32], branch in "[a-z/]{0,20}", name in "[a-z]{0,20}", n in 0..2000u64) {
            let stream = Stream::new(&Seed(seed), &branch, &name);
            prop_assert_eq!(stream.at(n), Stream::new(&Seed(seed), &branch, &name).at(n));
        }

        #[test]
        fn drawing_one_by_one_and_by_index_agree(seed: [u8; 32], n in 1..600usize) {
            let mut stream = Stream::new(&Seed(seed), "", "s");
            let by_index = stream.clone();
            for index in 0..n as u64 {
                prop_assert_eq!(stream.next_u64(), by_index.at(index));
            }
        }
    }
}
