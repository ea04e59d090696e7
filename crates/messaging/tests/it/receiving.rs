//! Receiving: routes, lines, bounds, and the end.

use crate::network::{Count, Raw, counted, deaf, echo, ms, node, node_by, pass, request, secs, two, until};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::future::{IntoFuture, pending};
use std::sync::Arc;
use steadfast_messaging::envelope::{self, Body, Cancel, Number};
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Class, Code, Failure, LetterKind, Limits, MemoryLetters, Policy, Route, inbox};
use tokio::sync::Semaphore;
use tokio::time::Instant;

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// What a handler was given, in order, and a gate that it waits at.
fn noted(gate: &Arc<Semaphore>) -> (Arc<Mutex<Vec<String>>>, Route) {
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let (kept, gate) = (Arc::clone(&notes), Arc::clone(gate));
    let route = Route::new(move |incoming| {
        let (gate, text) = (Arc::clone(&gate), String::from_utf8(incoming.payload.to_vec()).unwrap());
        kept.lock().push(text);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(Bytes::new())
        }
    });
    (notes, route)
}

#[tokio::test(start_paused = true)]
async fn a_route_that_nobody_has_and_one_that_takes_something_else_are_refused() {
    let (_network, a, b) = two(1);
    b.route_samples("samples", |_| async {});
    let failure = a.call("b", "none", "secret").await.unwrap_err();
    assert_eq!((failure.code, &*failure.message, failure.attempts), (Code::NotFound, "b has no route none", 1));
    assert_eq!(a.tell("b", "none", "").await.unwrap_err().code, Code::NotFound);
    assert_eq!(a.call("b", "samples", "").await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn a_trace_travels_and_a_route_that_does_not_mind_runs_every_time() {
    let (_network, a, b) = two(1);
    b.route("trace", |incoming| async move { Ok(incoming.trace.to_string()) });
    assert_eq!(a.call("b", "trace", "").trace("00-1-2-3").await.unwrap(), "00-1-2-3");
    assert_eq!(a.call("b", "trace", "").trace("x".repeat(257)).await.unwrap_err().code, Code::InvalidArgument);
    let runs = Count::default();
    let run = runs.clone();
    let route = Route::new(move |_| {
        let run = run.add();
        async move { Ok(run.to_string()) }
    });
    b.route_by("read", route.every_time());
    for expected in ["1", "2", "3"] {
        assert_eq!(a.call("b", "read", "").id("x").await.unwrap(), expected);
    }
    assert_eq!(b.counts().inbox.finished, 1, "only the trace");
}

/// Handlers that begin where their requests are read: those that wait do not hold up the next ones, and everything else is as it always is.
#[tokio::test(start_paused = true)]
async fn handlers_that_begin_at_once_wait_beside_each_other() {
    let (_network, a, b) = two(1);
    let (tasks, runs) = (Arc::new(Mutex::new(Vec::new())), Count::default());
    let (kept, run) = (Arc::clone(&tasks), runs.clone());
    let handler = move |incoming: steadfast_messaging::Incoming| {
        run.add();
        kept.lock().push(tokio::task::id());
        async move {
            match &incoming.payload[..] {
                b"wait" => pass(secs(5)).await,
                b"hang" => pending().await,
                b"panic" => panic!("a bug of the handler"),
                _ => {}
            }
            Ok(incoming.payload)
        }
    };
    b.route_by("short", Route::new(handler).at_once().timeout(secs(20)));
    let began = Instant::now();
    let waits = tokio::spawn(a.call("b", "short", "wait").into_future());
    pass(ms(10)).await;
    let many: Vec<_> = (0..100).map(|number| a.call("b", "short", number.to_string()).into_future()).collect();
    for (number, answer) in futures_util::future::join_all(many).await.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), number.to_string());
    }
    assert!(began.elapsed() < secs(5), "one that waits holds up nobody");
    let reader = tasks.lock().first().copied();
    assert!(tasks.lock().iter().all(|task| Some(*task) == reader), "none has a task of its own when it begins");
    assert_eq!(waits.await.unwrap().unwrap(), "wait");
    assert_eq!(
        (a.call("b", "short", "x").id("once").await.unwrap(), a.call("b", "short", "x").id("once").await.unwrap()),
        ("x".into(), "x".into())
    );
    assert_eq!(runs.get(), 102, "a repeated one runs once");
    assert_eq!(a.call("b", "short", "panic").await.unwrap_err().code, Code::Internal);
    let hangs = a
        .call("b", "short", "hang")
        .timeout(secs(60))
        .policy(Policy::constant(ms(1)).max_attempts(1))
        .await
        .unwrap_err();
    assert_eq!(hangs.code, Code::DeadlineExceeded);
    until("nothing runs any more", || b.counts().requests == 0).await;
}

