//! A person's yes or no, and steps that are left out.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, HOUR, Policy, SECOND, Wait, workflow};

#[workflow]
async fn guarded(ctx: Ctx, _input: ()) -> Result<bool, Failure> {
    let yes = ctx.approval::<bool>("ok", ["operator", "admin"]).within(HOUR).await?;
    if yes {
        ctx.step("go", || {
            call(&ctx, "go");
            async { Ok::<_, Failure>(()) }
        })
        .await?;
    } else {
        ctx.skip("go");
    }
    ctx.step("after", || async { Ok::<_, Failure>(()) }).await?;
    ctx.signal::<()>("end").await?;
    Ok(yes)
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(guarded).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_approval_says_who_may_give_it() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("guarded", &()).id("approval-roles").await.unwrap();
    until("it waits", async || !run.view().await.unwrap().waits.is_empty()).await;
    let view = run.view().await.unwrap();
    let [Wait::Approval { name, roles, until: Some(_) }] = &view.waits[..] else { panic!("{view:?}") };
    assert_eq!((name.as_str(), &roles[..]), ("ok", &["operator".to_string(), "admin".to_string()][..]));
    let waiting = engine.list().wait("APPROVAL").await.unwrap();
    assert_eq!(waiting.items[0].run.as_str(), "approval-roles");
    let why = engine.why("approval-roles").await.unwrap().to_string();
    assert!(why.contains("one who is operator or admin has to approve \"ok\", until "), "{why}");
    run.signal("ok", &true).await.unwrap();
    run.signal("end", &()).await.unwrap();
    assert!(run.result::<bool>().await.unwrap());
    assert_eq!(calls("approval-roles", "go"), 1);
}

/// A skipped step is on record once, with its turn, and replay goes the same way.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_left_out_is_on_record() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("guarded", &()).id("skipping").await.unwrap();
    run.signal("ok", &false).await.unwrap();
    until("it waits for its end", async || lines(&run).await.iter().any(|line| line.contains("signal:end"))).await;
    let commits = engine.commits();
    drop(engine);
    let engine = start(&store.reopen()).await;
    let run = engine.run("skipping").unwrap();
    assert!(engine.replay("skipping").await.unwrap().mismatch.is_none());
    run.signal("end", &()).await.unwrap();
    assert!(!run.result::<bool>().await.unwrap());
    let expected = [
        "RUN_STARTED",
        "SIGNAL_AWAITED signal:ok#1",
        "SIGNAL_RECEIVED ok",
        "SIGNAL_TAKEN signal:ok#1 3",
        "STEP_SKIPPED go#1",
        "STEP_COMPLETED after#1 a1",
        "SIGNAL_AWAITED signal:end#1",
        "SIGNAL_RECEIVED end",
        "SIGNAL_TAKEN signal:end#1 8",
        "RUN_COMPLETED",
    ];
    assert_eq!(lines(&run).await, expected);
    assert!(commits <= 5, "{commits}: start, wait, arrival, skip, step");
    assert_eq!(calls("skipping", "go"), 0);
}

#[workflow]
async fn in_stages(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("quick", || async { Ok::<_, Failure>(7) }).await?;
    ctx.step("stuck", || {
        let attempt = ctx.attempt();
        async move {
            match attempt {
                1 => Err(Failure::transient("not yet")),
                _ => std::future::pending::<Result<(), Failure>>().await,
            }
        }
    })
    .retry(Policy::constant(SECOND))
    .await
}

/// That a first attempt has begun is no event, and that one has begun after its delay neither: the host knows.
#[tokio::test(start_paused = true)]
async fn the_steps_of_a_run_show_what_is_in_flight() {
    let engine = engine(&Memory::new()).register(in_stages).start().await.unwrap();
    let run = engine.start("in_stages", &()).id("in-stages").await.unwrap();
    let shown = async || -> Vec<String> {
        let steps = run.steps().await.unwrap();
        steps
            .iter()
            .map(|step| format!("{} {} x{}", step.id, step.status.as_str(), step.attempts))
            .collect()
    };
    until("it is in backoff", async || shown().await.contains(&"stuck#1 BACKOFF x1".to_string())).await;
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(shown().await, ["quick#1 COMPLETED x1", "stuck#1 RUNNING x2"]);
}
