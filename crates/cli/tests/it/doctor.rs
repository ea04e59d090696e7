use crate::served::{Served, define};
use crate::steadfast::{Called, steadfast};
use steadfast_messaging::wire::tls::Identity;

/// How a check came out.
fn level(called: &Called, check: &str) -> String {
    let json = called.json();
    let items = json["items"].as_array().unwrap();
    items.iter().find(|item| item["check"] == check).unwrap_or_else(|| panic!("no {check}: {json}"))["level"]
        .as_str()
        .unwrap()
        .into()
}

/// An address that is free, and one at which nobody answers.
fn free() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_folder_before_its_first_start_is_well() {
    let (dir, listen) = (tempfile::tempdir().unwrap(), free());
    define(dir.path());
    let server = format!("http://{listen}");
    let called = steadfast(dir.path(), &["doctor", "--json", "--listen", &listen, "--server", &server]).ends_with(0);
    for (check, is) in
        [("versions", "ok"), ("store", "ok"), ("disk", "ok"), ("clock", "ok"), ("definitions", "ok"), ("port", "ok"), ("server", "warn")]
    {
        assert_eq!(level(&called, check), is, "{check}: {called:?}");
    }
    assert!(!dir.path().join("data").exists(), "a look makes nothing");
    let called = steadfast(dir.path(), &["doctor", "--listen", &listen, "--server", &server]).ends_with(0);
    called.prints(&["nothing there yet; the first start makes it", "steadfast serve"]);
}

#[test]
fn a_running_server_is_recognised() {
    let served = Served::new();
    let listen = served.url.strip_prefix("http://").unwrap().to_owned();
    let called = served.call(&["doctor", "--listen", &listen]).ends_with(0);
    called.prints(&["in use by a server", "is held by a Steadfast server", "is ready", "agrees with this one"]);
}

#[test]
fn foreign_and_broken_folders_fail() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(dir.path().join("data/steadfast.db"), [7; 5000]).unwrap();
    std::fs::create_dir(dir.path().join("definitions")).unwrap();
    std::fs::write(dir.path().join("definitions/x.yaml"), "workflow: x\nsteps: 5\n").unwrap();
    let called = steadfast(dir.path(), &["doctor", "--json", "--listen", &free()]).ends_with(1);
    assert_eq!((level(&called, "store").as_str(), level(&called, "definitions").as_str()), ("fail", "fail"));
    called.prints(&["SF0303", "steadfast check definitions"]);
}

#[test]
fn a_port_that_another_program_has_fails() {
    let dir = tempfile::tempdir().unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || other.incoming().for_each(drop));
    let called = steadfast(dir.path(), &["doctor", "--json", "--listen", &listen, "--server", &format!("http://{}", free())]).ends_with(1);
    assert_eq!(level(&called, "port"), "fail", "{called:?}");
}

#[test]
fn others_need_a_token_and_a_bad_configuration_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let called = steadfast(dir.path(), &["doctor", "--json", "--listen", "0.0.0.0:0"]).ends_with(1);
    assert_eq!(level(&called, "port"), "fail");
    std::fs::write(dir.path().join("steadfast.toml"), "lisen = 1\n").unwrap();
    let called = steadfast(dir.path(), &["doctor", "--json"]).ends_with(1).prints(&["did you mean listen?"]);
    assert_eq!(level(&called, "configuration"), "fail");
}

#[test]
fn the_port_of_nodes_is_looked_at_if_there_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let doctor =
        |listen: &str| steadfast(dir.path(), &["doctor", "--json", "--listen", &free(), "--set", &format!("messages.listen={listen}")]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|addr| (addr.to_string(), &taken)).unwrap();
    for (listen, expected) in [(free(), "ok"), (taken.0, "warn"), ("0.0.0.0:0".into(), "fail")] {
        let called = doctor(&listen);
        assert_eq!(level(&called, "messages"), expected, "{called:?}");
    }
}

#[test]
fn files_for_messages_are_looked_at_if_they_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let pem = |name: &str| {
        Identity::kept_in(&dir.path().join(name), &["127.0.0.1"]).unwrap();
        dir.path().join(name).join("identity.pem").to_str().unwrap().to_owned()
    };
    let (one, other) = (pem("one"), pem("other"));
    let cases = [
        (vec![format!("messages.cert_file={one}"), format!("messages.client_ca_file={other}")], "ok", "can be used"),
        (vec![format!("messages.cert_file={one}"), format!("messages.key_file={other}")], "fail", "does not match"),
        (vec!["messages.cert_file=none.pem".into()], "fail", "none.pem"),
        (vec![format!("messages.client_ca_file={one}")], "fail", "messages.cert_file"),
        (vec!["messages.ca_file=none.pem".into()], "fail", "messages.ca_file"),
        (vec!["messages.token_hosts=ftp://bank".into()], "fail", "messages.token_hosts"),
    ];
    for (set, expected, part) in cases {
        let set: Vec<_> = set.iter().flat_map(|set| ["--set", set]).collect();
        let called = steadfast(dir.path(), &[&["doctor", "--json", "--listen", &free()], &set[..]].concat()).prints(&[part]);
        assert_eq!(level(&called, "messages' files"), expected, "{called:?}");
    }
    let listens = ["--set", "messages.listen=0.0.0.0:0", "--set", &format!("messages.cert_file={one}")];
    let mutual = format!("messages.client_ca_file={other}");
    for (more, expected) in [(vec![], "fail"), (vec!["--set", &mutual], "ok")] {
        let called = steadfast(dir.path(), &[&["doctor", "--json", "--listen", &free()], &listens[..], &more].concat());
        assert_eq!(level(&called, "messages"), expected, "certificates are as good as a token: {called:?}");
    }
}
