//! Lists of runs, and why one does not move.
//!
//! Subject: `crates/runtime/src/engine/look.rs`.

use crate::support::{engine, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, HOUR, Policy, SECOND, Status, workflow};

#[workflow]
async fn shape(ctx: Ctx, how: String) -> Result<(), Failure> {
    match how.as_str() {
        "sleeps" => ctx.sleep(HOUR).await,
        "asks" => ctx.signal("word").await,
        "fails" => Err(Failure::permanent("The cellar is FLOODED")),
        "retries" => {
            let down = || async { Err::<(), _>(Failure::transient("down")) };
            ctx.step("try", down).retry(Policy::constant(HOUR).max_attempts(9)).await
        }
        _ => {
            ctx.note("half way there");
            ctx.sleep(HOUR).await
        }
    }
}

async fn world() -> Engine {
    let engine = engine(&Memory::new()).register(shape).start().await.unwrap();
    for (n, how) in ["sleeps", "asks", "fails", "retries", "notes", "sleeps"].into_iter().enumerate() {
        let tenant = if n % 2 == 0 { "acme" } else { "umbrella" };
        let run = engine.start("shape", how).id(format!("run-{n}-{how}")).tenant(tenant).await.unwrap();
        until("it rests", async || run.view().await.unwrap().status != Status::Running).await;
        tokio::time::sleep(SECOND).await;
    }
    engine
}

