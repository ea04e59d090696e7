//! Servers that share a store: who has which shard, as JSON and on a page, and one of them drained and taken back.

use crate::plans::World;
use crate::support::{Got, Site, builder, config, until};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast_kernel::{EntityId, Failure, Timer, TimerName, Timestamp};
use steadfast_runtime::clock::{Clock, SystemClock};
use steadfast_runtime::{Builder, Callbacks, Carrier, Engine, Question};
use steadfast_server::{CallerSettings, Parts};
use steadfast_store::memory::{Memory, MemoryLeases};
use steadfast_store::{Batch, Member, Store, TimerChange};

const LEASE: Duration = Duration::from_secs(2);
const SHARDS: u32 = 8;

/// A store, those who share it, and the network between them.
pub(crate) struct Cluster {
    store: Memory,
    leases: MemoryLeases,
    network: Network,
}

/// Instances that can be reached, by id.
#[derive(Clone, Default)]
struct Network(Arc<Mutex<BTreeMap<String, Engine>>>);

impl Carrier for Network {
    fn carry(&self, to: &Member, question: Question) -> BoxFuture<'static, Result<Bytes, Failure>> {
        let there = self.0.lock().unwrap().get(&to.id).cloned();
        async move {
            let there = there.ok_or_else(|| Failure::transient("nobody is there"))?;
            Ok(there.answer(&question.bytes, false).await)
        }
        .boxed()
    }
}

impl Default for Cluster {
    fn default() -> Self {
        let store = Memory::of_shards(SHARDS);
        let leases = MemoryLeases::new(&store, LEASE, || SystemClock.now());
        Cluster { store, leases, network: Network::default() }
    }
}

impl Cluster {
    /// A server of that id.
    pub(crate) async fn start(&self, id: &str) -> Site {
        let (store, world) = (self.store.another(), World::default());
        let member =
            Member { id: id.into(), name: format!("machine <{id}>"), address: format!("http://{id}:7373"), version: "1.2.3".into() };
        let leases = Arc::new(self.leases.of_another(&store));
        let cluster = steadfast_runtime::Cluster { leases, member, carrier: Arc::new(self.network.clone()) };
        let plain = builder(store.clone(), Callbacks::default(), CallerSettings::default(), &world);
        let engine = Builder { cluster: Some(cluster), ..plain }.start().await.unwrap();
        self.network.0.lock().unwrap().insert(id.into(), engine.clone());
        Site::before(engine, store, world, config(), Parts::default()).await
    }

    /// Two of them, each with its share.
    pub(crate) async fn two(&self) -> (Site, Site) {
        let (a, b) = (self.start("a").await, self.start("b").await);
        until("each has its share", async || a.held().await == [("a".into(), 4), ("b".into(), 4)]).await;
        (a, b)
    }
}

impl Site {
    /// The line of its role in what `/readyz` says.
    async fn role(&self) -> Value {
        let ready = self.get("/readyz").await.json();
        let lines = ready["dependencies"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == "role").unwrap_or_else(|| panic!("{ready}")).clone()
    }

    async fn cluster(&self) -> Value {
        let got = self.get("/v1/cluster").await;
        assert_eq!(got.status, 200, "{}", got.text);
        got.json()
    }

    /// How many shards each instance has.
    async fn held(&self) -> Vec<(String, u64)> {
        let cluster = self.cluster().await;
        let instances = cluster["instances"].as_array().unwrap();
        instances
            .iter()
            .map(|one| (one["id"].as_str().unwrap().into(), one["shards"].as_u64().unwrap()))
            .collect()
    }

