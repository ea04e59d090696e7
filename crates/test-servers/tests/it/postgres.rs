//! A private PostgreSQL: it keeps what it was told through a restart, stands still when it is told
//! to, and ends.

use std::time::Duration;
use steadfast_test_servers::{PostgresOptions, PostgresServer, wait_until};

#[test]
fn what_was_committed_outlives_a_crash_and_the_server_does_not_outlive_its_value() {
    let mut server = PostgresServer::start();
    let database = server.database();
    server.psql(&database, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    server.kill();
    assert!(server.try_psql(&database, "SELECT 1").is_err());
    server.restart();
    assert_eq!(server.psql(&database, "SELECT n FROM t"), "7");
    let port = server.port();
    drop(server);
    wait_until("the server has ended", Duration::from_secs(20), || std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn databases_are_apart_and_in_a_language() {
    let server = PostgresServer::shared();
    let [one, other] = [server.database(), server.database()];
    server.psql(&one, "CREATE TABLE t (n int)");
    assert!(server.try_psql(&other, "SELECT n FROM t").is_err());
    assert_eq!(server.psql(&one, "SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\""), "t|f", "only what asks for it is compared by bytes");
}

#[test]
fn a_server_that_is_paused_answers_when_it_goes_on() {
    let server =
        PostgresServer::start_with(PostgresOptions { fsync: false, password: Some("secret".into()), ..PostgresOptions::default() });
    assert_eq!(server.psql("postgres", "SELECT 1"), "1");
    server.pause();
    let (answered, answer) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| answered.send(server.psql("postgres", "SELECT 2")));
        assert!(answer.recv_timeout(Duration::from_millis(200)).is_err());
        server.go_on();
        assert_eq!(answer.recv_timeout(Duration::from_secs(20)).unwrap(), "2");
    });
}
