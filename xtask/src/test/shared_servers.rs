//! Starts the PostgreSQL server that all tests of a run share.

use crate::cargo;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The variable by which `steadfast-test-servers` finds the server.
/// The product takes variables that begin with STEADFAST for settings.
const PORT: &str = "TEST_SERVERS_POSTGRES";

/// The running server; it ends with this value or with this process.
#[derive(Debug)]
pub(crate) struct SharedServer {
    process: Child,
    port: u16,
}

/// Starts the server.
///
/// nextest runs a process per test; without a shared server each of them would create a database
/// cluster of its own.
pub(crate) fn start() -> Result<SharedServer> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--locked", "--package", "steadfast-test-servers", "--bin", "shared-postgres"]);
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("PostgreSQL for the tests was not started")?;
    let mut port = String::new();
    let output = process.stdout.take().context("the server has no output")?;
    BufReader::new(output).read_line(&mut port)?;
    let port = port.trim().parse().context("PostgreSQL for the tests did not start; its error stands above")?;
    Ok(SharedServer { process, port })
}

impl SharedServer {
    /// Announces the server to the tests that a command runs.
    pub(crate) fn announce(&self, tests: &mut Command) {
        tests.env(PORT, self.port.to_string());
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take()); // the server ends with its input
        let _it_has_ended = self.process.wait();
    }
}
