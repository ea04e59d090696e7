//! Dead letters: kept within bounds, and tried again.

mod again;
mod closing;

use crate::network::{counted, ms, node, node_by, pass, request, secs, until};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};
use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steadfast_messaging::envelope::Body;
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Code, Direction, Failure, Letter, LetterKind, Letters, Limits, MemoryLetters, Peer, Policy, Route};
use tokio::time::Instant;

fn letter(kind: LetterKind, id: &str, payload: usize) -> Letter {
    Letter {
        direction: Direction::Received,
        kind,
        peer: "a".into(),
        route: "r".into(),
        id: id.into(),
        payload: Bytes::from(vec![0; payload]),
        failure: Failure::transient("x"),
    }
}

#[tokio::test]
async fn a_box_in_memory_is_bounded_keeps_the_same_message_once_and_leaves_room_for_messages() {
    let letters = MemoryLetters::new(10).bytes_max(1000);
    for failure in ["first", "second"] {
        letters
            .post(Letter { failure: Failure::transient(failure), ..letter(LetterKind::Tell, "x", 10) })
            .await
            .unwrap();
    }
    assert_eq!(letters.list().len(), 1);
    assert_eq!(letters.list()[0].failure.message, "second");
    for _ in 0..4 {
        letters.post(letter(LetterKind::Frame, "", 10)).await.unwrap();
    }
    assert_eq!(letters.post(letter(LetterKind::Frame, "", 10)).await.unwrap_err().code, Code::ResourceExhausted, "half is for messages");
    for id in ["1", "2", "3", "4", "5"] {
        letters.post(letter(LetterKind::Call, id, 10)).await.unwrap();
    }
    assert_eq!(letters.post(letter(LetterKind::Call, "6", 10)).await.unwrap_err().code, Code::ResourceExhausted);
    letters.post(letter(LetterKind::Call, "5", 500)).await.unwrap();
    assert!(letters.post(letter(LetterKind::Call, "4", 500)).await.is_err(), "bytes count");
    assert_eq!(letters.take(|letter| letter.kind == LetterKind::Call).len(), 5);
    assert_eq!(letters.list().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_came_here_is_given_to_its_handler_again() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.letters(letters.clone())));
    let runs = counted(&b, "bad", |_| Err(Failure::permanent("still bad")));
    a.tell("b", "bad", "payload").id("x").await.unwrap();
    until("it is kept", || letters.list().len() == 1).await;
    let [kept] = &letters.take(|_| true)[..] else { panic!("one letter") };
    assert_eq!(b.redrive(kept).await.unwrap_err().message, "still bad");
    assert_eq!((runs.get(), letters.list().len()), (2, 0), "who redrives it keeps it: it is not posted by itself");
    let route = Route::new(|incoming| async move {
        assert_eq!((&*incoming.payload, &*incoming.id, &*incoming.caller.name, incoming.attempt), (&b"payload"[..], "x", "a", 2));
        assert!(incoming.redelivered && incoming.caller.peer == Peer::named("a"));
        Ok(Bytes::new())
    });
    b.route_by("bad", route);
    b.redrive(kept).await.unwrap();
    assert_eq!(b.redrive(&Letter { route: "gone".into(), ..kept.clone() }).await.unwrap_err().code, Code::NotFound);
    let proved = Letter { peer: "a@fingerprint".into(), ..kept.clone() };
    b.redrive(&proved).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_was_to_go_from_here_is_sent_again_with_its_id() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let a = node_by(&network, "a", |builder| builder.letters(letters.clone()));
    drop(a.tell("b", "r", "payload").id("x").await.unwrap_err());
    drop(a.tell(Peer::named("w"), "r", "payload").id("y").timeout(secs(2)).await.unwrap_err());
    until("both are kept", || letters.list().len() == 2).await;
    let kept = letters.take(|_| true);
    assert_eq!(kept.iter().map(|letter| &*letter.peer).collect::<Vec<_>>(), ["b", "@w"]);
    drop(a.redrive(&kept[0]).await.unwrap_err());
    pass(secs(1)).await;
    assert_eq!(letters.list().len(), 0, "who redrives it keeps it");
    let b = node(&network, "b");
    let runs = counted(&b, "r", |_| Ok(Bytes::new()));
    a.redrive(&kept[0]).await.unwrap();
    a.redrive(&kept[0]).await.unwrap();
    until("it has run", || b.counts().requests == 0).await;
    assert_eq!(runs.get(), 1, "by the same id, and so once");
    let mut w = crate::network::Raw::connect(&network, "a", "w").await;
    let redriving = tokio::spawn({
        let (a, letter) = (a.clone(), kept[1].clone());
        async move { a.redrive(&letter).await }
    });
    let Some(Body::Tell(tell)) = w.next().await else { panic!("it goes to whom it was to go") };
    assert_eq!((&*tell.id, &*tell.payload), ("y", &b"payload"[..]));
    drop(redriving);
}

