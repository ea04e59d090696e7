//! Where servers tell each other that they are reached.

use super::database::Database;
use super::{Pair, join};
use crate::served::define;
use std::net::TcpListener;
use steadfast_test_servers::PostgresServer;

/// A port that nobody listens at.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs of either server are started and decided through the other one.
fn ask_each_other(pair: &Pair) {
    let (ids, _) = pair.spread(str::to_owned, |id| drop(pair.a.call(&["run", "start", "ask", "--id", id]).ends_with(0)));
    for id in &ids {
        pair.b.call(&["run", "signal", id, "ok", "--payload", "{}"]).ends_with(0);
        pair.a.until_status(id, "COMPLETED");
    }
}

/// `127.1` is a name of the loopback that every machine knows, and none that the server would go by by itself.
#[test]
fn servers_ask_each_other_under_the_names_that_they_are_given() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::new(PostgresServer::shared()));
    define(dir.path());
    let [a, b] = ["a", "b"].map(|name| {
        let port = free();
        let (listen, address) = (format!("127.0.0.1:{port}"), format!("http://127.1:{port}"));
        let mut served = join(dir.path(), &database.url(), name, &["--listen", &listen, "--set", &format!("cluster.address={address}")]);
        served.url = address;
        served
    });
    ask_each_other(&Pair { a, b, database, dir }.shared());
}
