//! Workers: who is connected, as JSON and on a page, and why a run waits for one.

use crate::support::{Site, until};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use steadfast_kernel::{Failure, Payload, WorkflowName};
use steadfast_runtime::host::Context;
use steadfast_runtime::{Code, Duplex, Registered, Registry, Worker};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Takes its time: nobody ever lets it end.
struct Busy;

impl Code for Busy {
    fn begin(&self, context: Context, _: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        let attempts = Box::new(|| std::future::pending().boxed());
        async move { context.step("work", attempts).map_err(|error| error.failure())?.await }.boxed()
    }
}

/// A worker of the site; it drains when it is told.
struct Hired {
    drain: oneshot::Sender<()>,
    _line: [JoinHandle<()>; 2],
}

async fn hire(site: &Site, name: &str, workflow: &str) -> Hired {
    let registry = Registry::default();
    registry.insert(WorkflowName::new(workflow).unwrap(), Registered::new(Arc::new(Busy)));
    let worker = Worker { sessions_max: 1, ..Worker::new(name, registry) };
    let (server, own) = Duplex::pair(8);
    let (attached, (drain, drained)) = (site.engine.attach(worker.hello(), server), oneshot::channel());
    let serving = async move { drop(worker.serve(own, async move { drop(drained.await) }).await) };
    let line = [tokio::spawn(async move { drop(attached.await) }), tokio::spawn(serving)];
    until("it is there", async || site.engine.workers().iter().any(|worker| worker.name == name)).await;
    Hired { drain, _line: line }
}

#[tokio::test]
async fn workers_are_listed_with_what_they_bring_and_host() {
    let site = Site::new().await;
    assert_eq!(site.get("/v1/workers").await.json(), json!({"items": []}));
    let empty = site.get("/workers").await.text;
    assert!(empty.contains("No workers") && empty.contains("cargo run --example worker"), "{empty}");

    let second = hire(&site, "w2 <b>", "team/pack").await;
    let _first = hire(&site, "w1", "load").await;
    let start = site.post("/v1/runs", json!({"workflow": "team/pack", "input": null, "id": "p-1"})).await;
    assert_eq!(start.status, 201, "{}", start.text);
    until("it is hosted", async || site.engine.workers().iter().any(|worker| worker.sessions == 1)).await;
    let list = site.get("/v1/workers").await.json();
    let [one, two] = &list["items"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!((&one["name"], &two["name"]), (&json!("w1"), &json!("w2 <b>")), "in the order of their names");
    assert_eq!((&two["runs"], &two["runsMax"], &two["draining"]), (&json!(1), &json!(1), &json!(false)));
    assert_eq!((&one["runs"], &two["workflows"]), (&json!(0), &json!(["team/pack"])));
    assert!(two["since"].as_str() <= two["heardAt"].as_str() && two["since"].is_string());

    second.drain.send(()).unwrap();
    until("it drains", async || site.engine.workers().iter().any(|worker| worker.draining)).await;
    let page = site.get("/workers").await.text;
    for part in
        ["<code>w1</code>", "<code>w2 &lt;b&gt;</code> <span class=\"tag\">draining</span>", "1 of 1", "href=\"/?workflow=team%2Fpack\""]
    {
        assert!(page.contains(part), "there is no {part:?} in {page}");
    }
    let workflows = site.get("/v1/workflows").await.json();
    let brought = workflows["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|workflow| workflow["name"] == "team/pack")
        .unwrap();
    assert_eq!((&brought["source"], &brought["recovery"]), (&json!("worker"), &json!("automatic")));
}

#[tokio::test]
async fn the_page_of_a_run_that_nobody_hosts_says_what_to_do() {
    let site = Site::new().await;
    let _only = hire(&site, "w1", "pack").await;
    for id in ["p-1", "p-2"] {
        assert_eq!(site.post("/v1/runs", json!({"workflow": "pack", "input": null, "id": id})).await.status, 201);
    }
    until("the second finds no room", async || site.get("/v1/runs/p-2").await.json()["wait"]["reason"] == "NO_WORKER").await;
    let page = site.get("/runs/p-2").await.text;
    assert!(
        page.contains("1 worker here has the code of <code>pack</code>, and no room for it. Start another <a href=\"/workers\">worker</a>"),
        "{page}"
    );
}
