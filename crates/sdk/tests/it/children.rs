//! Runs that are started by a run.
//!
//! Subject: `crates/runtime/src/host/child.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::{Fault, Memory};
use steadfast::{Code, Ctx, Engine, Failure, HOUR, Settings, Status, Wait, workflow};

#[workflow]
async fn double(ctx: Ctx, number: u32) -> Result<u32, Failure> {
    ctx.step("double", || {
        call(&ctx, "double");
        async move { if number == 13 { Err(Failure::permanent("bad luck")) } else { Ok(2 * number) } }
    })
    .await
}

#[workflow]
async fn parent(ctx: Ctx, number: u32) -> Result<u32, Failure> {
    let first = ctx.start("double", &number).await?;
    let second: u32 = ctx.start_and_wait("double", &(number + 1)).await?;
    Ok(first.result::<u32>().await? + second)
}

#[workflow]
async fn sleeper(ctx: Ctx, (): ()) -> Result<String, Failure> {
    ctx.sleep(HOUR).await?;
    call(&ctx, "woken");
    Ok("slept".into())
}

/// Starts a child that sleeps, and waits for it, or for a word.
#[workflow]
async fn waits(ctx: Ctx, detached: bool) -> Result<String, Failure> {
    let child = ctx.start("sleeper", &());
    if detached {
        child.detached().id(&format!("{}-child", ctx.run_id())).await?;
        return ctx.signal::<String>("word").await;
    }
    child.await?.result().await
}

async fn start(store: &Memory) -> Engine {
    engine(store)
        .register(double)
        .register(parent)
        .register(sleeper)
        .register(waits)
        .start()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn results_of_children_come_back() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("parent", &20).id("family").await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 82);
    let view = run.view().await.unwrap();
    let children: Vec<_> = view.children.iter().map(|(_, run)| run.to_string()).collect();
    assert_eq!(children, ["family/double.1", "family/double.2"]);
    let child = engine.run("family/double.2").unwrap().view().await.unwrap();
    assert_eq!((child.status, child.parent.unwrap().as_str()), (Status::Completed, "family"));
    assert_eq!(lines(&run).await[..2], ["RUN_STARTED", "CHILD_STARTED child:double#1"]);
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_child_is_the_parents_to_handle() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("parent", &13).id("unlucky").await.unwrap();
    let error = run.result::<u32>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().message, "bad luck");
}

#[tokio::test(start_paused = true)]
async fn a_parent_waits_for_its_child_and_says_so() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("waits", &false).id("says-so").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    assert!(matches!(&run.view().await.unwrap().waits[..], [Wait::Child { run }] if run.as_str() == "says-so/sleeper.1"));
    drop((run, engine));
    let engine = start(&store.reopen()).await; // nothing of it is lost over a restart
    let run = engine.run("says-so").unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "slept");
}

#[tokio::test(start_paused = true)]
async fn cancel_of_the_parent_cancels_the_child_unless_it_is_detached() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("waits", &false).id("cancels").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.cancel().await.unwrap();
    let child = engine.run("cancels/sleeper.1").unwrap();
    assert_eq!(child.result::<String>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);

    let run = engine.start("waits", &true).id("leaves").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.cancel().await.unwrap();
    run.result::<String>().await.unwrap_err();
    assert_eq!(engine.run("leaves-child").unwrap().result::<String>().await.unwrap(), "slept");
}

