//! The contract on the reference store, and what only the reference store has.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod batch;
mod contract;
mod keys;
mod leases;
mod memory;
mod rows;
