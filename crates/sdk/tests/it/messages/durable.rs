//! Routes that are workflows: the durable inbox.

use super::{node, start};
use crate::support::{engine, until};
use std::future::IntoFuture;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast::messages::memory::Memory as Network;
use steadfast::messages::{Node, Peer};
use steadfast::{Code, Ctx, Engine, Failure, Policy, SECOND, Status, memory, workflow};

static BOOKED: AtomicU32 = AtomicU32::new(0);

#[workflow]
async fn transfer(ctx: Ctx, amount: u64) -> Result<String, Failure> {
    if amount == 13 {
        return Err(Failure::permanent("unlucky").code(Code::FailedPrecondition));
    }
    ctx.step("book", || async { Ok::<_, Failure>(BOOKED.fetch_add(1, Ordering::Relaxed)) }).await?;
    ctx.sleep(SECOND).await?;
    Ok(format!("booked {amount}"))
}

async fn bank(network: &Network, store: &memory::Memory) -> Engine {
    let builder = engine(store).register(transfer).messages(node(network, "bank")).answer("transfer");
    start(network, builder).await
}

fn caller(network: &Network, name: &str) -> Node {
    node(network, name).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_request_is_a_run_and_duplicates_get_its_result() {
    let (network, store) = (Network::new(1), memory::Memory::new());
    let bank = bank(&network, &store).await;
    let shop = caller(&network, "shop");
    let call = || shop.call("bank", "transfer", "7").id("t-1");
    let (one, two) = tokio::join!(call(), call());
    assert_eq!((one.unwrap(), two.unwrap()), ("\"booked 7\"".into(), "\"booked 7\"".into()));
    assert_eq!(call().await.unwrap(), "\"booked 7\"", "also long after it");
    assert_eq!(bank.list().await.unwrap().items.len(), 1);

    let other = shop.call("bank", "transfer", "8").id("t-1").await.unwrap_err();
    assert_eq!(other.code, Code::InvalidArgument, "an id stands for one request: {other}");
    let another = caller(&network, "another").call("bank", "transfer", "8").id("t-1").await.unwrap();
    assert_eq!(another, "\"booked 8\"", "callers do not share ids");
    let failed = shop.call("bank", "transfer", "13").await.unwrap_err();
    assert_eq!((failed.code, &*failed.message), (Code::FailedPrecondition, "unlucky"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_poison_and_starts_nothing() {
    let (network, store) = (Network::new(2), memory::Memory::new());
    let bank = bank(&network, &store).await;
    let failure = caller(&network, "shop").call("bank", "transfer", "no json").await.unwrap_err();
    assert_eq!(failure.code, Code::DecodeFailure);
    assert_eq!(bank.list().await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tell_is_taken_when_its_run_is_durable() {
    let (network, store) = (Network::new(3), memory::Memory::new());
    let first = bank(&network, &store).await;
    let shop = caller(&network, "shop");
    shop.tell("bank", "transfer", "9").id("t-2").await.unwrap();
    drop(first); // as in a crash, right after the tell was taken
    network.cut_off("bank");
    let again = bank(&network, &store).await;
    shop.tell("bank", "transfer", "9").id("t-2").await.unwrap();
    let runs = again.list().await.unwrap().items;
    assert_eq!(runs.len(), 1);
    let run = again.run(runs[0].run.as_str()).unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "booked 9");
    assert_eq!(run.view().await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_dies_in_the_middle_goes_on_and_the_caller_gets_the_answer() {
    let (network, store) = (Network::new(4), memory::Memory::new());
    let first = bank(&network, &store).await;
    let shop = caller(&network, "shop");
    let policy = Policy::transient().max_attempts(10);
    let calling = tokio::spawn(
        shop.call(Peer::at("bank"), "transfer", "10")
            .id("t-3")
            .policy(policy)
            .timeout(Duration::from_secs(60))
            .into_future(),
    );
    until("the run has begun", async || !first.list().await.unwrap().items.is_empty()).await;
    drop(first);
    network.cut_off("bank");
    let again = bank(&network, &store).await;
    assert_eq!(calling.await.unwrap().unwrap(), "\"booked 10\"");
    assert_eq!(again.list().await.unwrap().items.len(), 1);
}
