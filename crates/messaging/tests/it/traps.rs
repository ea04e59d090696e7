//! What others got wrong: each of these was seen to fail somewhere.

use crate::network::{Count, Raw, counted, echo, ms, node, node_by, pass, request, secs, two, until};
use bytes::Bytes;
use std::future::IntoFuture;
use std::sync::Arc;
use steadfast_messaging::envelope::{Body, Reply};
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Code, Direction, Failure, LetterKind, MemoryLetters, Node, Policy, Route, inbox};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A route whose handler waits for a permit each time, and how often it began.
fn gated(node: &Node, route: &str) -> (Arc<Semaphore>, Count) {
    let (gate, count) = (Arc::new(Semaphore::new(0)), Count::default());
    let (opens, runs) = (Arc::clone(&gate), count.clone());
    node.route(route, move |incoming| {
        let (opens, run) = (Arc::clone(&opens), runs.add());
        async move {
            opens.acquire().await.unwrap().forget();
            Ok(Bytes::from(format!("run {run} of {}", String::from_utf8_lossy(&incoming.payload))))
        }
    });
    (gate, count)
}

#[tokio::test(start_paused = true)]
async fn a_transient_first_delivery_is_not_answered_with_an_empty_success_on_the_second() {
    let (network, _a, b) = two(1);
    let runs = counted(&b, "flaky", |run| if run == 1 { Err(Failure::transient("not yet")) } else { Ok(Bytes::from("done")) });
    let mut raw = Raw::connect(&network, "b", "raw").await;
    raw.say(&[Body::Call(request(1, "x", "flaky", ""))]).await;
    assert_eq!(raw.reply().await.unwrap_err().message, "not yet");
    raw.say(&[Body::Call(request(1, "x", "flaky", ""))]).await;
    assert_eq!(raw.reply().await.unwrap(), "done");
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_own_calls_have_failed_runs_again_when_it_is_asked_again() {
    let (network, a, b) = two(1);
    let ledger = node(&network, "ledger");
    let books = counted(&ledger, "book", |run| if run <= 3 { Err(Failure::transient("busy")) } else { Ok(Bytes::from("booked")) });
    let bank = b.downgrade();
    b.route("transfer", move |_| {
        let bank = bank.upgrade().unwrap();
        async move { bank.call("ledger", "book", "").await }
    });
    let failure = a.call("b", "transfer", "").id("x").await.unwrap_err();
    assert_eq!((failure.max_attempts, books.get()), (Some(3), 3));
    assert_eq!(a.call("b", "transfer", "").id("x").await.unwrap(), "booked", "the ledger is well again");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_call_in_flight_gets_the_first_ones_result() {
    let (network, _a, b) = two(1);
    let (gate, runs) = gated(&b, "slow");
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let mut again = Raw::connect(&network, "b", "raw").await;
    raw.say(&[Body::Call(request(1, "x", "slow", "p"))]).await;
    again.say(&[Body::Call(request(9, "x", "slow", "p"))]).await;
    assert!(again.within(ms(500)).await.is_none(), "it waits");
    gate.add_permits(2);
    assert_eq!(raw.reply().await.unwrap(), "run 1 of p");
    assert_eq!(again.reply().await.unwrap(), "run 1 of p", "over another connection of the same node");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_tell_in_flight_is_dropped_and_a_tell_is_answered_when_it_is_taken() {
    let (network, _a, b) = two(1);
    let (gate, runs) = gated(&b, "slow");
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for _ in 0..3 {
        raw.say(&[Body::Tell(request(1, "x", "slow", "p"))]).await;
        let began = Instant::now();
        raw.reply().await.unwrap();
        assert!(began.elapsed() < ms(100), "though it runs still");
    }
    assert_eq!((runs.get(), b.counts().requests), (1, 1));
    gate.add_permits(3);
    until("it is over", || b.counts().requests == 0).await;
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn at_most_three_attempts_sends_three_times() {
    let (_network, a, b) = two(1);
    let runs = counted(&b, "busy", |_| Err(Failure::transient("busy")));
    let failure = a.call("b", "busy", "").await.unwrap_err();
    assert_eq!((runs.get(), failure.attempts, failure.max_attempts, failure.exhausted().unwrap().reason), (3, 3, Some(3), "busy"));
    let once = a.call("b", "busy", "").policy(Policy::once()).await.unwrap_err();
    assert_eq!((runs.get(), once.attempts, &*once.message), (4, 1, "busy"));
}

#[tokio::test(start_paused = true)]
async fn a_response_timeout_is_transient_within_the_deadline() {
    let (network, a, b) = two(1);
    let runs = counted(&b, "count", |run| Ok(Bytes::from(run.to_string())));
    echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    network.set("b", "a", Faults { drop: 1.0, ..Faults::default() });
    let call = tokio::spawn(a.call("b", "count", "").policy(Policy::transient().attempt_timeout(ms(300))).into_future());
    until("it has run", || runs.get() == 1).await;
    pass(ms(100)).await;
    network.heal();
    assert_eq!(call.await.unwrap().unwrap(), "1", "the answer of the first run");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_longer_than_the_window_is_protected_for_the_whole_window_after_it() {
    let network = Memory::new(1);
    let settings = inbox::Settings { window: secs(10), ..inbox::Settings::default() };
    let b = node_by(&network, "b", |builder| builder.inbox(settings));
    let (gate, runs) = gated(&b, "slow");
    let send = async |wait| {
        pass(wait).await;
        let mut raw = Raw::connect(&network, "b", "raw").await;
        raw.say(&[Body::Call(request(1, "x", "slow", "p"))]).await;
        raw
    };
    drop(send(secs(0)).await);
    let mut raw = send(secs(30)).await;
    assert_eq!(runs.get(), 1, "it runs still, three windows later");
    gate.add_permits(2);
    raw.reply().await.unwrap();
    assert_eq!(send(secs(9)).await.reply().await.unwrap(), "run 1 of p");
    assert_eq!(send(secs(2)).await.reply().await.unwrap(), "run 2 of p", "the window is over");
}

#[tokio::test(start_paused = true)]
async fn a_panic_a_cancelled_call_and_a_refused_one_leave_no_entry() {
    let (network, a, b) = two(1);
    b.route("panics", |incoming| async move {
        assert!(incoming.attempt > 1, "the first one");
        Ok("fine")
    });
    assert_eq!(a.call("b", "panics", "").await.unwrap(), "fine");
    let (gate, runs) = gated(&b, "slow");
    let before = b.counts().inbox;
    let call = tokio::spawn(a.call("b", "slow", "").id("x").into_future());
    until("it runs", || runs.get() == 1).await;
    call.abort();
    until("it is called off", || b.counts().requests == 0).await;
    b.route_by("closed", Route::new(|_| async { Ok("") }).allow(|_| Err(Failure::new(Code::PermissionDenied, "not you"))));
    assert_eq!(a.call("b", "closed", "").await.unwrap_err().code, Code::PermissionDenied);
    let refused = counted(&b, "refuses", |_| Err(Failure::new(Code::PermissionDenied, "not you")));
    drop(a.call("b", "refuses", "").id("y").await.unwrap_err());
    assert_eq!(b.counts().inbox, before, "nothing is left of all that");
    drop(a.call("b", "refuses", "").id("y").await.unwrap_err());
    gate.add_permits(1);
    assert_eq!(a.call("b", "slow", "").id("x").await.unwrap(), "run 2 of ");
    assert_eq!(refused.get(), 2);
    drop(network);
}

#[tokio::test(start_paused = true)]
async fn equal_ids_of_two_callers_do_not_mix() {
    let (network, a, b) = two(1);
    let c = node(&network, "c");
    b.route("who", |incoming| async move { Ok(incoming.caller.name.to_string()) });
    assert_eq!(a.call("b", "who", "").id("x").await.unwrap(), "a");
    assert_eq!(c.call("b", "who", "").id("x").await.unwrap(), "c");
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_the_answers_of_another_by_a_name_with_an_at_sign() {
    let (network, _a, _b) = two(1);
    let link = steadfast_messaging::wire::Wire::connect(&network.wire_of("x"), "b").await.unwrap();
    let mut raw = Raw::greet(link, "victim@0123").await;
    assert!(raw.ends_within(secs(1)).await, "what is behind the @ is for those who have proved something");
}

#[tokio::test(start_paused = true)]
async fn an_equal_id_with_other_bytes_another_route_or_another_kind_is_refused() {
    let (_network, a, b) = two(1);
    echo(&b, "echo");
    echo(&b, "other");
    assert_eq!(a.call("b", "echo", "one").id("x").await.unwrap(), "one");
    let refused = [a.call("b", "echo", "two").id("x").await.unwrap_err(), a.call("b", "other", "one").id("x").await.unwrap_err()];
    assert!(refused.iter().all(|failure| failure.code == Code::InvalidArgument), "{refused:?}");
    assert_eq!(a.tell("b", "echo", "one").id("x").await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(a.call("b", "echo", "one").id("x").await.unwrap(), "one", "the first one is known still");
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded_and_an_idle_inbox_forgets_by_itself() {
    let network = Memory::new(1);
    let settings = inbox::Settings { entries_max: 100, bytes_max: 100_000, ..inbox::Settings::default() };
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.inbox(settings)));
    echo(&b, "echo");
    for _ in 0..1000 {
        a.call("b", "echo", vec![7; 2000]).await.unwrap();
        let counts = b.counts().inbox;
        assert!(counts.finished <= 100 && counts.bytes <= 100_000, "{counts:?}");
    }
    assert!(b.counts().inbox.finished > 10);
    pass(secs(131)).await;
    assert_eq!(b.counts().inbox.finished, 0, "though no message came that could have driven them out");
}

#[tokio::test(start_paused = true)]
async fn jitter_never_takes_a_delay_over_its_cap_and_small_delays_are_not_rounded_to_zero() {
    let (_network, a, b) = two(1);
    counted(&b, "busy", |_| Err(Failure::transient("busy")));
    for _ in 0..20 {
        let policy = Policy::exponential(secs(4)).max_delay(secs(5)).max_attempts(3).attempt_timeout(secs(1));
        let began = Instant::now();
        drop(a.call("b", "busy", "").policy(policy).await.unwrap_err());
        assert!((secs(8)..=secs(10)).contains(&began.elapsed()), "{:?}", began.elapsed());
        let began = Instant::now();
        let policy = Policy::constant(std::time::Duration::from_micros(1)).max_attempts(2);
        drop(a.call("b", "busy", "").policy(policy).await.unwrap_err());
        assert!(began.elapsed() > std::time::Duration::ZERO && began.elapsed() <= ms(2), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_attempt_does_not_eat_the_whole_deadline() {
    let (network, a, b) = two(1);
    echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    let (began, swallow) = (Instant::now(), Faults { drop: 1.0, ..Faults::default() });
    network.set("a", "b", swallow);
    let call = tokio::spawn(a.call("b", "echo", "x").into_future());
    pass(secs(5)).await;
    network.heal();
    assert_eq!(call.await.unwrap().unwrap(), "x");
    assert!(began.elapsed() < secs(13), "a third of the 30 s, and a backoff: {:?}", began.elapsed());
    network.set_everywhere(Faults { delay: Some(ms(20)..=ms(20)), ..Faults::default() });
    b.route("attempt", |incoming| async move { Ok(incoming.attempt.to_string()) });
    let packets = network.counts().packets;
    let many = a.call("b", "attempt", "").policy(Policy::constant(ms(1)).max_attempts(u32::MAX));
    assert_eq!(many.await.unwrap(), "1");
    assert_eq!(network.counts().packets - packets, 2, "an attempt has time for its answer also where there are very many");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_of_an_old_request_never_completes_a_new_one() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let mut listener = network.listen("b");
    let old = tokio::spawn(a.call("b", "x", "old").timeout(secs(1)).policy(Policy::once()).into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let Some(Body::Call(first)) = raw.next().await else { panic!("no call") };
    assert_eq!(old.await.unwrap().unwrap_err().code, Code::DeadlineExceeded);
    let new = tokio::spawn(a.call("b", "x", "new").into_future());
    let second = loop {
        match raw.next().await.unwrap() {
            Body::Call(request) => break request,
            body => assert!(matches!(body, Body::Cancel(number) if number.number == first.number), "nobody waits for it any more"),
        }
    };
    let answer = |number, text: &'static str| Body::Reply(Reply { number, attempt: 1, payload: Bytes::from(text), error: None });
    raw.say(&[answer(first.number, "late"), answer(second.number + 1, "for nobody"), answer(second.number, "right")])
        .await;
    assert_eq!(new.await.unwrap().unwrap(), "right");
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_another_peer_or_another_connection_of_that_name_does_not_count() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let mut listener = network.listen("b");
    let call = tokio::spawn(a.call("b", "x", "").into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let Some(Body::Call(request)) = raw.next().await else { panic!("no call") };
    let answer = |number, text: &'static str| Body::Reply(Reply { number, attempt: 1, payload: Bytes::from(text), error: None });
    for name in ["b", "c"] {
        let mut other = Raw::connect(&network, "a", name).await;
        other.say(&(0..10).map(|number| answer(number, "wrong")).collect::<Vec<_>>()).await;
        pass(ms(10)).await;
    }
    raw.say(&[answer(request.number, "right")]).await;
    assert_eq!(call.await.unwrap().unwrap(), "right");

    let mut first = Raw::connect(&network, "a", "worker").await;
    let call = tokio::spawn(a.call(steadfast_messaging::Peer::named("worker"), "x", "").into_future());
    let Some(Body::Call(request)) = first.next().await else { panic!("no call") };
    let mut second = Raw::connect(&network, "a", "worker").await;
    second.say(&[answer(request.number, "wrong")]).await;
    pass(ms(10)).await;
    first.say(&[answer(request.number, "right")]).await;
    assert_eq!(call.await.unwrap().unwrap(), "right");
}

#[tokio::test(start_paused = true)]
async fn closing_a_connection_ends_its_pending_calls_at_once() {
    let (network, a, b) = two(1);
    let (_gate, runs) = gated(&b, "slow");
    let calls: Vec<_> = (0..50)
        .map(|_| tokio::spawn(a.call("b", "slow", "").policy(Policy::once()).into_future()))
        .collect();
    until("all run", || runs.get() == 50).await;
    let began = Instant::now();
    network.cut_all();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code, Code::Unavailable);
    }
    assert!(began.elapsed() < ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_tell_whose_attempts_are_used_up_is_a_dead_letter_of_the_sender_and_of_the_receiver() {
    let network = Memory::new(1);
    let (sent, received) = (Arc::new(MemoryLetters::default()), Arc::new(MemoryLetters::default()));
    let a = node_by(&network, "a", |builder| builder.letters(sent.clone()));
    let b = node_by(&network, "b", |builder| builder.letters(received.clone()));
    let failure = a.tell("nowhere", "x", "secret").id("one").await.unwrap_err();
    assert_eq!((failure.code, failure.max_attempts), (Code::Unavailable, Some(3)));
    until("it is kept", || sent.list().len() == 1).await;
    let letter = &sent.list()[0];
    assert_eq!(
        (letter.direction, letter.kind, &*letter.peer, &*letter.route, &*letter.id),
        (Direction::Sent, LetterKind::Tell, "nowhere", "x", "one")
    );
    assert_eq!((&*letter.payload, letter.failure.attempts), (&b"secret"[..], 3));

    let runs = counted(&b, "busy", |_| Err(Failure::transient("busy")));
    a.tell("b", "busy", "secret").id("two").await.unwrap();
    until("it is kept", || received.list().len() == 1).await;
    let letter = &received.list()[0];
    assert_eq!((letter.direction, letter.kind, &*letter.peer, &*letter.id), (Direction::Received, LetterKind::Tell, "a", "two"));
    assert_eq!((letter.failure.attempts, runs.get()), (3, 3));
    assert!(!format!("{letter:?} {failure:?}").contains("secret"), "payloads are nobody's business");
}
