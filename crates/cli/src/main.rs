//! The `steadfast` binary: the server and its command line.
fn main() {}
