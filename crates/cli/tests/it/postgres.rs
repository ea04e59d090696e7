//! A server whose store is a real PostgreSQL: nothing of it is in the data folder.

use crate::served::{Served, define};
use crate::steadfast::{Called, command, steadfast, until};
use rustix::process::Signal;
use std::path::Path;
use steadfast_test_servers::PostgresServer;

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
    let both = steadfast(dir.path(), &["serve", "--postgres", nobody, "--redis", "redis://127.0.0.1:1"]);
    quiet(&both.ends_with(2).says(&["redis.url", "not by both"]));
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