/// Time stands still in handlers here, so they are short: after a while they begin where their requests are read, and none does that is to have a task.
#[tokio::test(start_paused = true)]
async fn handlers_that_have_shown_to_be_short_begin_at_once() {
    let (_network, a, b) = two(1);
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tasks);
    let handler = move |_: steadfast_messaging::Incoming| {
        kept.lock().push(tokio::task::id());
        async { Ok("") }
    };
    b.route("seen", handler.clone());
    b.route_by("apart", Route::new(handler).in_tasks());
    let tasks_of = async |route: &str| {
        for _ in 0..200 {
            a.call("b", route, "").await.unwrap();
        }
        std::mem::take(&mut *tasks.lock())
    };
    let different = |tasks: &[tokio::task::Id]| tasks.iter().map(ToString::to_string).collect::<BTreeSet<_>>().len();
    let seen = tasks_of("seen").await;
    assert_eq!((different(&seen[..73]), different(&seen[73..])), (73, 1));
    assert_eq!(different(&tasks_of("apart").await), 200);
}

#[tokio::test(start_paused = true)]
async fn a_guard_refuses_by_the_caller_and_one_that_panics_refuses_as_well() {
    let (network, a, b) = two(1);
    let c = node(&network, "c");
    let runs = Count::default();
    let run = runs.clone();
    let route = Route::new(move |_| {
        run.add();
        async { Ok("in") }
    });
    b.route_by(
        "door",
        route.allow(|caller| if &*caller.name == "a" { Ok(()) } else { Err(Failure::new(Code::PermissionDenied, "not you")) }),
    );
    assert_eq!(a.call("b", "door", "").await.unwrap(), "in");
    assert_eq!(c.call("b", "door", "").await.unwrap_err().code, Code::PermissionDenied);
    assert_eq!(runs.get(), 1);
    b.route_by("broken", Route::new(|_| async { Ok("") }).allow(|_| panic!("a bug of the guard")));
    b.route_by("keyless", Route::new(|_| async { Ok("") }).serial_by(|_| -> Vec<u8> { panic!("a bug of the key") }));
    for route in ["broken", "keyless"] {
        let failure = a.call("b", route, "").policy(Policy::once()).await.unwrap_err();
        assert_eq!(failure.code, Code::Internal, "{failure:?}");
    }
    assert_eq!(a.call("b", "door", "").await.unwrap(), "in", "the connection is none the worse");
    assert_eq!((network.counts().links, b.counts().requests), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_key_keep_their_order_and_do_not_hold_up_other_keys() {
    let (_network, a, b) = two(1);
    let gate = Arc::new(Semaphore::new(0));
    let (notes, route) = noted(&gate);
    b.route_by("serial", route.serial_by(|incoming| incoming.payload.slice(..1)).side_by_side(4));
    for text in ["a1", "a2", "a3", "a4", "b1", "a5", "b2", "c1", "d1", "e1", "a6", "b3"] {
        a.tell("b", "serial", text).await.unwrap();
    }
    until("the first of each key runs, as many as may", || notes.lock().len() == 4).await;
    assert_eq!(*notes.lock(), ["a1", "b1", "c1", "d1"]);
    gate.add_permits(100);
    until("all have run", || b.counts().requests == 0).await;
    let notes = notes.lock().clone();
    for key in ["a", "b"] {
        let of_key: Vec<_> = notes.iter().filter(|note| note.starts_with(key)).collect();
        assert!(of_key.is_sorted(), "{notes:?}");
    }
    assert_eq!(notes.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn no_more_run_side_by_side_than_may() {
    let (_network, a, b) = two(1);
    let gate = Arc::new(Semaphore::new(0));
    let (notes, route) = noted(&gate);
    b.route_by("some", route.side_by_side(3));
    let calls: Vec<_> = (0..20).map(|n| tokio::spawn(a.call("b", "some", n.to_string()).into_future())).collect();
    for done in 0..17 {
        until("three more run", || notes.lock().len() == done + 3).await;
        pass(ms(5)).await;
        assert_eq!(notes.lock().len(), done + 3);
        gate.add_permits(1);
    }
    gate.add_permits(3);
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_left_in_line_when_many_threads_take_turns() {
    let network = Memory::new(1);
    let (a, b) = (node(&network, "a"), node(&network, "b"));
    b.route_by("one", Route::new(|_| async { Ok("") }).side_by_side(1).every_time());
    b.route_by(
        "two",
        Route::new(|incoming| async move { Ok(incoming.payload) })
            .side_by_side(2)
            .serial_by(|incoming| incoming.payload.clone()),
    );
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let a = a.clone();
            tokio::spawn(async move {
                for number in 0..1500 {
                    let route = if number % 2 == 0 { "one" } else { "two" };
                    a.call("b", route, vec![worker]).policy(Policy::once()).timeout(secs(20)).await.unwrap();
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_refused_with_a_time_to_come_again_which_the_sender_honours() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let b = node_by(&network, "b", |builder| builder.limits(limits(|limits| (limits.requests_max, limits.requests_bytes_max) = (4, 1000))));
    let gate = Arc::new(Semaphore::new(0));
    let (notes, route) = noted(&gate);
    b.route_by("slow", route);
    let calls: Vec<_> = (0..4).map(|n| tokio::spawn(a.call("b", "slow", n.to_string()).into_future())).collect();
    until("all run", || notes.lock().len() == 4).await;
    let failure = a.call("b", "slow", "x").policy(Policy::once()).await.unwrap_err();
    assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(ms(100))));
    let (at, policy) = (Instant::now(), Policy::constant(ms(1)).max_delay(secs(1)).max_attempts(5));
    let fifth = tokio::spawn(a.call("b", "slow", "y").policy(policy).into_future());
    pass(ms(50)).await;
    gate.add_permits(5);
    fifth.await.unwrap().unwrap();
    assert!((ms(100)..ms(150)).contains(&at.elapsed()), "not after 1 ms: {:?}", at.elapsed());
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(b.counts().requests, 0, "what was refused has given its place back");
    let failure = a.call("b", "slow", vec![b'x'; 1001]).policy(Policy::once()).await.unwrap_err();
    assert_eq!(failure.code, Code::ResourceExhausted, "bytes count as well");
    gate.add_permits(1);
    a.call("b", "slow", vec![b'x'; 1000]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_the_time_of_its_route_and_a_panic_is_a_failure_of_that_request_alone() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.letters(letters.clone())));
    b.route_by("slow", Route::new(|_| pending::<Result<Bytes, Failure>>()).timeout(secs(2)));
    let at = Instant::now();
    let failure = a.call("b", "slow", "").policy(Policy::once()).await.unwrap_err();
    assert_eq!((failure.code, at.elapsed()), (Code::DeadlineExceeded, secs(2)));
    b.route("panics", |_| async { panic!("on purpose") as Result<Bytes, Failure> });
    let failure = a.call("b", "panics", "").policy(Policy::once()).await.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::Internal, "the handler panicked"));
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "a bug in a drop");
        }
    }
    let route = Route::new(|_| async {
        let _bomb = Bomb;
        pending::<Result<Bytes, Failure>>().await
    });
    b.route_by("bombs", route.timeout(secs(1)).side_by_side(1).serial_by(|_| "same"));
    let calls: Vec<_> = (0..3)
        .map(|_| tokio::spawn(a.call("b", "bombs", "").policy(Policy::once()).into_future()))
        .collect();
    let mut codes = Vec::new();
    for call in calls {
        codes.push(call.await.unwrap().unwrap_err().code);
    }
    let late = Code::DeadlineExceeded;
    assert_eq!(codes, [Code::Unavailable, late, late], "the first was let go, and those behind it were not left waiting");
    assert_eq!((b.counts().requests, b.counts().inbox.running), (0, 0));
    assert!(letters.list().is_empty());
    a.tell("b", "bombs", "kept").await.unwrap();
    until("a tell that was taken is not lost with it", || letters.list().len() == 1).await;
    assert_eq!((&*letters.list()[0].payload, b.counts().requests), (&b"kept"[..], 0));
}

