//! Keys: every command, with a real server.

use crate::served::Served;
use crate::steadfast::{Called, until};
use crate::world::World;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

/// Puts a key, and says which revision it has.
#[track_caller]
pub(crate) fn put(served: &Served, key: &str, more: &[&str]) -> u64 {
    let called = served.call(&[&["key", "put", key], more].concat()).ends_with(0);
    called.out.trim().parse().unwrap_or_else(|error| panic!("{error}: {called:?}"))
}

/// The keys that a list has.
#[track_caller]
pub(crate) fn names(called: &Called, field: &str) -> Vec<String> {
    called.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item[field].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until nothing is left to be told.
#[track_caller]
pub(crate) fn until_all_is_told(served: &Served) {
    until("all is told", || served.call(&["key", "callbacks"]).err.contains("all is told").then_some(()));
}

#[test]
fn a_key_is_put_looked_at_renewed_and_deleted() {
    let served = Served::new();
    served.call(&["key", "list"]).ends_with(0).says(&["no keys"]);
    let first = put(&served, "sessions/ada", &[r#"{"user":"ada","n":1.10}"#, "--ttl", "10m"]);
    served.call(&["key", "get", "sessions/ada"]).ends_with(0).prints(&[
        &format!("sessions/ada  revision {first}  "),
        " left\n",
        r#"value     {"user":"ada","n":1.10}"#,
        "ttl       10m\n",
    ]);
    assert_eq!(served.call(&["key", "get", "sessions/ada", "--value"]).ends_with(0).out, "{\"user\":\"ada\",\"n\":1.10}\n");
    let key = served.call(&["key", "get", "sessions/ada", "--json"]).ends_with(0).json();
    assert_eq!((&key["revision"], &key["ttlMs"], &key["directory"]), (&first.into(), &600_000.into(), &false.into()), "{key}");

    let renewed = served.call(&["key", "renew", "sessions/ada", "--ttl", "2h", "--json"]).ends_with(0).json();
    assert!(renewed["revision"].as_u64().unwrap() > first, "{renewed}");
    assert_eq!(served.call(&["key", "get", "sessions/ada", "--json"]).json()["expiresAt"], renewed["expiresAt"]);
    served
        .call(&["key", "list"])
        .ends_with(0)
        .prints(&["KEY", "LEFT", "sessions/ada", "119 min", r#"{"user":"ada""#]);

    served.call(&["key", "delete", "sessions/ada"]).ends_with(0).says(&["sessions/ada is deleted"]);
    for args in [vec!["get", "sessions/ada"], vec!["renew", "sessions/ada", "--ttl", "1s"], vec!["delete", "sessions/ada", "--json"]] {
        let called = served.call(&[&["key"], &args[..]].concat()).ends_with(1).says(&["SF0117", "docs/errors/SF0117.md"]);
        assert_eq!(called.out, "");
    }
    assert!(put(&served, "sessions/ada", &["1", "--ttl", "10m"]) > renewed["revision"].as_u64().unwrap(), "revisions never repeat");
}

#[test]
fn a_value_is_json_a_file_stdin_or_a_text() {
    let served = Served::new();
    std::fs::write(served.dir.join("value.json"), "{\"a\":\n 1}\n").unwrap();
    for (value, is) in [
        ("17", json!(17)),
        ("-17", json!(-17)),
        ("null", json!(null)),
        ("node-1", json!("node-1")),
        ("\"17\"", json!("17")),
        ("@value.json", json!({"a": 1})),
    ] {
        put(&served, "k", &[value, "--ttl", "1h"]);
        assert_eq!(served.call(&["key", "get", "k", "--json"]).json()["value"], is);
    }
    let mut child = served.client(&["key", "put", "k", "-", "--ttl", "1h"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"[1,2]\n").unwrap();
    Called::of(&child.wait_with_output().unwrap()).ends_with(0);
    assert_eq!(served.call(&["key", "get", "k", "--value"]).out, "[1,2]\n");
    served
        .call(&["key", "put", "k", "{a:1}", "--ttl", "1h"])
        .ends_with(2)
        .says(&["VALUE: it is no JSON"]);
    assert_eq!(served.call(&["key", "get", "k", "--value"]).out, "[1,2]\n", "nothing was changed");
}

#[test]
fn an_owner_and_a_revision_keep_others_away() {
    let served = Served::new();
    let revision = put(&served, "leader", &["a", "--ttl", "1h", "--owner", "a", "--if-absent"]);
    served
        .call(&["key", "put", "leader", "b", "--ttl", "1h", "--owner", "b", "--if-absent"])
        .ends_with(1);
    for verb in [vec!["put", "leader", "b", "--ttl", "1h"], vec!["renew", "leader", "--ttl", "1h"], vec!["delete", "leader"]] {
        let args = [&["key"], &verb[..]].concat();
        served.call(&args).ends_with(1).says(&["SF0118"]);
        served.call(&[&args[..], &["--owner", "b"]].concat()).ends_with(1).says(&["SF0118"]);
        let other = (revision + 1000).to_string();
        served
            .call(&[&args[..], &["--owner", "a", "--if-revision", &other]].concat())
            .ends_with(1)
            .says(&["SF0119"]);
    }
    served
        .call(&["key", "put", "leader", "b", "--ttl", "1h", "--owner", "a", "--if-absent"])
        .ends_with(1)
        .says(&["SF0119"]);
    assert_eq!(served.call(&["key", "get", "leader", "--json"]).json()["revision"], revision);
    let mut expected = revision.to_string();
    for verb in [vec!["put", "leader", "c", "--ttl", "1h"], vec!["renew", "leader", "--ttl", "1h"], vec!["delete", "leader"]] {
        let args = [&["key"], &verb[..], &["--owner", "a", "--if-revision", &expected]].concat();
        expected = served.call(&args).ends_with(0).out.trim().into();
    }
    served.call(&["key", "get", "leader"]).ends_with(1).says(&["SF0117"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let served = Served::new();
    for (args, code, said) in [
        (vec!["put", "k", "1", "--ttl", "0s"], 2, "SF0120"),
        (vec!["renew", "k", "--ttl", "0ms"], 2, "SF0120"),
        (vec!["put", "k", "1"], 2, "--ttl"),
        (vec!["put", "k", "1", "--ttl", "soon"], 2, "is no duration"),
        (vec!["put", "a b", "1", "--ttl", "1s"], 2, "is not allowed"),
        (vec!["put", "k", "@nowhere.json", "--ttl", "1s"], 2, "cannot read nowhere.json"),
        (vec!["put", "k", "-", "--ttl", "1s", "--start", "greet", "--input", "-"], 2, "stdin"),
        (vec!["put", "k", "1", "--ttl", "1s", "--call", "http://x", "--start", "greet"], 2, "--start"),
        (vec!["put", "k", "1", "--ttl", "1s", "--input", "1"], 2, "--start"),
        (vec!["put", "k", "1", "--ttl", "1s", "--if-absent", "--if-revision", "1"], 2, "--if-revision"),
        (vec!["put", "k", "1", "--ttl", "1s", "--call", "ftp://x.example/y"], 1, "SF0121"),
        (vec!["put", "k", "1", "--ttl", "1s", "--call", "http://ada:secret@x.example/y"], 1, "SF0121"),
        (vec!["put", "k", "1", "--ttl", "1s", "--start", "nowhere"], 1, "SF0102"),
        (vec!["list", "a b"], 2, "is not allowed"),
        (vec!["watch", "ü"], 2, "is not allowed"),
    ] {
        let called = served.call(&[&["key"], &args[..]].concat()).ends_with(code).says(&[said]);
        assert_eq!(called.out, "", "{args:?}");
    }
    served.call(&["key", "list"]).says(&["no keys"]);
}

#[test]
fn lists_go_by_name_and_page_by_page() {
    let served = Served::new();
    for name in ["b/2", "a/1", "b/1", "b", "b:3"] {
        put(&served, name, &["1", "--ttl", "1h"]);
    }
    assert_eq!(names(&served.call(&["key", "list", "--json"]).ends_with(0), "key"), ["a/1", "b", "b/1", "b/2", "b:3"]);
    assert_eq!(names(&served.call(&["key", "list", "b/", "--all", "--limit", "1", "--json"]).ends_with(0), "key"), ["b/1", "b/2"]);
    let page = served.call(&["key", "list", "b", "--limit", "3", "--json"]).ends_with(0);
    assert_eq!(names(&page, "key"), ["b", "b/1", "b/2"]);
    let (page, next) = (page.json(), "nextCursor");
    let rest = served.call(&["key", "list", "b", "--cursor", page[next].as_str().unwrap(), "--json"]).ends_with(0);
    assert_eq!((names(&rest, "key"), &rest.json()[next]), (vec!["b:3".to_owned()], &json!(null)));
    served.call(&["key", "list", "--cursor", "nonsense"]).ends_with(2);
}

#[test]
fn an_expiry_calls_its_address() {
    let (served, world) = (Served::new(), World::open());
    let url = format!("{}/ended", world.url);
    let revision = put(&served, "sessions/ada", &[r#"{"n":1.10}"#, "--ttl", "200ms", "--owner", "web-1", "--call", &url]);
    let body = until("it is called", || world.bodies("/ended").first().cloned());
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(body["expiredAt"].is_string(), "{body}");
    let told = json!({"key": "sessions/ada", "value": {"n": 1.10}, "owner": "web-1", "revision": revision, "expiredAt": body["expiredAt"], "attempt": 1});
    assert_eq!(body, told);
    until_all_is_told(&served);
    assert_eq!(world.calls("/ended"), [format!("sessions/ada/{revision}")]);
    served.call(&["key", "get", "sessions/ada"]).ends_with(1).says(&["SF0117"]);
    served.call(&["letter", "list"]).says(&["no dead letters"]);
}

#[test]
fn a_key_that_is_renewed_or_deleted_calls_nobody() {
    let (served, world) = (Served::new(), World::open());
    let url = |path: &str| format!("{}{path}", world.url);
    put(&served, "renewed", &["1", "--ttl", "2s", "--call", &url("/renewed")]);
    served.call(&["key", "renew", "renewed", "--ttl", "1h"]).ends_with(0);
    put(&served, "deleted", &["1", "--ttl", "2s", "--call", &url("/deleted")]);
    served.call(&["key", "delete", "deleted"]).ends_with(0);
    put(&served, "last", &["1", "--ttl", "3s", "--call", &url("/last")]);
    until("the last one is told", || world.calls("/last").first().cloned());
    assert_eq!((world.calls("/renewed"), world.calls("/deleted")), (vec![], vec![]));
    assert_eq!(names(&served.call(&["key", "list", "--json"]), "key"), ["renewed"]);
}

#[test]
fn an_expiry_starts_a_run() {
    let served = Served::new();
    let more = ["1", "--ttl", "200ms", "--start", "greet", "--input", r#"{"name":"Ada"}"#];
    let run = format!("expired/carts/7/{}", put(&served, "carts/7", &more));
    until("the run is there", || (served.call(&["run", "show", &run]).code == Some(0)).then_some(()));
    served.until_status(&run, "COMPLETED");
    assert_eq!(served.run(&run)["result"]["text"], "Hello, Ada");
    until_all_is_told(&served);
}

#[test]
fn the_keys_below_a_directory_end_with_it() {
    let (served, world) = (Served::new(), World::open());
    let url = format!("{}/ended", world.url);
    put(&served, "ada", &["1", "--ttl", "1h", "--directory"]);
    put(&served, "ada/tab", &["1", "--ttl", "1h", "--call", &url]);
    put(&served, "adam", &["1", "--ttl", "1h"]);
    served.call(&["key", "list"]).ends_with(0).prints(&["directory"]);
    served.call(&["key", "renew", "ada", "--ttl", "200ms"]).ends_with(0);
    until("what is below it is told", || world.calls("/ended").first().cloned());
    assert_eq!(names(&served.call(&["key", "list", "--json"]), "key"), ["adam"]);
}
