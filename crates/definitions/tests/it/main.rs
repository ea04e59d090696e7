//! Definitions from the outside: what is said about wrong ones, and what right ones do.

mod crashes;
mod foreach;
mod http;
mod kinds;
mod library;
mod plays;
mod run;
mod server;
mod support;
mod terms;
mod undo;
mod wrong;
