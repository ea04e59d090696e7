//! Workers of several instances: whichever instance has a run, a worker that was pointed at one of them hosts it.

use super::leases::Slow;
use super::{Instance, World, within};
use crate::messages::node;
use crate::support::{call, calls, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steadfast::cluster::INSTANCES;
use steadfast::messages::Incoming;
use steadfast::messages::memory::Memory as Wires;
use steadfast::worker::{Parted, Worker};
use steadfast::{Code, Ctx, Engine, Failure, MINUTE, Recovery, SECOND, Settings, workflow};
use tokio::sync::Semaphore;

#[workflow]
async fn carry(ctx: Ctx, _: ()) -> Result<u32, Failure> {
    ctx.step("load", || async { Ok::<_, Failure>(call(&ctx, "load")) }).await?;
    ctx.step("drive", || async {
        call(&ctx, "drive");
        drop(DRIVES.acquire().await);
        Ok::<_, Failure>(())
    })
    .await?;
    ctx.step("unload", || async { Ok::<_, Failure>(call(&ctx, "unload")) }).await
}

static DRIVES: Semaphore = Semaphore::const_new(0);

/// Has workers find the instances at the node of one, which listens where that says.
fn open(wires: &Wires, instance: &Instance) {
    let (node, engine) = (instance.engine.node().unwrap().clone(), instance.engine.clone());
    node.route(INSTANCES, move |_: Incoming| {
        let engine: Engine = engine.clone();
        async move {
            let view = engine.cluster().await.map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
            let lives = view.into_iter().flat_map(|view| view.instances).filter(|instance| instance.lives);
            let one = |instance: steadfast::cluster::Instance| {
                format!(r#"{{"id":"{}","address":"{}"}}"#, instance.member.id, instance.member.address)
            };
            Ok(format!(r#"{{"instances":[{}]}}"#, lives.map(one).collect::<Vec<_>>().join(",")))
        }
    });
    let mut listener = wires.listen(&format!("there:{}", instance.id));
    tokio::spawn(async move {
        while let Some(link) = listener.accept().await {
            drop(node.accept(link).await);
        }
    });
}

async fn start(world: &World, wires: &Wires, id: &str) -> Instance {
    let with_node = |builder: steadfast::EngineBuilder| builder.messages(node(wires, "server")).workers().brought_by_workers("carry");
    let instance = world.start(id, with_node).await;
    open(wires, &instance);
    instance
}

#[tokio::test(start_paused = true)]
async fn a_worker_goes_on_with_runs_that_another_instance_has_taken_over() {
    let (world, wires) = (World::new(8), Wires::new(41));
    let (a, b) = (start(&world, &wires, "a").await, start(&world, &wires, "b").await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let worker = Worker::of("there:a").name("w1").wire(Arc::new(wires.wire_of("w1"))).clock(world.clock);
    let worker = worker.register(carry).start().await.unwrap();
    let ids: Vec<_> = (0..24).map(|number| format!("carried-{number}")).collect();
    let mut runs = Vec::new();
    for id in &ids {
        runs.push(a.engine.start("carry", &()).id(id).await.unwrap());
    }
    let drive = |ids: &[String]| ids.iter().map(|id| calls(id, "drive")).sum::<u32>();
    tokio::time::timeout(MINUTE, async {
        while drive(&ids) < 24 {
            tokio::time::sleep(SECOND).await;
        }
    })
    .await
    .expect("all are on their way, of both instances");
    assert!(b.engine.workers()[0].sessions > 0 && a.engine.workers()[0].sessions > 0);

    b.crash();
    wires.cut_off("there:b");
    drop(wires.listen("there:b")); // nobody is there any more
    tokio::time::timeout(MINUTE * 5, async {
        while a.engine.workers().first().is_none_or(|worker| worker.sessions < 24) {
            tokio::time::sleep(SECOND).await;
        }
    })
    .await
    .expect("it has all of them");
    DRIVES.add_permits(1000);
    for (run, id) in runs.iter().zip(&ids) {
        assert_eq!(run.result::<u32>().await.unwrap(), 1, "{id}");
        assert_eq!((calls(id, "load"), calls(id, "unload")), (1, 1), "what is on record is not done again");
    }
    assert_eq!(worker.drain().await, Parted::Drained);
}

#[workflow]
async fn lift(ctx: Ctx, _: ()) -> Result<u32, Failure> {
    ctx.step("lift", || async { Ok::<_, Failure>(call(&ctx, "lift")) }).await
}

/// A worker does not reach every instance at once, and some never. What it says of its workflows goes for runs that are started there all the same.
#[tokio::test(start_paused = true)]
async fn what_a_worker_says_of_its_workflows_goes_where_it_is_not_known() {
    let (world, wires) = (World::new(8), Wires::new(43));
    let (a, b) = (start(&world, &wires, "a").await, start(&world, &wires, "b").await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    wires.cut_off("there:b");
    drop(wires.listen("there:b")); // no worker finds it there
    let unknown = b.engine.start("lift", &()).await.err().unwrap();
    assert_eq!(unknown.code(), "SF0102", "{unknown}");
    let worker = Worker::of("there:a").name("w2").wire(Arc::new(wires.wire_of("w2"))).clock(world.clock);
    let worker = worker.register_with(lift, Settings::new().manual_recovery()).start().await.unwrap();
    until("it is known at one", async || a.engine.workers().len() == 1).await;
    let run = b.engine.start("lift", &()).id("lifted").await.unwrap();
    assert_eq!(run.view().await.unwrap().recovery, Recovery::Manual);
    assert!(b.engine.workers().is_empty());
    worker.drain().await;
}

/// An instance may be there before it could look for the others. It says that it is one of several all the same, so the worker asks again.
#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_before_the_others_are_known_finds_them_later() {
    let (world, wires, blind) = (World::new(8), Wires::new(47), Arc::new(AtomicBool::new(true)));
    let a = start(&world, &wires, "a").await;
    let with_node = |builder: steadfast::EngineBuilder| builder.messages(node(&wires, "server")).workers().brought_by_workers("lift");
    let of_b = |leases| Arc::new(Slow(leases, Arc::clone(&blind))) as Arc<dyn steadfast_store::Leases>;
    let b = world.start_by("b", of_b, with_node).await;
    open(&wires, &b);
    b.engine.answer_instances(b.engine.node().unwrap());
    let worker = Worker::of("there:b").name("w3").wire(Arc::new(wires.wire_of("w3"))).clock(world.clock);
    let worker = worker.register(lift).start().await.unwrap();
    until("it has come", async || b.engine.workers().len() == 1).await;
    blind.store(false, Ordering::SeqCst);
    within(MINUTE, "it has found the other one", async || a.engine.workers().len() == 1).await;
    assert_eq!(worker.drain().await, Parted::Drained);
}
