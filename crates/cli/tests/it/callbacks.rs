//! Callbacks that do not go well: targets that are down, restarts, dead letters, and the settings that decide.
//!
//! Subject: `crates/server/src/callbacks/mod.rs`.
//! Subject: `crates/server/src/callbacks/address.rs`.

use crate::keys::{names, put, until_all_is_told};
use crate::served::Served;
use crate::steadfast::{Called, until};
use crate::world::{World, nobody};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

/// A server that tries again soon.
fn serve(dir: &Path, more: &[&str]) -> Served {
    let soon = ["--listen", "127.0.0.1:0", "--set", "callbacks.retry_delay=100ms", "--set", "callbacks.max_delay=100ms"];
    Served::start(dir, &[&soon, more].concat())
}

/// Kills it as the machine would.
fn kill(mut served: Served) {
    served.tell(Signal::KILL);
    served.ended();
}

#[expect(clippy::disallowed_methods, reason = "the time of the machine has to go by while no server is there")]
pub(crate) fn is_over(time: &str) -> bool {
    time.parse::<jiff::Timestamp>().unwrap() < jiff::Timestamp::now()
}

/// The first expiry that is still to be told, once it has failed that often.
fn failed(served: &Served, times: u64) -> serde_json::Value {
    until("it has failed", || {
        let json = served.call(&["key", "callbacks", "--json"]).ends_with(0).json();
        let first = json["items"].get(0)?.clone();
        (first["attempt"].as_u64()? > times && first["failure"].is_object()).then_some(first)
    })
}

#[test]
fn a_callback_to_a_target_that_was_down_is_made_after_a_restart() {
    let (dir, url) = (tempfile::tempdir().unwrap(), nobody());
    let served = serve(dir.path(), &["--set", "callbacks.max_attempts=1000000"]);
    let call = format!("{url}/ended?token=hunter2");
    put(&served, "shown", &["1", "--ttl", "1h", "--call", &call]);
    assert!(!served.call(&["key", "list"]).ends_with(0).prints(&[&url]).out.contains("hunter2"));
    let keys = ["a", "b", "c"].map(|key| format!("{key}/{}", put(&served, key, &["1", "--ttl", "100ms", "--call", &call])));
    let waits = failed(&served, 2);
    assert_eq!(waits["of"], 1_000_000, "{waits}");
    let table = served
        .call(&["key", "callbacks"])
        .ends_with(0)
        .prints(&["TARGET", &url, "of 1000000", "Connection refused"]);
    assert!(!table.out.contains("hunter2"), "{table:?}");
    kill(served);
    let world = World::open_at(&url);
    let served = serve(dir.path(), &["--set", "callbacks.max_attempts=1000000"]);
    until_all_is_told(&served);
    let mut told = world.calls("/ended?token=hunter2");
    told.sort();
    assert_eq!(told, keys, "each expiry once, with its key");
    served.call(&["letter", "list"]).says(&["no dead letters"]);
}

#[test]
fn a_callback_in_flight_is_made_again_with_its_key() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let served = serve(dir.path(), &[]);
    let revision = put(&served, "a", &["1", "--ttl", "100ms", "--call", &format!("{}/hang-once", world.url)]);
    until("it is called", || (world.calls("/hang-once").len() == 1).then_some(()));
    kill(served);
    let served = serve(dir.path(), &[]);
    until_all_is_told(&served);
    let key = format!("a/{revision}");
    assert_eq!(world.calls("/hang-once"), [key.clone(), key]);
}

#[test]
fn a_key_that_expires_while_the_server_is_down_is_told_after_its_start() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let served = serve(dir.path(), &[]);
    let revision = put(&served, "a", &["1", "--ttl", "3s", "--call", &format!("{}/ended", world.url)]);
    let expires_at = served.call(&["key", "get", "a", "--json"]).ends_with(0).json()["expiresAt"].clone();
    kill(served);
    assert_eq!(world.calls("/ended"), [""; 0], "its time was not over");
    until("its time is over", || is_over(expires_at.as_str().unwrap()).then_some(()));
    let served = serve(dir.path(), &[]);
    until("it is told", || world.calls("/ended").first().cloned());
    until_all_is_told(&served);
    assert_eq!(world.calls("/ended"), [format!("a/{revision}")]);
    let body: serde_json::Value = serde_json::from_str(&world.bodies("/ended")[0]).unwrap();
    assert_eq!(body["expiredAt"], expires_at);
}

