//! One worker of two servers: the limit of what it hosts is one for both.

use super::link::{Link, Mode};
use super::programs::{calls, let_go};
use super::world::{World, until};
use std::time::Duration;
use steadfast_kernel::RunId;
use steadfast_runtime::Worker;

/// Two servers, and a worker that hosts so many runs for both.
async fn two(sessions_max: u32) -> ([World; 2], [Link; 2]) {
    let worlds = [World::new().await, World::new().await];
    let worker = Worker { sessions_max, ..worlds[0].worker("w1") };
    let links = [Link::new(&worlds[0].engine, &worker), Link::new(&worlds[1].engine, &worker)];
    for world in &worlds {
        until("it is there", async || world.engine.workers().len() == 1).await;
    }
    (worlds, links)
}

async fn start(world: &World, workflow: &str, of: &str, runs: u32) -> Vec<RunId> {
    let mut started = Vec::new();
    for index in 0..runs {
        started.push(world.start(workflow, &format!("{of}-{index}")).await);
    }
    started
}

fn sessions(worlds: &[World]) -> Vec<usize> {
    worlds.iter().map(|world| world.sessions()[0].1).collect()
}

#[tokio::test(start_paused = true)]
async fn what_one_server_does_not_need_is_for_the_other_and_comes_back_when_it_does() {
    let (worlds, links) = two(20).await;
    let busy = start(&worlds[0], "holds", "places-a", 30).await;
    let held = |of: &str| (0..30).map(|index| calls(&format!("{of}-{index}"), "hold")).sum::<u32>();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((sessions(&worlds), held("places-a")), (vec![20, 0], 20), "all places of the worker, and none more");

    let others = start(&worlds[1], "holds", "places-b", 30).await;
    until("the other one is not kept out", async || held("places-b") == 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(sessions(&worlds), [20, 1], "one beyond the limit, for as long as nothing of the rest ends");
    (0..10).for_each(|index| let_go(&format!("places-a-{index}"), "hold", 1));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let now = sessions(&worlds);
    assert!((20..=24).contains(&now.iter().sum::<usize>()) && now[1] >= 5, "{now:?}");

    links[0].set(Mode::Cut); // what it had is free now, for whoever is left
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(worlds[1].sessions()[0].1, 20);
    (0..30).for_each(|index| let_go(&format!("places-b-{index}"), "hold", 1));
    for run in &others {
        worlds[1].engine.ended(run).await.unwrap();
    }
    drop(busy);
}

#[tokio::test(start_paused = true)]
async fn runs_that_only_wait_make_room_for_those_of_another_server() {
    let (worlds, _links) = two(40).await;
    let sleeping = start(&worlds[0], "sleeps", "bed", 40).await;
    until("all of them are hosted", async || sessions(&worlds) == [40, 0]).await;
    let busy = start(&worlds[1], "holds", "desk", 20).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(sessions(&worlds), [20, 20], "half of them, which is its part");
    assert_eq!((0..20).map(|index| calls(&format!("desk-{index}"), "hold")).sum::<u32>(), 20);
    (0..20).for_each(|index| let_go(&format!("desk-{index}"), "hold", 1));
    for run in &busy {
        worlds[1].engine.ended(run).await.unwrap();
    }
    for run in &sleeping {
        worlds[0].engine.ended(run).await.unwrap();
    }
    assert!((0..40).all(|index| calls(&format!("bed-{index}"), "after") == 1), "they have left in good order");
}
