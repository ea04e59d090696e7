//! `ctx.call` and `ctx.tell`: steps with a request id that stays.

use super::{listen, node, start};
use crate::support::{engine, until};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::messages::memory::{Faults, Memory as Network};
use steadfast::messages::{Incoming, Node, Route};
use steadfast::{Code, Ctx, Error, Event, Failure, Policy, SECOND, memory, workflow};

#[workflow]
async fn order(ctx: Ctx, amount: u64) -> Result<String, Failure> {
    let receipt: String = ctx.call("bank", "transfer", &amount).await?;
    ctx.tell("bank", "note", &receipt).await?;
    Ok(receipt)
}

/// What was asked: the route, and the request id.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A bank that remembers what it was asked, by request id.
fn bank(network: &Network) -> (Node, Asked) {
    let bank = node(network, "bank").build().unwrap();
    let asked = Asked::default();
    for route in ["transfer", "note"] {
        let asked = Arc::clone(&asked);
        bank.route(route, move |incoming: Incoming| {
            asked.lock().unwrap().push((incoming.route.to_string(), incoming.id.to_string()));
            async move { Ok(format!("\"took {}\"", incoming.payload.len())) }
        });
    }
    listen(network, &bank);
    (bank, asked)
}

#[tokio::test(start_paused = true)]
async fn a_call_and_a_tell_are_steps_named_like_their_routes() {
    let network = Network::new(1);
    let (_bank, asked) = bank(&network);
    let shop = start(&network, engine(&memory::Memory::new()).register(order).messages(node(&network, "shop"))).await;
    let run = shop.start("order", &7).id("o1").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "took 1");
    let asked: Vec<_> = asked.lock().unwrap().clone();
    assert_eq!(asked.iter().map(|(route, _)| &**route).collect::<Vec<_>>(), ["transfer", "note"]);
    assert!(asked[0].1.contains("o1") && asked[0].1 != asked[1].1, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_asked_for_again_and_the_request_runs_once() {
    let network = Network::new(2);
    let (_bank, asked) = bank(&network);
    let shop = start(&network, engine(&memory::Memory::new()).register(order).messages(node(&network, "shop"))).await;
    shop.node().unwrap().call("bank", "note", "1").await.unwrap(); // there is a connection
    network.set("bank", "shop", Faults { swallow: true, ..Faults::default() });
    let run = shop.start("order", &7).id("o1").await.unwrap();
    until("the bank was asked", async || asked.lock().unwrap().iter().any(|(route, _)| route == "transfer")).await;
    network.heal();
    network.cut_all();
    assert_eq!(run.result::<String>().await.unwrap(), "took 1");
    assert_eq!(asked.lock().unwrap().iter().filter(|(route, _)| route == "transfer").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_before_the_answer_is_recorded_asks_with_the_same_id() {
    let network = Network::new(3);
    let (bank, asked) = bank(&network);
    let store = memory::Memory::new();
    let (reached, go_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    bank.route_by("transfer", {
        let (asked, reached, go_on) = (Arc::clone(&asked), Arc::clone(&reached), Arc::clone(&go_on));
        Route::new(move |incoming: Incoming| {
            asked.lock().unwrap().push(("transfer".into(), incoming.id.to_string()));
            let (reached, go_on) = (Arc::clone(&reached), Arc::clone(&go_on));
            async move {
                reached.notify_one();
                go_on.notified().await;
                Ok("\"done\"")
            }
        })
    });
    let first = start(&network, engine(&store).register(order).messages(node(&network, "shop"))).await;
    first.start("order", &7).id("o1").await.unwrap();
    reached.notified().await;
    drop(first); // as in a crash
    network.cut_off("shop");
    let again = start(&network, engine(&store).register(order).messages(node(&network, "shop"))).await;
    go_on.notify_one();
    assert_eq!(again.run("o1").unwrap().result::<String>().await.unwrap(), "done");
    assert_eq!(asked.lock().unwrap().iter().filter(|(route, _)| route == "transfer").count(), 1, "the second one waited for the first");
}

#[tokio::test(start_paused = true)]
async fn the_receiver_sees_which_attempt_of_the_step_it_is_and_the_node_counts_it() {
    let network = Network::new(5);
    let (bank, _) = bank(&network);
    let attempts: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
    for route in ["transfer", "note"] {
        let attempts = Arc::clone(&attempts);
        let handler = move |incoming: Incoming| {
            attempts.lock().unwrap().push((incoming.route.to_string(), incoming.attempt));
            async move { if incoming.attempt < 3 { Err(Failure::transient("busy")) } else { Ok("\"done\"") } }
        };
        bank.route_by(route, Route::new(handler).taken_when_done());
    }
    let shop = start(&network, engine(&memory::Memory::new()).register(order).messages(node(&network, "shop"))).await;
    let run = shop.start("order", &7).id("o1").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "done");
    let expected = ["transfer", "note"].map(|route| [1, 2, 3].map(|attempt| (route.to_owned(), attempt))).concat();
    assert_eq!(*attempts.lock().unwrap(), expected);
    let totals = shop.node().unwrap().counts().totals;
    assert_eq!((totals.calls, totals.tells, totals.retries), (1, 1, 4));
}

#[workflow]
async fn short(ctx: Ctx, _: ()) -> Result<String, Failure> {
    ctx.call("bank", "slow", &1)
        .retry(Policy::constant(SECOND).max_attempts(2))
        .timeout(2 * SECOND)
        .await
}

#[tokio::test(start_paused = true)]
async fn attempts_are_recorded_and_what_is_left_of_their_time_travels() {
    let network = Network::new(4);
    let (bank, _) = bank(&network);
    let left: Arc<Mutex<Vec<Duration>>> = Arc::default();
    bank.route_by("slow", {
        let left = Arc::clone(&left);
        Route::new(move |incoming: Incoming| {
            left.lock().unwrap().push(incoming.left());
            async { std::future::pending::<Result<String, Failure>>().await }
        })
    });
    let shop = start(&network, engine(&memory::Memory::new()).register(short).messages(node(&network, "shop"))).await;
    let run = shop.start("short", &()).id("s").await.unwrap();
    let Err(Error::Failed { failure, .. }) = run.result::<String>().await else { panic!("it has no time") };
    assert_eq!((failure.code, failure.attempts), (Code::DeadlineExceeded, 2));
    let left = left.lock().unwrap().clone();
    assert!(
        matches!(left[..], [left] if left <= 4 * SECOND && left > 3 * SECOND),
        "the time of both attempts, of which the second has waited: {left:?}"
    );
    let retries = run
        .journal()
        .await
        .unwrap()
        .iter()
        .filter(|entry| matches!(entry.event, Event::RetryScheduled { .. }))
        .count();
    assert_eq!(retries, 1);
}

#[workflow]
async fn once(ctx: Ctx, _: ()) -> Result<String, Failure> {
    ctx.call("bank", "transfer", &1).retry(Policy::once()).timeout(300 * SECOND).await
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_is_not_called_off_by_a_shutdown_and_the_request_runs_once() {
    let network = Network::new(8);
    let (bank, asked) = bank(&network);
    let store = memory::Memory::new();
    let (reached, go_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    bank.route_by("transfer", {
        let (asked, reached, go_on) = (Arc::clone(&asked), Arc::clone(&reached), Arc::clone(&go_on));
        let route = Route::new(move |incoming: Incoming| {
            asked.lock().unwrap().push(("transfer".into(), incoming.id.to_string()));
            let (reached, go_on) = (Arc::clone(&reached), Arc::clone(&go_on));
            async move {
                reached.notify_one();
                go_on.notified().await;
                Ok("\"done\"")
            }
        });
        route.timeout(300 * SECOND)
    });
    let first = start(&network, engine(&store).register(once).messages(node(&network, "shop"))).await;
    first.start("once", &()).id("o").await.unwrap();
    reached.notified().await;
    first.shutdown().await;
    let again = start(&network, engine(&store).register(once).messages(node(&network, "shop"))).await;
    go_on.notify_one();
    assert_eq!(again.run("o").unwrap().result::<String>().await.unwrap(), "done");
    assert_eq!(asked.lock().unwrap().len(), 1, "what is made again after the start has waited for what went on");
}

#[workflow]
async fn in_vain(ctx: Ctx, deadline: Option<Duration>) -> Result<String, Failure> {
    let policy = Policy::constant(SECOND).max_attempts(3);
    let policy = deadline.iter().fold(policy, |policy, deadline| policy.deadline(*deadline));
    ctx.call("bank", "busy", &1).retry(policy).timeout(4 * SECOND).await
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_says_how_much_is_left_by_then() {
    let network = Network::new(7);
    let (bank, _) = bank(&network);
    let left: Arc<Mutex<Vec<Duration>>> = Arc::default();
    bank.route("busy", {
        let left = Arc::clone(&left);
        move |incoming: Incoming| {
            left.lock().unwrap().push(incoming.left());
            async { Err::<String, _>(Failure::transient("busy")) }
        }
    });
    let shop = start(&network, engine(&memory::Memory::new()).register(in_vain).messages(node(&network, "shop"))).await;
    for (deadline, expected) in [(None, [12, 8, 4]), (Some(10 * SECOND), [10, 9, 8])] {
        let run = shop.start("in_vain", &deadline).await.unwrap();
        let Err(Error::Failed { failure, .. }) = run.result::<String>().await else { panic!("it is busy") };
        assert_eq!(failure.attempts, 3);
        let left = std::mem::take(&mut *left.lock().unwrap());
        assert_eq!(left.len(), 3);
        for (left, expected) in left.into_iter().zip(expected) {
            assert!(left <= expected * SECOND && left + SECOND > expected * SECOND, "{left:?} instead of {expected} s, {deadline:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_node_a_call_fails_for_good_and_says_what_to_do() {
    let shop = engine(&memory::Memory::new()).register(order).start().await.unwrap();
    let run = shop.start("order", &7).await.unwrap();
    let Err(Error::Failed { failure, .. }) = run.result::<String>().await else { panic!("there is no node") };
    assert!(failure.message.contains("EngineBuilder::messages"), "{failure}");
    assert_eq!(failure.attempts, 1, "it is not tried again");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_answer_is_not_asked_for_again() {
    let network = Network::new(5);
    let (_bank, asked) = bank(&network);
    let store = memory::Memory::new();
    let first = start(&network, engine(&store).register(order).messages(node(&network, "shop"))).await;
    let run = first.start("order", &7).id("o1").await.unwrap();
    run.result::<String>().await.unwrap();
    let before = asked.lock().unwrap().len();
    assert!(first.replay("o1").await.unwrap().mismatch.is_none());
    assert_eq!(asked.lock().unwrap().len(), before);
}

#[workflow]
async fn patient(ctx: Ctx, _: ()) -> Result<String, Failure> {
    ctx.call("bank", "long", &1).await
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_longer_than_an_attempt_is_not_called_off_and_runs_once() {
    let network = Network::new(6);
    let (bank, asked) = bank(&network);
    bank.route("long", {
        let asked = Arc::clone(&asked);
        move |incoming: Incoming| {
            asked.lock().unwrap().push(("long".into(), incoming.id.to_string()));
            async {
                tokio::time::timeout(12 * SECOND, std::future::pending::<()>()).await.unwrap_err();
                Ok("\"done\"")
            }
        }
    });
    let shop = start(&network, engine(&memory::Memory::new()).register(patient).messages(node(&network, "shop"))).await;
    let run = shop.start("patient", &()).id("p").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "done");
    assert_eq!(asked.lock().unwrap().len(), 1, "the second attempt has waited for what the first one began");
}