#[test]
fn a_callback_that_is_refused_for_good_is_a_dead_letter_at_once() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let served = serve(dir.path(), &[]);
    let revision = put(&served, "carts/7", &[r#"{"items":3}"#, "--ttl", "100ms", "--call", &format!("{}/gone", world.url)]);
    let letter = |other: &str| {
        until("there is a letter", || {
            let ids = names(&served.call(&["letter", "list", "--json"]).ends_with(0), "id");
            ids.first().filter(|id| *id != other).cloned()
        })
    };
    let first = letter("");
    assert!(first.starts_with("key:carts/7."), "{first}");
    served.call(&["letter", "list"]).ends_with(0).prints(&[&first, "carts/7  expiry", "410"]);
    let about = format!("{first}  expiry of carts/7, revision {revision}");
    served
        .call(&["letter", "show", &first])
        .ends_with(0)
        .prints(&[&about, "410", r#"value     {"items":3}"#, "attempt   1"]);
    until_all_is_told(&served);
    served
        .call(&["letter", "redrive", &first, "--reason", "they are back"])
        .ends_with(0)
        .says(&["the expiry is told again"]);
    let second = letter(&first);
    let key = format!("carts/7/{revision}");
    assert_eq!(world.calls("/gone"), [key.clone(), key], "an expiry that is told again has the key that it had");
    served.call(&["letter", "drop", &second, "--reason", "nobody wants to know"]).ends_with(0);
    served.call(&["letter", "list"]).says(&["no dead letters"]);
    served.call(&["letter", "show", &first]).ends_with(1).says(&["SF0115"]);
}

#[test]
fn attempts_are_as_many_as_the_settings_say() {
    let (dir, url) = (tempfile::tempdir().unwrap(), nobody());
    let served = serve(dir.path(), &["--set", "callbacks.max_attempts=2"]);
    put(&served, "a", &["1", "--ttl", "100ms", "--call", &url]);
    let id = until("there is a letter", || names(&served.call(&["letter", "list", "--json"]), "id").first().cloned());
    let letter = served.call(&["letter", "show", &id, "--json"]).ends_with(0).json();
    assert_eq!((&letter["attempt"], &letter["kind"], &letter["key"]), (&2.into(), &"expiry".into(), &"a".into()), "{letter}");
    let metrics = served.get("/metrics");
    for line in ["steadfast_keys_expired_total 1", "steadfast_callbacks_dead_total 1", "steadfast_callbacks_pending 0"] {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
}

#[test]
fn an_attempt_takes_as_long_as_the_settings_say() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let served = serve(dir.path(), &["--set", "callbacks.timeout=200ms"]);
    put(&served, "a", &["1", "--ttl", "100ms", "--call", &format!("{}/hang-once", world.url)]);
    until("the one that hung is given up", || (world.calls("/hang-once").len() == 2).then_some(()));
    until_all_is_told(&served);
}

#[test]
fn only_hosts_that_are_allowed_are_called() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let served = serve(dir.path(), &["--set", "callbacks.hosts=127.0.0.1,*.example.com"]);
    let put = |url: &str| served.call(&["key", "put", "a", "1", "--ttl", "100ms", "--call", url]);
    for url in ["http://localhost/x", "https://example.org/x", "https://example.com.evil.example.org/x"] {
        put(url).ends_with(1).says(&["SF0121", "docs/errors/SF0121.md"]);
    }
    served.call(&["key", "list"]).says(&["no keys"]);
    put(&format!("{}/ended", world.url)).ends_with(0);
    until("it is told", || world.calls("/ended").first().cloned());
    put("https://hooks.example.com/x").ends_with(0);
}

/// A server that does not start with that setting; one that does is ended after a while.
fn refused(setting: &str) -> Called {
    let dir = tempfile::tempdir().unwrap();
    let serve = [env!("CARGO_BIN_EXE_steadfast"), "serve", "--listen", "127.0.0.1:0", "--set", setting];
    Called::of(&Command::new("timeout").arg("20").args(serve).current_dir(dir.path()).output().unwrap())
}

#[test]
fn settings_of_callbacks_that_cannot_be_are_told_at_the_start() {
    for (setting, code, said) in [
        ("callbacks.max_attempts=0", 2, "at least 1"),
        ("callbacks.timeout=soon", 2, "is no duration"),
        ("callbacks.host=x", 2, "did you mean callbacks.hosts?"),
        ("callbacks.hosts=http://x", 2, "callbacks.hosts (--set): "),
        ("callbacks.timeout=0s", 1, "no attempt could succeed"),
    ] {
        refused(setting).ends_with(code).says(&[said]);
    }
}
