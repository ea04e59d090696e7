//! The store on a real PostgreSQL.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod cluster;
mod contract;
mod fences;
mod fixture;
mod lists;
mod migrations;
mod readable;
mod servers;
mod snapshots;
mod trouble;
mod unknown;
