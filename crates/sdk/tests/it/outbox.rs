//! What entities tell each other survives a crash at every point: nothing is lost, nothing counts twice.
//!
//! Subject: `crates/runtime/src/outbox.rs`.
//! Subject: `crates/runtime/src/shard/relay.rs`.

use crate::support::{call, engine};
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Ctx, Engine, Event, Failure, HOUR, MINUTE, Settings, Status, workflow};

#[workflow]
async fn member(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.step("work", || {
        call(&ctx, "work");
        async move { if n == 2 { Err(Failure::poison("cannot be understood")) } else { Ok(n) } }
    })
    .await
}

/// Three children, of which one is poison, under a limit of two.
#[workflow]
async fn family(ctx: Ctx, (): ()) -> Result<String, Failure> {
    let mut children = Vec::new();
    for n in 1..=3 {
        children.push(ctx.start("member", &n).await?);
    }
    let mut results = Vec::new();
    for child in children {
        results.push(child.result::<u32>().await.map_or_else(|failure| failure.message, |n| n.to_string()));
    }
    Ok(results.join(", "))
}

async fn start(store: &Memory) -> Engine {
    let limited = Settings::new().limit(2);
    engine(store).register(family).register_with(member, limited).start().await.unwrap()
}

/// Waits until nothing is under way any more, and checks what must hold.
async fn check(engine: &Engine, store: &Memory, id: &str) {
    let run = engine.start("family", &()).id(id).await.unwrap();
    let result = tokio::time::timeout(HOUR, run.result::<String>()).await.unwrap_or_else(|_| panic!("{id} is stuck"));
    assert_eq!(result.unwrap(), "1, cannot be understood, 3", "{id}");
    tokio::time::sleep(MINUTE).await;
    let limit = engine.limit_of("member").await.unwrap().unwrap();
    assert_eq!((limit.members.len(), limit.held()), (0, 0), "{id}: every slot came back");
    let letters = engine.letters(None, 10).await.unwrap().items;
    assert_eq!(letters.len(), 1, "{id}: {letters:?}");
    for n in 1..=3 {
        let child = engine.run(&format!("{id}/member.{n}")).unwrap();
        let journal = child.journal().await.unwrap();
        let count = |kind: &str| journal.iter().filter(|entry| entry.event.kind() == kind).count();
        assert_eq!((count("RUN_STARTED"), count("SLOT_ACQUIRED"), child.view().await.unwrap().status.is_final()), (1, 1, true), "{id}");
    }
    let ended = run
        .journal()
        .await
        .unwrap()
        .into_iter()
        .filter(|entry| matches!(entry.event, Event::ChildEnded { .. }))
        .count();
    assert_eq!((ended, run.view().await.unwrap().status), (3, Status::Completed), "{id}");
    let left = steadfast::Store::outbox(store, 0, None, 100).await.unwrap();
    assert!(left.is_empty(), "{id}: everything is settled: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_or_after_any_commit_loses_nothing_and_doubles_nothing() {
    let store = Memory::new();
    let engine = start(&store).await;
    check(&engine, &store, "undisturbed").await;
    let commits = engine.commits();
    assert!(commits > 12, "{commits}");
    for nth in 0..commits {
        for (name, fault) in
            [("before", Fault::CrashBefore), ("after", Fault::CrashAfter), ("failed", Fault::Fail), ("doubt", Fault::Doubt)]
        {
            let (store, id) = (Memory::new(), format!("{name}-{nth}"));
            let crashes = matches!(fault, Fault::CrashBefore | Fault::CrashAfter);
            store.faults().after(nth as usize, fault);
            let engine = start(&store).await;
            let _may_fail = engine.start("family", &()).id(&id).await;
            tokio::time::sleep(10 * MINUTE).await;
            if !crashes {
                check(&engine, &store, &id).await;
                continue;
            }
            drop(engine);
            let store = store.reopen();
            let engine = start(&store).await;
            check(&engine, &store, &id).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_prefix_of_the_commits_leads_to_the_same_end() {
    let store = Memory::new();
    let engine = start(&store).await;
    check(&engine, &store, "prefix").await;
    let commits = engine.commits() as usize;
    drop(engine);
    for nth in 1..=commits {
        let store = store.rewound(nth);
        let engine = start(&store).await;
        check(&engine, &store, "prefix").await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_an_end_hears_of_it_while_the_last_words_are_being_settled() {
    let ask = async |engine: Engine| engine.start("member", &1).id("heard").await.unwrap().result::<u32>().await;
    let undisturbed = start(&Memory::new()).await;
    ask(undisturbed.clone()).await.unwrap();
    tokio::time::sleep(MINUTE).await; // its slot is given back after its end
    for nth in 0..undisturbed.commits() {
        let (store, gate) = (Memory::new(), Gate::default());
        store.faults().after(nth as usize, Fault::Hold(gate.clone()));
        let engine = start(&store).await;
        let early = tokio::spawn(ask(engine.clone()));
        tokio::time::sleep(MINUTE).await;
        let late = tokio::spawn(ask(engine.clone()));
        tokio::time::sleep(MINUTE).await;
        gate.open();
        for asked in [early, late] {
            let heard = tokio::time::timeout(HOUR, asked).await;
            assert!(heard.is_ok_and(|heard| heard.unwrap().is_ok()), "commit {nth} was held");
        }
    }
}