#[tokio::test(start_paused = true)]
async fn a_tell_is_retried_here_and_succeeds_without_a_letter_or_becomes_one() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.letters(letters.clone())));
    let runs = counted(&b, "flaky", |run| if run < 3 { Err(Failure::transient("busy")) } else { Ok(Bytes::new()) });
    a.tell("b", "flaky", "").await.unwrap();
    until("it has worked", || b.counts().requests == 0).await;
    assert_eq!((runs.get(), letters.list().len()), (3, 0));
    let runs = counted(&b, "bad", |_| Err(Failure::permanent("never")));
    a.tell("b", "bad", "p").await.unwrap();
    until("it is a letter", || letters.list().len() == 1).await;
    assert_eq!((runs.get(), letters.list()[0].failure.attempts, &*letters.list()[0].payload), (1, 1, &b"p"[..]));
    let poison = counted(&b, "poison", |_| Err(Failure::poison("what is that")));
    assert_eq!(a.call("b", "poison", "").id("x").await.unwrap_err().code, Code::DecodeFailure);
    assert_eq!(a.call("b", "poison", "").id("x").await.unwrap_err().code, Code::DecodeFailure);
    until("it is a letter", || letters.list().len() == 2).await;
    assert_eq!((poison.get(), letters.list()[1].kind), (1, LetterKind::Call));
}

