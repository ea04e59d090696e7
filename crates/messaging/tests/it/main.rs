//! Nodes, wires and the inbox, as their users see them. `MESSAGING_SEED` repeats a run of those that draw lots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test may panic, and says how to repeat it")]

mod answers;
mod budget;
mod bytes;
mod calls;
mod claims;
mod decoding;
mod doors;
mod full;
mod hostile;
mod inbox;
mod letters;
mod line;
mod lossy;
mod network;
mod proto;
mod random;
mod receiving;
mod samples;
mod seats;
mod seed;
mod sending;
mod silence;
mod slow;
mod snapshot;
mod streams;
mod traps;
mod wires;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// A source of chance: the seed is printed, and another one each time unless it is set.
fn chance() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed())
}

fn seed() -> u64 {
    let seed = std::env::var("MESSAGING_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("MESSAGING_SEED={seed}");
    seed
}
