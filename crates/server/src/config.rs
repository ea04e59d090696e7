//! The server's limits, and who may reach it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// What a server is told. The defaults are for one machine: nobody else can reach it.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen. Any other address than loopback needs a token file.
    pub listen: SocketAddr,
    /// A file with a token that every request has to carry; 32 random bytes and up, readable by its owner alone.
    pub token_file: Option<PathBuf>,
    /// Names that the server is reached by, beside `localhost` and the address it listens on. Requests to any other name are refused.
    pub allowed_hosts: Vec<String>,
    /// Origins (`https://app.example.com`) whose pages may use the API from a browser. None unless they are listed.
    pub cors_origins: Vec<String>,
    /// How large the body of a request may be.
    pub body_bytes_max: usize,
    /// How long a request may take, beside what it asks to wait for.
    pub request_time: Duration,
    /// How long a request may ask to wait for the end of a run.
    pub wait_max: Duration,
    /// How many requests may be under way at once. One more is told when to come back. Health, readiness and metrics are always answered.
    pub in_flight_max: usize,
    /// How many may follow the change feed at once.
    pub feed_readers_max: usize,
    /// How often a quiet change feed says that it is still there.
    pub feed_keep_alive: Duration,
    /// How long a client may leave what it was sent unread before its connection is cut.
    pub stall_time: Duration,
    /// How long a client may take to send the head of a request, and how long a connection may be idle.
    pub head_time: Duration,
    /// How long a shutdown waits for requests that are under way.
    pub shutdown_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7373)),
            token_file: None,
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            body_bytes_max: 5 << 20,
            request_time: Duration::from_secs(30),
            wait_max: Duration::from_secs(60),
            in_flight_max: 1024,
            feed_readers_max: 2000,
            feed_keep_alive: Duration::from_secs(15),
            stall_time: Duration::from_secs(30),
            head_time: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
