//! Any server can be asked for anything, wherever it is.
//!
//! Subject: `crates/runtime/src/engine/asking.rs`.

use super::http::follow;
use super::{Pair, SHARDS};
use crate::keys::{put, until_all_is_told};
use crate::planned::{PAIR, define as plan, log, touch};
use crate::served::{Served, define};
use crate::steadfast::{Called, until};
use crate::world::World;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

const TOKEN: &str = "q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk=";

#[test]
fn a_run_is_shown_followed_told_and_cancelled_through_the_other_server() {
    let pair = Pair::start(define, &[]);
    let (a, b) = (&pair.a, &pair.b);
    let mut told = follow(&b.url, "types=RUN_COMPLETED,RUN_CANCELLED");
    let (ids, at_b) = pair.spread(str::to_owned, |id| drop(a.call(&["run", "start", "ask", "--id", id]).ends_with(0)));
    for id in &ids {
        let (here, there) = if at_b.contains(id) { (b, a) } else { (a, b) };
        there.until_status(id, "WAITING");
        assert_eq!(there.run(id)["wait"]["reason"], here.run(id)["wait"]["reason"]);
        there.call(&["run", "why", id]).ends_with(0).prints(&["operator"]);
        let followed = there
            .client(&["run", "events", id, "--follow", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let cancels = id.ends_with(['0', '2']);
        if cancels {
            there.call(&["run", "cancel", id, "--reason", "no longer"]).ends_with(0);
        } else {
            there.call(&["run", "signal", id, "ok", "--payload", r#"{"approved":true}"#]).ends_with(0);
        }
        let (status, event) = if cancels { ("CANCELLED", "RUN_CANCELLED") } else { ("COMPLETED", "RUN_COMPLETED") };
        here.until_status(id, status);
        there.until_status(id, status);
        let followed = Called::of(&followed.wait_with_output().unwrap());
        let events: Vec<serde_json::Value> = followed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "each of them once, in order: {followed:?}");
        assert_eq!(events.last().unwrap()["eventType"], event, "{followed:?}");
        there.call(&["run", "replay", id]).ends_with(0);
    }
    let mut missing: BTreeSet<_> = ids.iter().cloned().collect();
    while !missing.is_empty() {
        let told = told.next().unwrap_or_else(|| panic!("the feed does not tell of {missing:?}"));
        assert!(missing.remove(told["id"].as_str().unwrap()), "it is told twice: {told}");
    }
}

/// What is long goes in pieces, however short messages have to be.
#[test]
fn a_long_input_reaches_the_other_server_where_messages_are_short() {
    let pair = Pair::start(define, &["--set", "messages.payload_bytes_max=4KiB"]);
    let name = "n".repeat(20 << 10);
    let input = format!("{{\"name\":\"{name}\"}}");
    let (ids, _) =
        pair.spread(str::to_owned, |id| drop(pair.a.call(&["run", "start", "greet", "--id", id, "--input", &input]).ends_with(0)));
    for id in &ids {
        pair.b.until_status(id, "COMPLETED");
        assert_eq!(pair.b.run(id)["result"]["text"], format!("Hello, {name}"));
    }
}

#[test]
fn a_plan_whose_tasks_are_at_both_servers_is_operated_through_either() {
    let pair = Pair::start(|dir| plan(dir, "pair", PAIR), &[]);
    let (a, b) = (&pair.a, &pair.b);
    let tenants: Vec<_> = (0..8).map(|number| format!("t{number}")).collect();
    let named: Vec<_> = tenants.iter().flat_map(|tenant| ["--tenant", tenant]).collect();
    let apply = [&["plan", "apply", "pair", "--id", "night", "--var", "to=b", "--max-concurrency", "8"], &named[..]].concat();
    a.call(&apply).ends_with(0);
    b.until_plan("night", "READY");
    b.call(&["plan", "start", "night"]).ends_with(0);
    let all = |status: &str| {
        for (tenant, served) in tenants.iter().zip([a, b].into_iter().cycle()) {
            served.until_task(tenant, status);
        }
    };
    all("RUNNING");
    let places: BTreeSet<_> = tenants.iter().map(|tenant| pair.database.place(&format!("night/{tenant}"))).collect();
    assert_eq!(places, [a.url.clone(), b.url.clone()].into(), "tasks are at both");
    let locked = |served: &Served| {
        let json = served.call(&["lock", "list", "--json"]).ends_with(0).json();
        let holders: BTreeSet<_> = json["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lock| lock["holder"].as_str().unwrap().to_owned())
            .collect();
        holders
    };
    assert_eq!(locked(a), tenants.iter().map(|tenant| format!("night:night/{tenant}")).collect());
    assert_eq!(locked(b), locked(a));
    let second = ["plan", "apply", "pair", "--id", "later", "--tenant", "t1", "--var", "to=b"];
    b.call(&second).ends_with(1).says(&["SF0126", "night"]);

    a.call(&["plan", "pause", "night", "--reason", "slow"]).ends_with(0);
    b.until_plan("night", "PAUSED");
    tenants.iter().for_each(|tenant| touch(pair.dir.path(), &format!("{tenant}.go")));
    all("PAUSED");
    b.call(&["plan", "resume", "night"]).ends_with(0);
    for served in [a, b] {
        served.until_plan("night", "COMPLETED");
        until("no lock is left", || locked(served).is_empty().then_some(()));
    }
    all("COMPLETED");
    for tenant in &tenants {
        assert_eq!(log(pair.dir.path(), tenant), ["open b", "fill"], "{tenant}: each stage once");
    }
}

#[test]
fn the_end_of_a_key_is_told_once_wherever_the_key_is() {
    let (pair, world) = (Pair::start(define, &[]), World::open());
    let call = format!("{}/ended", world.url);
    let mut expected = BTreeSet::new();
    pair.spread(
        |id| format!("key:{id}"),
        |id| {
            let revision = put(&pair.a, id, &["1", "--ttl", "3s", "--call", &call]);
            pair.b.call(&["key", "get", id]).ends_with(0).prints(&[&format!("{id}  revision {revision}  ")]);
            expected.insert(format!("{id}/{revision}"));
        },
    );
    until("all are told", || (world.calls("/ended").len() >= expected.len()).then_some(()));
    until_all_is_told(&pair.b);
    until_all_is_told(&pair.a);
    let told = world.calls("/ended");
    assert_eq!((told.len(), told.into_iter().collect()), (expected.len(), expected), "each once");
    pair.b.call(&["key", "list"]).ends_with(0).says(&["no keys"]);
}

#[test]
fn dead_letters_of_either_server_are_listed_and_redriven_through_the_other() {
    let pair = Pair::start(
        |dir| {
            for number in 0..30 {
                let fail = "{ name: read, fail: { class: poison, code: DECODE_FAILURE, message: \"it cannot be read\" } }";
                let text = format!("workflow: n{number}\nsteps:\n  - {fail}\n");
                plan(dir, &format!("n{number}"), &text);
            }
        },
        &[],
    );
    let (a, b) = (&pair.a, &pair.b);
    let (ids, at_b) = pair.spread(
        |id| format!("letters:{id}"),
        |id| {
            a.call(&["run", "start", id, "--id", id, "--wait"]).ends_with(1);
            until("there is a letter", || (!pair.database.place(&format!("letters:{id}")).is_empty()).then_some(()));
        },
    );
    for id in &ids {
        let there = if at_b.contains(id) { a } else { b };
        there.call(&["letter", "list", "--workflow", id]).ends_with(0).prints(&[&format!("{id}.1"), "read"]);
        let redrive = ["letter", "redrive", &format!("{id}.1"), "--reason", "mended"];
        there.call(&redrive).ends_with(0).says(&["is redriven"]);
        // It fails again as it did, and is a letter again.
        let again = until("there is another letter", || {
            let json = there.call(&["letter", "list", "--workflow", id, "--json"]).ends_with(0).json();
            json["items"][0]["id"].as_str().filter(|letter| *letter != format!("{id}.1")).map(str::to_owned)
        });
        there.call(&["letter", "drop", &again, "--reason", "void"]).ends_with(0);
    }
    for served in [a, b] {
        until("no letter is left", || served.call(&["letter", "list"]).err.contains("no dead letters").then_some(()));
    }
}

/// Puts the workflows of the tests into a folder, and a token.
pub(super) fn guard(dir: &Path) {
    define(dir);
    std::fs::write(dir.join("token"), TOKEN).unwrap();
    std::fs::set_permissions(dir.join("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn servers_with_a_token_ask_each_other_and_nobody_without_it_is_let_in() {
    let pair = Pair::start(guard, &["--token-file", "token"]);
    let call = |served: &Served, args: &[&str]| served.call(&[args, &["--token-file", "token"]].concat());
    let (ids, _) = pair.spread(str::to_owned, |id| drop(call(&pair.a, &["run", "start", "ask", "--id", id]).ends_with(0)));
    for id in &ids {
        call(&pair.b, &["run", "signal", id, "ok", "--payload", "{}"]).ends_with(0);
        for served in [&pair.a, &pair.b] {
            until("it has completed", || {
                (call(served, &["run", "show", id, "--json"]).ends_with(0).json()["status"] == "COMPLETED").then_some(())
            });
        }
    }
    for served in [&pair.a, &pair.b] {
        served.call(&["run", "list"]).ends_with(1).says(&["STEADFAST_TOKEN"]);
        for route in ["steadfast.shards", "steadfast.instances"] {
            let refused = served.call(&["call", &served.url, route, "{}", "--timeout", "5s"]).ends_with(1);
            assert!(!refused.out.contains("127.0.0.1"), "nothing is told to somebody without it: {refused:?}");
            refused.says(&["token"]);
        }
        assert!(!served.log().contains(TOKEN));
    }
    assert_eq!(pair.database.holders().values().sum::<usize>(), SHARDS);
}
