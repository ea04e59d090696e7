//! Two instances race for tenants: a lock has one holder, whoever asks, and its numbers rise.
//!
//! Subject: `crates/runtime/src/commons/locks.rs`.

use super::{instance, mirror_is_true, start, until};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use steadfast::memory::Memory;
use steadfast::{Conflict, Engine, Failure, Plan, PlanHandle, Task, TaskStatus};
use steadfast_test_servers::RedisServer;
use tokio::sync::watch;

const TENANTS: usize = 250;
const ROUNDS: usize = 4;

/// Something outside of all engines that sees who is at a tenant.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<BTreeMap<String, Seen>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    inside: usize,
    most: usize,
    times: usize,
}

impl Outside {
    fn plan(&self, conflict: Conflict, round: &watch::Sender<usize>) -> Plan {
        let (outside, round) = (self.clone(), round.clone());
        Plan::new("race").conflict(conflict).max_concurrency(1000).stage("go", move |task: Task| {
            let (outside, mut round) = (outside.clone(), round.subscribe());
            async move {
                outside.change(task.tenant(), |seen| {
                    (seen.inside, seen.times) = (seen.inside + 1, seen.times + 1);
                    seen.most = seen.most.max(seen.inside);
                });
                let is_over = |over: &usize| task.plan().ends_with(&format!("-{over}"));
                round.wait_for(is_over).await.map_err(Failure::permanent)?;
                outside.change(task.tenant(), |seen| seen.inside -= 1);
                Ok::<_, Failure>(())
            }
        })
    }

    fn change(&self, tenant: &str, change: impl FnOnce(&mut Seen)) {
        change(self.0.lock().unwrap().entry(tenant.into()).or_default());
    }

    fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().values().copied().collect()
    }
}

fn tenants() -> Vec<String> {
    (0..TENANTS).map(|tenant| format!("t{tenant}")).collect()
}

async fn both(redis: &RedisServer, outside: &Outside, conflict: Conflict, round: &watch::Sender<usize>) -> (Engine, Engine) {
    let a = start(instance(redis, "a", &Memory::new()).plan(outside.plan(conflict, round))).await;
    let b = start(instance(redis, "b", &Memory::new()).plan(outside.plan(conflict, round))).await;
    (a, b)
}

async fn create(engine: &Engine, id: String) -> PlanHandle {
    engine.create_plan("race").id(id).tenants(tenants()).await.unwrap()
}

async fn tasks(plan: &PlanHandle, status: TaskStatus) -> u64 {
    plan.info().await.unwrap().progress.get(&status).copied().unwrap_or_default()
}

/// The numbers of all locks, which somebody has.
fn fences(redis: &RedisServer) -> Vec<u64> {
    let keys: Vec<_> = tenants().into_iter().map(|tenant| format!("executor:lock:tenant:{tenant}")).collect();
    let command: Vec<_> = ["MGET"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let holders = redis.cli(&command).texts();
    holders.iter().map(|holder| holder.rsplit(':').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_race_for_a_tenant_one_wins_each_of_a_thousand_times() {
    let (redis, outside, round) = (RedisServer::start(), Outside::default(), watch::channel(usize::MAX).0);
    let (a, b) = both(&redis, &outside, Conflict::Skip, &round).await;
    let (mut before, mut won) = (vec![0; TENANTS], [0, 0]);
    for number in 0..ROUNDS {
        let (of_a, of_b) = tokio::join!(create(&a, format!("a-{number}")), create(&b, format!("b-{number}")));
        let (begun_a, begun_b) = tokio::join!(of_a.start(), of_b.start());
        begun_a.and(begun_b).unwrap();
        until("every race is decided", async || {
            let (a, b) = tokio::join!(tasks(&of_a, TaskStatus::Cancelled), tasks(&of_b, TaskStatus::Cancelled));
            a + b == TENANTS as u64 && outside.seen().iter().filter(|seen| seen.inside == 1).count() == TENANTS
        })
        .await;
        let after = fences(&redis);
        assert!(before.iter().zip(&after).all(|(before, after)| before < after), "a number did not rise: {before:?} {after:?}");
        before = after;
        round.send_replace(number);
        let (a, b) = (of_a.ended().await.unwrap(), of_b.ended().await.unwrap());
        for (won, plan) in won.iter_mut().zip([&a, &b]) {
            *won += plan.progress.get(&TaskStatus::Completed).copied().unwrap_or_default();
        }
        until("all locks are free", async || redis.keys().iter().all(|key| !key.contains("lock:tenant"))).await;
    }
    assert_eq!(won.iter().sum::<u64>(), (ROUNDS * TENANTS) as u64);
    assert!(outside.seen().iter().all(|seen| (seen.most, seen.times) == (1, ROUNDS)), "{:?}", outside.seen());
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_tenant_comes_after_the_other_and_never_beside_it() {
    let (redis, outside, round) = (RedisServer::start(), Outside::default(), watch::channel(usize::MAX).0);
    let (a, b) = both(&redis, &outside, Conflict::Refuse, &round).await;
    let (of_a, of_b) = tokio::join!(create(&a, "a-7".into()), create(&b, "b-7".into()));
    let (begun_a, begun_b) = tokio::join!(of_a.start(), of_b.start());
    begun_a.and(begun_b).unwrap();
    round.send_replace(7);
    let (a_ended, b_ended) = tokio::join!(of_a.ended(), of_b.ended());
    for plan in [a_ended.unwrap(), b_ended.unwrap()] {
        assert_eq!(plan.progress.get(&TaskStatus::Completed), Some(&(TENANTS as u64)));
    }
    assert!(outside.seen().iter().all(|seen| (seen.most, seen.times) == (1, 2)), "{:?}", outside.seen());
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}
