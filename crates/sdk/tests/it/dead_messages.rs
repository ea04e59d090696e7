//! Messages that nobody will send or handle again by itself: kept with their bytes, and delivered once when a person wants it.
//!
//! Subject: `crates/runtime/src/redeliver.rs`.
//! Subject: `crates/kernel/src/route/mod.rs`.

use crate::support::{engine, until};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Direction, Engine, Failure, LetterFilter, LetterId, LetterKind, MessageKind, MessageLetter, Payload, Redeliver};
use tokio::sync::Semaphore;

/// Delivers as it was told to: one outcome after the other, and then well. It remembers what it was given.
#[derive(Clone)]
pub(crate) struct Fake {
    outcomes: Arc<Mutex<VecDeque<Failure>>>,
    delivered: Arc<Mutex<Vec<(LetterId, MessageLetter)>>>,
    /// Each delivery takes one.
    doors: Arc<Semaphore>,
}

impl Fake {
    pub(crate) fn failing(failures: impl IntoIterator<Item = Failure>) -> Self {
        let outcomes = Arc::new(Mutex::new(failures.into_iter().collect()));
        Fake { outcomes, delivered: Arc::default(), doors: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)) }
    }

    pub(crate) fn behind_a_door() -> Self {
        Fake { doors: Arc::new(Semaphore::new(0)), ..Fake::failing([]) }
    }

    pub(crate) fn delivered(&self) -> Vec<(LetterId, MessageLetter)> {
        self.delivered.lock().unwrap().clone()
    }

    /// Lets so many deliveries end.
    pub(crate) fn open(&self, deliveries: usize) {
        self.doors.add_permits(deliveries);
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.delivered().into_iter().map(|(_, message)| message.request).collect()
    }
}

impl Redeliver for Fake {
    fn deliver(&self, letter: LetterId, message: MessageLetter) -> BoxFuture<'static, Result<(), Failure>> {
        let fake = self.clone();
        async move {
            fake.delivered.lock().unwrap().push((letter, message));
            fake.doors.acquire().await.unwrap().forget();
            fake.outcomes.lock().unwrap().pop_front().map_or(Ok(()), Err)
        }
        .boxed()
    }
}

pub(crate) fn message(request: &str) -> MessageLetter {
    MessageLetter {
        route: "mail/send".into(),
        direction: Direction::Received,
        kind: MessageKind::Call,
        peer: "10.0.0.7:7373".into(),
        request: request.into(),
        tenant: Some("acme".into()),
        attempts: 3,
        failure: Failure::poison("no such address"),
        payload: Payload::bytes(&b"\xff\0 not JSON"[..]),
    }
}

async fn with(fake: &Fake) -> Engine {
    engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap()
}

async fn count(engine: &Engine) -> usize {
    engine.letters(None, 100).await.unwrap().items.len()
}

