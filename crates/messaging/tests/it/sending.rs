//! Sending: one deadline over everything, retries within a budget, whichever connection there is.

use crate::network::{Count, Raw, counted, deaf, echo, ms, node, node_by, pass, secs, two, until};
use bytes::Bytes;
use std::future::{IntoFuture, pending};
use std::time::Duration;
use steadfast_messaging::envelope::{Body, Cancel, Error, Reply};
use steadfast_messaging::wire::Wire;
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Class, Code, Failure, Limits, Node, Peer, Policy, Route};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What comes out of a link.
type Incoming = mpsc::Receiver<Result<Bytes, Failure>>;

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn swallow() -> Faults {
    Faults { swallow: true, ..Faults::default() }
}

/// A handler that never ends by itself, and how many of it run.
fn endless(node: &Node, route: &str) -> (Count, Count) {
    struct Ended(Count);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.add();
        }
    }
    let (began, ended) = (Count::default(), Count::default());
    let (begins, ends) = (began.clone(), ended.clone());
    node.route(route, move |_| {
        begins.add();
        let held = Ended(ends.clone());
        async move {
            let _held = held;
            pending::<Result<Bytes, Failure>>().await
        }
    });
    (began, ended)
}

#[tokio::test(start_paused = true)]
async fn one_deadline_is_over_connecting_sending_and_waiting() {
    let (network, a, b) = two(1);
    endless(&b, "never");
    let began = Instant::now();
    network.set_both("a", "b", swallow());
    let call = a.call("b", "never", "").timeout(secs(3)).policy(Policy::once());
    assert_eq!(call.await.unwrap_err().code, Code::DeadlineExceeded);
    assert_eq!(began.elapsed(), secs(3), "connecting counts");
    network.heal();
    let failure = a.call("b", "never", "").timeout(secs(3)).await.unwrap_err();
    assert_eq!((began.elapsed(), failure.code), (secs(6), Code::DeadlineExceeded), "and so do waiting and backoff");
    let policy = Policy::transient().deadline(secs(1));
    drop(a.call("b", "never", "").policy(policy).await.unwrap_err());
    assert_eq!(began.elapsed(), secs(7), "a deadline of the policy is one as well");
    assert_eq!(a.call("b", "never", "").timeout(Duration::ZERO).await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_travels_and_the_receiver_sees_what_is_left() {
    let (network, a, b) = two(1);
    b.route("left", |incoming| async move { Ok(incoming.left().as_millis().to_string()) });
    assert_eq!(a.call("b", "left", "").timeout(secs(7)).await.unwrap(), "7000");
    b.route_by("short", Route::new(|incoming| async move { Ok(incoming.left().as_millis().to_string()) }).timeout(secs(2)));
    assert_eq!(a.call("b", "short", "").timeout(secs(7)).await.unwrap(), "2000", "the route's own is shorter");
    network.cut_all();
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    let call = tokio::spawn(a.call("b", "left", "").timeout(secs(7)).into_future());
    pass(ms(400)).await;
    network.heal();
    let left: u64 = String::from_utf8(call.await.unwrap().unwrap().into()).unwrap().parse().unwrap();
    assert!((4000..=6600).contains(&left), "what went by before it was sent is gone: {left}");
}

#[tokio::test(start_paused = true)]
async fn time_that_goes_by_while_there_is_no_room_to_send_is_gone_for_the_receiver() {
    let network = Memory::new(1);
    let a = node_by(&network, "a", |builder| builder.limits(limits(|limits| limits.outgoing_bytes_max = 1)));
    let mut listener = network.listen("b");
    let first = tokio::spawn(a.call("b", "x", vec![0; 1 << 20]).timeout(secs(10)).into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let rest: Vec<_> = (0..80)
        .map(|_| tokio::spawn(a.call("b", "x", vec![0; 1000]).timeout(secs(10)).into_future()))
        .collect();
    pass(secs(2)).await;
    let mut left = Vec::new();
    while let Some(Body::Call(request)) = raw.within(ms(100)).await {
        left.push(request.left_us);
    }
    assert_eq!(left.len(), 81);
    assert!(left.iter().any(|left| *left <= 8_000_000), "{left:?}");
    drop((first, rest));
}

/// A line from node `a` to node `b` by way of `line`, over which nothing goes from `a` after its hello until it is opened.
async fn slow_line(network: &Memory) -> CancellationToken {
    let (mut listener, wire, open) = (network.listen("line"), network.wire_of("line"), CancellationToken::new());
    let opened = open.clone();
    tokio::spawn(async move {
        let (near, far) = (listener.accept().await.unwrap(), wire.connect("b").await.unwrap());
        let (there, back) = ((near.incoming, far.outgoing), (far.incoming, near.outgoing));
        tokio::spawn(carry(back, CancellationToken::new(), usize::MAX));
        carry(there, opened, 1).await;
    });
    open
}

/// Carries so many packets, and the others from the moment on that it is opened.
async fn carry((mut from, to): (Incoming, mpsc::Sender<Bytes>), opened: CancellationToken, at_once: usize) {
    let mut carried = 0;
    while let Some(Ok(packet)) = from.recv().await {
        if carried >= at_once {
            opened.cancelled().await;
        }
        carried += 1;
        if to.send(packet).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn time_in_the_queue_of_a_slow_line_is_gone_for_the_receiver() {
    let (network, a, b) = two(1);
    let late = counted(&b, "late", |_| Ok(Bytes::new()));
    counted(&b, "long", |_| Ok(Bytes::new()));
    b.route("left", |incoming| async move { Ok(incoming.left().as_millis().to_string()) });
    let open = slow_line(&network).await;
    let fill = |_| tokio::spawn(a.call("line", "long", vec![0; 64 << 10]).timeout(secs(10)).policy(Policy::once()).into_future());
    let filling: Vec<_> = (0..60).map(fill).collect();
    until("the line is full", || a.counts().calls == 60 && a.counts().outgoing_bytes > 0).await;
    let left = tokio::spawn(
        a.call("line", "left", "")
            .timeout(secs(10))
            .policy(Policy::once().attempt_timeout(secs(10)))
            .into_future(),
    );
    let failure = a.tell("line", "late", "").timeout(secs(2)).policy(Policy::once()).await.unwrap_err();
    assert_eq!(failure.code, Code::DeadlineExceeded);
    pass(secs(1)).await;
    open.cancel();
    let left: u64 = String::from_utf8(left.await.unwrap().unwrap().into()).unwrap().parse().unwrap();
    assert!((6_900..=7_000).contains(&left), "{left} ms of ten seconds are left after three");
    for filled in filling {
        filled.await.unwrap().unwrap();
    }
    pass(secs(1)).await;
    assert_eq!(late.get(), 0, "a tell whose sender has given it up is not begun");
}

#[tokio::test(start_paused = true)]
async fn work_that_is_too_late_is_not_started_also_when_it_waited_in_line() {
    let (network, a, b) = two(1);
    let ran = Count::default();
    let runs = ran.clone();
    let route = Route::new(move |_| {
        let run = runs.add();
        async move {
            pass(if run == 1 { secs(2) } else { secs(0) }).await;
            Ok("")
        }
    });
    b.route_by("line", route.side_by_side(1));
    let first = tokio::spawn(a.call("b", "line", "").into_future());
    until("the first one runs", || ran.get() == 1).await;
    let late = a.call("b", "line", "").timeout(secs(1)).policy(Policy::once()).await.unwrap_err();
    assert_eq!(late.code, Code::DeadlineExceeded);
    first.await.unwrap().unwrap();
    pass(secs(3)).await;
    assert_eq!((ran.get(), b.counts().requests), (1, 0), "nobody waits for the second");
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let over = steadfast_messaging::envelope::Request { left_us: 0, ..crate::network::request(1, "x", "line", "") };
    raw.say(&[Body::Call(over)]).await;
    assert_eq!((raw.reply().await.unwrap_err().code, ran.get()), (Code::DeadlineExceeded, 1));
}

#[tokio::test(start_paused = true)]
async fn backoff_ends_early_when_the_connection_is_ready_again() {
    let (network, a, b) = two(1);
    let (began, _ended) = endless(&b, "slow");
    let policy = Policy::constant(secs(20)).max_attempts(3);
    let call = tokio::spawn(a.call("b", "slow", "").policy(policy.clone()).into_future());
    until("it runs", || began.get() == 1).await;
    b.route("slow", |_| async { Ok("again") });
    let cut_at = Instant::now();
    network.cut_all();
    let call_again = a.call("b", "slow", "").policy(policy);
    assert_eq!(call_again.await.unwrap(), "again");
    assert!(cut_at.elapsed() < secs(2), "another one");
    pass(secs(2)).await;
    assert!(!call.is_finished(), "it waits for the run that it has begun");
    let mut raw = network.listen("c");
    let call = tokio::spawn(a.call("c", "x", "").policy(Policy::constant(secs(20)).max_attempts(3)).into_future());
    drop(Raw::greet(raw.accept().await.unwrap(), "c").await);
    let at = Instant::now();
    let mut second = Raw::greet(raw.accept().await.unwrap(), "c").await;
    let Some(Body::Call(request)) = second.next().await else { panic!("no call") };
    assert!(at.elapsed() < secs(2), "not 20 s, but {:?}", at.elapsed());
    second
        .say(&[Body::Reply(Reply { number: request.number, attempt: request.attempt, payload: "x".into(), error: None })])
        .await;
    assert_eq!(call.await.unwrap().unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn what_the_other_side_asks_to_wait_is_honoured_also_when_there_is_a_new_connection() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let mut listener = network.listen("b");
    let call = tokio::spawn(a.call("b", "x", "").into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let Some(Body::Call(request)) = raw.next().await else { panic!("no call") };
    let full = Failure::new(Code::ResourceExhausted, "full").retry_after(secs(4));
    raw.say(&[Body::Reply(Reply { number: request.number, attempt: 1, payload: Bytes::new(), error: Some(Error::from(&full)) })])
        .await;
    let at = Instant::now();
    pass(ms(10)).await;
    drop(raw);
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    assert!(matches!(raw.next().await, Some(Body::Call(request)) if request.attempt == 2));
    assert!((secs(4)..secs(5)).contains(&at.elapsed()), "{:?}", at.elapsed());
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_of_an_attempt_that_was_given_up_does_not_shorten_the_backoff() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let mut listener = network.listen("b");
    let policy = Policy::constant(secs(3)).max_attempts(2).attempt_timeout(secs(1));
    let call = tokio::spawn(a.call("b", "x", "").policy(policy).into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let Some(Body::Call(request)) = raw.next().await else { panic!("no call") };
    let at = Instant::now();
    pass(ms(1500)).await;
    let busy = Error::from(&Failure::transient("busy"));
    raw.say(&[Body::Reply(Reply { number: request.number, attempt: 1, payload: Bytes::new(), error: Some(busy) })])
        .await;
    assert!(matches!(raw.next().await, Some(Body::Call(request)) if request.attempt == 2));
    assert!(at.elapsed() >= secs(4), "{:?}", at.elapsed());
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn after_ten_thousand_calls_nothing_is_open() {
    let (_network, a, b) = two(1);
    echo(&b, "echo");
    counted(&b, "no", |_| Err(Failure::permanent("no")));
    endless(&b, "never");
    for number in 0..10_000 {
        let outcome = match number % 10 {
            0 => a.call("b", "no", "").await,
            1 => a.call("b", "never", "").timeout(ms(1)).await,
            2 => tokio::time::timeout(ms(1), a.call("b", "never", "").into_future())
                .await
                .unwrap_or(Ok(Bytes::new())),
            3 => a.tell("b", "echo", "").await.map(|()| Bytes::new()),
            _ => a.call("b", "echo", "").await,
        };
        assert_eq!(outcome.is_ok(), number % 10 > 1);
    }
    until("all handlers have ended", || b.counts().requests == 0).await;
    assert_eq!((a.counts().calls, b.counts().calls, b.counts().inbox.running), (0, 0, 0));
    assert_eq!((a.counts().outgoing_bytes, b.counts().outgoing_bytes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_a_thousand_failing_calls_sends_a_tenth_again_beyond_the_floor_and_paces_the_rest() {
    let (_network, a, b) = two(1);
    let runs = counted(&b, "busy", |_| Err(Failure::transient("busy")));
    let calls: Vec<_> = (0..1000).map(|_| tokio::spawn(a.call("b", "busy", "").timeout(secs(10)).into_future())).collect();
    pass(secs(2)).await;
    let soon = runs.get();
    assert!((1050..=1220).contains(&soon), "a thousand, the floor of 100, a tenth, and ten a second: {soon}");
    for call in calls {
        drop(call.await.unwrap().unwrap_err());
    }
    assert!(runs.get() <= 1000 + 100 + 100 + 110, "{}", runs.get());
    assert!(runs.get() > soon + 50, "those who have time get their turn: {}", runs.get());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_make_one_connection() {
    let (network, a, b) = two(1);
    echo(&b, "echo");
    network.set_everywhere(Faults { delay: Some(ms(20)..=ms(20)), ..Faults::default() });
    let calls: Vec<_> = (0..1000).map(|_| tokio::spawn(a.call("b", "echo", "").into_future())).collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((network.counts().links, a.counts().connections, b.counts().connections), (1, 1, 1));
}

/// How long it takes until a notices that b is dead, with those directions swallowed.
async fn noticed(ways: &[(&str, &str)]) -> Duration {
    let (network, a, b) = two(1);
    echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    pass(secs(60)).await;
    assert_eq!((network.counts().links, a.counts().connections), (1, 1), "it is kept alive while nothing is said");
    ways.iter().for_each(|(from, to)| network.set(from, to, swallow()));
    let at = Instant::now();
    until("a has noticed", || a.counts().connections == 0).await;
    let noticed = at.elapsed();
    network.heal();
    assert_eq!(a.call("b", "echo", "again").await.unwrap(), "again", "over a new connection");
    until("b has noticed, too", || b.counts().connections == 1).await;
    noticed
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_half_open_is_noticed_within_dead_after() {
    let dead_after = Limits::default().dead_after;
    for ways in [&[("a", "b"), ("b", "a")][..], &[("b", "a")], &[("a", "b")]] {
        let noticed = noticed(ways).await;
        assert!(noticed <= dead_after + ms(100), "{ways:?}: {noticed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_on_a_dead_connection_are_retried_over_a_new_one() {
    let (network, a, b) = two(1);
    let runs = counted(&b, "count", |run| Ok(Bytes::from(run.to_string())));
    echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    network.set("a", "b", swallow());
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(a.call("b", "count", "").timeout(secs(60)).into_future())).collect();
    pass(secs(10)).await;
    assert_eq!(runs.get(), 0);
    network.cut_all();
    network.heal();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((runs.get(), network.counts().links), (20, 2));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_and_does_not_read_is_dead_as_well() {
    let (network, _a, b) = two(1);
    b.route("big", |_| async { Ok(vec![0; 1 << 20]) });
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for number in 0..100 {
        raw.say(&[Body::Call(crate::network::request(number, &format!("{number}"), "big", ""))]).await;
    }
    let at = Instant::now();
    while raw.say(&[Body::Ping(steadfast_messaging::envelope::Number { number: 1 })]).await && at.elapsed() < secs(300) {
        pass(secs(1)).await;
    }
    assert!(at.elapsed() <= secs(122), "later than who says nothing, because its line may be slow: {:?}", at.elapsed());
    until("nothing is left of it", || b.counts().connections == 0 && b.counts().requests == 0).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_stops_its_handler() {
    let (_network, a, b) = two(1);
    let (began, ended) = endless(&b, "never");
    let call = tokio::spawn(a.call("b", "never", "").into_future());
    until("it runs", || began.get() == 1).await;
    call.abort();
    until("it has stopped", || ended.get() == 1).await;

    let policy = Policy::transient().attempt_timeout(ms(500)).max_attempts(20);
    let call = tokio::spawn(a.call("b", "never", "").policy(policy).into_future());
    pass(secs(5)).await;
    assert_eq!((began.get(), ended.get()), (2, 1), "it was asked for several times and runs once");
    call.abort();
    until("it has stopped", || ended.get() == 2).await;

    let route = Route::new(|_| async { pending::<Result<Bytes, Failure>>().await }).every_time();
    b.route_by("every-time", route);
    let call = tokio::spawn(a.call("b", "every-time", "").into_future());
    until("it runs", || b.counts().requests == 1).await;
    call.abort();
    until("it has stopped", || b.counts().requests == 0).await;

    let call = tokio::spawn(
        a.call("b", "never", "")
            .policy(Policy::transient().attempt_timeout(ms(500)).max_attempts(2))
            .into_future(),
    );
    drop(call.await.unwrap().unwrap_err());
    until("nobody waits for it any more", || ended.get() == began.get()).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_that_was_sent_again_over_a_new_connection_stops_its_handler() {
    let (network, a, b) = two(1);
    let (began, ended) = endless(&b, "never");
    let policy = Policy::transient().attempt_timeout(ms(500)).max_attempts(20);
    let call = tokio::spawn(a.call("b", "never", "").policy(policy).timeout(secs(300)).into_future());
    until("it runs", || began.get() == 1).await;
    network.cut_all();
    pass(secs(10)).await;
    assert_eq!((began.get(), ended.get()), (1, 0), "it runs on, and the caller has come again");
    call.abort();
    pass(ms(100)).await;
    assert_eq!((began.get(), ended.get()), (1, 1), "it has stopped");
    assert_eq!(b.counts().requests, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_for_which_several_wait_stops_when_the_last_of_them_leaves() {
    let (network, _a, b) = two(1);
    let (began, ended) = endless(&b, "never");
    let off = |number| Body::Cancel(Cancel { number, comes_again: false });
    for (round, leave) in [[1, 2, 3], [3, 1, 2], [2, 3, 1]].into_iter().enumerate() {
        let mut raw = Raw::connect(&network, "b", "raw").await;
        let calls = [1, 2, 3].map(|number| Body::Call(crate::network::request(number, &format!("{round}"), "never", "")));
        raw.say(&calls).await;
        until("it runs", || began.get() == round + 1).await;
        raw.say(&[off(leave[0]), off(leave[1])]).await;
        pass(secs(1)).await;
        assert_eq!(ended.get(), round, "somebody waits for it");
        raw.say(&[off(leave[2])]).await;
        pass(ms(100)).await;
        assert_eq!(ended.get(), round + 1, "nobody does any more");
    }
    assert_eq!((began.get(), b.counts().requests), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_again_while_it_is_called_off_runs_again() {
    let (network, _a, b) = two(1);
    let (began, _ended) = endless(&b, "never");
    let mut raw = Raw::connect(&network, "b", "raw").await;
    raw.say(&[Body::Call(crate::network::request(1, "x", "never", ""))]).await;
    until("it runs", || began.get() == 1).await;
    let off = Body::Cancel(Cancel { number: 1, comes_again: false });
    raw.say(&[off, Body::Call(crate::network::request(2, "x", "never", ""))]).await;
    let failure = raw.reply().await.unwrap_err();
    assert_eq!(failure.class, steadfast_messaging::Class::Transient, "somebody else called it off: {failure:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_long_is_refused_by_the_bounds_of_either_side_and_answers_are_no_exception() {
    let network = Memory::new(1);
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.limits(limits(|limits| limits.payload_bytes_max = 1000))));
    echo(&b, "echo");
    let runs = counted(&b, "long", |_| Ok(Bytes::from(vec![0; 2000])));
    let failure = a.call("b", "echo", vec![0; 5 << 20]).await.unwrap_err();
    assert_eq!((failure.code, a.counts().connections), (Code::InvalidArgument, 0), "it is not even tried");
    assert_eq!(a.call("b", "echo", vec![0; 1000]).await.unwrap().len(), 1000);
    let failure = a.call("b", "echo", vec![0; 1001]).await.unwrap_err();
    assert_eq!((failure.code, failure.attempts), (Code::InvalidArgument, 1), "{failure:?}");
    let failure = a.call("b", "long", "").await.unwrap_err();
    assert_eq!((failure.code, failure.attempts, runs.get()), (Code::FailedPrecondition, 1, 1), "{failure:?}");
    b.call("a", "none", "").await.unwrap_err().attempts.checked_sub(1).unwrap();
    a.route("long", |_| async { Ok(vec![0; 2000]) });
    let failure = b.call(Peer::named("a"), "long", "").await.unwrap_err();
    assert_eq!(failure.code, Code::FailedPrecondition, "the answer is longer than who asked takes: {failure:?}");
    assert_eq!(network.counts().cut, 0);
}

#[tokio::test(start_paused = true)]
async fn too_many_open_calls_are_refused_at_once() {
    let network = Memory::new(1);
    let (a, b) = (node_by(&network, "a", |builder| builder.limits(limits(|limits| limits.calls_open_max = 10))), node(&network, "b"));
    endless(&b, "never");
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(a.call("b", "never", "").into_future())).collect();
    until("all are open", || a.counts().calls == 10).await;
    let failure = a.call("b", "never", "").await.unwrap_err();
    assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(ms(100))));
    calls.iter().for_each(|call| call.abort());
    until("none is open", || a.counts().calls == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_cuts_every_connection_at_once_is_not_stormed() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let mut listener = network.listen("b");
    let accepts = Count::default();
    let accepted = accepts.clone();
    tokio::spawn(async move {
        while let Some(link) = listener.accept().await {
            accepted.add();
            drop(Raw::greet(link, "b").await);
        }
    });
    let calls: Vec<_> = (0..100)
        .map(|_| {
            tokio::spawn(
                a.call("b", "x", "")
                    .policy(Policy::constant(ms(1)).max_attempts(1000))
                    .timeout(secs(20))
                    .into_future(),
            )
        })
        .collect();
    for call in calls {
        drop(call.await.unwrap().unwrap_err());
    }
    assert!((10..=80).contains(&accepts.get()), "{} connections in 20 s", accepts.get());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_nobody_can_reach_is_tried_with_pauses_and_only_while_somebody_waits() {
    let (network, a, _b) = two(1);
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    drop(
        a.call("b", "x", "")
            .timeout(secs(20))
            .policy(Policy::constant(secs(1)).max_attempts(15))
            .await
            .unwrap_err(),
    );
    let tries = network.counts().refused;
    assert!((10..=80).contains(&tries), "{tries} in 15 s");
    pass(secs(60)).await;
    assert!(network.counts().refused <= tries + 1, "nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_restarts_under_the_same_name_is_called_at_its_new_connection() {
    let network = Memory::new(1);
    let server = node(&network, "server");
    for life in 0..3 {
        let worker = deaf(&network, "worker", |builder| builder.seed(life));
        worker.route("life", move |_| async move { Ok(life.to_string()) });
        echo(&server, "echo");
        worker.call("server", "echo", "").await.unwrap();
        assert_eq!(server.call(Peer::named("worker"), "life", "").await.unwrap(), life.to_string());
        if life == 1 {
            network.set("worker", "server", swallow()); // its end is not heard
        }
        worker.close(secs(1)).await;
        drop(worker);
        network.set("worker", "server", Faults::default());
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_connections_of_one_name_the_newest_is_used_and_then_the_one_that_is_left() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let (mut first, mut second) = (Raw::connect(&network, "a", "w").await, Raw::connect(&network, "a", "w").await);
    let call = tokio::spawn(a.call(Peer::named("w"), "x", "").into_future());
    assert!(matches!(second.within(secs(1)).await, Some(Body::Call(_))));
    drop(second);
    let Some(Body::Call(request)) = first.within(secs(5)).await else { panic!("it goes over the older one") };
    first
        .say(&[Body::Reply(Reply { number: request.number, attempt: request.attempt, payload: "x".into(), error: None })])
        .await;
    assert_eq!(call.await.unwrap().unwrap(), "x");
    assert_eq!(a.connected(), ["w"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_dropped_ends_its_connections_and_tasks() {
    let (network, _a, b) = two(1);
    echo(&b, "echo");
    let alive = std::sync::Arc::new(());
    let seen = std::sync::Arc::downgrade(&alive);
    let c = deaf(&network, "c", |builder| builder);
    c.route("x", move |_| {
        let _alive = &alive;
        async { Ok("") }
    });
    c.call("b", "echo", "").await.unwrap();
    drop(c);
    until("the other side has noticed", || b.counts().connections == 0).await;
    assert!(seen.upgrade().is_none(), "nothing of it is left");
    until("its link is gone", || network.links() == 0).await;
}

/// Whoever is asked, or cannot be reached, by an address or by a name.
fn peers() -> [Peer; 4] {
    [Peer::at("b"), Peer::named("raw"), Peer::at("nobody"), Peer::named("absent")]
}

/// A request with much time and many attempts.
fn patient(node: &Node, peer: Peer) -> tokio::task::JoinHandle<Result<Bytes, Failure>> {
    let policy = Policy::constant(secs(60)).max_attempts(100);
    tokio::spawn(node.call(peer, "never", "").timeout(secs(3600)).policy(policy).into_future())
}

#[tokio::test(start_paused = true)]
async fn when_a_node_is_closed_its_own_requests_end_at_once_and_say_why() {
    let (network, a, b) = two(1);
    let (began, _ended) = endless(&b, "never");
    let _raw = Raw::connect(&network, "a", "raw").await;
    let pending: Vec<_> = peers().into_iter().map(|peer| patient(&a, peer)).collect();
    let stream = tokio::spawn(a.stream(Peer::named("absent"), "never", "").into_future());
    until("those who can be asked are", || began.get() == 1).await;
    pass(secs(10)).await;
    let at = Instant::now();
    a.close(Duration::ZERO).await;
    let new: Vec<_> = peers().into_iter().map(|peer| patient(&a, peer)).collect();
    let (asked, opened) = (pending.into_iter().chain(new), [stream, tokio::spawn(a.stream("b", "never", "").into_future())]);
    for call in asked {
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!((&*failure.message, failure.class), ("a is ending", Class::Transient), "{failure:?}");
    }
    for stream in opened {
        assert_eq!(stream.await.unwrap().unwrap_err().message, "a is ending");
    }
    assert!(at.elapsed() < secs(1), "{:?}", at.elapsed());
    assert_eq!(a.counts().calls, 0);
}

#[tokio::test(start_paused = true)]
async fn while_a_node_waits_for_what_runs_its_handlers_may_call_others() {
    let (_network, a, b) = two(1);
    echo(&b, "echo");
    let calls = a.clone();
    a.route("relay", move |_| {
        let node = calls.clone();
        async move {
            pass(secs(1)).await;
            node.call("b", "echo", "through").await
        }
    });
    let call = tokio::spawn(b.call("a", "relay", "").into_future());
    until("it runs", || a.counts().requests == 1).await;
    a.close(secs(5)).await;
    assert_eq!(call.await.unwrap().unwrap(), "through");
}

/// It takes longer than its attempt had, and says during the pause before the next that it never will work.
#[tokio::test(start_paused = true)]
async fn a_failure_for_good_that_comes_late_ends_the_call_and_nothing_is_sent_again() {
    let (_network, a, b) = two(1);
    let ran = Count::default();
    let count = ran.clone();
    let refuses = move |_| {
        count.add();
        async {
            pass(ms(1500)).await;
            Err::<Bytes, _>(Failure::permanent("never"))
        }
    };
    b.route_by("refuses", Route::new(refuses).every_time());
    let begun = Instant::now();
    let policy = Policy::constant(secs(3)).max_attempts(3).attempt_timeout(secs(1));
    let failure = a.call("b", "refuses", "").policy(policy).await.unwrap_err();
    assert_eq!((failure.class, &*failure.message), (Class::Permanent, "never"));
    assert_eq!((begun.elapsed().as_millis() / 100, ran.get()), (15, 1));
}

/// Answers those attempts with a refusal, of the two that come; what comes behind them.
async fn refusing(attempts: &[u32]) -> Option<Body> {
    let network = Memory::new(1);
    let (a, mut listener) = (node(&network, "a"), network.listen("b"));
    let policy = Policy::constant(ms(100)).max_attempts(2).attempt_timeout(secs(1));
    let call = tokio::spawn(a.call("b", "x", "").policy(policy).into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    for attempt in 1..=2 {
        let Some(Body::Call(request)) = raw.next().await else { panic!("no call") };
        assert_eq!(request.attempt, attempt);
        let full = Error::from(&Failure::new(Code::ResourceExhausted, "full"));
        if attempts.contains(&attempt) {
            raw.say(&[Body::Reply(Reply { number: request.number, attempt, payload: Bytes::new(), error: Some(full) })])
                .await;
        }
    }
    assert_eq!(call.await.unwrap().unwrap_err().attempts, 2);
    raw.within(secs(1)).await
}

/// Whoever refuses an attempt says nothing about an earlier one, which may be at work.
#[tokio::test(start_paused = true)]
async fn a_call_that_fails_calls_off_what_an_attempt_may_have_begun_that_was_not_answered() {
    assert!(matches!(refusing(&[]).await, Some(Body::Cancel(Cancel { comes_again: false, .. }))));
    assert!(matches!(refusing(&[1]).await, Some(Body::Cancel(Cancel { comes_again: false, .. }))));
    assert!(matches!(refusing(&[2]).await, Some(Body::Cancel(Cancel { comes_again: false, .. }))));
    assert_eq!(refusing(&[1, 2]).await, None, "all that was sent was answered");
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_caller_was_refused_later_and_has_given_up_is_stopped() {
    let network = Memory::new(1);
    let settings = steadfast_messaging::inbox::Settings { waiters_max: 1, ..Default::default() };
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.inbox(settings)));
    let (began, ended) = endless(&b, "never");
    let policy = Policy::constant(ms(100)).max_attempts(2).attempt_timeout(secs(1));
    let failure = a.call("b", "never", "").policy(policy).await.unwrap_err();
    assert_eq!((failure.code, began.get()), (Code::ResourceExhausted, 1), "no more may wait for it");
    pass(secs(1)).await;
    assert_eq!((ended.get(), b.counts().requests), (1, 0), "it has stopped, though it had much time left");
}

/// A call of two attempts, of which the second finds no room, because the other side does not read, and the first is answered then. What becomes of the call, and how long after that.
async fn answered_while_it_waits_for_room(answer: Result<Bytes, Failure>) -> (Result<Bytes, Failure>, Duration) {
    let network = Memory::new(1);
    let a = node_by(&network, "a", |builder| builder.limits(limits(|limits| limits.outgoing_bytes_max = 1)));
    let mut listener = network.listen("b");
    let policy = Policy::constant(ms(100)).max_attempts(2);
    let call = tokio::spawn(a.call("b", "x", "").timeout(secs(10)).policy(policy).into_future());
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let Some(Body::Call(request)) = raw.next().await else { panic!("no call") };
    let fill = |_| tokio::spawn(a.call("b", "y", vec![0; 64 << 10]).policy(Policy::once()).into_future());
    let _filling: Vec<_> = (0..100).map(fill).collect();
    pass(secs(7)).await;
    assert!(!call.is_finished() && a.counts().totals.retries == 1, "it waits");
    let (payload, error) = answer.map_or_else(|failure| (Bytes::new(), Some(Error::from(&failure))), |answer| (answer, None));
    let at = Instant::now();
    raw.say(&[Body::Reply(Reply { number: request.number, attempt: 1, payload, error })]).await;
    (call.await.unwrap(), at.elapsed())
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_the_next_attempt_waits_for_room_ends_the_call() {
    let (outcome, took) = answered_while_it_waits_for_room(Ok("done".into())).await;
    assert_eq!((outcome.unwrap(), took), ("done".into(), Duration::ZERO));
    let (outcome, took) = answered_while_it_waits_for_room(Err(Failure::permanent("never"))).await;
    let failure = outcome.unwrap_err();
    assert_eq!((&*failure.message, failure.attempts, took), ("never", 1, Duration::ZERO), "the second was never sent");
    let (outcome, took) = answered_while_it_waits_for_room(Err(Failure::transient("busy"))).await;
    assert_eq!((outcome.unwrap_err().code, took.as_secs()), (Code::DeadlineExceeded, 3), "this attempt may do better");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_tried_once_has_all_attempts_that_were_made() {
    let (_network, a, b) = two(1);
    let full = |run| Err(if run < 3 { Failure::transient("busy") } else { Failure::new(Code::ResourceExhausted, "full") });
    counted(&b, "full", full);
    let policy = Policy::constant(ms(1)).on(Code::ResourceExhausted, Policy::once());
    let failure = a.call("b", "full", "").policy(policy.clone()).await.unwrap_err();
    assert_eq!((failure.code, failure.attempts), (Code::ResourceExhausted, 3), "{failure:?}");
    let failure = a.call("b", "full", "").policy(policy).await.unwrap_err();
    assert_eq!((&*failure.message, failure.attempts, failure.class), ("full", 1, Class::Transient), "who sends again knows that it may");
}

/// What is sent is nobody's business: neither a request nor a stream shows it.
#[tokio::test]
async fn payloads_are_not_shown() {
    let (_network, a, _b) = two(1);
    let shown = format!("{:?} {:?} {:?}", a.call("b", "r", "secret"), a.tell("b", "r", "secret"), a.stream("b", "r", "secret"));
    assert!(shown.contains("route: \"r\"") && !shown.contains("secret"), "{shown}");
}
