//! Dead letters of messages: in the same box as all others, and tried again from there.

use super::{node, start};
use crate::support::{engine, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use steadfast::messages::memory::Memory as Network;
use steadfast::messages::{Caller, Incoming, Route};
use steadfast::{Code, Failure, MINUTE, memory};

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_read_is_a_dead_letter_and_can_be_tried_again_when_the_handler_is_mended() {
    let (network, store) = (Network::new(1), memory::Memory::new());
    let bank = start(&network, engine(&store).messages(node(&network, "bank"))).await;
    let (mended, handled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    bank.node().unwrap().route("book", {
        let (mended, handled) = (Arc::clone(&mended), Arc::clone(&handled));
        move |incoming: Incoming| {
            let (mended, handled) = (Arc::clone(&mended), Arc::clone(&handled));
            async move {
                if !mended.load(Ordering::Relaxed) {
                    incoming.json::<u64>()?;
                }
                handled.fetch_add(1, Ordering::Relaxed);
                Ok("")
            }
        }
    });
    let shop = node(&network, "shop").build().unwrap();
    let failure = shop.call("bank", "book", "seven").id("b-1").await.unwrap_err();
    assert_eq!((failure.code, failure.attempts), (Code::DecodeFailure, 1), "poison is not tried again");
    until("it is kept", async || bank.letters(None, 10).await.unwrap().items.len() == 1).await;
    let letter = bank.letters(None, 10).await.unwrap().items.remove(0).letter.to_string();
    let found = bank.letter(&letter).await.unwrap();
    assert_eq!(found.payload.bytes, "seven", "its bytes, exactly");

    let again = bank.redrive(&letter).await.unwrap_err();
    assert!(again.to_string().contains("not what it takes"), "{again}");
    assert_eq!(bank.letters(None, 10).await.unwrap().items.len(), 1, "it stays");
    mended.store(true, Ordering::Relaxed);
    bank.redrive(&letter).await.unwrap();
    assert_eq!(handled.load(Ordering::Relaxed), 1);
    assert_eq!(bank.letters(None, 10).await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tell_whose_attempts_are_used_up_is_a_dead_letter_of_its_sender_and_is_sent_again_from_there() {
    let (network, store) = (Network::new(2), memory::Memory::new());
    let shop = start(&network, engine(&store).messages(node(&network, "shop"))).await;
    let failure = shop.node().unwrap().tell("bank", "note", "7").id("n-1").await.unwrap_err();
    assert_eq!((failure.code, failure.attempts), (Code::Unavailable, 3));
    until("it is kept", async || shop.letters(None, 10).await.unwrap().items.len() == 1).await;
    let letter = shop.letters(None, 10).await.unwrap().items.remove(0).letter.to_string();

    let heard = Arc::new(AtomicU32::new(0));
    let bank = node(&network, "bank").build().unwrap();
    bank.route("note", {
        let heard = Arc::clone(&heard);
        move |incoming: Incoming| {
            assert_eq!(&*incoming.id, "n-1", "under the same id");
            heard.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, Failure>("") }
        }
    });
    super::listen(&network, &bank);
    shop.redrive(&letter).await.unwrap();
    until("it was heard", async || heard.load(Ordering::Relaxed) == 1).await;
    assert_eq!(shop.letters(None, 10).await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tell_that_was_taken_and_is_not_done_when_the_engine_shuts_down_is_a_dead_letter_there() {
    let (network, store) = (Network::new(3), memory::Memory::new());
    let bank = start(&network, engine(&store).messages(node(&network, "bank"))).await;
    bank.node()
        .unwrap()
        .route("slow", |_: Incoming| async { std::future::pending::<Result<String, Failure>>().await });
    let shop = node(&network, "shop").build().unwrap();
    shop.tell("bank", "slow", "7").id("t-1").await.unwrap();
    bank.shutdown().await;

    let bank = start(&network, engine(&store).messages(node(&network, "bank"))).await;
    let letters = bank.letters(None, 10).await.unwrap().items;
    assert_eq!(letters.len(), 1, "it is kept before the store is closed");
    let redelivered = Arc::new(AtomicBool::new(false));
    bank.node().unwrap().route("slow", {
        let redelivered = Arc::clone(&redelivered);
        move |incoming: Incoming| {
            redelivered.store(incoming.redelivered && &*incoming.id == "t-1", Ordering::Relaxed);
            async { Ok("") }
        }
    });
    bank.redrive(&letters[0].letter.to_string()).await.unwrap();
    assert!(redelivered.load(Ordering::Relaxed) && bank.letters(None, 10).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_sent_a_dead_letter_is_let_in_and_known_again_whatever_its_token_calls_it() {
    let (network, store) = (Network::new(4), memory::Memory::new());
    let bank = engine(&store).messages(node(&network, "bank")).start().await.unwrap();
    let (mut listener, of_bank) = (network.listen("bank"), bank.node().unwrap().clone());
    tokio::spawn(async move {
        while let Some(mut link) = listener.accept().await {
            link.remote.principal = Some("Ann Smith, 100 %".into());
            drop(of_bank.accept(link).await);
        }
    });
    let (mended, handled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let handler = {
        let (mended, handled) = (Arc::clone(&mended), Arc::clone(&handled));
        move |_: Incoming| {
            let mended = mended.load(Ordering::Relaxed);
            handled.fetch_add(u32::from(mended), Ordering::Relaxed);
            async move { if mended { Ok("booked") } else { Err(Failure::poison("not understood")) } }
        }
    };
    let only_ann = |caller: &Caller| match caller.principal.as_deref() {
        Some("Ann Smith, 100 %") => Ok(()),
        other => Err(Failure::new(Code::PermissionDenied, format!("{other:?} may not"))),
    };
    bank.node().unwrap().route_by("book", Route::new(handler).allow(only_ann));
    let shop = node(&network, "shop").build().unwrap();
    let failure = shop.call("bank", "book", "7").id("b-1").await.unwrap_err();
    assert_eq!(failure.message, "not understood");
    until("it is kept", async || bank.letters(None, 10).await.unwrap().items.len() == 1).await;
    let letter = bank.letters(None, 10).await.unwrap().items.remove(0).letter.to_string();

    mended.store(true, Ordering::Relaxed);
    bank.redrive(&letter).await.unwrap();
    assert_eq!(shop.call("bank", "book", "7").id("b-1").await.unwrap(), "booked");
    assert_eq!(handled.load(Ordering::Relaxed), 1, "it is known again");
}

/// In line and at work, as every other one.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_redriven_has_the_time_of_its_route() {
    let (network, store) = (Network::new(5), memory::Memory::new());
    let bank = start(&network, engine(&store).messages(node(&network, "bank"))).await;
    bank.node()
        .unwrap()
        .route("audit", |_: Incoming| async { Err::<String, _>(Failure::permanent("not yet")) });
    let shop = node(&network, "shop").build().unwrap();
    shop.tell("bank", "audit", "7").id("a-1").await.unwrap();
    until("it is kept", async || bank.letters(None, 10).await.unwrap().items.len() == 1).await;
    let letter = bank.letters(None, 10).await.unwrap().items.remove(0).letter.to_string();

    let slow = |_: Incoming| async {
        tokio::time::sleep(5 * MINUTE).await;
        Ok("")
    };
    bank.node().unwrap().route_by("audit", Route::new(slow).side_by_side(1).timeout(10 * MINUTE));
    shop.tell("bank", "audit", "8").id("a-2").await.unwrap();
    let began = tokio::time::Instant::now();
    bank.redrive(&letter).await.unwrap();
    assert!(began.elapsed() >= 9 * MINUTE, "after the other one: {:?}", began.elapsed());
    assert!(bank.letters(None, 10).await.unwrap().items.is_empty());
}
