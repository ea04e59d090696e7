//! What becomes of tells that were taken when their node ends.

use crate::network::{ms, node, node_by, pass, secs, until};
use bytes::Bytes;
use parking_lot::Mutex;
use std::future::{IntoFuture, pending};
use std::sync::Arc;
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Class, Failure, Incoming, MemoryLetters, Node, Policy, Route};

/// A bank whose tells never end, and where its letters are kept: it has taken four, of which two run.
async fn stuck() -> (Node, Node, Arc<MemoryLetters>) {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (shop, bank) = (node(&network, "shop"), node_by(&network, "bank", |builder| builder.letters(letters.clone())));
    let route = Route::new(|_| async { pending::<Result<Bytes, Failure>>().await });
    bank.route_by("stuck", route.side_by_side(2).serial_by(|incoming| incoming.payload.clone()).timeout(secs(3600)));
    for (id, key) in [("runs", "a"), ("waits for its key", "a"), ("runs, too", "b"), ("waits for a place", "c")] {
        shop.tell("bank", "stuck", key).id(id.replace(' ', "-")).await.unwrap();
    }
    assert_eq!((bank.counts().requests, letters.list().len()), (4, 0));
    (shop, bank, letters)
}

fn ids(letters: &MemoryLetters) -> Vec<String> {
    let mut ids: Vec<_> = letters.list().into_iter().map(|letter| letter.id).collect();
    ids.sort();
    ids
}

const ALL: [&str; 4] = ["runs", "runs,-too", "waits-for-a-place", "waits-for-its-key"];

