//! A private Redis.

use crate::certificates::Certificates;
use crate::resp::{Connection, Reply};
use crate::server::{Process, free_port};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const PROGRAM: &str = "/usr/bin/redis-server";
/// How often another port is tried, if somebody was faster.
const TRIES: usize = 5;

/// What a private Redis is like.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Every write is on the disk before it is answered, and is there after a restart. Nothing is
    /// kept otherwise.
    pub append_only: bool,
    /// The password of the default user.
    pub password: Option<String>,
    /// It speaks TLS on a second port.
    pub tls: bool,
    /// Other settings of the server, by name.
    pub more: Vec<(String, String)>,
}

/// A private Redis on the loopback; it ends with this value.
#[derive(Debug)]
pub struct RedisServer {
    options: RedisOptions,
    folder: TempDir,
    port: u16,
    tls: Option<(u16, Certificates)>,
    process: Option<Process>,
}

impl RedisServer {
    /// Starts one that keeps nothing and lets everybody in.
    ///
    /// # Panics
    /// If there is no Redis on this machine, or it does not begin.
    pub fn start() -> Self {
        Self::start_with(RedisOptions::default())
    }

    /// Starts one.
    ///
    /// # Panics
    /// If there is no Redis on this machine, or it does not begin.
    pub fn start_with(options: RedisOptions) -> Self {
        assert!(Path::new(PROGRAM).exists(), "{PROGRAM} is missing; install it: apt-get install -y --no-install-recommends redis-server");
        let folder = TempDir::new().unwrap_or_else(|error| panic!("there is no place for a folder: {error}"));
        let certificates = options.tls.then(|| Certificates::make(folder.path()));
        let mut server = RedisServer { options, folder, port: 0, tls: None, process: None };
        let mut last = String::new();
        for _ in 0..TRIES {
            server.port = free_port();
            server.tls = certificates.clone().map(|certificates| (free_port(), certificates));
            match server.run() {
                Ok(process) => {
                    server.process = Some(process);
                    return server;
                }
                Err(error) => last = error,
            }
        }
        panic!("{last}")
    }

    fn run(&self) -> Result<Process, String> {
        let mut command = Command::new(PROGRAM);
        let port = self.port.to_string();
        let append_only = if self.options.append_only { "yes" } else { "no" };
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", append_only, "--appendfsync", "always"]);
        command.args(["--logfile", "", "--repl-diskless-sync-delay", "0", "--dir"]).arg(self.folder.path());
        if let Some(password) = &self.options.password {
            command.args(["--requirepass", password, "--masterauth", password]);
        }
        if let Some((port, Certificates { ca, certificate, key, .. })) = &self.tls {
            command.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "no"]);
            command
                .arg("--tls-ca-cert-file")
                .arg(ca)
                .arg("--tls-cert-file")
                .arg(certificate)
                .arg("--tls-key-file")
                .arg(key);
        }
        for (name, value) in &self.options.more {
            command.arg(format!("--{name}")).args(value.split(' '));
        }
        Process::start(&mut command, "Ready to accept connections")
    }

    /// The port, without TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it is, without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where it speaks TLS, and the certificate to trust.
    ///
    /// # Panics
    /// If it does not speak TLS.
    pub fn tls(&self) -> (String, PathBuf) {
        let (port, certificates) = self.tls.as_ref().unwrap_or_else(|| panic!("this server was started without TLS"));
        (format!("rediss://localhost:{port}"), certificates.ca.clone())
    }

    /// Sends a command over a connection of its own.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub fn cli(&self, command: &[&str]) -> Reply {
        self.try_cli(command)
            .unwrap_or_else(|error| panic!("Redis does not answer {}: {error}", command.first().unwrap_or(&"")))
    }

    /// Sends a command over a connection of its own; an error if the server cannot be reached.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn try_cli(&self, command: &[&str]) -> std::io::Result<Reply> {
        let mut connection = Connection::open(self.port)?;
        if let Some(password) = &self.options.password {
            connection.ask(&["AUTH", password])?;
        }
        connection.ask(command)
    }

    /// The names of all keys, in order.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = self.cli(&["KEYS", "*"]).texts();
        keys.sort();
        keys
    }

    /// How often each command was carried out since [`forget_commands`](Self::forget_commands),
    /// those of scripts too.
    pub fn commands(&self) -> BTreeMap<String, u64> {
        let info = self.cli(&["INFO", "commandstats"]);
        let count = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
        };
        info.text().lines().filter_map(count).collect()
    }

    /// Counts commands anew.
    pub fn forget_commands(&self) {
        self.cli(&["CONFIG", "RESETSTAT"]);
    }

    /// Removes all keys.
    pub fn flush(&self) {
        self.cli(&["FLUSHALL"]);
    }

    /// It does nothing any more until [`go_on`](Self::go_on); its connections stay.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pause(&self) {
        self.running().signal(Signal::STOP);
    }

    /// It goes on.
    ///
    /// # Panics
    /// If it does not run.
    pub fn go_on(&self) {
        self.running().signal(Signal::CONT);
    }

    fn running(&self) -> &Process {
        self.process.as_ref().unwrap_or_else(|| panic!("this server was killed"))
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Ends it at once, and what it kept is lost too.
    ///
    /// # Panics
    /// If that cannot be removed.
    pub fn kill_and_forget(&mut self) {
        self.kill();
        let kept = self.folder.path().join("appendonlydir");
        if kept.exists() {
            std::fs::remove_dir_all(kept).unwrap_or_else(|error| panic!("what it kept cannot be removed: {error}"));
        }
    }

    /// Starts it again on the same port, with what it kept.
    ///
    /// # Panics
    /// If it does not begin.
    pub fn restart(&mut self) {
        self.process = None;
        self.process = Some(self.run().unwrap_or_else(|error| panic!("{error}")));
    }
}
