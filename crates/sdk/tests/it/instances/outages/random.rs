//! Outages at random points: whatever becomes of Redis, no stage is carried out twice, no task is lost, and what Redis says is true in the end.
//!
//! `STEADFAST_SEED` repeats a case (it is printed), `OUTAGES` sets how many there are.
//!
//! Subject: `crates/runtime/src/commons/mod.rs`.

use super::*;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use steadfast::{Policy, TaskStatus};
use steadfast_test_servers::Proxy;

/// How many outages there are if nothing is said.
const OUTAGES: u64 = 60;

/// How many instances, each with a Redis of its own, are disturbed at once.
const SIDE_BY_SIDE: u64 = 4;

/// A random sequence that can be had again.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    async fn pause(&mut self, from: u64, to: u64) {
        tokio::time::sleep(Duration::from_millis(from + self.next(to - from))).await;
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}")))
}

fn chance(test: &str) -> (Chance, u64) {
    let seed = number("STEADFAST_SEED").unwrap_or_else(|| RandomState::new().hash_one(()));
    println!("seed {seed}; again with STEADFAST_SEED={seed} cargo test -p steadfast --test it {test}");
    (Chance(seed), number("OUTAGES").unwrap_or(OUTAGES))
}

/// Something becomes of Redis, for a moment or for long enough to be known.
async fn outage(chance: &mut Chance, redis: &mut RedisServer, proxy: &Proxy) -> &'static str {
    let kind = chance.next(6);
    match kind {
        0 => {
            redis.pause();
            chance.pause(50, 1800).await;
            redis.go_on();
            "it was stopped"
        }
        1 => {
            redis.kill();
            chance.pause(50, 1800).await;
            redis.restart();
            "it crashed"
        }
        2 => {
            redis.kill_and_forget();
            chance.pause(0, 1500).await;
            redis.restart();
            "it came back empty"
        }
        3 => {
            redis.flush();
            "it was flushed"
        }
        4 => {
            proxy.cut();
            "connections were cut"
        }
        _ => {
            proxy.hold_answers();
            chance.pause(20, 700).await;
            proxy.cut();
            proxy.let_go();
            "answers were lost"
        }
    }
}

fn through(redis: &RedisServer, proxy: &Proxy) -> RedisSettings {
    RedisSettings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..quick(redis) }
}

