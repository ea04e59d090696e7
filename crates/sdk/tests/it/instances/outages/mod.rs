//! Redis is away, or has lost what it knew, at every point of a task's life.

mod alone;
mod blips;
mod lost;
mod measured;
mod mirror_only;
mod random;
mod reconciled;
mod scene;
mod seen;
mod truth;

use super::{settings, start, task_is, until};
use scene::Scene;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, EngineBuilder, Fallback, Follow, Position, RedisSettings, SharingState};
use steadfast_test_servers::{RedisOptions, RedisServer};
use truth::mirror_is_true;

/// How long a stage waits for Redis before it has failed.
const PATIENCE: Duration = Duration::from_secs(1);

/// A Redis that keeps what it is told.
fn lasting() -> RedisServer {
    RedisServer::start_with(RedisOptions { append_only: true, ..RedisOptions::default() })
}

/// A Redis that does not answer is found out soon.
fn quick(redis: &RedisServer) -> RedisSettings {
    RedisSettings { connect_timeout: Duration::from_millis(500), ..settings(redis) }
}

/// An instance of that name with the stages of the scene, and its store.
fn instance(redis: &RedisServer, name: &str, store: &Memory, scene: &Scene) -> EngineBuilder {
    falling_back(redis, name, store, scene, Fallback::Auto)
}

fn falling_back(redis: &RedisServer, name: &str, store: &Memory, scene: &Scene, fallback: Fallback) -> EngineBuilder {
    Engine::on(store.clone())
        .instance(name)
        .redis_with(quick(redis), |sharing| (sharing.patience, sharing.fallback) = (PATIENCE, fallback))
        .plan(scene.plan(name))
}

/// Waits until an instance knows that Redis is away, and that things follow from it; why nothing begins, if so.
async fn away(engine: &Engine) -> Option<String> {
    let now = || steadfast::Clock::now(&steadfast::SystemClock);
    until("Redis is away", async || match engine.sharing().unwrap().state {
        SharingState::Away { since, .. } => now().saturating_since(since) > Duration::from_millis(1500),
        _ => false,
    })
    .await;
    match engine.sharing().unwrap().state {
        SharingState::Away { why, refuses, .. } => {
            assert!(why.contains("Redis at 127.0.0.1"), "{why}");
            refuses
        }
        other => panic!("{other:?}"),
    }
}

/// Waits until Redis is back, and knows all.
async fn back(engine: &Engine) {
    until("Redis is back", async || engine.sharing().unwrap().state == SharingState::Up).await;
    engine.shared().await;
}

/// The alerts of all plans from now on: `PLAN DEGRADED`.
#[derive(Clone, Default)]
struct Alerts(Arc<Mutex<Vec<(String, String)>>>);

impl Alerts {
    async fn of(engine: &Engine) -> Self {
        let (alerts, mut feed) = (Alerts::default(), engine.feed(Follow { after: Some(Position::default()), entity: None }).await.unwrap());
        let told = alerts.clone();
        tokio::spawn(async move {
            while let Ok(fed) = feed.next().await {
                for fed in fed.iter().filter(|fed| ["DEGRADED", "RESTORED"].contains(&fed.entry.event.kind())) {
                    let line = format!("{} {}", fed.entity.to_string().trim_start_matches("plan:"), fed.entry.event.kind());
                    told.0.lock().unwrap().push((line, format!("{:?}", fed.entry.event)));
                }
            }
        });
        alerts
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.0.lock().unwrap().iter().map(|(line, _)| line.clone()).collect();
        lines.sort();
        lines
    }

    /// Waits until those plans were told of it, and says what the first was told.
    async fn are(&self, what: &str, plans: &[&str]) -> String {
        let mut expected: Vec<_> = plans.iter().map(|plan| format!("{plan} {what}")).collect();
        expected.sort();
        let told = || self.lines().into_iter().filter(|line| line.ends_with(what)).collect::<Vec<_>>();
        until(&format!("{expected:?}"), async || told().len() >= expected.len()).await;
        assert_eq!(told(), expected);
        let alerts = self.0.lock().unwrap();
        alerts
            .iter()
            .find(|(line, _)| line.ends_with(what))
            .map(|(_, event)| event.clone())
            .unwrap_or_default()
    }
}
