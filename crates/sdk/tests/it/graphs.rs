//! Graphs: a step starts the moment its own predecessors are done.

use crate::support::{call, calls, engine, lines};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Engine, Failure, Graph, GraphError, HOUR, Policy, SECOND, workflow};

/// A diamond with a slow side, and a chain beside it that backs off for hours.
#[workflow]
async fn diamond(ctx: Ctx, broken: String) -> Result<String, Failure> {
    let work = |name: &'static str, ms: u64| {
        let (ctx, broken) = (&ctx, broken.clone());
        async move {
            call(ctx, name);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            if broken == name { Err(Failure::permanent(format!("{name} is broken"))) } else { Ok(name.to_string()) }
        }
    };
    let done = ctx
        .graph(
            Graph::new()
                .step("join", |done| async move {
                    Ok::<_, Failure>(format!("{}+{}", done.get::<String>("left")?, done.get::<String>("right")?))
                })
                .after(["left", "right"])
                .step("left", |_| work("left", 10))
                .after(["root"])
                .step("right", |_| work("right", 500))
                .after(["root"])
                .step("root", |_| work("root", 1))
                .step("aside", |_| {
                    let call = call(&ctx, "aside");
                    async move { if call == 1 { Err(Failure::transient("down")) } else { Ok("aside".to_string()) } }
                })
                .retry(Policy::constant(5 * HOUR))
                .step("after-left", |_| work("after-left", 1))
                .after(["left"]),
        )
        .await?;
    done.get("join")
}

async fn start() -> Engine {
    engine(&Memory::new()).register(diamond).register(wrong).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn steps_start_when_their_own_predecessors_are_done() {
    let engine = start().await;
    let run = engine.start("diamond", &"").id("diamond").await.unwrap();
    tokio::time::sleep(SECOND / 5).await;
    assert_eq!((calls("diamond", "after-left"), calls("diamond", "right")), (1, 1), "though its sibling is slow and another backs off");
    assert_eq!(run.result::<String>().await.unwrap(), "left+right");
    assert_eq!(run.replay().await.unwrap().mismatch, None);
    assert!(lines(&run).await.contains(&"STEP_COMPLETED graph#1/after-left#1 a1".to_string()));
}

/// The trap: those after a failed step never run; those of an independent branch do.
#[tokio::test(start_paused = true)]
async fn those_after_a_failed_step_never_run_and_the_others_do() {
    let engine = start().await;
    let run = engine.start("diamond", &"left").id("broken-left").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().message, "left is broken");
    let ran = |step| calls("broken-left", step);
    assert_eq!((ran("after-left"), ran("right"), ran("aside")), (0, 1, 2));
}

#[workflow]
async fn wrong(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.graph(Graph::new().step("a", |_| async { Ok::<_, Failure>(()) }).after(["b"])).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_graph_that_cannot_be_is_refused_before_anything_runs() {
    let engine = start().await;
    let error = engine.start("wrong", &()).await.unwrap().result::<()>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::InvalidArgument);
    let step = |graph: Graph<'static>, name: &str| graph.step(name, |_| async { Ok::<_, Failure>(()) });
    let unknown = step(step(Graph::new(), "a"), "b").after(["aa"]).check().unwrap_err();
    assert_eq!(unknown.to_string(), "step \"b\" comes after \"aa\", but there is no such step; there are: a, b");
    let cycle = step(step(step(Graph::new(), "a").after(["c"]), "b").after(["a"]), "c").after(["b"]).check();
    assert_eq!(cycle, Err(GraphError::Cycle(vec!["a".into(), "b".into(), "c".into()])));
    assert_eq!(step(Graph::new(), "a").after(["a"]).check(), Err(GraphError::Cycle(vec!["a".into()])));
    assert_eq!(step(step(Graph::new(), "a"), "a").check(), Err(GraphError::Twice("a".into())));
    assert_eq!(Graph::new().after(["a"]).check(), Err(GraphError::NoStep("after")));
    assert_eq!(Graph::new().check(), Ok(()));
}
