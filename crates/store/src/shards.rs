//! Which shard an entity lives in.

use crate::ShardId;
use std::fmt::{self, Write};
use steadfast_kernel::EntityId;

/// The shard of an entity in a store that has so many. It follows from the entity's name alone and is the same for ever: everything that is kept of the entity is
/// kept there.
///
/// # Panics
/// If there are no shards.
pub fn shard_of(entity: &EntityId, shards: u32) -> ShardId {
    assert!(shards > 0, "a store has at least one shard");
    if shards == 1 {
        return 0;
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let _it_takes_everything = write!(hash, "{entity}");
    ((u128::from(spread(hash.0)) * u128::from(shards)) >> 64) as ShardId
}

/// FNV-1a: short, and nobody can change it under us.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

/// The shard is the highest bits, which the last letters of a name hardly move: all bits have a say in all.
fn spread(mut hash: u64) -> u64 {
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::RunId;

    fn run(id: &str) -> EntityId {
        RunId::new(id).unwrap().into()
    }

    #[test]
    fn an_entity_never_moves() {
        let found = ["a", "b", "order-1", "order-2", "01K9ZZZZZZ0000000000000000"].map(|id| shard_of(&run(id), 64));
        assert_eq!(found, [32, 27, 18, 42, 56], "what is kept in a database is looked for there");
        assert_eq!(shard_of(&run("a"), 1), 0);
    }

    #[test]
    fn names_that_are_counted_up_are_spread_evenly() {
        let mut counts = [0_u32; 64];
        for number in 0..64_000 {
            counts[shard_of(&run(&format!("order-{number}")), 64) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
