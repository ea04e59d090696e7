//! A connection that is made anew is no outage.
//!
//! Subject: `crates/runtime/src/commons/worker/away.rs`.

use super::*;
use steadfast::TaskStatus;
use steadfast_test_servers::Proxy;

#[tokio::test(flavor = "multi_thread")]
async fn interruptions_of_less_than_a_second_change_nothing_and_alert_nobody() {
    let (redis, store, scene) = (RedisServer::start(), Memory::new(), Scene::new());
    let (proxy, other) = (Proxy::before(redis.port()), Memory::new());
    let through = RedisSettings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..quick(&redis) };
    let builder = Engine::on(store.clone()).instance("a").redis_with(through, |sharing| sharing.patience = PATIENCE);
    let engine = start(builder.plan(scene.plan("a"))).await;
    let b = start(instance(&redis, "b", &other, &scene)).await; // so that an outage would stop everything
    until("they know of each other", async || engine.sharing().unwrap().seen.is_some()).await;
    let alerts = Alerts::of(&engine).await;
    for round in 0..6 {
        let name = format!("p{round}");
        let cuts = async {
            for _ in 0..3 {
                proxy.cut();
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            if round % 2 == 0 {
                redis.pause();
                tokio::time::sleep(Duration::from_millis(300)).await;
                redis.go_on();
            }
        };
        let works = async {
            let plan = engine.create_plan("switch").id(&name).tenants([name.as_str()]).await.unwrap();
            plan.start().await.unwrap();
            task_is(&engine, &name, TaskStatus::Completed).await;
        };
        tokio::join!(cuts, works);
        assert_eq!(scene.counts(&name), [1, 1, 1, 1]);
    }
    back(&engine).await;
    assert_eq!(alerts.lines(), Vec::<String>::new());
    mirror_is_true(&engine, &redis).await;
    drop(b);
}
