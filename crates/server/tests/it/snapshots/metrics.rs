//! Compares names, kinds, labels, buckets and help of all metrics with the committed snapshot.
//!
//! A recorder collects every metric that real servers register: one that shares Redis, one that
//! shares its store, one with a node and a reader of the feed.

use crate::cluster::Cluster;
use crate::feed::Reader;
use crate::instances::two;
use crate::support::{Site, config, until};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;
use steadfast_messaging::Node;
use steadfast_runtime::metrics::{ALL, Metric};
use steadfast_server::Parts;
use steadfast_test_servers::RedisServer;
use steadfast_test_snapshots::assert_snapshot;

/// Kind and label sets of each registered metric, by name.
#[derive(Default)]
struct Registered(Mutex<BTreeMap<String, (&'static str, BTreeSet<String>)>>);

impl Registered {
    fn add(&self, key: &Key, kind: &'static str) {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={:?}", label.key(), label.value())).collect();
        let mut metrics = self.0.lock().unwrap();
        let (known, sets) = metrics.entry(key.name().into()).or_insert((kind, BTreeSet::new()));
        assert_eq!(*known, kind, "{}", key.name());
        sets.insert(labels.join(", "));
    }

    fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains_key(name)
    }
}

impl Recorder for Registered {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.add(key, "counter");
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.add(key, "gauge");
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.add(key, "histogram");
        Histogram::noop()
    }
}

#[tokio::test]
async fn metrics_match_snapshot() {
    let registered = Registered::default();
    let recording = metrics::set_default_local_recorder(&registered);
    let redis = RedisServer::start();
    let (_a, _b, _world) = two(&redis).await;
    let _shared = Cluster::default().two().await;
    let site = measured().await;
    let _reader = Reader::open(&site, "").await;
    until("the reader has received an event", async || {
        site.run(json!({"workflow": "echo"})).await;
        registered.has("steadfast_feed_lag_seconds")
    })
    .await;
    assert_eq!(site.get("/metrics").await.status, 200);
    drop(recording);
    assert_snapshot("metrics.txt", &render(&registered.0.into_inner().unwrap()));
}

/// A server that measures itself and takes messages.
async fn measured() -> Site {
    let node = Node::builder().name("server").build().unwrap();
    let metrics = PrometheusBuilder::new().build_recorder().handle();
    Site::with(config(), Parts { metrics: Some(metrics), node: Some(node), ..Parts::default() }).await
}

fn render(registered: &BTreeMap<String, (&'static str, BTreeSet<String>)>) -> String {
    let described: BTreeMap<&str, &Metric> = ALL.iter().map(|metric| (metric.name, metric)).collect();
    let names: BTreeSet<&str> = described.keys().copied().chain(registered.keys().map(String::as_str)).collect();
    let mut text = String::new();
    for name in names {
        let metric = described.get(name).unwrap_or_else(|| panic!("{name} has no description"));
        let (kind, sets) = registered.get(name).unwrap_or_else(|| panic!("no server registered {name}"));
        assert_eq!(*kind, metric.kind(), "{name}");
        block(&mut text, metric, sets);
    }
    text
}

fn block(text: &mut String, metric: &Metric, sets: &BTreeSet<String>) {
    let Metric { name, help, unit, buckets } = metric;
    writeln!(text, "{name}\n  kind: {}\n  unit: {}\n  help: {}", metric.kind(), unit.as_str(), help.trim()).unwrap();
    for labels in sets.iter().filter(|labels| !labels.is_empty()) {
        writeln!(text, "  labels: {labels}").unwrap();
    }
    if !buckets.is_empty() {
        writeln!(text, "  buckets: {}", buckets.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")).unwrap();
    }
}
