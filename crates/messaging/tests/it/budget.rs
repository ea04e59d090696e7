//! When a request comes again: what the budget of a peer is for, and what it is not, and what the other side asks for.

use crate::network::{Count, counted, ms, pass, secs, two, until};
use bytes::Bytes;
use std::future::IntoFuture;
use std::time::Duration;
use steadfast_messaging::wire::memory::Faults;
use steadfast_messaging::{Code, Failure, Node, Policy, Route};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// More than the budget has turns for in the time of a call.
const MANY: usize = 2000;

type Calls = Vec<JoinHandle<Result<Bytes, Failure>>>;

fn calls(from: &Node, route: &str) -> Calls {
    (0..MANY).map(|_| tokio::spawn(from.call("b", route, "").into_future())).collect()
}

async fn succeed(calls: Calls) {
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

/// A handler that waits to be let go, and how often it ran.
fn gate(node: &Node, route: &str) -> (Count, watch::Sender<bool>) {
    let (ran, open) = (Count::default(), watch::Sender::new(false));
    let (runs, opens) = (ran.clone(), open.subscribe());
    node.route(route, move |_| {
        runs.add();
        let mut opens = opens.clone();
        async move {
            opens.wait_for(|open| *open).await.unwrap();
            Ok("")
        }
    });
    (ran, open)
}

#[tokio::test(start_paused = true)]
async fn all_that_was_under_way_when_the_connection_was_cut_comes_again_and_runs_once() {
    let (network, a, b) = two(1);
    let (ran, open) = gate(&b, "gate");
    let calls = calls(&a, "gate");
    until("all have come", || b.counts().requests == MANY).await;
    network.cut_all();
    until("all have come again", || b.counts().totals.calls_received == 2 * MANY as u64).await;
    open.send_replace(true);
    succeed(calls).await;
    assert_eq!((ran.get(), a.counts().totals.retries), (MANY, MANY as u64));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_sent_does_not_ask_the_budget() {
    let (network, a, b) = two(1);
    let (ran, open) = gate(&b, "gate");
    open.send_replace(true);
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    let calls = calls(&a, "gate");
    pass(ms(500)).await;
    assert_eq!(ran.get(), 0);
    network.heal();
    succeed(calls).await;
    assert_eq!(ran.get(), MANY);
}

#[tokio::test(start_paused = true)]
async fn who_is_cut_off_again_and_again_waits_for_a_turn() {
    let (network, a, b) = two(1);
    let (_ran, open) = gate(&b, "gate");
    let calls = calls(&a, "gate");
    for cut in 1..=2 {
        until("all have come", || b.counts().totals.calls_received == cut * MANY as u64).await;
        network.cut_all();
    }
    pass(secs(3)).await;
    let again = b.counts().totals.calls_received as usize - 2 * MANY;
    assert!((100..=100 + MANY / 10 + 40).contains(&again), "the floor, a tenth, and ten a second: {again}");
    open.send_replace(true);
    drop(calls);
}

/// A route of which all run side by side: each for so long, and then with that outcome.
fn slow(node: &Node, route: &str, takes: Duration, outcome: fn() -> Result<Bytes, Failure>) -> Count {
    let ran = Count::default();
    let runs = ran.clone();
    let handler = move |_| {
        runs.add();
        async move {
            pass(takes).await;
            outcome()
        }
    };
    node.route_by(route, Route::new(handler).side_by_side(MANY));
    ran
}

#[tokio::test(start_paused = true)]
async fn those_who_are_late_and_have_no_turn_are_waited_for() {
    let (_network, a, b) = two(1);
    let ran = slow(&b, "slow", secs(12), || Ok(Bytes::new()));
    let at = Instant::now();
    succeed(calls(&a, "slow")).await;
    assert_eq!((ran.get(), at.elapsed()), (MANY, secs(12)), "an attempt has 10 s, and the answer comes after 12");
    assert!(a.counts().totals.retries < MANY as u64, "not all of them had a turn");
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_has_all_the_time_that_is_left() {
    let (_network, a, b) = two(1);
    let ran = Count::default();
    let runs = ran.clone();
    b.route("slow", move |_| {
        let is_busy = runs.add() <= 2;
        async move {
            pass(if is_busy { ms(0) } else { secs(12) }).await;
            if is_busy { Err(Failure::transient("busy")) } else { Ok("done") }
        }
    });
    assert_eq!(a.call("b", "slow", "").await.unwrap(), "done", "an attempt has 10 s, but nothing can follow this one");
    assert_eq!((ran.get(), a.counts().totals.retries), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_ends_in_time_where_the_policy_says_when() {
    let (_network, a, b) = two(1);
    slow(&b, "slow", secs(12), || Ok(Bytes::new()));
    let at = Instant::now();
    let failure = a.call("b", "slow", "").policy(Policy::once().attempt_timeout(secs(4))).await.unwrap_err();
    assert_eq!((failure.code, at.elapsed()), (Code::DeadlineExceeded, secs(4)));
}

#[tokio::test(start_paused = true)]
async fn those_who_are_late_and_have_no_turn_hear_why_it_fails_and_come_again_after_a_cut() {
    let (network, a, b) = two(1);
    slow(&b, "fails", secs(12), || Err(Failure::permanent("never")));
    let failing = calls(&a, "fails");
    pass(secs(13)).await;
    let heard = failing.iter().filter(|call| call.is_finished()).count();
    assert!(heard > MANY / 2, "those who have a turn ask again when it comes: {heard}");
    for call in failing {
        assert_eq!(call.await.unwrap().unwrap_err().message, "never");
    }
    let ran = slow(&b, "slow", secs(14), || Ok(Bytes::new()));
    let calls = calls(&a, "slow");
    pass(secs(12)).await;
    network.cut_all();
    succeed(calls).await;
    assert_eq!(ran.get(), MANY);
}

#[tokio::test(start_paused = true)]
async fn those_who_are_late_and_never_answered_are_told_that_there_was_no_turn() {
    let (_network, a, b) = two(1);
    slow(&b, "slow", secs(3600), || Ok(Bytes::new()));
    let at = Instant::now();
    let mut without_turn = 0;
    for call in calls(&a, "slow") {
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code, Code::DeadlineExceeded, "{failure:?}");
        without_turn += usize::from(failure.causes.iter().any(|cause| cause.contains("no retry left")));
    }
    assert_eq!(at.elapsed(), secs(30));
    assert!((MANY / 2..MANY).contains(&without_turn), "{without_turn}");
    until("nobody waits for them any more", || b.counts().requests == 0).await;
}

/// As the attempts of a step are made: each is sent by itself, once, and knows its number.
#[tokio::test(start_paused = true)]
async fn an_attempt_of_somebody_who_counts_them_has_its_number_and_costs_a_retry() {
    let (_network, a, b) = two(1);
    b.route("number", |incoming| async move { Ok(incoming.attempt.to_string()) });
    let at = Instant::now();
    for number in 1..=200 {
        let call = a.call("b", "number", "").policy(Policy::once()).attempt(number);
        assert_eq!(call.await.unwrap(), number.to_string());
    }
    let totals = a.counts().totals;
    assert_eq!((totals.calls, totals.retries), (1, 199));
    assert!(at.elapsed() < ms(10), "they do not wait for a turn");
    counted(&b, "busy", |run| if run == 1 { Err(Failure::transient("busy")) } else { Ok(Bytes::new()) });
    a.call("b", "busy", "").policy(Policy::constant(ms(1))).await.unwrap();
    assert!((secs(9)..secs(11)).contains(&at.elapsed()), "others do, for what they cost: {:?}", at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_of_somebody_who_counts_them_may_be_made_several_times_by_its_own_policy() {
    let (_network, a, b) = two(1);
    b.route("busy", |incoming| async move { Err::<Bytes, _>(Failure::transient(incoming.attempt.to_string())) });
    let failure = a
        .call("b", "busy", "")
        .attempt(7)
        .policy(Policy::constant(ms(1)).max_attempts(3))
        .await
        .unwrap_err();
    assert_eq!((failure.attempts, failure.max_attempts, failure.exhausted().unwrap().reason), (3, Some(3), "9"));
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_wait_for_longer_than_the_policy_does_waits_for_so_long() {
    let (_network, a, b) = two(1);
    let asks = |seconds| move |run| if run == 1 { Err(Failure::transient("full").retry_after(secs(seconds))) } else { Ok(Bytes::new()) };
    let runs = counted(&b, "soon", asks(12));
    let at = Instant::now();
    let policy = Policy::constant(ms(10)).max_delay(secs(1)).max_attempts(2);
    a.call("b", "soon", "").policy(policy.clone()).await.unwrap();
    assert_eq!((at.elapsed(), runs.get()), (secs(12), 2));
    let runs = counted(&b, "never", asks(u64::MAX));
    let failure = a.call("b", "never", "").policy(policy).await.unwrap_err();
    assert_eq!((at.elapsed(), runs.get(), &*failure.message), (secs(12 + 30), 1, "full"), "there is no time for another attempt");
}

/// As many as the budget has turns for are late and wait for the next attempt; then `end` happens to them, and none of them is sent again.
async fn turns_are_given_back(end: impl AsyncFnOnce(Calls)) {
    let (_network, a, b) = two(1);
    slow(&b, "slow", secs(2), || Ok(Bytes::new()));
    let policy = Policy::constant(secs(5)).max_attempts(2).attempt_timeout(secs(1));
    let late: Calls = (0..100)
        .map(|_| tokio::spawn(a.call("b", "slow", "").policy(policy.clone()).into_future()))
        .collect();
    pass(ms(1500)).await;
    end(late).await;
    assert_eq!(a.counts().totals.retries, 0);
    let busy = counted(&b, "busy", |run| if run <= 90 { Err(Failure::transient("busy")) } else { Ok(Bytes::new()) });
    let at = Instant::now();
    let again = Policy::constant(ms(1)).max_attempts(2);
    let calls: Calls = (0..90).map(|_| tokio::spawn(a.call("b", "busy", "").policy(again.clone()).into_future())).collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(busy.get(), 180);
    assert!(at.elapsed() < ms(100), "nobody waits for a turn that somebody else has and does not use: {:?}", at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_is_answered_while_it_waits_gives_its_turn_back() {
    turns_are_given_back(succeed).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_dropped_while_it_waits_gives_its_turn_back() {
    turns_are_given_back(async |calls: Calls| {
        calls.iter().for_each(JoinHandle::abort);
        pass(ms(1)).await;
    })
    .await;
}
