use crate::steadfast::{Called, command, steadfast};

/// An address at which nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address_and_what_to_do() {
    let (dir, server) = (tempfile::tempdir().unwrap(), nowhere());
    for args in [vec!["run", "list"], vec!["run", "start", "x", "--wait"], vec!["letter", "list"], vec!["run", "cancel", "x", "--json"]] {
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