#[tokio::test(start_paused = true)]
async fn close_waits_for_what_runs_refuses_what_comes_and_keeps_the_letters() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.letters(letters.clone())));
    let gate = Arc::new(Semaphore::new(0));
    let (notes, route) = noted(&gate);
    b.route_by("slow", route);
    counted(&b, "bad", |_| Err(Failure::permanent("never")));
    let call = tokio::spawn(a.call("b", "slow", "1").into_future());
    until("it runs", || notes.lock().len() == 1).await;
    a.tell("b", "bad", "").await.unwrap();
    let closing = tokio::spawn({
        let b = b.clone();
        async move { b.close(secs(10)).await }
    });
    pass(ms(10)).await;
    let failure = a.call("b", "slow", "2").policy(Policy::once()).await.unwrap_err();
    assert_eq!((failure.code, failure.class), (Code::Unavailable, steadfast_messaging::Class::Transient));
    assert_eq!(a.stream("b", "x", "").await.unwrap_err().code, Code::Unavailable);
    assert!(!closing.is_finished());
    gate.add_permits(1);
    call.await.unwrap().unwrap();
    closing.await.unwrap();
    assert_eq!((letters.list().len(), notes.lock().len()), (1, 1));
    until("all is cut", || a.counts().connections == 0 && b.counts().connections == 0).await;
}

