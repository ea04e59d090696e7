//! Where a run is hosted makes no difference to its journal.

use super::link::Link;
use super::programs::{calls, forget, let_go};
use super::world::{World, until};
use std::time::Duration;
use steadfast_kernel::{Entry, Origin, Payload, RunId, Status};

/// Runs it in that world, with what a person does to it; its journal, and those of its children.
async fn journals(world: &World, workflow: &str, id: &str) -> Vec<Vec<Entry>> {
    let run = world.start(workflow, id).await;
    match workflow {
        "everything" => {
            until_waits_for_signal(world, &run).await;
            assert!(world.engine.signal(&run, "go", Payload::json("\"now\""), Origin::default()).await.unwrap());
        }
        "undoes" | "holds" => {
            until("it holds", async || calls(id, "hold") > 0).await;
            world.engine.pause(&run, Origin::default()).await.unwrap();
            let_go(id, "hold", 1);
            tokio::time::sleep(Duration::from_secs(5)).await;
            world.engine.resume(&run, Origin::default()).await.unwrap();
        }
        _ => {}
    }
    world.engine.ended(&run).await.unwrap();
    let mut journals = vec![world.journal(&run).await];
    for (_, child) in world.view(&run).await.children {
        journals.push(world.journal(&child).await);
    }
    journals
}

async fn until_waits_for_signal(world: &World, run: &RunId) {
    for _ in 0..1000 {
        if world.waits(run).await.contains(&"SIGNAL") {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it never waited for a signal");
}

/// In a runtime of its own, so that time begins anew.
fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

#[test]
fn the_journal_is_the_same_here_and_there() {
    for workflow in ["everything", "ten", "undoes", "holds", "sleeps", "continues", "large"] {
        let id = format!("same-{workflow}");
        let here = in_virtual_time(async {
            let world = World::local().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            journals(&world, workflow, &id).await
        });
        forget(&id);
        let there = in_virtual_time(async {
            let world = World::new().await;
            let link = Link::new(&world.engine, &world.worker("w1"));
            tokio::time::sleep(Duration::from_secs(1)).await;
            let journals = journals(&world, workflow, &id).await;
            assert!(link.passed() > 4, "it was hosted there");
            journals
        });
        assert!(here[0].len() > 2);
        assert_eq!(here, there, "{workflow}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_there_can_be_seen_here() {
    let world = World::new().await;
    let _link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "seen").await;
    until("it holds", async || calls("seen", "hold") == 1).await;
    let view = world.view(&run).await;
    assert_eq!(view.in_flight.iter().map(|(step, attempt)| (step.as_str(), *attempt)).collect::<Vec<_>>(), [("hold#1", 1)]);
    let steps = world.engine.steps(&run).await.unwrap();
    assert_eq!(steps.len(), 1);
    let_go("seen", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.view(&run).await.status, Status::Completed);
}
