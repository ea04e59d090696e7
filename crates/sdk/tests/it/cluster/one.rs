//! Any instance can be asked for anything, wherever it is.
//!
//! Subject: `crates/runtime/src/engine/asking.rs`.

use super::World;
use crate::support::until;
use std::time::Duration;
use steadfast::{Ctx, Engine, EngineBuilder, Failure, Status, workflow};

#[workflow]
async fn greet(ctx: Ctx, name: String) -> Result<String, Failure> {
    ctx.step("hello", || {
        let said = format!("hello {name}");
        async move { Ok::<_, Failure>(said) }
    })
    .await
}

#[workflow]
async fn wait_for(ctx: Ctx, _nothing: ()) -> Result<String, Failure> {
    ctx.signal::<String>("go").await
}

#[workflow]
async fn family(ctx: Ctx, size: u32) -> Result<u32, Failure> {
    let mut names = 0;
    for child in 0..size {
        let said: String = ctx.start_and_wait("greet", &format!("c{child}")).await?;
        names += u32::from(said == format!("hello c{child}"));
    }
    Ok(names)
}

fn all(builder: EngineBuilder) -> EngineBuilder {
    builder.register(greet).register(wait_for).register(family)
}

#[tokio::test(start_paused = true)]
async fn runs_are_started_awaited_and_seen_from_anywhere() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..20 {
        let id = format!("run-{number}");
        let run = a.engine.start("greet", &format!("{number}")).id(&id).await.unwrap();
        assert!(run.is_new());
        assert!(!b.engine.start("greet", &format!("{number}")).id(&id).await.unwrap().is_new(), "the same again finds it");
        assert_eq!(b.engine.run(&id).unwrap().result::<String>().await.unwrap(), format!("hello {number}"));
        for engine in [&a.engine, &b.engine] {
            let view = engine.run(&id).unwrap().view().await.unwrap();
            assert_eq!((view.status, view.seq), (Status::Completed, 3));
        }
    }
    let other = b.engine.start("greet", &"else").id("run-1").await.err().unwrap();
    assert!(other.to_string().contains("run-1 exists"), "{other}");
    let nobody = [a.engine.run("none").unwrap().view().await, b.engine.run("none").unwrap().view().await];
    assert!(
        nobody
            .iter()
            .all(|view| view.as_ref().is_err_and(|error| error.to_string().contains("no run none"))),
        "{nobody:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn runs_are_told_things_from_anywhere() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..8 {
        let id = format!("told-{number}");
        a.engine.start("wait_for", &()).id(&id).await.unwrap();
        for (engine, name) in [(&a.engine, "a"), (&b.engine, "b")] {
            until("it waits", async || engine.run(&id).unwrap().view().await.unwrap().status == Status::Waiting).await;
            let why = engine.why(&id).await.unwrap();
            assert!(format!("{why:?}").contains("go"), "{name} says {why:?}");
        }
        let run = b.engine.run(&id).unwrap();
        run.pause().await.unwrap();
        a.engine.run(&id).unwrap().resume().await.unwrap();
        run.signal("go", &format!("ahead {number}")).await.unwrap();
        assert_eq!(a.engine.run(&id).unwrap().result::<String>().await.unwrap(), format!("ahead {number}"));
        assert!(run.cancel().await.unwrap_err().to_string().contains("has ended"));
    }
}

#[tokio::test(start_paused = true)]
async fn parents_and_children_need_not_be_at_one_place() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..4 {
        let run = a.engine.start("family", &5).id(format!("family-{number}")).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn limits_hold_across_instances() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..6 {
        let engine = if number % 2 == 0 { &a.engine } else { &b.engine };
        engine.start("wait_for", &()).id(format!("l-{number}")).limit("seats", 2).await.unwrap();
    }
    for first in 0..6 {
        let id = format!("l-{first}");
        let of = |status| {
            let (a, id) = (&a.engine, id.clone());
            async move { a.run(&id).unwrap().view().await.unwrap().status == status }
        };
        until("its turn has come", || of(Status::Waiting)).await;
        let seats = b.engine.limit("seats").await.unwrap().unwrap();
        assert!(seats.members.len() - seats.line.len() <= 2, "{seats:?}");
        b.engine.run(&id).unwrap().signal("go", &"on").await.unwrap();
        a.engine.run(&id).unwrap().result::<String>().await.unwrap();
    }
}

async fn value(engine: &Engine, key: &str) -> Option<u32> {
    engine.get(key).await.unwrap().map(|held| held.value().unwrap())
}

#[tokio::test(start_paused = true)]
async fn keys_are_put_seen_and_expire_wherever_they_are() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..10 {
        let key = format!("cart/{number}");
        a.engine.put(&key, &number).ttl(Duration::from_secs(30)).await.unwrap();
        assert_eq!(value(&b.engine, &key).await, Some(number));
        b.engine.renew(&key, Duration::from_secs(60)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(value(&a.engine, "cart/3").await, Some(3));
    tokio::time::sleep(Duration::from_secs(20)).await;
    for number in 0..10 {
        assert_eq!(value(&b.engine, &format!("cart/{number}")).await, None);
    }
}

/// Another process may have the address of one that is gone. What is delivered there for the first time was done by nobody; what is delivered again may have been.
#[tokio::test(start_paused = true)]
async fn what_was_asked_of_a_process_that_is_gone_is_not_said_to_be_undone() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..20 {
        a.engine.put(&format!("asked/{number}"), &number).ttl(Duration::from_secs(3600)).await.unwrap();
    }
    let asked = world.network.1.lock().unwrap().iter().find(|(to, _)| to == "b").cloned();
    let (_, asked) = asked.expect("some of them are at the other one");
    assert_eq!(a.engine.answer_instance(&asked, false).await, r#"{"Err":"NotHere"}"#);
    assert_eq!(a.engine.answer_instance(&asked, true).await, r#"{"Err":"Unavailable"}"#);
}

/// Its holder has just died: whoever asks by an id waits for the next one, and what may have been done is not done twice.
#[tokio::test(start_paused = true)]
async fn what_is_asked_by_an_id_outlives_the_holder() {
    let world = World::new(2);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(1).await && b.has(1).await).await;
    let ids: Vec<_> = (0..6).map(|number| format!("orphan-{number}")).collect();
    for id in &ids {
        a.engine.start("wait_for", &()).id(id).await.unwrap();
    }
    a.crash();
    let begun = tokio::time::Instant::now();
    let mut unsure = 0;
    for id in &ids {
        let run = b.engine.run(id).unwrap();
        unsure += usize::from(run.pause().await.is_err()); // without an id nobody asks again
    }
    assert!(unsure > 0 && begun.elapsed() < Duration::from_secs(1), "{unsure} after {:?}", begun.elapsed());
    for id in &ids {
        assert!(b.engine.run(id).unwrap().signal("go", "on").id("once").await.unwrap());
    }
    assert!(begun.elapsed() < super::LEASE + Duration::from_secs(2), "{:?}", begun.elapsed());
    for id in &ids {
        let run = b.engine.run(id).unwrap();
        let _it_may_not_be_paused = run.resume().await;
        assert_eq!(run.result::<String>().await.unwrap(), "on");
    }
}
