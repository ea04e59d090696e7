//! What is measured of an outage.
//!
//! Subject: `crates/runtime/src/commons/worker/away.rs`.

use super::*;
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use steadfast::TaskStatus;

/// Keeps the last value of each.
#[derive(Clone, Default)]
struct Values(Arc<Mutex<BTreeMap<String, f64>>>);

impl Values {
    fn of(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

struct Value(Values, String);

impl Value {
    fn change(&self, by: impl FnOnce(f64) -> f64) {
        let mut values = self.0.0.lock().unwrap();
        let value = values.entry(self.1.clone()).or_default();
        *value = by(*value);
    }
}

impl CounterFn for Value {
    fn increment(&self, by: u64) {
        self.change(|before| before + by as f64);
    }
    fn absolute(&self, value: u64) {
        self.change(|_| value as f64);
    }
}

impl GaugeFn for Value {
    fn increment(&self, by: f64) {
        self.change(|before| before + by);
    }
    fn decrement(&self, by: f64) {
        self.change(|before| before - by);
    }
    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl Recorder for Values {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Value(self.clone(), key.name().into())))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Value(self.clone(), key.name().into())))
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test] // on this thread alone, where the recorder is
async fn an_outage_shows_in_what_is_measured() {
    let values = Values::default();
    let _while_this_lives = metrics::set_default_local_recorder(&values);
    let (mut redis, scene) = (lasting(), Scene::new());
    let engine = start(instance(&redis, "a", &Memory::new(), &scene)).await;
    assert_eq!((values.of("steadfast_redis_up"), values.of("steadfast_redis_failures_total")), (1.0, 0.0));
    redis.kill();
    away(&engine).await;
    engine.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    task_is(&engine, "acme", TaskStatus::Completed).await;
    until("it is behind", async || {
        values.of("steadfast_redis_mirror_pending") == 2.0 && values.of("steadfast_redis_mirror_lag_seconds") > 0.0
    })
    .await;
    assert_eq!(values.of("steadfast_redis_up"), 0.0);
    assert!(values.of("steadfast_redis_failures_total") >= 3.0);
    redis.restart();
    back(&engine).await;
    until("it has caught up", async || {
        values.of("steadfast_redis_mirror_pending") == 0.0 && values.of("steadfast_redis_mirror_lag_seconds") == 0.0
    })
    .await;
    assert_eq!((values.of("steadfast_redis_up"), values.of("steadfast_redis_lock_conflicts_total")), (1.0, 0.0));

    scene.script("mine/s2", super::scene::Does::Holds);
    engine.create_plan("switch").id("day").tenants(["mine"]).await.unwrap().start().await.unwrap();
    until("it is in a stage", async || scene.times("mine/s2") == 1).await;
    redis.cli(&["SET", "executor:lock:tenant:mine", "other:other/mine:b:99", "PX", "600000"]);
    task_is(&engine, "mine", TaskStatus::Interrupted).await;
    assert_eq!(values.of("steadfast_redis_lock_conflicts_total"), 1.0);
}
