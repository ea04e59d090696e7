//! The real binary: what it prints, what it ends with, and what it does with a real server.

mod check;
mod config;
mod doctor;
mod first_ten_minutes;
mod help;
mod letters;
mod live;
mod observed;
mod restarts;
mod runs;
mod serve;
mod served;
mod steadfast;
mod unreachable;
mod world;
