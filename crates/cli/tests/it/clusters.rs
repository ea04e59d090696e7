//! Real servers on one real PostgreSQL: shown, drained and taken back by command.

use crate::served::{Served, define};
use crate::steadfast::{Called, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use steadfast_test_servers::PostgresServer;

fn serve(dir: &Path, url: &str, data: &str) -> Served {
    Served::start(dir, &["--listen", "127.0.0.1:0", "--postgres", url, "--data", data, "--set", "cluster.lease=3s"])
}

fn cluster(served: &Served) -> Value {
    served.call(&["cluster", "show", "--json"]).ends_with(0).json()
}

/// How many shards the instance at that address has.
fn held(asked: &Served, of: &Served) -> u64 {
    let cluster = cluster(asked);
    let instances = cluster["instances"].as_array().unwrap();
    let instance = instances
        .iter()
        .find(|instance| instance["address"] == of.url.as_str())
        .unwrap_or_else(|| panic!("{cluster}"));
    instance["shards"].as_u64().unwrap()
}

#[test]
fn a_server_is_drained_by_command_and_taken_back() {
    let (dir, postgres) = (tempfile::tempdir().unwrap(), PostgresServer::shared());
    let url = postgres.url(&postgres.database());
    define(dir.path());
    let (first, mut second) = (serve(dir.path(), &url, "first"), serve(dir.path(), &url, "second"));
    until("each has its share", || (held(&first, &first) == 32 && held(&first, &second) == 32).then_some(()));
    let address = second.url.trim_start_matches("http://").to_owned();
    let shown = first.call(&["cluster", "show"]).ends_with(0);
    let shown =
        shown.prints(&["INSTANCE", "LAG", "HEARD", "LIVES", &first.url, &second.url, "64 shards, all held; * is the one that answered"]);
    let marked: Vec<&str> = shown.out.lines().filter(|line| line.contains(" * ")).collect();
    assert!(marked.len() == 2 && marked[0].contains(&first.url), "{}", shown.out);
    let shards = first.call(&["cluster", "show", "--shards"]).ends_with(0).prints(&["MOVES", "LAG", "MESSAGES"]).out;
    let is_held = |line: &str, here: bool| line.contains("  HELD  ") && line.contains(" * ") == here;
    assert_eq!([true, false].map(|here| shards.lines().filter(|line| is_held(line, here)).count()), [32, 32], "{shards}");
    let page = first.get("/cluster");
    assert!(page.contains("2 instances share one store") && page.contains(&second.url) && page.contains("href=\"/cluster\""), "{page}");

    // What waits in its shards goes on at the other, and any of them answers for all.
    for number in 0..10 {
        second.call(&["run", "start", "ask", "--id", &format!("q-{number}")]).ends_with(0);
    }
    let drained = first.call(&["cluster", "drain", &address, "--reason", "it gets a new disk"]).ends_with(0);
    assert_eq!(drained.out, "", "nothing is data");
    drained.says(&["shards left", &address, "has no shard left and takes none", "--undo"]);
    assert_eq!((held(&second, &first), held(&second, &second), &cluster(&first)["unheld"]), (64, 0, &0.into()));
    first.call(&["cluster", "show"]).ends_with(0).prints(&["DRAINING"]);
    until("the reason is in the log", || first.log().contains("it gets a new disk").then_some(()));
    for number in 0..10 {
        let id = format!("q-{number}");
        second.call(&["run", "signal", &id, "ok", "--payload", r#"{"approved":true}"#]).ends_with(0);
        first.until_status(&id, "COMPLETED");
    }

    // By the beginning of its id, and by another server than before.
    let all = cluster(&second);
    let id = all["instances"].as_array().unwrap().iter().find(|instance| instance["here"] == true).unwrap()["id"]
        .as_str()
        .unwrap();
    let back = second.call(&["cluster", "drain", &id[..id.len() - 1], "--undo", "--json"]).ends_with(0).json();
    assert_eq!((&back["id"], &back["draining"]), (&id.into(), &false.into()));
    until("it has its share again", || (held(&first, &second) == 32).then_some(()));

    first
        .call(&["cluster", "drain", "nobody"])
        .ends_with(1)
        .says(&["no instance \"nobody\"", &second.url, "SF0143"]);
    second.tell(Signal::KILL);
    second.ended();
    until("it is silent, and the other has all", || {
        let shown = first.call(&["cluster", "show"]).ends_with(0).out;
        (shown.contains("SILENT") && held(&first, &first) == 64).then_some(())
    });
    // Nobody takes what the last one gives away: it is said, and done all the same.
    let last = first.call(&["cluster", "drain", &first.url, "--no-wait", "--json"]).ends_with(0);
    assert_eq!(last.json()["draining"], true);
    last.says(&["no other instance takes shards"]);
    until("nobody has any", || (cluster(&first)["unheld"] == 64).then_some(()));
    first.call(&["cluster", "show"]).ends_with(0).prints(&["64 shards, 64 without a holder"]);
    first.call(&["cluster", "drain", &first.url, "--undo"]).ends_with(0).says(&["takes shards again"]);
    until("it has all again", || (held(&first, &first) == 64).then_some(()));
}

#[test]
fn a_server_that_has_its_store_for_itself_has_no_cluster() {
    let served = Served::new();
    for args in [vec!["cluster", "show"], vec!["cluster", "drain", "a"]] {
        served.call(&args).ends_with(1).says(&["does not share its store", "--postgres", "SF0514"]);
    }
}

/// The example, with leases of that length.
fn example(lease: &str) -> Called {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster/run.sh");
    let mut command = Command::new("timeout");
    command.arg("180").arg(script).env("STEADFAST", env!("CARGO_BIN_EXE_steadfast")).env("LEASE", lease);
    Called::of(&command.output().unwrap())
}

#[test]
fn the_example_of_a_cluster_runs() {
    let called = example("3s")
        .ends_with(0)
        .prints(&["== the third server is killed", "== all thirty have completed"]);
    let states = |text: &str| ["LIVES", "SILENT"].map(|state| text.matches(state).count());
    let (before, after) = called.out.split_once("== thirty runs").unwrap();
    assert_eq!((states(before), states(after)), ([3, 0], [2, 1]), "{}", called.out);
}

#[test]
fn the_example_of_a_cluster_shows_what_the_servers_say_when_it_fails() {
    example("1s").ends_with(1).says(&["server 1 has ended", "cluster.lease", "use 2s or more"]);
}
