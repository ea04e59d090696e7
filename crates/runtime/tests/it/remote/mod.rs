//! Runs that are hosted by workers.

mod drain;
mod lines;
mod link;
mod lost;
mod places;
mod programs;
mod rate;
mod same;
mod slow;
mod waiting;
mod world;
