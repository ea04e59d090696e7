//! What becomes of tells that were taken when their node ends.

use crate::network::{node, node_by, secs};
use bytes::Bytes;
use parking_lot::Mutex;
use std::future::pending;
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
