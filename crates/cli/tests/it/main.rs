//! The real binary: what it prints, what it ends with, and what it does with a real server.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod callbacks;
mod check;
mod cluster;
mod clusters;
mod config;
mod console;
mod doctor;
mod first_ten_minutes;
mod help;
mod instances;
mod key_guide;
mod key_watch;
mod keys;
mod letters;
mod live;
mod locks;
mod messages;
mod observed;
mod planned;
mod plans;
mod postgres;
mod restarts;
mod retries;
mod runs;
mod serve;
mod served;
mod snapshots;
mod steadfast;
mod tenants;
mod unreachable;
mod workers;
mod world;
