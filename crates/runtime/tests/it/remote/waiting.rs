//! Runs whose code is nowhere right now.

use super::link::Link;
use super::programs::{calls, only};
use super::world::{World, until};
use steadfast_kernel::{Origin, RetryRun, Status, WorkflowName};
use steadfast_runtime::clock::VirtualClock;
use steadfast_runtime::{Error, Registry, Worker};
use steadfast_store::memory::Memory;

#[tokio::test(start_paused = true)]
async fn a_workflow_that_nobody_ever_had_is_refused() {
    let world = World::new().await;
    assert!(matches!(world.try_start("ten", "never").await, Err(Error::UnknownWorkflow { .. })));
    assert!(world.engine.view(&"never".parse_id()).await.is_err(), "it left no trace");
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_workflow_that_workers_bring_waits_for_one() {
    let named = |config: &mut steadfast_runtime::Config| config.workers.workflows.extend(WorkflowName::new("ten"));
    let world = World::with(Memory::new(), VirtualClock::start(), Registry::default(), named).await;
    let run = world.start("ten", "named").await;
    until("it waits", async || world.waits(&run).await == ["NO_WORKER"]).await;
    assert_eq!(world.view(&run).await.status, Status::Waiting);
    let other = Worker { registry: only(&["holds"]), ..world.worker("w0") };
    let _other = Link::new(&world.engine, &other);
    until("somebody is there", async || world.engine.workers().len() == 1).await;
    let Err(Error::UnknownWorkflow { known, .. }) = world.try_start("nine", "unknown").await else { panic!("nobody has it") };
    assert_eq!(known, ["holds", "ten"], "what workers bring, and what they are said to bring");
    assert_eq!(world.waits(&run).await, ["NO_WORKER"], "who has other code does not help");
    let _link = Link::new(&world.engine, &world.worker("w1"));
    world.engine.ended(&run).await.unwrap();
    assert_eq!(calls("named", "s9"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_was_here_once_is_known() {
    let world = World::new().await;
    let link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    world.engine.ended(&world.start("ten", "known-0").await).await.unwrap();
    link.set(super::link::Mode::Cut);
    link.gone.await.unwrap();
    let run = world.start("holds", "known-1").await; // a worker had it since the start
    until("it waits", async || world.waits(&run).await == ["NO_WORKER"]).await;
    let world = world.restart().await;
    let again = world.start("ten", "known-2").await; // the store has a run of it
    until("it waits", async || world.waits(&again).await == ["NO_WORKER"]).await;
    assert!(matches!(world.try_start("waits", "known-3").await, Err(Error::UnknownWorkflow { .. })), "nobody has had that since the start");
    let _link = Link::new(&world.engine, &world.worker("w1"));
    world.engine.ended(&again).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn children_lives_and_rounds_wait_for_their_code() {
    let world = World::new().await;
    let parent = Worker { registry: only(&["everything", "continues", "ten"]), ..world.worker("w1") };
    let link = Link::new(&world.engine, &parent);
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("everything", "family").await;
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let children = world.view(&run).await.children;
    let [(_, child)] = &children[..] else { panic!("{children:?}") };
    assert_eq!(world.waits(child).await, ["NO_WORKER"]);
    let other = Worker { registry: only(&["child"]), ..world.worker("w2") };
    let _other = Link::new(&world.engine, &other);
    world.engine.ended(child).await.unwrap();
    world.engine.ended(&run).await.unwrap();
    let round = world.start("continues", "family-round").await;
    world.engine.ended(&round).await.unwrap();
    assert_eq!(calls("family-round", "round"), 3);

    let ten = world.start("ten", "family-ten").await;
    world.engine.ended(&ten).await.unwrap();
    link.set(super::link::Mode::Cut);
    link.gone.await.unwrap();
    let from = steadfast_kernel::RetryFrom::Start;
    world.engine.retry(&ten, RetryRun { from, ..RetryRun::default() }).await.unwrap();
    until("its next life waits", async || world.waits(&ten).await == ["NO_WORKER"]).await;
    let _link = Link::new(&world.engine, &parent);
    world.engine.ended(&ten).await.unwrap();
    assert_eq!(calls("family-ten", "s9"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_worker_can_be_called_off() {
    let named = |config: &mut steadfast_runtime::Config| config.workers.workflows.extend(WorkflowName::new("ten"));
    let world = World::with(Memory::new(), VirtualClock::start(), Registry::default(), named).await;
    let run = world.start("ten", "off").await;
    until("it waits", async || world.waits(&run).await == ["NO_WORKER"]).await;
    world.engine.cancel(&run, Origin::default()).await.unwrap();
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.view(&run).await.status, Status::Cancelled);
}

/// Ids in tests are right.
trait ParseId {
    fn parse_id(&self) -> steadfast_kernel::RunId;
}

impl ParseId for str {
    fn parse_id(&self) -> steadfast_kernel::RunId {
        steadfast_kernel::RunId::new(self).unwrap()
    }
}
