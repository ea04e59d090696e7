//! Ends that nobody will tell by itself.
//!
//! Subject: `crates/kernel/src/key/letters.rs`.

use super::{Told, config, pass, put, told_by};
use crate::support::engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steadfast::memory::Memory;
use steadfast::{Engine, Failure, HOUR, SECOND};

/// A handler that fails for good until it is mended.
fn broken(
    told: &Told,
) -> (impl Fn(steadfast::Expired) -> std::future::Ready<Result<(), Failure>> + Send + Sync + 'static, Arc<AtomicBool>) {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let handler = told.answering(move |_| match is_mended.load(Ordering::SeqCst) {
        true => Ok(()),
        false => Err(Failure::permanent("no such user")),
    });
    (handler, mended)
}

async fn letter(engine: &Engine) -> String {
    let letters = engine.letters(None, 10).await.unwrap().items;
    assert_eq!(letters.len(), 1);
    letters[0].letter.to_string()
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_good_is_a_dead_letter_at_once_with_its_bytes_and_the_reason() {
    let told = Told::new();
    let (handler, _mended) = broken(&told);
    let engine = told_by(&Memory::new(), handler).start().await.unwrap();
    let revision = put(&engine, "session/42", SECOND).await;
    pass(HOUR).await;
    assert_eq!(told.len(), 1, "it is not tried again");
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
    let id = letter(&engine).await;
    assert!(id.starts_with("key:session/42."), "{id}");
    let letter = engine.letter(&id).await.unwrap();
    assert_eq!(letter.row.about.to_string(), format!("expiry of session/42, revision {revision}"));
    assert_eq!((letter.row.failure.message.as_str(), &letter.payload.bytes[..]), ("no such user", &b"\"session/42\""[..]));
}

#[tokio::test(start_paused = true)]
async fn a_redriven_letter_is_told_again_with_the_same_idempotency_key_also_after_a_restart() {
    let (told, store) = (Told::new(), Memory::new());
    let (handler, _mended) = broken(&told);
    let first = told_by(&store, handler).start().await.unwrap();
    put(&first, "k", SECOND).await;
    pass(SECOND).await;
    first.shutdown().await;
    let (handler, mended) = broken(&told);
    let engine = told_by(&store.reopen(), handler).start().await.unwrap();
    pass(HOUR).await;
    assert_eq!(told.len(), 1, "a dead letter is left alone");
    let id = letter(&engine).await;
    mended.store(true, Ordering::SeqCst);
    engine.redrive(&id).by("ada").why("the user is back").id("c1").await.unwrap();
    engine.redrive(&id).by("ada").id("c1").await.unwrap();
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a1"]);
    let keys: Vec<_> = told.all().iter().map(|(_, expired)| expired.idempotency_key()).collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(engine.letters(None, 10).await.unwrap().items, []);
    assert_eq!(engine.redrive(&id).await.unwrap_err().code(), "SF0115", "there is no such letter any more");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_letter_is_gone_and_nobody_is_told() {
    let told = Told::new();
    let (handler, mended) = broken(&told);
    let engine = told_by(&Memory::new(), handler).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    pass(SECOND).await;
    mended.store(true, Ordering::SeqCst);
    engine.drop_letter(&letter(&engine).await).by("ada").await.unwrap();
    pass(2 * HOUR).await;
    assert_eq!(told.len(), 1);
    assert_eq!(engine.letters(None, 10).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_key_that_is_gone_and_told_of_after_a_while() {
    let (told, store) = (Told::new(), Memory::new());
    let engine = engine(&store).config(config()).on_expire("", told.handler()).start().await.unwrap();
    let first = put(&engine, "k", SECOND).await;
    pass(SECOND).await;
    assert_eq!(store.entities().len(), 1, "it is kept for those who follow");
    pass(2 * HOUR).await;
    assert_eq!(store.entities().len(), 0);
    assert!(put(&engine, "k", SECOND).await > first, "revisions do not repeat for all that");
}
