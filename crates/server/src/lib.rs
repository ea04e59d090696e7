//! The HTTP API, the change feed, metrics and the console.

pub mod shapes;
