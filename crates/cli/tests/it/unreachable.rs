use crate::steadfast::{Called, command, steadfast};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An address at which nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address_and_what_to_do() {
    let (dir, server) = (tempfile::tempdir().unwrap(), nowhere());
    for args in [
        vec!["run", "list"],
        vec!["run", "start", "x", "--wait"],
        vec!["letter", "list"],
        vec!["plan", "show", "x", "--watch"],
        vec!["tenant", "show", "x"],
        vec!["lock", "list"],
        vec!["run", "cancel", "x", "--json"],
    ] {
        let mut args = args;
        args.extend(["--server", &server]);
        let called = steadfast(dir.path(), &args).ends_with(3).says(&[&server, "connection refused", "steadfast serve"]);
        assert_eq!(called.out, "", "nothing that is no data is on stdout");
    }
}

#[test]
fn the_server_is_found_by_environment_and_file_too() {
    let (dir, server) = (tempfile::tempdir().unwrap(), nowhere());
    std::fs::write(dir.path().join("steadfast.toml"), format!("server = \"{server}\"\n")).unwrap();
    steadfast(dir.path(), &["run", "list"]).ends_with(3).says(&[&server]);
    let other = nowhere();
    let mut by_env = command(dir.path(), &["run", "list"]);
    Called::of(&by_env.env("STEADFAST_SERVER", &other).output().unwrap()).ends_with(3).says(&[&other]);
}

#[test]
fn a_proxy_is_not_asked_for_this_machine() {
    let (dir, server) = (tempfile::tempdir().unwrap(), nowhere());
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let at = format!("http://{}", proxy.local_addr().unwrap());
    let mut call = command(dir.path(), &["run", "list", "--server", &server]);
    call.env("HTTP_PROXY", &at)
        .env("http_proxy", &at)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("REQUEST_METHOD");
    Called::of(&call.output().unwrap()).ends_with(3).says(&["connection refused"]);
    assert!(proxy.accept().is_err(), "nobody came to the proxy");
}

/// Takes requests and answers none: how many there were so far.
fn silent() -> (String, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (server, count) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _request = stream.read(&mut [0; 4096]);
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (server, count)
}

#[test]
fn what_would_be_answered_otherwise_the_second_time_is_sent_once() {
    let dir = tempfile::tempdir().unwrap();
    for (args, times) in [
        (vec!["put", "k", "1", "--ttl", "1s"], 4),
        (vec!["put", "k", "1", "--ttl", "1s", "--if-absent"], 1),
        (vec!["put", "k", "1", "--ttl", "1s", "--if-revision", "7"], 1),
        (vec!["renew", "k", "--ttl", "1s"], 4),
        (vec!["renew", "k", "--ttl", "1s", "--if-revision", "7"], 1),
        (vec!["delete", "k"], 1),
    ] {
        let (server, count) = silent();
        let args = [&["key"], &args[..], &["--server", &server]].concat();
        steadfast(dir.path(), &args)
            .ends_with(3)
            .says(&["whether it was done can be seen with: steadfast key get k"]);
        assert_eq!(count.load(Ordering::SeqCst), times, "{args:?}");
    }
}