#[tokio::test(start_paused = true)]
async fn terminate_of_the_parent_cancels_the_child_too() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("waits", &false).id("ends").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.terminate().await.unwrap();
    let child = engine.run("ends/sleeper.1").unwrap();
    assert_eq!(child.result::<String>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);
    assert_eq!(calls("ends/sleeper.1", "woken"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_taken_fails_the_child_and_touches_nobody() {
    #[workflow]
    async fn clash(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.start("double", &1).id("somebody-else").await?.result().await
    }
    let engine = engine(&Memory::new()).register(double).register(clash).start().await.unwrap();
    let other = engine.start("double", &5).id("somebody-else").await.unwrap();
    assert_eq!(other.result::<u32>().await.unwrap(), 10);
    let before = lines(&other).await;
    let run = engine.start("clash", &()).id("clash").await.unwrap();
    let error = run.result::<u32>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::FailedPrecondition, "{error}");
    assert_eq!(lines(&other).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_child_of_unknown_code_waits_until_somebody_has_it() {
    let store = Memory::new();
    let first = engine(&store).register(waits).start().await.unwrap();
    let run = first.start("waits", &false).id("no-code").await.unwrap();
    let child = first.run("no-code/sleeper.1").unwrap();
    until("the child is there", async || child.view().await.is_ok_and(|view| view.status == Status::Waiting)).await;
    assert_eq!(child.view().await.unwrap().waits[0].reason(), "NO_WORKER");
    drop((run, child, first));
    let second = start(&store.reopen()).await;
    assert_eq!(second.run("no-code").unwrap().result::<String>().await.unwrap(), "slept");
}

#[tokio::test(start_paused = true)]
async fn a_retry_from_a_failed_child_starts_another_one() {
    #[workflow]
    async fn second_try(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("fails-once", || {
            let call = call(&ctx, "child");
            async move { if call == 1 { Err(Failure::permanent("no")) } else { Ok(7) } }
        })
        .await
    }
    #[workflow]
    async fn asks(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.start("second_try", &()).await?.result().await
    }
    let engine = engine(&Memory::new()).register(second_try).register(asks).start().await.unwrap();
    let run = engine.start("asks", &()).id("again").await.unwrap();
    run.result::<u32>().await.unwrap_err();
    let preview = run.retry().preview().await.unwrap();
    assert_eq!(preview.restarted_children.iter().map(ToString::to_string).collect::<Vec<_>>(), ["again/second_try.1"]);
    run.retry().await.unwrap();
    run.result::<u32>().await.unwrap_err(); // the new child is a new run, whose first try fails as well
    let child = engine.run("again/second_try.1.again-1").unwrap();
    assert_eq!(child.view().await.unwrap().status, Status::Failed);
}

/// Waits a minute; the first call of a run fails if it is to.
#[workflow]
async fn slow_child(ctx: Ctx, fails: bool) -> Result<u32, Failure> {
    ctx.sleep(steadfast::MINUTE).await?;
    let call = call(&ctx, "slow_child");
    if fails && call == 1 { Err(Failure::permanent("not now")) } else { Ok(call) }
}

#[workflow]
async fn waits_for_one_of_two(ctx: Ctx, (): ()) -> Result<u32, Failure> {
    let child = ctx.start("slow_child", &false).await?;
    ctx.start("slow_child", &false).detached().await?;
    child.result().await
}

#[tokio::test(start_paused = true)]
async fn a_retry_calls_off_the_child_it_discards_and_leaves_a_detached_one_whatever_the_store_does() {
    for (fault, id) in [(None, "retried-family"), (Some(Fault::Fail), "retried-family-2"), (Some(Fault::Doubt), "retried-family-3")] {
        let store = Memory::new();
        let engine = engine(&store).register(slow_child).register(waits_for_one_of_two).start().await.unwrap();
        let run = engine.start("waits_for_one_of_two", &()).id(id).await.unwrap();
        until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
        let preview = run.retry().from_start().preview().await.unwrap();
        fault.into_iter().for_each(|fault| store.faults().after(0, fault));
        while run.retry().from_start().id("c-1").await.is_err() {
            tokio::time::sleep(steadfast::SECOND).await;
        }
        run.result::<u32>().await.unwrap();
        tokio::time::sleep(steadfast::HOUR).await;
        let runs = async |status| {
            let page = engine.list().workflow("slow_child").status(status).await.unwrap();
            page.items.into_iter().map(|row| row.run).collect::<Vec<_>>()
        };
        assert_eq!(runs(Status::Cancelled).await, preview.cancelled_children, "{id}");
        assert_eq!(runs(Status::Completed).await.len(), 3, "{id}: two that are detached, and the one that is waited for");
    }
}

#[workflow]
async fn waits_for_a_named_one(ctx: Ctx, (): ()) -> Result<u32, Failure> {
    ctx.start("slow_child", &true).id("the-named-one").await?.result().await
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_named_is_retried_before_its_parent() {
    let engine = engine(&Memory::new()).register(slow_child).register(waits_for_a_named_one).start().await.unwrap();
    let run = engine.start("waits_for_a_named_one", &()).id("of-a-named-one").await.unwrap();
    run.result::<u32>().await.unwrap_err();
    run.retry().await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap_err().failure().unwrap().message, "not now", "what became of it counts");
    let child = engine.run("the-named-one").unwrap();
    child.retry().await.unwrap();
    child.result::<u32>().await.unwrap();
    run.retry().await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ends_while_its_parent_is_undone_changes_nothing() {
    #[workflow]
    async fn undone_slowly(ctx: Ctx, (): ()) -> Result<String, Failure> {
        ctx.step("book", || async { Ok::<_, Failure>(()) })
            .undo(|()| async {
                tokio::time::sleep(HOUR).await;
                Ok::<_, Failure>(())
            })
            .await?;
        ctx.start("sleeper", &()).await?.result().await
    }
    let store = Memory::new();
    let first = engine(&store).register(sleeper).register(undone_slowly).start().await.unwrap();
    let run = first.start("undone_slowly", &()).id("undone-slowly").await.unwrap();
    let child = first.run("undone-slowly/sleeper.1").unwrap();
    until("the child sleeps", async || child.view().await.is_ok_and(|view| view.status == Status::Waiting)).await;
    run.cancel().await.unwrap();
    until("it has heard of the child's end", async || {
        lines(&run).await.last().is_some_and(|line| line == "CHILD_ENDED child:sleeper#1 CANCELLED")
    })
    .await;
    tokio::task::yield_now().await;
    let view = run.view().await.unwrap();
    assert_eq!((view.status, &view.waits[..]), (Status::Compensating, &[][..]));
    drop((run, child, first));
    let second = engine(&store.reopen()).register(sleeper).register(undone_slowly).start().await.unwrap();
    let run = second.run("undone-slowly").unwrap();
    let ended = tokio::time::timeout(5 * HOUR, run.result::<String>()).await;
    assert!(ended.is_ok(), "{}", run.why().await.unwrap());
    assert_eq!(lines(&run).await[5..], ["CHILD_ENDED child:sleeper#1 CANCELLED", "UNDO_COMPLETED book#1 a1", "RUN_CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_stands_still_ends_with_its_parent() {
    #[workflow]
    async fn hangs(ctx: Ctx, (): ()) -> Result<String, Failure> {
        ctx.step("hang", || async { std::future::pending::<Result<String, Failure>>().await }).await
    }
    #[workflow]
    async fn asks_it(ctx: Ctx, (): ()) -> Result<String, Failure> {
        ctx.start("hangs", &()).await?.result().await
    }
    for (manual, status) in [(false, Status::Paused), (true, Status::Interrupted)] {
        let (store, id) = (Memory::new(), format!("stands-still-{manual}"));
        let settings = if manual { Settings::new().manual_recovery() } else { Settings::new() };
        let first = engine(&store).register(asks_it).register_with(hangs, settings).start().await.unwrap();
        first.start("asks_it", &()).id(&id).await.unwrap();
        let child = first.run(&format!("{id}/hangs.1")).unwrap();
        until("the child is there", async || child.view().await.is_ok_and(|view| view.status == Status::Running)).await;
        if !manual {
            child.pause().await.unwrap();
        }
        drop((child, first));
        let second = engine(&store.reopen()).register(asks_it).register_with(hangs, settings).start().await.unwrap();
        let (run, child) = (second.run(&id).unwrap(), second.run(&format!("{id}/hangs.1")).unwrap());
        until("the child stands still", async || child.view().await.unwrap().status == status).await;
        run.cancel().await.unwrap();
        let ended = tokio::time::timeout(HOUR, child.result::<String>()).await;
        assert!(ended.is_ok(), "{}", child.why().await.unwrap());
        assert_eq!(child.view().await.unwrap().status, Status::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_without_code_ends_with_its_parent() {
    let engine = engine(&Memory::new()).register(waits).start().await.unwrap();
    let run = engine.start("waits", &false).id("codeless").await.unwrap();
    let child = engine.run("codeless/sleeper.1").unwrap();
    until("the child waits for its code", async || child.view().await.is_ok_and(|view| view.status == Status::Waiting)).await;
    run.cancel().await.unwrap();
    let ended = tokio::time::timeout(HOUR, child.result::<String>()).await;
    assert!(ended.is_ok(), "{}", child.why().await.unwrap());
    assert_eq!(child.view().await.unwrap().status, Status::Cancelled);
}
