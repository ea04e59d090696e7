//! Keys: their rows, their feed, and those who are told of their ends.

mod callbacks;
mod letters;
mod receiver;
mod rows;
mod watch;
