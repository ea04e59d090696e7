//! Letters that came here are tried again by the rules of their route, and the inbox knows of it.

use crate::network::{Count, counted, node, node_by, pass, secs, until};
use bytes::Bytes;
use std::sync::Arc;
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Code, Direction, Failure, Incoming, Letter, LetterKind, MemoryLetters, Node, Peer, Policy, Route};
use tokio::sync::watch;

/// A shop, a bank, and where the bank's letters are kept.
fn both() -> (Memory, Node, Node, Arc<MemoryLetters>) {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (shop, bank) = (node(&network, "shop"), node_by(&network, "bank", |builder| builder.letters(letters.clone())));
    (network, shop, bank, letters)
}

async fn one(letters: &MemoryLetters) -> Letter {
    until("it is kept", || letters.list().len() == 1).await;
    letters.take(|_| true).remove(0)
}

/// A route whose requests wait for a signal, and how many have begun.
fn gated(make: impl FnOnce(Route) -> Route) -> (Route, Count, watch::Sender<usize>) {
    let (open, opened) = watch::channel(0);
    let begun = Count::default();
    let count = begun.clone();
    let route = Route::new(move |_| {
        let (mut opened, number) = (opened.clone(), count.add());
        async move {
            opened.wait_for(|open| *open >= number).await.map_err(Failure::permanent)?;
            Ok(format!("answer {number}"))
        }
    });
    (make(route), begun, open)
}

fn letter_of(kind: LetterKind, peer: &str, id: &str, payload: &str) -> Letter {
    let (route, id, payload) = ("transfer".to_owned(), id.to_owned(), Bytes::copy_from_slice(payload.as_bytes()));
    Letter { direction: Direction::Received, kind, peer: peer.into(), route, id, payload, failure: Failure::poison("?") }
}

