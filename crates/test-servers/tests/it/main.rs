//! What the test servers promise, on real ones.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod postgres;
mod proxy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;
use steadfast_test_servers::{Proxy, RedisOptions, RedisServer, Reply, Sentinel, wait_until};

#[test]
fn a_server_answers_and_ends_with_its_value() {
    let server = RedisServer::start();
    assert_eq!(server.cli(&["SET", "a", "1"]), Reply::Text("OK".to_owned()));
    assert_eq!(server.cli(&["GET", "a"]).text(), "1");
    assert_eq!(server.keys(), ["a"]);
    server.flush();
    assert_eq!(server.cli(&["GET", "a"]), Reply::Nil);
    let port = server.port();
    drop(server);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_server_ends_when_a_test_fails() {
    let failed = std::thread::spawn(|| {
        let server = RedisServer::start();
        std::panic::panic_any(server.port());
    });
    let port = *failed.join().unwrap_err().downcast::<u16>().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_server_ends_when_the_process_of_the_tests_is_killed() {
    let mut holder = Command::new(env!("CARGO_BIN_EXE_private-redis")).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let port: u16 = url.trim().rsplit(':').next().unwrap().parse().unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the server has ended", Duration::from_secs(20), || TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn an_append_only_server_keeps_what_it_has_and_another_does_not() {
    for append_only in [true, false] {
        let mut server = RedisServer::start_with(RedisOptions { append_only, ..RedisOptions::default() });
        server.cli(&["SET", "a", "1"]);
        server.kill();
        assert!(server.try_cli(&["PING"]).is_err());
        server.restart();
        assert_eq!(server.cli(&["EXISTS", "a"]).number(), i64::from(append_only));
    }
}

#[test]
fn commands_are_counted() {
    let server = RedisServer::start();
    server.cli(&["GET", "a"]);
    server.forget_commands();
    server.cli(&["GET", "a"]);
    assert_eq!(server.commands().get("get"), Some(&1));
}

#[test]
fn a_proxy_holds_answers_and_cuts_connections() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    proxy.hold_answers();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.write_all(b"SET a 1\r\n").unwrap();
    wait_until("the server has the command", Duration::from_secs(10), || server.keys() == ["a"]);
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap_err();
    proxy.let_go();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
    proxy.cut();
    assert_eq!(stream.read(&mut answer).unwrap(), 0);
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn sentinel_chooses_the_replica_when_the_first_server_is_gone() {
    let mut sentinel = Sentinel::start();
    assert_eq!(sentinel.master(), sentinel.servers[0].port());
    sentinel.servers[0].kill();
    sentinel.wait_for_the_other();
}