    /// What the form of the page sends.
    async fn sent(&self, form: &str) -> Got {
        let request = self.request(Method::POST, "/cluster").header("origin", self.url("")).header("accept", "text/html");
        self.send(request.header("content-type", "application/x-www-form-urlencoded").body(form.to_owned()))
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_shown_with_what_they_have() {
    let (a, b) = Cluster::default().two().await;
    let seen = a.cluster().await;
    assert_eq!(
        (&seen["instance"], &seen["leaseSeconds"], &seen["shards"], &seen["unheld"]),
        (&json!("a"), &json!(2), &json!(8), &json!(0))
    );
    let [first, second] = &seen["instances"].as_array().unwrap()[..] else { panic!("{seen}") };
    for (field, is) in
        [("id", json!("a")), ("name", json!("machine <a>")), ("address", json!("http://a:7373")), ("version", json!("1.2.3"))]
    {
        assert_eq!(first[field], is);
    }
    assert_eq!((&first["draining"], &first["lives"], &first["here"]), (&json!(false), &json!(true), &json!(true)));
    assert!(first["startedAt"].as_str().unwrap().ends_with('Z') && first["silentSeconds"].as_u64() < Some(2), "{first}");
    assert_eq!((&second["id"], &second["here"], &b.cluster().await["instance"]), (&json!("b"), &json!(false), &json!("b")));
    let leases = seen["leases"].as_array().unwrap();
    assert_eq!(leases.iter().map(|lease| lease["shard"].as_u64().unwrap()).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert!(leases.iter().all(|lease| lease["over"] == false && lease["epoch"].as_u64() > Some(0)), "{seen}");
    assert_eq!(leases.iter().filter(|lease| lease["instance"] == "b").count(), 4);
    assert_eq!(a.get("/v1/cluster?x=1").await.problem(400), "SF0501");
}

/// A timer that nobody has acted on.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_late_is_shown_by_shard_and_by_instance() {
    let (a, _b) = Cluster::default().two().await;
    let seen = a.cluster().await;
    assert!(seen["instances"].as_array().unwrap().iter().all(|one| one["lagMs"] == 0 && one["messages"] == 0), "{seen}");
    let late = seen["leases"].as_array().unwrap().iter().find(|lease| lease["instance"] == "b").unwrap()["shard"]
        .as_u64()
        .unwrap();
    let due = Timestamp::from_micros(SystemClock.now().as_micros() - 90_000_000);
    let timer = Timer { entity: EntityId::from_stored("r").unwrap(), name: TimerName::Deadline, due, revision: 1 };
    let shard = u32::try_from(late).unwrap();
    a.store
        .commit(Batch { timers: vec![TimerChange::Arm { shard, timer }], ..Batch::default() })
        .await
        .unwrap();
    let seen = a.cluster().await;
    let lags: Vec<u64> = seen["leases"].as_array().unwrap().iter().map(|lease| lease["lagMs"].as_u64().unwrap()).collect();
    assert!(lags.iter().zip(0..).all(|(lag, shard)| (90_000..100_000).contains(lag) == (shard == late)), "{lags:?}");
    assert_eq!((&seen["instances"][0]["lagMs"], seen["instances"][1]["lagMs"].as_u64() >= Some(90_000)), (&json!(0), true));
    let page = a.get("/cluster").await.text;
    assert!(page.contains("<td class=\"number\" data-name=\"Lag\">1 min 3") && page.contains("It is 1 min 3"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_has_a_line_for_the_role_of_the_instance() {
    let line = |detail: &str| json!({"name": "role", "ready": true, "status": "up", "detail": detail});
    assert_eq!(Site::new().await.role().await, line("leader"), "it has its store for itself");
    let (a, b) = Cluster::default().two().await;
    for site in [&a, &b] {
        until("it knows of both", async || site.role().await == line("leader of 4 of 8 shards; instances that live: 2")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_drains_and_is_taken_back() {
    let (a, b) = Cluster::default().two().await;
    for _ in 0..2 {
        let request = a.request(Method::POST, "/v1/cluster/instances/b/drain").header("idempotency-key", "k");
        let drained = a.send(request.json(&json!({"reason": "it gets a new disk"}))).await;
        assert_eq!(drained.status, 200, "{}", drained.text);
        let instance = drained.json();
        assert_eq!((&instance["id"], &instance["draining"], &instance["lives"]), (&json!("b"), &json!(true), &json!(true)));
    }
    until("a has all", async || b.held().await == [("a".into(), 8), ("b".into(), 0)]).await;
    assert_eq!(a.cluster().await["unheld"], 0);

    let back = b.post("/v1/cluster/instances/b/undrain", json!({})).await;
    assert_eq!((back.status.as_u16(), &back.json()["draining"], &back.json()["here"]), (200, &json!(false), &json!(true)), "{}", back.text);
    until("b has its share again", async || a.held().await == [("a".into(), 4), ("b".into(), 4)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_instances_that_are_there_are_drained() {
    let (a, _b) = Cluster::default().two().await;
    for verb in ["drain", "undrain"] {
        for id in ["gone", "B", "b%00", "b%2Fx", &"x".repeat(5000)] {
            let refused = a.post(&format!("/v1/cluster/instances/{id}/{verb}"), json!({})).await;
            assert_eq!(refused.problem(404), "SF0143", "{id}");
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains("there are a, b;") && detail.len() < 300, "{detail}");
        }
        let wrong = a.post(&format!("/v1/cluster/instances/b/{verb}"), json!({"why": "x"})).await;
        assert_eq!(wrong.problem(400), "SF0501");
    }
    assert!(a.cluster().await["instances"].as_array().unwrap().iter().all(|one| one["draining"] == false));
}

#[tokio::test]
async fn a_server_that_has_its_store_for_itself_says_so() {
    let site = Site::new().await;
    let refused = [
        site.get("/v1/cluster").await,
        site.post("/v1/cluster/instances/a/drain", json!({})).await,
        site.post("/v1/cluster/instances/a/undrain", json!({})).await,
    ];
    for refused in refused {
        assert_eq!(refused.problem(404), "SF0514");
        assert!(refused.text.contains("start it with --postgres"), "{}", refused.text);
    }
    assert!(!site.get("/").await.text.contains("href=\"/cluster\""));
    let page = site.send(site.request(Method::GET, "/cluster").header("accept", "text/html")).await;
    assert!(page.status == 404 && page.text.contains("start it with --postgres"), "{}", page.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_lost_is_silent_and_the_others_have_its_shards() {
    let (a, b) = Cluster::default().two().await;
    b.store.crash();
    until("a has all", async || a.held().await == [("a".into(), 8), ("b".into(), 0)]).await;
    let cluster = a.cluster().await;
    assert_eq!((&cluster["instances"][1]["lives"], &cluster["unheld"]), (&json!(false), &json!(0)));
    let page = a.get("/cluster").await.text;
    assert!(page.contains("data-state=\"SILENT\"") && page.contains("1 instance has one store"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_the_cluster_and_drains() {
    let (a, b) = Cluster::default().two().await;
    let contains = |page: &str, parts: &[&str]| parts.iter().for_each(|part| assert!(page.contains(part), "{part} is not in {page}"));
    contains(&a.get("/").await.text, &["<a href=\"/cluster\">Cluster</a>"]);
    let page = a.get("/cluster").await.text;
    contains(
        &page,
        &["aria-current=\"page\">Cluster</a>", "2 instances share one store", "machine &lt;b&gt;", "http://b:7373", "this one"],
    );
    contains(&page, &["steadfast cluster drain b<", "data-state=\"LIVES\"", "data-holder=\"b\"", " has 4 of 8"]);
    assert!(!page.contains("no holder") && !page.contains("name=\"sure\""), "{page}");

    let drained = a.sent("verb=drain&instance=b&reason=a+new+disk").await;
    assert_eq!(drained.status, 200, "the page, after what was done: {}", drained.text);
    contains(&drained.text, &["data-state=\"DRAINING\"", "Take back", "steadfast cluster drain b --undo"]);
    until("a has all", async || a.held().await == [("a".into(), 8), ("b".into(), 0)]).await;
    // Nobody would take what a has, so that it is not drained by a click alone.
    contains(&b.get("/cluster").await.text, &["name=\"sure\"", "no other instance takes its shards"]);
    let refused = b.sent("verb=drain&instance=a").await;
    assert!(refused.status == 400 && refused.text.contains("tick the box"), "{}", refused.text);
    assert_eq!(b.sent("verb=drain&instance=a&sure=yes").await.status, 200);
    until("nobody has any", async || a.held().await == [("a".into(), 0), ("b".into(), 0)]).await;
    contains(&a.get("/cluster").await.text, &["8 shards have no holder", "no instance takes shards now", "8 without a holder"]);
    for id in ["a", "b"] {
        assert_eq!(a.sent(&format!("verb=undrain&instance={id}")).await.status, 200);
    }
    until("each has its share", async || a.held().await == [("a".into(), 4), ("b".into(), 4)]).await;
    let gone = a.sent("verb=drain&instance=gone&sure=yes").await;
    assert!(gone.status == 404 && gone.text.contains("SF0143"), "{}", gone.text);
    let elsewhere = a.request(Method::POST, "/cluster").header("origin", "http://evil.example");
    let elsewhere = elsewhere.header("content-type", "application/x-www-form-urlencoded").body("verb=drain&instance=b");
    assert_eq!(a.send(elsewhere).await.status, 403);
}
