//! Starts the PostgreSQL server of a test run, and prints its port.
//!
//! The server ends with the standard input.
#![expect(clippy::print_stdout, reason = "the port is the output")]

use std::io::Read;
use steadfast_test_servers::PostgresServer;

fn main() {
    let server = PostgresServer::start_to_share();
    println!("{}", server.port());
    let _its_end_is_all = std::io::stdin().read_to_end(&mut Vec::new());
    drop(server);
}
