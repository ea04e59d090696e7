//! A Redis with a replica, and a Sentinel that watches over both.

use crate::redis::{RedisOptions, RedisServer};
use crate::resp::{Connection, Reply};
use crate::server::{Process, free_port};
use crate::wait::wait_until;
use std::fs;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The name under which Sentinel knows the servers.
const SERVICE: &str = "main";
/// How long a change may take that Sentinel makes.
const WITHIN: Duration = Duration::from_secs(30);

/// A Redis with a replica, and a Sentinel that watches over both; they end with this value.
#[derive(Debug)]
pub struct Sentinel {
    port: u16,
    /// The server that took writes at first, and its replica.
    pub servers: [RedisServer; 2],
    _folder: TempDir,
    _process: Process,
}

impl Sentinel {
    /// Starts all three and waits until they know of each other.
    ///
    /// # Panics
    /// If one of them does not begin.
    pub fn start() -> Self {
        let first = RedisServer::start();
        let follows = ("replicaof".to_owned(), format!("127.0.0.1 {}", first.port()));
        let second = RedisServer::start_with(RedisOptions { more: vec![follows], ..RedisOptions::default() });
        let linked = || second.cli(&["INFO", "replication"]).text().contains("master_link_status:up");
        wait_until("the replica has what the first server has", WITHIN, linked);
        let (port, folder) = (free_port(), TempDir::new().unwrap_or_else(|error| panic!("there is no place for a folder: {error}")));
        let process = watch(&folder, port, first.port());
        let sentinel = Sentinel { port, servers: [first, second], _folder: folder, _process: process };
        let known = || matches!(sentinel.cli(&["SENTINEL", "REPLICAS", SERVICE]), Reply::List(list) if list.len() == 1);
        wait_until("Sentinel knows the replica", WITHIN, known);
        sentinel
    }

    /// Where to ask for the server that takes writes.
    pub fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{SERVICE}/0", self.port)
    }

    /// The port of Sentinel itself.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a command to Sentinel.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn cli(&self, command: &[&str]) -> Reply {
        Connection::open(self.port)
            .and_then(|mut connection| connection.ask(command))
            .unwrap_or_else(|error| panic!("Sentinel does not answer: {error}"))
    }

    /// The port of the server that takes writes now.
    ///
    /// # Panics
    /// If Sentinel does not say.
    pub fn master(&self) -> u16 {
        let answer = self.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]).texts();
        answer[1].parse().unwrap_or_else(|_| panic!("Sentinel gave no port: {answer:?}"))
    }

    /// Makes the replica the server that takes writes, while the other one still runs and follows
    /// it from now on. Those that are connected to the other one stay so.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn fail_over(&self) {
        let begun = || self.cli(&["SENTINEL", "FAILOVER", SERVICE]) == Reply::Text("OK".to_owned());
        wait_until("Sentinel holds the replica for good enough", WITHIN, begun);
        self.wait_for_the_other();
        // Sentinel tells it so as well, but some ten seconds later.
        self.servers[0].cli(&["REPLICAOF", "127.0.0.1", &self.servers[1].port().to_string()]);
    }

    /// Waits until Sentinel has chosen the second server.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn wait_for_the_other(&self) {
        let chosen =
            || self.master() == self.servers[1].port() && self.servers[1].cli(&["INFO", "replication"]).text().contains("role:master");
        wait_until("Sentinel has chosen the other server", WITHIN, chosen);
    }
}

fn watch(folder: &TempDir, port: u16, watched: u16) -> Process {
    let file = folder.path().join("sentinel.conf");
    let text = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nlogfile \"\"\nsentinel monitor {SERVICE} 127.0.0.1 {watched} 1\n\
         sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 5000\n",
        folder.path().display()
    );
    fs::write(&file, text).unwrap_or_else(|error| panic!("no settings for Sentinel: {error}"));
    let mut command = Command::new("/usr/bin/redis-server");
    Process::start(command.arg(&file).arg("--sentinel"), "+monitor master").unwrap_or_else(|error| panic!("{error}"))
}
