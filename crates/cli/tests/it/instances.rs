//! Two servers with data of their own that share tenants through a real Redis, and an operator who has only the command line.
//!
//! Subject: `crates/runtime/src/commons/mod.rs`.

use crate::planned::{define, log, ten, touch};
use crate::served::Served;
use crate::steadfast::{Called, command, steadfast, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use steadfast_test_servers::{RedisOptions, RedisServer};

/// An instance of that name, with data of its own and the definitions of the folder.
fn instance(dir: &Path, redis: &RedisServer, name: &str) -> Served {
    let (data, url) = (format!("data-{name}"), redis.url());
    let args = ["--listen", "127.0.0.1:0", "--data", &data, "--redis", &url, "--instance", name, "--set", "redis.heartbeat_ttl=2s"];
    let served = Served::start(dir, &args);
    until("it has reached Redis", || (redis_of(&served)["status"] == "up").then_some(()));
    served
}

/// The line of Redis in what `/readyz` says.
fn redis_of(served: &Served) -> Value {
    let ready: Value = serde_json::from_str(&served.get("/readyz")).unwrap();
    ready["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["name"] == "redis")
        .unwrap()
        .clone()
}

#[test]
fn a_task_whose_server_died_in_stage_5_goes_on_at_another_one() {
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    define(dir.path(), "ten", &ten());
    let (mut a, b) = (instance(dir.path(), &redis, "a"), instance(dir.path(), &redis, "b"));
    a.call(&["plan", "apply", "ten", "--tenant", "acme", "--id", "night", "--start"]).ends_with(0);
    until("stage 5 is under way", || (log(dir.path(), "acme").len() == 5).then_some(()));
    until("b knows of it", || (b.call(&["tenant", "show", "acme", "--json"]).code == Some(0)).then_some(()));
    until("b knows how far it has come", || (b.task("acme")["lastCompletedStageIndex"] == 3).then_some(()));
    b.call(&["tenant", "show", "acme"]).ends_with(0).prints(&[
        "acme  RUNNING  stage 5 of 10, s5\n",
        "instance    a, which lives\n",
        "{\"third\":\"acme\"}",
    ]);
    b.call(&["tenant", "retry", "acme"]).ends_with(1).says(&["SF0132", "instance a"]);
    b.call(&["plan", "pause", "night"]).ends_with(1).says(&["SF0132", "instance a"]);
    a.call(&["lock", "list"]).ends_with(0).prints(&["INSTANCE", "acme"]);

    a.tell(Signal::KILL);
    a.ended();
    b.until_task("acme", "INTERRUPTED"); // once the heartbeat of a is gone
    b.call(&["tenant", "show", "acme"]).ends_with(0).prints(&[
        "acme  INTERRUPTED  stage 5 of 10, s5\n",
        "instance    a, which is gone\n",
        "stages      4 of 10 done\n",
        "checkpoint  after stage 4, s4 (index 3), saved ",
        "  steadfast tenant retry acme ",
    ]);
    b.call(&["plan", "show", "night"]).ends_with(0).prints(&[
        "night  ten  PAUSED",
        "instance a had it, and is gone",
        "✓   ✓   ✓   ✓   !   ·",
    ]);
    b.call(&["tenant", "resume", "acme"]).ends_with(1).says(&["SF0132", "retry it"]);
    touch(dir.path(), "go");
    b.call(&["tenant", "retry", "acme", "--reason", "a is gone"]).ends_with(0).prints(&["acme  "]);
    b.until_task("acme", "COMPLETED");
    let expected = ["s1", "s2", "s3", "s4", "s5", "s5", "s6", "s7", "s8", "s9", "s10"];
    assert_eq!(log(dir.path(), "acme"), expected, "what was done is not done again");

    let a = instance(dir.path(), &redis, "a");
    until("a steps back", || (a.run("night/acme")["task"]["status"] == "HANDED_OVER").then_some(()));
    a.call(&["tenant", "show", "acme"])
        .ends_with(0)
        .prints(&["acme  COMPLETED", "instance    b, which lives\n"]);
    assert_eq!(log(dir.path(), "acme"), expected, "a touches nothing");
}

#[test]
fn a_task_is_handed_over_and_goes_on_where_it_is_retried() {
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    let bad = "plan: bad\nretry: { max_attempts: 1 }\nstages:\n  - { name: one, set: 1 }\n  - { name: two, run: { cwd: .., command: [test, -f, mended] } }\n";
    define(dir.path(), "bad", bad);
    let (a, b) = (instance(dir.path(), &redis, "a"), instance(dir.path(), &redis, "b"));
    a.call(&["plan", "apply", "bad", "--tenant", "acme", "--id", "night", "--start"]).ends_with(0);
    a.until_task("acme", "FAILED");
    b.call(&["plan", "apply", "bad", "--tenant", "acme", "--id", "later"])
        .ends_with(1)
        .says(&["SF0126", "night/acme:a:"]);
    a.call(&["tenant", "handover", "acme", "--reason", "this machine is taken down"]).ends_with(0);
    a.call(&["tenant", "show", "acme"]).ends_with(0).prints(&["none; it was handed over"]);
    touch(dir.path(), "mended");
    b.call(&["tenant", "retry", "acme", "--reason", "here"]).ends_with(0);
    b.until_task("acme", "COMPLETED");
    assert_eq!(b.task("acme")["taskId"], "night/acme");
}

#[test]
fn the_instance_of_a_folder_is_the_same_after_a_restart() {
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    let args = ["--listen", "127.0.0.1:0", "--redis", &redis.url()];
    let told = |served: &Served| {
        until("it has reached Redis", || (redis_of(served)["status"] == "up").then_some(()));
        redis_of(served)["detail"].as_str().unwrap().split([' ', ':']).nth(1).unwrap().to_string()
    };
    let first = told(&Served::start(dir.path(), &args));
    let served = Served::start(dir.path(), &args);
    assert_eq!((told(&served), first.len()), (first.clone(), 32));
    assert!(served.log().contains(&format!("as instance {first}")), "{}", served.log());
    let config = steadfast(dir.path(), &["config", "--json"]).ends_with(0).json();
    let item = config["items"].as_array().unwrap().iter().find(|item| item["key"] == "redis.instance").unwrap();
    assert_eq!((&item["value"], &item["from"]), (&json!(first), &json!("data/steadfast.instance:1")));
    steadfast(dir.path(), &["doctor", "--redis", &redis.url()]).prints(&[&first, "answers", "instances that live"]);
}

#[test]
fn settings_of_redis_are_checked_and_its_password_is_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let redis = RedisServer::start_with(RedisOptions { password: Some("hunter2".into()), ..RedisOptions::default() });
    let with = |password: &str| format!("redis://:{password}@127.0.0.1:{}", redis.port());
    let shown = steadfast(dir.path(), &["config", "--redis", &with("hunter2")]).ends_with(0);
    assert!(shown.out.contains("redis://••••••@127.0.0.1") && !shown.out.contains("hunter2"), "{shown:?}");
    let quiet = |called: Called| {
        assert!(!format!("{called:?}").contains("hunter"), "{called:?}");
        called
    };
    quiet(steadfast(dir.path(), &["serve", "--redis", "redis://:hunter2@host/x"]))
        .ends_with(2)
        .says(&["--redis", "number of the database"]);
    quiet(steadfast(dir.path(), &["serve", "--redis", "redis://host", "--set", "redis.ca_file=ca.pem"]))
        .ends_with(2)
        .says(&["redis.ca_file", "rediss://"]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let doctor = |url: &str| quiet(steadfast(dir.path(), &["doctor", "--json", "--listen", &free, "--redis", url]));
    let found = |called: &Called| {
        let items = called.json()["items"].as_array().unwrap().clone();
        items.into_iter().find(|item| item["check"] == "redis").unwrap()
    };
    let well = found(&doctor(&with("hunter2")).ends_with(0));
    assert_eq!(well["level"], "ok", "{well}");
    let wrong = found(&doctor(&with("hunter3")).ends_with(1));
    assert!(wrong["level"] == "fail" && wrong["found"].as_str().unwrap().contains("does not accept user and password"), "{wrong}");
    let nobody = found(&doctor("redis://127.0.0.1:1").ends_with(1));
    assert!(nobody["found"].as_str().unwrap().contains("cannot be reached"), "{nobody}");
    let mut by_env = command(dir.path(), &["config", "--json"]);
    let by_env = Called::of(&by_env.env("STEADFAST_REDIS", "redis://:hunter2@h").output().unwrap()).ends_with(0);
    assert!(quiet(by_env).out.contains("\"from\":\"STEADFAST_REDIS\""));
}

#[test]
fn the_example_of_two_instances_runs() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rollout/two-instances.sh");
    let output = Command::new("timeout")
        .arg("120")
        .arg(script)
        .env("STEADFAST", env!("CARGO_BIN_EXE_steadfast"))
        .output()
        .unwrap();
    let called = Called::of(&output).ends_with(0).prints(&[
        "instance    a, which lives",
        "(refused: it is a's)",
        "acme  INTERRUPTED  stage 4 of 6, verify",
        "instance    a, which is gone",
        "acme  COMPLETED",
        "instance    b, which lives",
        "HANDED_OVER",
    ]);
    let (_, told) = called.out.rsplit_once("under way\n").unwrap();
    let verbs: Vec<&str> = told.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(verbs, ["drain", "move", "verify", "verify", "undrain"], "{told}");
}