/// Keeps letters, but not at the first try.
struct Stubborn {
    tries: AtomicUsize,
    kept: MemoryLetters,
}

impl Letters for Stubborn {
    fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
        match self.tries.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => ready(Err(Failure::transient("the disk is busy"))).boxed(),
            _ => self.kept.post(letter),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_cannot_be_kept_at_once_is_tried_again_and_close_waits_for_it() {
    let network = Memory::new(1);
    let letters = Arc::new(Stubborn { tries: AtomicUsize::new(0), kept: MemoryLetters::default() });
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.letters(letters.clone())));
    b.route_by("bad", Route::new(|_| async { Err::<Bytes, _>(Failure::transient("busy")) }).tell_policy(Policy::once()));
    a.tell("b", "bad", "").await.unwrap();
    b.close(secs(60)).await;
    assert_eq!((letters.kept.list().len(), letters.tries.load(Ordering::SeqCst)), (1, 3));
}

/// As many as a sender may have under way fail at the same moment, while the store is away for minutes.
#[tokio::test(start_paused = true)]
async fn tells_whose_attempts_are_used_up_are_kept_however_many_they_are_and_however_long_it_takes() {
    struct Away(Instant, MemoryLetters);
    impl Letters for Away {
        fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
            match Instant::now() < self.0 {
                true if letter.id.ends_with('7') => panic!("it is broken as well"),
                true if letter.id.ends_with('3') => ready(Err(Failure::new(Code::ResourceExhausted, "busy").retry_after(secs(1)))).boxed(),
                true => ready(Err(Failure::transient("the store is away"))).boxed(),
                false => self.1.post(letter),
            }
        }
    }
    let network = Memory::new(1);
    let letters = Arc::new(Away(Instant::now() + secs(300), MemoryLetters::default()));
    let a = node_by(&network, "a", |builder| builder.letters(letters.clone()));
    let tells = (0..6000).map(|_| a.tell("nobody", "r", "").timeout(secs(10)).into_future());
    assert!(futures_util::future::join_all(tells).await.iter().all(Result::is_err));
    pass(secs(600)).await;
    assert_eq!((letters.1.list().len(), a.counts().totals.letters_lost, a.counts().calls), (6000, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_letters_that_cannot_be_kept_is_bounded() {
    struct Never(AtomicUsize);
    impl Letters for Never {
        fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            async move {
                let _held = letter;
                std::future::pending().await
            }
            .boxed()
        }
    }
    let network = Memory::new(1);
    let never = Arc::new(Never(AtomicUsize::new(0)));
    let b = node_by(&network, "b", |builder| builder.letters(never.clone()));
    counted(&b, "poison", |_| Err(Failure::poison("?")));
    let mut raw = crate::network::Raw::connect(&network, "b", "raw").await;
    for round in 0..100 {
        let calls: Vec<_> = (0..100).map(|n| Body::Call(request(n, &format!("{round}-{n}"), "poison", "x"))).collect();
        raw.say(&calls).await;
        while raw.within(ms(1)).await.is_some() {}
    }
    assert_eq!(never.0.load(Ordering::SeqCst), 4096);
    let totals = b.counts().totals;
    assert_eq!((totals.letters, totals.letters_lost), (10_000, 10_000 - 4096), "what is lost is counted");
}

#[tokio::test(start_paused = true)]
async fn a_tell_for_which_there_is_no_room_here_is_a_letter_and_a_call_is_not() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let mut limits = Limits::default();
    (limits.calls_open_max, limits.peers_max) = (1, 1);
    let (a, b) = (node_by(&network, "a", |builder| builder.limits(limits).letters(letters.clone())), node(&network, "b"));
    b.route("never", |_| pending::<Result<Bytes, Failure>>());
    let call = tokio::spawn(a.call("b", "never", "").into_future());
    until("it is open", || a.counts().calls == 1).await;
    assert_eq!(a.call("b", "r", "").await.unwrap_err().code, Code::ResourceExhausted);
    assert_eq!(a.tell("b", "r", "kept by its sender").unposted().await.unwrap_err().code, Code::ResourceExhausted);
    assert_eq!(a.tell("b", "r", "too many are open").id("1").await.unwrap_err().code, Code::ResourceExhausted);
    assert_eq!(a.tell("c", "r", "too many are known").id("2").await.unwrap_err().code, Code::ResourceExhausted);
    until("they are kept", || letters.list().len() == 2).await;
    let ran = counted(&b, "r", |_| Ok(Bytes::new()));
    call.abort();
    until("there is room", || a.counts().calls == 0).await;
    let [kept] = &letters.take(|letter| letter.id == "1")[..] else { panic!("one letter") };
    assert_eq!((kept.direction, &kept.payload[..]), (Direction::Sent, &b"too many are open"[..]));
    a.redrive(kept).await.unwrap();
    until("it has run", || ran.get() == 1).await;
}