/// Every stage takes a moment, and none is carried out again by itself.
fn scene() -> Scene {
    Scene::with(Duration::from_millis(30), Policy::constant(Duration::from_millis(100)).max_attempts(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn alone_no_stage_runs_twice_and_no_task_is_lost_whatever_becomes_of_redis() {
    let (mut chance, outages) = chance("alone_no_stage_runs_twice");
    let case = |_| one_alone(Chance(chance.next(u64::MAX)), outages / SIDE_BY_SIDE);
    futures_util::future::join_all((0..SIDE_BY_SIDE).map(case)).await;
}

async fn one_alone(mut chance: Chance, outages: u64) {
    let (mut redis, store, scene) = (lasting(), Memory::new(), scene());
    let proxy = Proxy::before(redis.port());
    let builder = Engine::on(store.clone()).instance("a").redis(through(&redis, &proxy));
    let engine = start(builder.plan(scene.plan("a"))).await;
    let (mut tenants, mut kinds) = (Vec::new(), BTreeMap::<_, u32>::new());
    for round in 0..outages {
        let names: Vec<_> = (0..3).map(|number| format!("t{round}-{number}")).collect();
        let plan = engine.create_plan("switch").id(format!("p{round}")).tenants(names.clone()).max_concurrency(2);
        plan.await.unwrap().start().await.unwrap();
        tenants.extend(names);
        chance.pause(0, 200).await;
        *kinds.entry(outage(&mut chance, &mut redis, &proxy).await).or_default() += 1;
        chance.pause(50, 300).await;
    }
    println!("{kinds:?}");
    back(&engine).await;
    for tenant in &tenants {
        task_is(&engine, tenant, TaskStatus::Completed).await;
        assert_eq!(scene.counts(tenant), [1; 4], "{tenant}");
    }
    mirror_is_true(&engine, &redis).await;
    let left = redis.keys().into_iter().filter(|key| key.contains("lock:tenant")).collect::<Vec<_>>();
    assert_eq!(left, Vec::<String>::new(), "no lock is left behind");
}

/// Has a person go on with every task of these that does not by itself.
async fn tended(engine: &Engine, tenants: &[String]) {
    for tenant in tenants {
        until(&format!("the task of {tenant} is done"), async || {
            match engine.task_status_by_tenant(tenant).await.map(|task| task.status) {
                Ok(TaskStatus::Completed) => return true,
                Ok(TaskStatus::Failed | TaskStatus::Interrupted) => {
                    let _it_is_tried_again = engine.retry_task_by_tenant(tenant, true).await;
                }
                Ok(_) | Err(_) => {}
            }
            false
        })
        .await;
    }
}

/// Creates a plan and starts it, as soon as that is not refused.
async fn insist(engine: &Engine, id: &str, tenants: &[String]) {
    until(&format!("plan {id} is started"), async || {
        let plan = engine.create_plan("switch").id(id).tenants(tenants.to_vec()).max_concurrency(2).await;
        match plan {
            Ok(plan) => plan.start().await.is_ok(),
            Err(_) => false,
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_are_never_at_work_for_one_tenant_whatever_becomes_of_redis() {
    let (mut chance, outages) = chance("two_instances_are_never_at_work");
    let (mut redis, scene) = (lasting(), scene());
    let proxy = Proxy::before(redis.port());
    let (store_a, store_b) = (Memory::new(), Memory::new());
    let of = |name: &str, store: &Memory| {
        let builder = Engine::on(store.clone()).instance(name);
        let builder = builder.redis_with(through(&redis, &proxy), |sharing| sharing.patience = PATIENCE);
        builder.plan(scene.plan(name))
    };
    let (a, b) = (start(of("a", &store_a)).await, start(of("b", &store_b)).await);
    until("they know of each other", async || a.sharing().unwrap().seen.is_some() && b.sharing().unwrap().seen.is_some()).await;
    let tenants: Vec<_> = (0..6).map(|number| format!("t{number}")).collect(); // the same for both
    let stop = std::sync::atomic::AtomicBool::new(false);
    let works = async |engine: &Engine, name: &str| {
        let mut round = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            round += 1;
            let own: Vec<_> = tenants.iter().skip(round % 3).step_by(2).cloned().collect();
            let plan = engine
                .create_plan("switch")
                .id(format!("{name}{round}"))
                .tenants(own.clone())
                .max_concurrency(2)
                .await;
            if let Ok(plan) = plan {
                let _it_may_be_refused = plan.start().await;
            }
            tokio::time::sleep(Duration::from_millis(150)).await;
            for tenant in own {
                let Ok(run) = engine.task_of(&tenant).await else { continue };
                let status = run.view().await.ok().and_then(|view| view.task).map(|task| task.status);
                if matches!(status, Some(TaskStatus::Failed | TaskStatus::Interrupted)) {
                    let _it_may_be_refused = run.retry().await;
                }
            }
        }
        round
    };
    let disturbs = async {
        for _ in 0..outages / 3 {
            chance.pause(200, 1000).await;
            outage(&mut chance, &mut redis, &proxy).await;
        }
        until("enough was done", async || scene.total() as u64 > outages).await; // however slow the machine is
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let (rounds_a, rounds_b, ()) = tokio::join!(works(&a, "a"), works(&b, "b"), disturbs);
    println!("{rounds_a} rounds of a, {rounds_b} of b, {} stages", scene.total());
    back(&a).await;
    back(&b).await;
    assert_eq!(scene.clashes(), Default::default(), "two were at work at once");
    for (engine, other) in [(&a, &b), (&b, &a)] {
        let own = vec![format!("only-{}", engine.sharing().unwrap().instance)];
        insist(engine, own[0].as_str(), &own).await;
        tended(engine, &own).await;
        assert_eq!(other.task_status_by_tenant(&own[0]).await.unwrap().status, TaskStatus::Completed);
    }
    all_end(&[&a, &b]).await;
    assert_eq!(scene.clashes(), Default::default(), "two were at work at once");
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}

/// Persons see to it that every task of these instances ends.
async fn all_end(engines: &[&Engine]) {
    until("all tasks end", async || {
        let mut open = 0;
        for engine in engines {
            let mut page = engine.list().limit(200).await.unwrap();
            loop {
                for row in &page.items {
                    let run = engine.run(row.run.as_str()).unwrap();
                    let Some(task) = run.view().await.unwrap().task else { continue };
                    match task.status {
                        TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::HandedOver => continue,
                        TaskStatus::Failed | TaskStatus::Interrupted => drop(run.retry().await),
                        TaskStatus::Pending => drop(engine.plan(task.options.plan.as_str()).unwrap().start().await),
                        _ => {}
                    }
                    open += 1;
                }
                let Some(next) = page.next.take() else { break };
                page = engine.list().limit(200).after(&next).await.unwrap();
            }
        }
        open == 0
    })
    .await;
}