#[tokio::test(start_paused = true)]
async fn tells_that_were_taken_and_are_not_done_when_their_node_ends_are_letters() {
    let (_shop, bank, letters) = stuck().await;
    bank.close(secs(1)).await;
    assert_eq!(ids(&letters), ALL);
    assert_eq!(bank.counts().requests, 0, "none of them runs any more");
    assert!(
        letters
            .list()
            .iter()
            .all(|letter| letter.failure.class == Class::Transient && letter.failure.message.contains("ending"))
    );
    let again = Node::builder().name("bank").build().unwrap();
    again.route("stuck", |incoming: Incoming| async move {
        assert!(incoming.redelivered, "it may have been run in part");
        Ok(Bytes::new())
    });
    for letter in letters.take(|_| true) {
        again.redrive(&letter).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn tells_of_a_route_that_was_replaced_are_letters_as_well() {
    let (_shop, bank, letters) = stuck().await;
    bank.remove_route("stuck");
    bank.close(secs(1)).await;
    assert_eq!(ids(&letters), ALL);
}

#[tokio::test(start_paused = true)]
async fn letters_of_tells_are_kept_before_that_ends_which_may_keep_them() {
    let (_shop, bank, letters) = stuck().await;
    let seen = Mutex::new(Vec::new());
    bank.close_after(async { *seen.lock() = ids(&letters) }, secs(1)).await;
    assert_eq!(*seen.lock(), ALL);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_waits_for_tells_that_it_has_taken_and_takes_no_more() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (shop, bank) = (node(&network, "shop"), node_by(&network, "bank", |builder| builder.letters(letters.clone())));
    let (go, gone) = tokio::sync::watch::channel(false);
    bank.route("slow", move |_| {
        let mut gone = gone.clone();
        async move { gone.wait_for(|gone| *gone).await.map(|_| Bytes::new()).map_err(Failure::permanent) }
    });
    shop.tell("bank", "slow", "").await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let closing = tokio::spawn({
        let (bank, order) = (bank.clone(), Arc::clone(&order));
        async move { bank.close_after(async { order.lock().push("work") }, secs(10)).await }
    });
    let refused = shop.tell("bank", "slow", "").policy(Policy::once()).unposted().await.unwrap_err();
    assert!(refused.message.contains("ending") && !closing.is_finished(), "{refused:?}");
    order.lock().push("done");
    go.send_replace(true);
    closing.await.unwrap();
    assert_eq!((&order.lock()[..], letters.list().len()), (&["done", "work"][..], 0));
}

/// A bank with one turn at a time whose route fails for `bad`, then waits for an hour before it is tried again, never ends for `stuck`, and notes what it is given.
async fn slow_to_try_again(keyed: bool) -> (Node, Node, Arc<MemoryLetters>, Arc<Mutex<Vec<(Bytes, u32)>>>) {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (shop, bank) = (node(&network, "shop"), node_by(&network, "bank", |builder| builder.letters(letters.clone())));
    let notes: Arc<Mutex<Vec<(Bytes, u32)>>> = Arc::default();
    let noted = Arc::clone(&notes);
    let route = Route::new(move |incoming: Incoming| {
        noted.lock().push((incoming.payload.clone(), incoming.attempt));
        async move {
            match &incoming.payload[..] {
                b"bad" => Err(Failure::transient("busy")),
                b"stuck" => pending().await,
                _ => Ok(incoming.payload),
            }
        }
    });
    let route = route
        .side_by_side(1)
        .tell_policy(Policy::constant(secs(3600)).max_delay(secs(3600)).max_attempts(3));
    bank.route_by("work", if keyed { route.timeout(secs(86_400)).serial_by(|_| "same") } else { route.timeout(secs(86_400)) });
    shop.tell("bank", "work", "bad").id("bad").await.unwrap();
    until("it has failed once", || notes.lock().len() == 1).await;
    (shop, bank, letters, notes)
}

#[tokio::test(start_paused = true)]
async fn a_tell_that_waits_for_its_next_attempt_holds_up_nobody_and_is_tried_again() {
    let (shop, bank, letters, notes) = slow_to_try_again(false).await;
    shop.tell("bank", "work", "tell").await.unwrap();
    assert_eq!(shop.call("bank", "work", "call").await.unwrap(), "call");
    assert_eq!(bank.counts().requests, 1, "it has its place among all that run or wait");
    pass(secs(2 * 3600 + 1)).await;
    let expected = [("bad", 1), ("tell", 1), ("call", 1), ("bad", 2), ("bad", 3)].map(|(text, attempt)| (Bytes::from(text), attempt));
    assert_eq!(*notes.lock(), expected);
    let [letter] = &letters.list()[..] else { panic!("one letter") };
    assert_eq!((letter.failure.attempts, letter.failure.max_attempts, bank.counts().requests), (3, Some(3), 0));
}

#[tokio::test(start_paused = true)]
async fn a_tell_with_a_key_keeps_its_turn_while_it_waits_for_its_next_attempt() {
    let (shop, bank, letters, notes) = slow_to_try_again(true).await;
    shop.tell("bank", "work", "next").id("next").await.unwrap();
    pass(secs(2 * 3600 - 1)).await;
    assert_eq!(notes.lock().len(), 2, "what comes later is not done before it");
    bank.close(ms(10)).await;
    assert_eq!(ids(&letters), ["bad", "next"]);
}

#[tokio::test(start_paused = true)]
async fn tells_that_wait_for_their_next_attempt_or_for_their_turn_again_when_their_node_ends_are_letters() {
    for (stuck, waits) in [(false, secs(10)), (true, secs(3600 + 1))] {
        let (shop, bank, letters, notes) = slow_to_try_again(false).await;
        if stuck {
            shop.tell("bank", "work", "stuck").id("stuck").await.unwrap();
        }
        pass(waits).await;
        assert_eq!((notes.lock().len(), letters.list().len()), (1 + usize::from(stuck), 0));
        bank.close(ms(10)).await;
        assert_eq!(ids(&letters), if stuck { &["bad", "stuck"][..] } else { &["bad"] });
        let is_ending = |failure: &Failure| failure.class == Class::Transient && failure.message.contains("ending");
        assert!(letters.list().iter().all(|letter| is_ending(&letter.failure)));
        assert_eq!(bank.counts().requests, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tell_is_lost_when_its_node_ends_while_many_wait_for_their_turn_or_are_tried_again() {
    for _ in 0..20 {
        let network = Memory::new(1);
        let letters = Arc::new(MemoryLetters::default());
        let (shop, bank) = (node(&network, "shop"), node_by(&network, "bank", |builder| builder.letters(letters.clone())));
        let route = Route::new(|_| async {
            tokio::task::yield_now().await;
            Err::<Bytes, _>(Failure::transient("busy"))
        });
        bank.route_by("busy", route.side_by_side(2).tell_policy(Policy::constant(ms(1)).max_attempts(1_000_000)));
        for _ in 0..64 {
            shop.tell("bank", "busy", "").await.unwrap();
        }
        bank.close(secs(0)).await;
        assert_eq!((letters.list().len(), bank.counts().requests), (64, 0));
    }
}

/// More than wait to be kept otherwise: each was acknowledged.
#[tokio::test(start_paused = true)]
async fn none_of_very_many_tells_that_were_taken_is_lost_when_their_node_ends() {
    const TELLS: usize = 6000;
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (shop, bank) = (node(&network, "shop"), node_by(&network, "bank", |builder| builder.letters(letters.clone())));
    bank.route_by("stuck", Route::new(|_| pending::<Result<Bytes, Failure>>()).side_by_side(2).timeout(secs(3600)));
    let tells = (0..TELLS).map(|_| shop.tell("bank", "stuck", "").into_future());
    assert!(futures_util::future::join_all(tells).await.iter().all(Result::is_ok));
    bank.close(secs(0)).await;
    assert_eq!((letters.list().len(), bank.counts().totals.letters_lost), (TELLS, 0));
}
