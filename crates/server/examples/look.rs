//! A server on `127.0.0.1:7374` (or the address given) with runs in every status, to look at the console by hand. It keeps nothing.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for those who work on the console")]

#[path = "../tests/it/pages/flows.rs"]
mod flows;

use flows::World;
use std::net::SocketAddr;
use std::time::Duration;
use steadfast_kernel::run::Verb;
use steadfast_kernel::{KeyName, Origin, Payload, RunId, Target, TenantId, WorkflowName};
use steadfast_runtime::clock::{Clock, SystemClock};
use steadfast_runtime::{CreatePlan, Engine, Put, Start};
use steadfast_server::{Config, Parts, Server};
use steadfast_store::memory::Memory;

#[tokio::main]
async fn main() {
    let listen: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:7374").parse().unwrap();
    let (store, world) = (Memory::new(), World::default());
    let engine = flows::engine(store.clone(), &world).await;
    start(&engine, "slow", "nightly/2026-11-15", "acme", "null").await;
    wait_for(&engine, "nightly/2026-11-15", 2).await;
    engine.abort(); // its process dies: it is interrupted when the next one comes
    let engine = flows::engine(store, &world).await;
    for (workflow, id, tenant, input) in [
        ("checkout", "order-1001", "acme", r#"{"order":1001,"items":["tea","cups"],"note":"<b>urgent</b>"}"#),
        ("declined", "order-1002", "globex", r#"{"order":1002}"#),
        ("sick", "purchase-77", "acme", "{}"),
        ("approve", "release/2026.11", "globex", r#"{"version":"2026.11"}"#),
        ("nap", "survey-9", "initech", "null"),
        ("family", "family-3", "initech", "{}"),
        ("slow", "copy-4", "acme", "null"),
        ("hold", "paused-5", "acme", "null"),
        ("hold", "called-off-6", "globex", "null"),
        ("team/poison", "mail-8812", "initech", r#"{"mail":8812}"#),
        ("checkout", "order-1003", "globex", r#"{"order":1003}"#),
    ] {
        start(&engine, workflow, id, tenant, input).await;
    }
    let because = |why: &str| Origin { by: Some("ada".into()), why: Some(why.into()), command: None };
    engine.pause(&id("paused-5"), because("the gateway is being moved")).await.unwrap();
    engine.cancel(&id("called-off-6"), because("the customer changed their mind")).await.unwrap();
    let config = Config { listen, ..Config::default() };
    let server = Server::bind(config, engine.clone(), Parts::default()).await.unwrap();
    keys(&engine, server.addr()).await;
    plans(&engine).await;
    println!("http://{}/", server.addr());
    server.serve(std::future::pending()).await;
}

/// Plans of which tasks stand everywhere.
async fn plans(engine: &Engine) {
    let by = |why: &str| Origin { by: Some("ada".into()), why: Some(why.into()), command: None };
    for (id, tenants, at_once) in [
        ("switch-1", (1..=4).map(|n| format!("ok-{n}")).collect(), 5),
        ("switch-many", (1..=1000).map(|n| format!("{}-{n:04}", ["ok", "slow", "bad"][n % 3])).collect(), 500),
        ("switch-later", vec!["ok-91".into(), "ok-92".into()], 5),
        (
            "eu/switch-17",
            [
                "ok-acme",
                "ok-globex",
                "bad-initech",
                "slow-umbrella",
                "asks-hooli",
                "ails-wonka",
                "early-stark",
                "slow-wayne",
                "stuck-tyrell",
                "bad-cyberdyne",
                "ok-aperture",
                "ok-a-tenant-with-quite-a-long-name/in/europe",
                "slow-oscorp",
                "ok-massive",
            ]
            .map(String::from)
            .to_vec(),
            12,
        ),
        ("switch-18", vec!["bad-initech".into(), "ok-acme".into()], 5),
    ] {
        let create = CreatePlan {
            definition: "eu/switch".into(),
            tenants,
            id: Some(id.into()),
            input: Payload::json(r#"{"gateway":"https://gate-2.example.com","note":"<b>not bold</b>"}"#),
            max_concurrency: Some(at_once),
            origin: by("the new gateway"),
        };
        let Ok((plan, _)) = engine.create_plan(create).await else { continue };
        if id != "switch-later" {
            engine.operate_plan(&plan, Verb::Start, by("the night has begun")).await.unwrap();
            SystemClock.sleep(Duration::from_secs(2)).await;
        }
    }
    for tenant in ["stuck-tyrell", "ok-aperture"] {
        engine
            .roll_back(&id(&format!("eu/switch-17/{tenant}")), by("they want the old one back"))
            .await
            .unwrap();
    }
    engine.pause(&id("eu/switch-17/asks-hooli"), by("they are on air")).await.unwrap();
    engine.cancel(&id("eu/switch-17/bad-cyberdyne"), by("they have left us")).await.unwrap();
    engine
        .break_lock(&TenantId::new("slow-wayne").unwrap(), by("the machine is gone for good"))
        .await
        .unwrap();
}

/// Keys that live on, whose ends cannot be told now, and of whose end nobody will be told.
async fn keys(engine: &Engine, addr: SocketAddr) {
    let (nobody, refuses) = (Target::Url("http://127.0.0.1:9/logged-out?token=x".into()), Target::Url(format!("http://{addr}/v1/nothing")));
    let starts = Target::StartRun { workflow: WorkflowName::new("checkout").unwrap(), input: Payload::json("{}") };
    for (name, value, seconds, owner, directory, on_expire) in [
        (
            "session:41",
            r#"{"user":"ada","since":"2026-11-15T09:00:00Z","roles":["admin","operator"]}"#,
            1800.0,
            Some("web-1"),
            false,
            Some(nobody.clone()),
        ),
        ("session:42", r#"{"user":"grace"}"#, 95.0, Some("web-2"), false, Some(nobody.clone())),
        ("upload/7712", "null", 86400.0, None, true, Some(starts.clone())),
        ("upload/7712/part-1", r#""/tmp/7712.1""#, 7200.0, None, false, None),
        ("upload/7712/part-2", r#""<b>not bold</b>""#, 7200.0, None, false, None),
        ("cache/prices/eur", r#"[1.10,2.20,3.30]"#, 600.0, None, false, None),
        ("session:39", r#"{"user":"joan"}"#, 0.001, Some("web-1"), false, Some(nobody.clone())),
        ("session:38", r#"{"user":"mary"}"#, 0.001, None, false, Some(nobody)),
        ("session:37", r#"{"user":"edith"}"#, 0.001, None, false, Some(refuses)),
        ("upload/7000", "null", 0.001, None, false, Some(starts)),
    ] {
        let put = Put {
            value: Payload::json(value.to_string()),
            ttl: Duration::from_secs_f64(seconds),
            owner: owner.map(String::from),
            directory,
            on_expire,
            if_revision: None,
        };
        engine.put_key(&KeyName::new(name).unwrap(), put).await.unwrap();
    }
}

fn id(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

async fn start(engine: &Engine, workflow: &str, run: &str, tenant: &str, input: &str) {
    let start = Start {
        workflow: workflow.into(),
        input: Payload::json(input.to_string()),
        id: Some(run.into()),
        deadline: None,
        tenant: Some(tenant.into()),
        limits: Vec::new(),
    };
    engine.start(start).await.unwrap();
}

/// Waits until the journal of a run has that many entries.
async fn wait_for(engine: &Engine, run: &str, events: u64) {
    while engine.view(&id(run)).await.unwrap().seq < events {
        tokio::task::yield_now().await;
    }
}
