//! The HTTP API, the change feed, metrics and the console.
//!
//! [`Server`] listens and hands every request to the front (`front.rs`), which says who may come in, how many at once and for how long, and gives every
//! answer what it has to carry. Behind it are the paths, a file per kind of thing in `api/`; `ask/` reads requests, [`shapes`] are what goes over the
//! wire, and `problem.rs` is the one place where errors become answers. `links.rs` lets other nodes in, on the same port. `access/` has the rules of who may reach the server at all. `callbacks/` is the other way
//! round: it calls those who are to be told that a key has expired.
//!
//! Everything is asked of [`steadfast_runtime::Engine`]: nothing is decided or kept here.

mod access;
mod api;
mod app;
mod ask;
mod callbacks;
mod config;
mod cursor;
mod elsewhere;
mod error;
mod front;
mod links;
mod metrics;
mod pages;
mod problem;
mod server;
pub mod shapes;
mod steps;
mod traces;
mod wire;

pub use api::openapi;
pub use app::Catalogue;
pub use callbacks::{CallerSettings, HttpCaller};
pub use config::Config;
pub use error::Error;
pub use links::{Links, authorize_by};
pub use metrics::install_metrics;
pub use problem::PROBLEM_JSON;
pub use server::{Parts, Server, Socket};
pub use steps::Planned;
pub use traces::{Exporter, Sending};
