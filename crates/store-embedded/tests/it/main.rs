//! The embedded store on a real disk.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod contract;
mod durability;
mod fixture;
mod killed;
mod open;
mod readable;
mod snapshots;
mod space;