#[tokio::test(start_paused = true)]
async fn a_message_is_kept_with_its_bytes_and_the_reason() {
    let engine = with(&Fake::failing([])).await;
    let id = engine.post_message(message("r-1")).await.unwrap();
    assert_eq!(id, "route:mail/send.1");
    let letter = engine.letter(&id).await.unwrap();
    assert_eq!(&letter.payload.bytes[..], b"\xff\0 not JSON");
    assert_eq!(letter.row.about.to_string(), "call r-1 on mail/send from 10.0.0.7:7373");
    assert_eq!((letter.row.tenant.as_deref(), letter.row.failure.message.as_str()), (Some("acme"), "no such address"));
    let of_kind = |kind| LetterFilter { kind: Some(kind), ..LetterFilter::default() };
    assert_eq!(engine.letters_count(&of_kind(LetterKind::Message)).await.unwrap(), 1);
    assert_eq!(engine.letters_where(&of_kind(LetterKind::Step), None, 9).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn the_same_message_again_is_one_letter_with_the_newer_failure() {
    let engine = with(&Fake::failing([])).await;
    let first = engine.post_message(message("r-1")).await.unwrap();
    let again = MessageLetter { failure: Failure::transient("away"), attempts: 2, ..message("r-1") };
    assert_eq!(engine.post_message(again).await.unwrap(), first);
    let row = engine.letter(&first).await.unwrap().row;
    assert_eq!((row.failure.message.as_str(), row.failure.attempts, count(&engine).await), ("away", 5, 1));
    let other = MessageLetter { payload: Payload::bytes("other bytes"), ..message("r-1") };
    assert_ne!(engine.post_message(other).await.unwrap(), first, "other bytes under the same id are not lost");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_could_read_is_kept_under_names_that_follow_from_its_bytes() {
    let engine = with(&Fake::failing([])).await;
    let frame = || MessageLetter { route: String::new(), kind: MessageKind::Frame, ..message("") };
    let id = engine.post_message(frame()).await.unwrap();
    assert_eq!(id, "route:unreadable.1");
    assert_eq!(engine.post_message(frame()).await.unwrap(), id, "the same bytes of the same peer are one letter");
    let other = MessageLetter { payload: Payload::bytes("more"), ..frame() };
    assert_eq!(engine.post_message(other).await.unwrap(), "route:unreadable.3");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_refused_and_leaves_no_trace() {
    let engine = with(&Fake::failing([])).await;
    let wrong = [
        MessageLetter { route: "a b".into(), ..message("r-1") },
        MessageLetter { peer: String::new(), ..message("r-1") },
        MessageLetter { peer: "two words".into(), ..message("r-1") },
        message("not\nvisible"),
        MessageLetter { tenant: Some("a b".into()), ..message("r-1") },
    ];
    for wrong in wrong {
        assert_eq!(engine.post_message(wrong).await.unwrap_err().code(), "SF0101");
    }
    let large = MessageLetter { payload: Payload::bytes(vec![0; 64 << 20]), ..message("r-1") };
    assert_eq!(engine.post_message(large).await.unwrap_err().code(), "SF0106");
    assert_eq!(count(&engine).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_again_stays_and_is_gone_when_it_is_delivered() {
    let fake = Fake::failing([Failure::transient("still away")]);
    let engine = with(&fake).await;
    let id = engine.post_message(message("r-1")).await.unwrap();
    let error = engine.redrive(&id).by("ada").why("try").id("c-1").await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("still away")), ("SF0138", true));
    let letter = engine.letter(&id).await.unwrap();
    assert_eq!((letter.row.failure.message.as_str(), letter.row.failure.attempts), ("still away", 4), "the newer failure counts");
    assert_eq!(&letter.payload.bytes[..], b"\xff\0 not JSON");
    engine.redrive(&id).id("c-1").await.unwrap();
    assert_eq!(count(&engine).await, 0);
    assert_eq!(fake.delivered().len(), 2);
    let (of, delivered) = &fake.delivered()[1];
    assert_eq!((of.to_string(), delivered.request.as_str(), delivered.attempts), (id.clone(), "r-1", 4));
    assert_eq!(delivered.payload, message("r-1").payload);
    engine.redrive(&id).id("c-1").await.unwrap();
    assert_eq!(fake.delivered().len(), 2, "the same command again delivers nothing");
    assert_eq!(engine.redrive(&id).id("c-2").await.unwrap_err().code(), "SF0115");
}

#[tokio::test(start_paused = true)]
async fn two_who_want_the_same_letter_have_it_delivered_once() {
    let fake = Fake::behind_a_door();
    let engine = with(&fake).await;
    let id = engine.post_message(message("r-1")).await.unwrap();
    let first = tokio::spawn(engine.redrive(&id).into_future());
    until("it is on its way", async || fake.delivered().len() == 1).await;
    assert_eq!(engine.redrive(&id).await.unwrap_err().code(), "SF0137");
    assert_eq!(engine.drop_letter(&id).await.unwrap_err().code(), "SF0137", "nor is it dropped meanwhile");
    fake.open(1);
    first.await.unwrap().unwrap();
    assert_eq!((fake.delivered().len(), count(&engine).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_does_not_take_the_delivery_back() {
    let fake = Fake::behind_a_door();
    let engine = with(&fake).await;
    let id = engine.post_message(message("r-1")).await.unwrap();
    let caller = tokio::spawn(engine.redrive(&id).into_future());
    until("it is on its way", async || fake.delivered().len() == 1).await;
    caller.abort();
    fake.open(1);
    until("that is on record", async || count(&engine).await == 0).await;
    assert_eq!(fake.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_has_all_the_time_that_whoever_delivers_gives_it() {
    let fake = Fake::behind_a_door();
    let engine = with(&fake).await;
    let id = engine.post_message(message("r-1")).await.unwrap();
    let redriving = tokio::spawn(engine.redrive(&id).into_future());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!redriving.is_finished());
    fake.open(1);
    redriving.await.unwrap().unwrap();
    assert_eq!((fake.delivered().len(), count(&engine).await), (1, 0));
}

/// Breaks down.
struct Broken;

impl Redeliver for Broken {
    fn deliver(&self, _: LetterId, _: MessageLetter) -> BoxFuture<'static, Result<(), Failure>> {
        async { panic!("a mistake of the one who delivers") }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_one_who_delivers_is_told_and_the_letter_stays() {
    let engine = engine(&Memory::new()).redeliver(Broken).start().await.unwrap();
    let id = engine.post_message(message("r-1")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(engine.redrive(&id).await.unwrap_err().code(), "SF0138");
    }
    engine.drop_letter(&id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_anybody_who_delivers_the_letter_stays() {
    let engine = engine(&Memory::new()).start().await.unwrap();
    let id = engine.post_message(message("r-1")).await.unwrap();
    assert_eq!(engine.redrive(&id).await.unwrap_err().code(), "SF0139");
    engine.drop_letter(&id).id("c-1").await.unwrap();
    engine.drop_letter(&id).id("c-1").await.unwrap();
    assert_eq!(count(&engine).await, 0);
}

#[tokio::test(start_paused = true)]
async fn letters_of_messages_survive_a_restart() {
    let store = Memory::new();
    let first = engine(&store).start().await.unwrap();
    let id = first.post_message(message("r-1")).await.unwrap();
    first.shutdown().await;
    let fake = Fake::failing([]);
    let second = engine(&store).redeliver(fake.clone()).start().await.unwrap();
    assert_eq!(second.post_message(message("r-1")).await.unwrap(), id, "the same message is still one letter");
    second.redrive(&id).await.unwrap();
    assert_eq!(fake.requests(), ["r-1"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count(&second).await, 0);
}