#[tokio::test(start_paused = true)]
async fn a_letter_waits_for_those_of_its_key_and_for_a_place() {
    let (_network, shop, bank, _letters) = both();
    let (route, begun, open) = gated(|route| route.serial_by(|incoming| incoming.payload.clone()).side_by_side(2));
    bank.route_by("transfer", route);
    shop.tell("bank", "transfer", "key").await.unwrap();
    until("it runs", || begun.get() == 1).await;
    let redriving = |payload: &'static str| {
        let (bank, letter) = (bank.clone(), letter_of(LetterKind::Tell, "shop", payload, payload));
        tokio::spawn(async move { bank.redrive(&letter).await })
    };
    let of_the_key = redriving("key");
    pass(secs(1)).await;
    assert_eq!((begun.get(), bank.counts().requests), (1, 2), "it waits for the other one of its key");
    let (other, third) = (redriving("other"), redriving("third"));
    pass(secs(1)).await;
    assert_eq!((begun.get(), bank.counts().requests), (2, 4), "two run side by side, no more");
    open.send_replace(4);
    for redriven in [of_the_key, other, third] {
        redriven.await.unwrap().unwrap();
    }
    assert_eq!(begun.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn who_may_send_requests_is_asked_about_a_letter_with_what_its_caller_had_proved() {
    let bank = Node::builder().name("bank").build().unwrap();
    let digits = "0a".repeat(32);
    let cases = [
        ("shop", "shop None None None".to_owned()),
        ("shop@dns:shop.example", "shop Some(\"dns:shop.example\") None None".to_owned()),
        ("shop@token:ada@home", "shop None None Some(\"ada@home\")".to_owned()),
        (&*format!("shop@cert:{digits}"), format!("shop None Some({digits}) None")),
    ];
    for (peer, seen) in cases {
        let guard = move |caller: &steadfast_messaging::Caller| {
            let what = format!("{} {:?} {:?} {:?}", caller.name, caller.vouched, caller.fingerprint, caller.principal);
            if what == seen { Err(Failure::new(Code::PermissionDenied, "not any more")) } else { panic!("{what}") }
        };
        bank.route_by("transfer", Route::new(|_| async { Ok(Bytes::new()) }).allow(guard));
        let failure = bank.redrive(&letter_of(LetterKind::Tell, peer, "x", "")).await.unwrap_err();
        assert_eq!(failure.message, "not any more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_a_letter_that_was_redriven_is_answered_from_the_inbox() {
    let (_network, shop, bank, letters) = both();
    let call = || shop.call("bank", "transfer", "7").id("x").policy(Policy::once());
    let poison = counted(&bank, "transfer", |_| Err(Failure::poison("not understood")));
    drop(call().await.unwrap_err());
    let letter = one(&letters).await;
    let (route, begun, open) = gated(|route| route);
    bank.route_by("transfer", route);
    let redriving = tokio::spawn({
        let (bank, letter) = (bank.clone(), letter.clone());
        async move { bank.redrive(&letter).await }
    });
    until("it runs", || begun.get() == 1).await;
    let waits = tokio::spawn(call().into_future());
    pass(secs(1)).await;
    assert!(!waits.is_finished(), "who repeats it meanwhile waits for it");
    assert_eq!(bank.redrive(&letter).await.unwrap_err().message, "it has come again, and runs");
    open.send_replace(1);
    redriving.await.unwrap().unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), "answer 1");
    assert_eq!(call().await.unwrap(), "answer 1");
    bank.redrive(&letter).await.unwrap();
    assert_eq!((begun.get(), poison.get()), (1, 1), "what is done is done");
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_a_tell_that_was_redriven_is_dropped_within_the_window() {
    let (_network, shop, bank, letters) = both();
    let runs = counted(&bank, "transfer", |n| if n == 1 { Err(Failure::permanent("bad")) } else { Ok(Bytes::new()) });
    let tell = || shop.tell("bank", "transfer", "7").id("x");
    tell().await.unwrap();
    let letter = one(&letters).await;
    pass(secs(3600)).await;
    bank.redrive(&letter).await.unwrap();
    pass(secs(119)).await;
    tell().await.unwrap();
    pass(secs(10)).await;
    assert_eq!(runs.get(), 2, "the window counts from the end of what was redriven");
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_a_request_stays_if_redriving_it_comes_to_nothing() {
    let (_network, shop, bank, letters) = both();
    let call = || shop.call("bank", "transfer", "7").id("x").policy(Policy::once());
    counted(&bank, "transfer", |_| Err(Failure::poison("not understood")));
    drop(call().await.unwrap_err());
    let letter = one(&letters).await;
    let runs = counted(&bank, "transfer", |_| Err(Failure::transient("busy")));
    assert_eq!(bank.redrive(&letter).await.unwrap_err().message, "busy");
    assert_eq!(call().await.unwrap_err().message, "not understood", "and not run again for its caller");
    let (route, begun, _closed) = gated(|route| route);
    bank.route_by("transfer", route);
    let impatient = tokio::time::timeout(secs(1), bank.redrive(&letter)).await;
    assert!(impatient.is_err() && begun.get() == 1);
    until("it is stopped", || bank.counts().requests == 0).await;
    assert_eq!((call().await.unwrap_err().message.as_str(), runs.get()), ("not understood", 1));
}

#[tokio::test(start_paused = true)]
async fn another_request_of_its_id_is_not_taken_for_it() {
    let (_network, shop, bank, _letters) = both();
    let runs = counted(&bank, "transfer", |_| Ok(Bytes::new()));
    shop.call("bank", "transfer", "7").id("x").await.unwrap();
    let failure = bank.redrive(&letter_of(LetterKind::Call, "shop", "x", "8")).await.unwrap_err();
    assert!(failure.message.contains("another request of that id") && runs.get() == 1, "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tell_on_behalf_of_somebody_is_sent_again_on_the_same_behalf() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let shop = node_by(&network, "shop-1", |builder| builder.letters(letters.clone()));
    for peer in [Peer::at("bank"), Peer::named("bank")] {
        drop(shop.tell(&peer, "transfer", "7").id("x").on_behalf_of("shop").timeout(secs(2)).await.unwrap_err());
        let letter = one(&letters).await;
        assert_eq!(letter.peer, if matches!(peer, Peer::At(_)) { "shop@@bank" } else { "shop@@@bank" });
        if let Peer::Named(_) = peer {
            continue;
        }
        let bank = node(&network, "bank");
        let (scope, mut seen) = watch::channel(String::new());
        bank.route("transfer", move |incoming: Incoming| {
            scope.send_replace(incoming.caller.scope.to_string());
            async { Ok(Bytes::new()) }
        });
        shop.redrive(&letter).await.unwrap();
        assert_eq!(*seen.wait_for(|seen| !seen.is_empty()).await.unwrap(), "shop");
        bank.close(secs(0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_letter_is_not_begun_if_whoever_redrives_it_has_gone_before_its_turn() {
    let (_network, shop, bank, _letters) = both();
    let (route, begun, open) = gated(|route| route.side_by_side(1));
    bank.route_by("transfer", route);
    shop.tell("bank", "transfer", "first").await.unwrap();
    until("it runs", || begun.get() == 1).await;
    let impatient = tokio::time::timeout(secs(1), bank.redrive(&letter_of(LetterKind::Tell, "shop", "x", "7"))).await;
    assert!(impatient.is_err() && bank.counts().requests == 2);
    open.send_replace(2);
    until("both are over", || bank.counts().requests == 0).await;
    assert_eq!(begun.get(), 1);
}

/// Whoever keeps letters may not be able to note that one is done, and has it tried again.
#[tokio::test(start_paused = true)]
async fn a_tell_that_was_redriven_with_success_is_not_run_by_the_next_redrive() {
    let (_network, shop, bank, letters) = both();
    let runs = counted(&bank, "transfer", |n| if n < 3 { Err(Failure::permanent("bad")) } else { Ok(Bytes::new()) });
    shop.tell("bank", "transfer", "7").id("x").await.unwrap();
    let letter = one(&letters).await;
    assert_eq!(bank.redrive(&letter).await.unwrap_err().message, "bad");
    for _ in 0..2 {
        bank.redrive(&letter).await.unwrap();
        assert_eq!(runs.get(), 3, "given up it is run again, and done it is not");
    }
    pass(secs(120)).await;
    bank.redrive(&letter).await.unwrap();
    assert_eq!(runs.get(), 4, "nobody knows any more");
}

#[tokio::test(start_paused = true)]
async fn a_tell_that_was_given_up_stays_so_if_redriving_it_comes_to_nothing() {
    let (_network, shop, bank, letters) = both();
    let runs = counted(&bank, "transfer", |n| match n {
        1 => Err(Failure::permanent("bad")),
        2 => Err(Failure::transient("busy")),
        _ => Ok(Bytes::new()),
    });
    let tell = || shop.tell("bank", "transfer", "7").id("x");
    tell().await.unwrap();
    let letter = one(&letters).await;
    assert_eq!(bank.redrive(&letter).await.unwrap_err().message, "busy");
    tell().await.unwrap();
    pass(secs(1)).await;
    assert_eq!(runs.get(), 2, "who tells it again is told that it is known");
    bank.redrive(&letter).await.unwrap();
    assert_eq!(runs.get(), 3);
}