async fn ids(list: steadfast::ListRuns) -> Vec<String> {
    list.await.unwrap().items.into_iter().map(|row| row.run.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_are_listed_by_everything_that_is_known_of_them() {
    let engine = world().await;
    let all = ["run-5-sleeps", "run-4-notes", "run-3-retries", "run-2-fails", "run-1-asks", "run-0-sleeps"];
    assert_eq!(ids(engine.list()).await, all, "newest first");
    assert_eq!(ids(engine.list().workflow("other")).await, [""; 0]);
    assert_eq!(ids(engine.list().status(Status::Failed)).await, ["run-2-fails"]);
    assert_eq!(ids(engine.list().wait("TIMER").tenant("umbrella")).await, ["run-5-sleeps"]);
    assert_eq!(ids(engine.list().wait("SIGNAL")).await, ["run-1-asks"]);
    assert_eq!(ids(engine.list().wait("BACKOFF")).await, ["run-3-retries"]);
    assert_eq!(ids(engine.list().text("flooded")).await, ["run-2-fails"]);
    assert_eq!(ids(engine.list().text("half way")).await, ["run-4-notes"]);
    assert_eq!(ids(engine.list().text("SLEEPS")).await, ["run-5-sleeps", "run-0-sleeps"]);
    let third = engine.run("run-2-fails").unwrap().view().await.unwrap().started_at;
    assert_eq!(ids(engine.list().until(third)).await, ["run-1-asks", "run-0-sleeps"]);
    assert_eq!(ids(engine.list().since(third).status(Status::Failed)).await, ["run-2-fails"]);
    engine.run("run-0-sleeps").unwrap().pause().await.unwrap();
    assert_eq!(ids(engine.list().wait("PAUSED")).await, ["run-0-sleeps"]);
    assert_eq!(ids(engine.list().status(Status::Paused)).await, ["run-0-sleeps"]);
}

#[tokio::test(start_paused = true)]
async fn pages_go_on_where_the_one_before_ended() {
    let engine = world().await;
    let (mut seen, mut next): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let list = engine.list().limit(4);
        let page = match &next {
            Some(cursor) => list.after(cursor).await.unwrap(),
            None => list.await.unwrap(),
        };
        seen.extend(page.items.into_iter().map(|row| row.run.to_string()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 6);
    for bad in ["", "x", "12", "x.y"] {
        assert_eq!(engine.list().after(bad).await.unwrap_err().code(), "SF0110", "{bad}");
    }
    assert_eq!(engine.list().workflow("a b").await.unwrap_err().code(), "SF0101");
}

#[tokio::test(start_paused = true)]
async fn why_a_run_does_not_move_is_a_sentence() {
    let engine = world().await;
    for (id, said) in [
        ("run-0-sleeps", "the code sleeps until"),
        ("run-1-asks", "waits for the signal \"word\""),
        ("run-2-fails", "The cellar is FLOODED"),
        ("run-3-retries", "step try#1 failed (down) and is tried again at"),
        ("run-4-notes", "(half way there)"),
    ] {
        let why = engine.why(id).await.unwrap().to_string();
        assert!(why.contains(said), "{why}");
    }
    assert_eq!(engine.why("nobody").await.unwrap_err().code(), "SF0104");
}

#[tokio::test(start_paused = true)]
async fn what_blocks_a_run_is_listed_until_it_is_gone() {
    let store = Memory::new();
    let first = engine(&store).register(shape).start().await.unwrap();
    let run = first.start("shape", "sleeps").id("blocked").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    drop((run, first));
    let second = engine(&store.reopen()).start().await.unwrap(); // without its code
    tokio::time::sleep(2 * HOUR).await; // its timer fires, and nobody can go on
    assert_eq!(ids(second.list().wait("NO_WORKER")).await, ["blocked"]);
    drop(second);
    let third = engine(&store.reopen()).register(shape).start().await.unwrap();
    third.run("blocked").unwrap().result::<()>().await.unwrap();
    assert_eq!(
        (ids(third.list().wait("NO_WORKER")).await, ids(third.list().status(Status::Completed)).await),
        (vec![], vec!["blocked".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_row_says_what_the_run_says_whatever_happens_to_a_run_that_is_blocked() {
    #[workflow]
    async fn waits(ctx: Ctx, (): ()) -> Result<(), Failure> {
        ctx.signal::<()>("go").await
    }
    let store = Memory::new();
    let first = engine(&store).register(waits).start().await.unwrap();
    let run = first.start("waits", &()).id("blocked-row").await.unwrap();
    drop((run, first));
    let second = engine(&store.reopen()).register(shape).start().await.unwrap();
    let run = second.run("blocked-row").unwrap();
    let is_the_same = async |status: Status, reason: &str| {
        let (view, row) = (run.view().await.unwrap(), second.list().await.unwrap().items.remove(0));
        assert_eq!((view.status, view.waits[0].reason()), (status, reason));
        assert_eq!((row.status, row.wait.as_deref()), (status, Some(reason)));
    };
    let blocked = async || second.list().wait("NO_WORKER").await.unwrap().items.len() == 1;
    run.signal("other", &()).await.unwrap(); // somebody would have to host it
    until("it is blocked", blocked).await;
    run.signal("other", &()).await.unwrap();
    is_the_same(Status::Waiting, "NO_WORKER").await;
    run.pause().await.unwrap();
    is_the_same(Status::Paused, "PAUSED").await;
    run.resume().await.unwrap();
    is_the_same(Status::Waiting, "NO_WORKER").await;
    second.shutdown().await;
    let third = engine(&store.reopen()).register(waits).start().await.unwrap();
    let run = third.run("blocked-row").unwrap();
    until("it waits", async || third.list().wait("SIGNAL").await.unwrap().items.len() == 1).await;
    run.signal("go", &()).await.unwrap();
    run.result::<()>().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_is_found_by_why_a_step_is_tried_again() {
    #[workflow]
    async fn stubborn(ctx: Ctx, (): ()) -> Result<(), Failure> {
        ctx.note("half way");
        ctx.step("try", || async { Err::<(), _>(Failure::transient("a timeout")) })
            .retry(Policy::constant(HOUR))
            .await
    }
    let engine = engine(&Memory::new()).register(stubborn).start().await.unwrap();
    let run = engine.start("stubborn", &()).id("stubborn-row").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    for text in ["timeout", "half way"] {
        assert_eq!(ids(engine.list().wait("BACKOFF").text(text)).await, ["stubborn-row"], "{text}");
    }
}
