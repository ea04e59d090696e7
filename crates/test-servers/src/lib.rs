//! Real servers for tests: each is started on free ports of the loopback, with a folder of its own,
//! and ended with the value that stands for it, also when the test fails. A program that is missing
//! fails the test and says how to install it; nothing is passed over.

mod certificates;
mod losses;
mod monitor;
mod postgres;
mod proxy;
mod redis;
mod resp;
mod sentinel;
mod server;
mod wait;

pub use certificates::Certificates;
pub use losses::Losses;
pub use monitor::Monitor;
pub use postgres::{PostgresOptions, PostgresServer, SHARED_PORT};
pub use proxy::Proxy;
pub use redis::{RedisOptions, RedisServer};
pub use resp::Reply;
pub use sentinel::Sentinel;
pub use wait::wait_until;
