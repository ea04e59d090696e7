//! A server whose store is a real PostgreSQL: nothing of it is in the data folder.
//!
//! Subject: `crates/store-postgres/src/lib.rs`.

use crate::planned;
use crate::served::{Served, define};
use crate::steadfast::{Called, command, steadfast, until};
use rustix::process::Signal;
use std::path::Path;
use steadfast_test_servers::{PostgresServer, RedisServer, Reply};

fn serve(dir: &Path, url: &str, data: &str) -> Served {
    Served::start(dir, &["--listen", "127.0.0.1:0", "--postgres", url, "--data", data])
}

#[test]
fn what_a_killed_server_has_begun_goes_on_at_another_with_nothing_but_the_database() {
    let (dir, postgres) = (tempfile::tempdir().unwrap(), PostgresServer::shared());
    let database = postgres.database();
    let url = postgres.url(&database);
    define(dir.path());
    let nap = "workflow: nap\nsteps:\n  - { name: first, set: done }\n  - { name: doze, wait: 2s }\noutput: \"{{ steps.first.output }}\"\n";
    std::fs::write(dir.path().join("definitions/nap.yaml"), nap).unwrap();

    let mut first = serve(dir.path(), &url, "first");
    until("it says where everything is", || first.log().contains("postgres     postgresql://").then_some(()));
    for number in 0..20 {
        let (id, input) = (format!("hello-{number}"), format!("{{\"name\":\"n{number}\"}}"));
        first.call(&["run", "start", "greet", "--id", &id, "--input", &input]).ends_with(0);
        first.until_status(&id, "COMPLETED");
    }
    first.call(&["run", "start", "nap", "--id", "nap"]).ends_with(0);
    first.call(&["run", "start", "ask", "--id", "q"]).ends_with(0);
    first.call(&["run", "start", "poison", "--id", "bad"]).ends_with(0);
    first.until_status("bad", "FAILED");
    first.call(&["key", "put", "lamp", "on", "--ttl", "1h"]).ends_with(0);
    first.until_status("q", "WAITING");
    first.tell(Signal::KILL);
    first.ended();

    let second = serve(dir.path(), &url, "second");
    second.until_status("nap", "COMPLETED");
    assert_eq!(second.run("nap")["result"], "done");
    assert_eq!(second.run("hello-7")["result"]["text"], "Hello, n7");
    second.until_status("q", "WAITING");
    second.call(&["run", "signal", "q", "ok", "--payload", r#"{"approved":true}"#]).ends_with(0);
    second.until_status("q", "COMPLETED");
    second.call(&["key", "get", "lamp"]).ends_with(0).prints(&["on"]);
    second.call(&["letter", "list"]).ends_with(0).prints(&["poison"]);
    second
        .call(&["run", "list", "--limit", "100"])
        .ends_with(0)
        .prints(&["hello-0", "hello-19", "nap", "bad"]);
    assert!(!dir.path().join("second/steadfast.db").exists(), "the data folder has no store");
    let attempts = postgres
        .psql(&database, "SELECT count(*) FROM steadfast.workflow_events WHERE workflow_id = 'nap' AND event_type = 'RUN_COMPLETED'");
    assert_eq!(attempts.trim(), "1");
}

/// Whoever is called knows a request by the name of the node that sends it.
#[test]
fn a_server_that_replaces_another_is_called_as_it_was() {
    let (dir, postgres) = (tempfile::tempdir().unwrap(), PostgresServer::shared());
    let url = postgres.url(&postgres.database());
    let name = |data: &str| {
        let mut served = serve(dir.path(), &url, data);
        let name = until("it says what its node is called", || {
            served.log().split_once(", as node ")?.1.split_once('\n').map(|(name, _)| name.to_owned())
        });
        served.tell(Signal::KILL);
        served.ended();
        name
    };
    let (first, second) = (name("first"), name("second"));
    assert_eq!((first.len(), second), (32, first));
    let own = |data: &str| std::fs::read_to_string(dir.path().join(data).join("steadfast.instance")).unwrap();
    assert_ne!(own("first"), own("second"), "they are two instances");
}

#[test]
fn a_database_that_cannot_be_is_told_without_its_password() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = "postgresql://steadfast:hunter2@127.0.0.1:1/steadfast";
    let quiet =
        |called: &Called| assert!(!called.err.contains("hunter2") && !called.out.contains("hunter2"), "{} {}", called.out, called.err);
    let refused = steadfast(dir.path(), &["serve", "--postgres", nobody]).ends_with(1);
    quiet(&refused.says(&["127.0.0.1:1", "docs/errors/"]));
    let doctor = steadfast(dir.path(), &["doctor", "--postgres", nobody]).ends_with(1);
    quiet(&doctor.prints(&["store", "docs/operate/postgres.md"]));
    quiet(&steadfast(dir.path(), &["config", "--postgres", nobody]).ends_with(0));
    let both = steadfast(dir.path(), &["doctor", "--postgres", nobody, "--redis", "redis://127.0.0.1:1"]).ends_with(1);
    quiet(
        &both
            .prints(&["docs/operate/postgres.md", "redis://127.0.0.1:1", "a mirror only"])
            .says(&["one check has failed"]),
    );
    let mut wrong = command(dir.path(), &["serve"]);
    wrong.env("STEADFAST_POSTGRES", "mysql://root:hunter2@h/db");
    quiet(&Called::of(&wrong.output().unwrap()).ends_with(2).says(&["STEADFAST_POSTGRES", "postgresql://"]));
}

#[test]
fn the_doctor_looks_and_changes_nothing() {
    let (dir, postgres) = (tempfile::tempdir().unwrap(), PostgresServer::shared());
    let database = postgres.database();
    let url = postgres.url(&database);
    steadfast(dir.path(), &["doctor", "--postgres", &url]).prints(&["nothing there yet"]);
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'steadfast'";
    assert_eq!(postgres.psql(&database, schemas).trim(), "0");
    let _served = serve(dir.path(), &url, "data");
    steadfast(dir.path(), &["doctor", "--postgres", &url]).prints(&["schema version", "64 shards"]);
}

/// Redis shows what is in the database, and nothing depends on it.
#[test]
fn a_plan_is_mirrored_in_redis_and_goes_on_without_it() {
    let (dir, postgres, mut redis) = (tempfile::tempdir().unwrap(), PostgresServer::shared(), RedisServer::start());
    let database = postgres.database();
    let url = postgres.url(&database);
    planned::define(dir.path(), "ten", &planned::ten());
    let args = ["--listen", "127.0.0.1:0", "--postgres", &url, "--redis", &redis.url(), "--set", "redis.heartbeat_ttl=2s"];
    let served = Served::start(dir.path(), &[&args[..], &["--set", "redis.patience=10m", "--set", "locks.fallback=refuse"]].concat());
    let name = postgres
        .psql(&database, "SELECT value FROM steadfast.settings WHERE name = 'node'")
        .trim()
        .to_owned();
    let is_up = || (readiness(&served)["status"] == "up").then_some(());
    until("Redis is up to date", is_up);
    assert!(served.log().contains(&format!("a mirror only, as instance {name}")), "{}", served.log());

    let field = |redis: &RedisServer, key: &str, field: &str| redis.cli(&["HGET", &format!("executor:{key}"), field]);
    let is = |text: &str| Reply::Text(text.into());
    served.call(&["plan", "apply", "ten", "--tenant", "acme", "--id", "night", "--start"]).ends_with(0);
    until("stage 5 is under way", || (planned::log(dir.path(), "acme").len() == 5).then_some(()));
    until("Redis shows the task", || (field(&redis, "task:night/acme", "status") == is("RUNNING")).then_some(()));
    until("and the plan", || (field(&redis, "plan:night", "status") == is("RUNNING")).then_some(()));
    assert_eq!(field(&redis, "task:night/acme", "owner"), is(&name));
    let lock = || redis.cli(&["GET", "executor:lock:tenant:acme"]);
    until("and the lock", || (lock() == is(&format!("night:night/acme:{name}:1"))).then_some(()));
    steadfast(dir.path(), &["doctor", "--postgres", &url, "--redis", &redis.url()]).prints(&["64 shards", &name, "a mirror only"]);

    redis.kill();
    until("that Redis is away is seen", || (readiness(&served)["status"] == "degraded").then_some(()));
    let told = readiness(&served);
    assert!(told["detail"].as_str().unwrap().contains("nothing waits for that"), "{told}");
    assert!(served.get("/").contains("Only what it mirrors is behind"));
    planned::touch(dir.path(), "go");
    served.until_plan("night", "COMPLETED");
    served.call(&["plan", "apply", "ten", "--tenant", "acme", "--id", "later", "--start"]).ends_with(0);
    served.until_plan("later", "COMPLETED");

    redis.restart();
    until("Redis is back", is_up);
    for plan in ["night", "later"] {
        until("its end is there", || (field(&redis, &format!("plan:{plan}"), "status") == is("COMPLETED")).then_some(()));
        assert_eq!(field(&redis, &format!("task:{plan}/acme"), "status"), is("COMPLETED"));
    }
    assert_eq!(redis.cli(&["GET", "executor:lock:tenant:acme"]), Reply::Nil);
    assert_eq!(redis.cli(&["GET", "executor:fence:tenant:acme"]), is("2"));
}

/// The line of Redis in what `/readyz` says.
fn readiness(served: &Served) -> serde_json::Value {
    let ready: serde_json::Value = serde_json::from_str(&served.get("/readyz")).unwrap();
    let lines = ready["dependencies"].as_array().unwrap();
    lines.iter().find(|line| line["name"] == "redis").unwrap().clone()
}

/// What the page for operators has people ask the tables can be asked.
#[test]
fn the_queries_of_the_page_are_answered() {
    let (dir, postgres) = (tempfile::tempdir().unwrap(), PostgresServer::shared());
    let database = postgres.database();
    define(dir.path());
    let served = serve(dir.path(), &postgres.url(&database), "data");
    served
        .call(&["run", "start", "greet", "--id", "order-1", "--input", "{\"name\":\"n\"}"])
        .ends_with(0);
    served.until_status("order-1", "COMPLETED");
    let page = include_str!("../../../../docs/operate/postgres.md");
    let queries: Vec<_> = page.lines().filter(|line| line.starts_with("SELECT ")).collect();
    assert_eq!(queries.len(), 2, "{queries:?}");
    for (query, shown) in queries.iter().zip(["order-1", "RUN_COMPLETED"]) {
        let answer = postgres.try_psql(&database, query).unwrap_or_else(|error| panic!("{query}: {error}"));
        assert!(answer.contains(shown), "{query}: {answer}");
    }
}