#[tokio::test(start_paused = true)]
async fn close_does_not_wait_for_ever_for_handlers_or_for_peers_that_do_not_read() {
    let (network, a, b) = two(1);
    b.route("never", |_| pending::<Result<Bytes, Failure>>());
    b.route("big", |_| async { Ok(vec![0; 1 << 20]) });
    let call = tokio::spawn(a.call("b", "never", "").policy(Policy::once()).into_future());
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for number in 0..60 {
        raw.say(&[Body::Call(request(number, &number.to_string(), "big", "")), Body::Ping(Number { number })])
            .await;
    }
    until("both run", || b.counts().requests > 1).await;
    let at = Instant::now();
    b.close(secs(3)).await;
    assert!(at.elapsed() <= ms(3300), "{:?}", at.elapsed());
    until("all is cut", || b.counts().connections == 0).await;
    assert!(at.elapsed() <= ms(3400), "{:?}", at.elapsed());
    drop(call.await.unwrap().unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_comes_about_after_close_is_cut() {
    use steadfast_messaging::wire::Wire;
    let (network, a, b) = two(1);
    let silent = network.wire_of("raw").connect("b").await.unwrap();
    pass(ms(10)).await;
    b.close(secs(0)).await;
    let mut raw = Raw::greet(silent, "raw").await;
    assert!(raw.ends_within(ms(10)).await, "it has said hello too late");
    let c = node(&network, "c");
    echo(&c, "echo");
    network.set_everywhere(Faults { delay: Some(ms(100)..=ms(100)), ..Faults::default() });
    let call = tokio::spawn(a.call("c", "echo", "").policy(Policy::once()).into_future());
    pass(ms(150)).await;
    a.close(secs(0)).await;
    drop(call.await.unwrap().unwrap_err());
    pass(secs(1)).await;
    assert_eq!((a.counts().connections, b.counts().connections, c.counts().connections, network.links()), (0, 0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_handlers_hold_it_is_gone_after_close() {
    let network = Memory::new(1);
    let b = deaf(&network, "b", |builder| builder);
    let alive = Arc::new(());
    let seen = Arc::downgrade(&alive);
    let itself = b.clone();
    b.route("x", move |_| {
        let _held = (&itself, &alive);
        async { Ok("") }
    });
    b.close(secs(1)).await;
    assert!(seen.upgrade().is_none());
}

/// A packet of those frames, whatever they are.
fn packet(frames: &[&[u8]]) -> Bytes {
    let mut packet = BytesMut::new();
    for frame in frames {
        packet.extend_from_slice(&[0x0a, u8::try_from(frame.len()).unwrap()]);
        packet.extend_from_slice(frame);
    }
    packet.freeze()
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_frame_is_a_letter_and_the_others_of_its_packet_go_on() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let b = node_by(&network, "b", |builder| builder.letters(letters.clone()));
    echo(&b, "echo");
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let mut call = BytesMut::new();
    envelope::append(&mut call, &Body::Call(request(1, "x", "echo", "fine")));
    let bytes = [&packet(&[b"\x12\x05\x08", b"\xff\xff\xff"])[..], &call[..], &packet(&[b"\xfa\x01\x01\x00"])[..]].concat();
    raw.say_bytes(bytes.into()).await;
    assert_eq!(raw.reply().await.unwrap(), "fine");
    until("both are kept", || letters.list().len() == 2).await;
    let letter = &letters.list()[0];
    assert_eq!((letter.kind, &*letter.peer, &*letter.payload), (LetterKind::Frame, "raw", &b"\x12\x05\x08"[..]));
    assert_eq!((letter.failure.code, &*letter.route), (Code::DecodeFailure, ""));
    assert_eq!(b.redrive(letter).await.unwrap_err().class, steadfast_messaging::Class::Permanent);
    for _ in 0..20 {
        raw.say_bytes(packet(&[b"\xff"])).await;
    }
    assert!(raw.ends_within(secs(1)).await, "who says nothing else is cut");
    until("they are kept, but not for ever", || letters.list().len() == 16).await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_packet_is_a_letter_and_cuts_the_connection() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let b = node_by(&network, "b", |builder| builder.letters(letters.clone()));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    raw.say_bytes(Bytes::from_static(b"GET / HTTP/1.1\r\n")).await;
    assert!(raw.ends_within(secs(1)).await);
    until("it is kept", || letters.list().len() == 1).await;
    assert_eq!(&*letters.list()[0].payload, b"GET / HTTP/1.1\r\n");
    assert_eq!(b.counts().connections, 0);
}

#[tokio::test(start_paused = true)]
async fn a_letter_of_bytes_that_are_no_message_is_not_longer_than_one() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let b = node_by(&network, "b", |builder| builder.letters(letters.clone()).limits(limits(|limits| limits.payload_bytes_max = 100)));
    for (length, kept) in [(100, 100), (101, 100), (7 << 20, 100)] {
        let mut raw = Raw::connect(&network, "b", "raw").await;
        raw.say_bytes(Bytes::from(vec![b'G'; length])).await;
        assert!(raw.ends_within(secs(1)).await);
        let [letter] = &letters.take(|_| true)[..] else { panic!("one letter") };
        assert_eq!(letter.payload, vec![b'G'; kept]);
        let is_told = letter.failure.message.ends_with(&format!("here are the first 100 of {length} bytes"));
        assert_eq!(is_told, length > kept, "{}", letter.failure.message);
    }
    assert_eq!(b.counts().totals.letters_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn who_says_no_hello_a_strange_one_or_too_much_is_not_let_in() {
    use steadfast_messaging::wire::Wire;
    let network = Memory::new(1);
    let b = node_by(&network, "b", |builder| builder.limits(limits(|limits| limits.connections_max = 3)));
    let hello = |version, node: &str| Body::Hello(envelope::Hello { version, node: node.into(), frame_bytes_max: 1, refused: None });
    let strange = [hello(0, "x"), hello(1, ""), hello(1, &"x".repeat(201)), Body::Ping(Number { number: 1 })];
    for body in strange {
        let link = network.wire_of("x").connect("b").await.unwrap();
        let mut packet = BytesMut::new();
        envelope::append(&mut packet, &body);
        link.outgoing.send(packet.freeze()).await.unwrap();
        let mut incoming = link.incoming;
        while incoming.recv().await.is_some_and(|packet| packet.is_ok()) {}
    }
    let silent: Vec<_> = futures_util::future::join_all((0..3).map(|_| network.wire_of("x").connect("b"))).await;
    pass(ms(10)).await;
    let link = network.wire_of("x").connect("b").await.unwrap();
    let mut incoming = link.incoming;
    assert!(
        tokio::time::timeout(ms(10), async { while incoming.recv().await.is_some_and(|packet| packet.is_ok()) {} })
            .await
            .is_ok(),
        "too many"
    );
    pass(secs(6)).await;
    assert_eq!(b.counts().connections, 0);
    let raw: Vec<_> =
        vec![Raw::connect(&network, "b", "1").await, Raw::connect(&network, "b", "2").await, Raw::connect(&network, "b", "3").await];
    assert_eq!(b.counts().connections, 3, "those who said nothing have lost their places");
    drop((silent, raw));
}

#[tokio::test(start_paused = true)]
async fn too_many_connections_are_refused_with_the_time_to_come_again() {
    let network = Memory::new(1);
    let b = node_by(&network, "b", |builder| builder.limits(limits(|limits| limits.connections_max = 1)));
    echo(&b, "echo");
    let first = Raw::connect(&network, "b", "first").await;
    let c = node(&network, "c");
    let failure = c.call("b", "echo", "x").policy(Policy::once()).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.class, failure.retry_after),
        (Code::ResourceExhausted, Class::Transient, Some(secs(1))),
        "{failure:?}"
    );
    assert!(failure.message.contains("b refuses the link: there are too many connections"), "{failure:?}");
    let patient = tokio::spawn(c.call("b", "echo", "x").into_future());
    pass(ms(100)).await;
    drop(first);
    assert_eq!(patient.await.unwrap().unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_as_often_as_it_comes_keeps_no_place_when_nobody_waits_for_it() {
    let (network, a, b) = two(1);
    b.route_by("durable", Route::new(|_| pending::<Result<Bytes, Failure>>()).taken_when_done());
    for is_cut in [true, false, true] {
        let call = tokio::spawn(a.call("b", "durable", "").timeout(secs(3600)).attempt(1).into_future());
        until("it runs", || b.counts().requests == 1).await;
        if is_cut {
            network.cut("a", "b");
        }
        call.abort();
        until("nothing of it is left", || b.counts().requests == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_and_comes_again_leaves_nobody_waiting_and_runs_once() {
    let network = Memory::new(1);
    let settings = inbox::Settings { waiters_max: 1, ..inbox::Settings::default() };
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.inbox(settings)));
    let runs = Count::default();
    let run = runs.clone();
    b.route("slow", move |_| {
        run.add();
        async {
            pass(secs(10)).await;
            Ok("done")
        }
    });
    let attempt = |limit| {
        let policy = Policy::once().attempt_timeout(limit);
        a.call("b", "slow", "").id("x").timeout(secs(60)).policy(policy).attempt(1).into_future()
    };
    let at = Instant::now();
    for number in 1..=50 {
        match number % 2 {
            0 => assert!(tokio::time::timeout(ms(100), attempt(secs(60))).await.is_err(), "it is dropped"),
            _ => assert_eq!(attempt(ms(100)).await.unwrap_err().code, Code::DeadlineExceeded, "and not refused"),
        }
        assert_eq!((b.counts().requests, runs.get()), (1, 1));
    }
    assert_eq!(attempt(secs(10)).await.unwrap(), "done");
    assert_eq!((at.elapsed(), runs.get(), b.counts().requests), (secs(10), 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_again_can_be_called_off_by_who_waits_for_it_then() {
    let (network, _a, b) = two(1);
    b.route("never", |_| pending::<Result<Bytes, Failure>>());
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for (number, comes_again, requests) in [(1, true, 1), (2, true, 1), (3, false, 0)] {
        raw.say(&[Body::Call(request(number, "x", "never", ""))]).await;
        pass(ms(10)).await;
        raw.say(&[Body::Cancel(Cancel { number, comes_again })]).await;
        pass(ms(10)).await;
        assert_eq!(b.counts().requests, requests);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_as_often_as_it_comes_may_take_longer_than_an_attempt() {
    let (_network, a, b) = two(1);
    for (name, route) in [("read", Route::every_time as fn(Route) -> Route), ("durable", Route::taken_when_done)] {
        let runs = Count::default();
        let run = runs.clone();
        let handler = move |incoming: steadfast_messaging::Incoming| {
            run.add();
            async move {
                pass(secs(12)).await;
                if incoming.payload.is_empty() { Err(Failure::permanent("never")) } else { Ok(incoming.payload) }
            }
        };
        b.route_by(name, route(Route::new(handler)));
        let at = Instant::now();
        assert_eq!(a.call("b", name, "x").await.unwrap(), "x");
        assert_eq!((at.elapsed(), runs.get()), (secs(12), 1), "an attempt has 10 s");
        let failure = a.call("b", name, "").await.unwrap_err();
        assert_eq!((&*failure.message, at.elapsed(), runs.get()), ("never", secs(24), 2), "the attempt that is under way hears it");
        assert_eq!((failure.attempts, b.counts().requests), (2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_of_a_call_that_runs_as_often_as_it_comes_leaves_nothing_behind() {
    let (network, _a, b) = two(1);
    let gate = Arc::new(Semaphore::new(0));
    let (notes, route) = noted(&gate);
    b.route_by("read", route.every_time());
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let attempt = |attempt| Body::Call(envelope::Request { attempt, ..request(1, "x", "read", "p") });
    for (runs, attempts) in [(1, [1, 2]), (2, [2, 2]), (3, [4, 3])] {
        raw.say(&attempts.map(attempt)).await;
        pass(ms(10)).await;
        assert_eq!((notes.lock().len(), b.counts().requests), (runs, 1));
        gate.add_permits(1);
        let Some(Body::Reply(reply)) = raw.next().await else { panic!("no reply") };
        assert_eq!((reply.attempt, b.counts().requests), (attempts[0].max(attempts[1]), 0), "the newest is answered");
    }
    let other = Body::Call(request(1, "y", "read", "q"));
    for (said, runs, requests) in [
        (attempt(5), 4, 1),
        (attempt(6), 4, 1),
        (Body::Cancel(Cancel { number: 1, comes_again: false }), 4, 0),
        (attempt(7), 5, 1),
        (other, 6, 1),
    ] {
        raw.say(std::slice::from_ref(&said)).await;
        pass(ms(10)).await;
        assert_eq!((notes.lock().len(), b.counts().requests), (runs, requests), "{said:?}");
    }
}
