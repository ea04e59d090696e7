//! Many dead letters tried again at once: oldest first, at a pace, each of them once.
//!
//! Subject: `crates/runtime/src/engine/redrive.rs`.

use crate::dead_messages::{Fake, message};
use crate::support::{call, engine, until};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Class, Code, Ctx, Engine, Failure, LetterFilter, LetterHome, LetterKind, MessageLetter, SECOND, workflow};

/// Fails for good the first time.
#[workflow]
async fn fragile(ctx: Ctx, _input: u32) -> Result<u32, Failure> {
    ctx.step("try", || {
        let call = call(&ctx, "try");
        async move { if call > 1 { Ok(7) } else { Err(Failure::poison("broken")) } }
    })
    .await
}

/// Fails for good every time.
#[workflow]
async fn hopeless(ctx: Ctx, _input: u32) -> Result<u32, Failure> {
    ctx.step("try", || async { Err(Failure::poison("broken for ever")) }).await
}

async fn posted(engine: &Engine, requests: impl IntoIterator<Item = u32>) {
    for request in requests {
        engine.post_message(message(&format!("r-{request}"))).await.unwrap();
        tokio::time::sleep(SECOND).await;
    }
}

async fn count(engine: &Engine) -> u64 {
    engine.letters_count(&LetterFilter::default()).await.unwrap()
}

fn messages() -> LetterFilter {
    LetterFilter { kind: Some(LetterKind::Message), ..LetterFilter::default() }
}

#[tokio::test(start_paused = true)]
async fn all_are_tried_oldest_first_at_the_pace_that_was_asked_for() {
    let fake = Fake::failing([]);
    let engine = engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap();
    posted(&engine, 1..=21).await;
    let began = tokio::time::Instant::now();
    let done = engine.redrive_all(messages()).per_second(10).await.unwrap();
    let took = began.elapsed();
    assert_eq!((done.redriven, done.refused, done.more), (21, 0, false));
    assert_eq!(fake.requests(), (1..=21).map(|request| format!("r-{request}")).collect::<Vec<_>>());
    assert!((Duration::from_secs(2)..Duration::from_millis(2100)).contains(&took), "{took:?} for 21 letters, 10 a second");
    assert_eq!(count(&engine).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_fails_again_is_told_stays_and_does_not_stop_the_others() {
    let away = || Failure::new(Code::Unavailable, "away");
    let fake = Fake::failing((0..12).map(|_| away()));
    let engine = engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap();
    posted(&engine, 1..=15).await;
    let done = engine.redrive_all(messages()).why("try").await.unwrap();
    assert_eq!((done.redriven, done.refused, done.more, done.reasons.len()), (3, 12, false, 10), "the first reasons are told");
    let (letter, why) = &done.reasons[0];
    assert_eq!((letter.to_string().as_str(), why.code()), ("route:mail/send.1", "SF0138"));
    assert_eq!(fake.requests().len(), 15, "each was tried once");
    assert_eq!(count(&engine).await, 12);
    let by_code = LetterFilter { code: Some(Code::Unavailable), class: Some(Class::Transient), ..LetterFilter::default() };
    assert_eq!(engine.redrive_all(by_code).await.unwrap().redriven, 12);
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_kept_and_another_one_goes_on_from_there() {
    let fake = Fake::failing([Failure::transient("away")]);
    let engine = engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap();
    posted(&engine, 1..=5).await;
    let done = engine.redrive_all(messages()).limit(2).await.unwrap();
    assert_eq!((done.redriven, done.refused, done.more), (1, 1, true));
    let rest = engine.redrive_all(messages()).limit(3).after(&done.next.unwrap()).await.unwrap();
    assert_eq!((rest.redriven, rest.refused, rest.more), (3, 0, false), "the one that failed is not tried again");
    assert_eq!(fake.requests(), ["r-1", "r-2", "r-3", "r-4", "r-5"]);
    let wrong = engine.redrive_all(messages()).after("nonsense").await.unwrap_err();
    assert_eq!(wrong.code(), "SF0110");
    assert_eq!(engine.redrive_all(messages()).per_second(0).await.unwrap_err().code(), "SF0110");
}

#[tokio::test(start_paused = true)]
async fn it_ends_in_time_and_says_that_there_is_more() {
    let engine = engine(&Memory::new()).redeliver(Fake::failing([])).start().await.unwrap();
    posted(&engine, 1..=5).await;
    let done = engine.redrive_all(messages()).per_second(1).within(2 * SECOND).await.unwrap();
    assert_eq!((done.redriven, done.more), (2, true), "the third would begin as it is over");
    assert_eq!(count(&engine).await, 3);
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_too_long_is_left_to_end_by_itself_and_does_not_stop_the_next_time() {
    let fake = Fake::behind_a_door();
    let engine = engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap();
    posted(&engine, 1..=3).await;
    for left in 1..=2 {
        let began = tokio::time::Instant::now();
        let done = engine.redrive_all(messages()).within(10 * SECOND).await.unwrap();
        assert!((10 * SECOND..12 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert_eq!((done.redriven, done.refused, done.more), (0, left, true), "those that are on their way are passed over");
        assert!(done.reasons.iter().all(|(_, why)| why.code() == "SF0137"), "{:?}", done.reasons);
    }
    fake.open(2);
    until("they are gone by themselves", async || count(&engine).await == 1).await;
    fake.open(1);
    assert_eq!(engine.redrive_all(messages()).await.unwrap().redriven, 1);
    assert_eq!(fake.requests(), ["r-1", "r-2", "r-3"], "each of them once");
}

#[tokio::test(start_paused = true)]
async fn called_off_it_stops_after_the_letter_that_it_is_at() {
    let fake = Fake::failing([]);
    let engine = engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap();
    posted(&engine, 1..=5).await;
    let all = tokio::time::timeout(Duration::from_millis(2500), engine.redrive_all(messages()).per_second(1).into_future()).await;
    assert!(all.is_err(), "it was called off");
    until("what was tried is on record", async || count(&engine).await == 2).await;
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(fake.requests(), ["r-1", "r-2", "r-3"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_command_again_is_answered_and_tries_nothing() {
    let fake = Fake::failing([]);
    let engine = engine(&Memory::new()).redeliver(fake.clone()).start().await.unwrap();
    posted(&engine, 1..=4).await;
    for _ in 0..2 {
        let done = engine.redrive_all(messages()).limit(2).id("c-1").await.unwrap();
        assert_eq!((done.redriven, done.more), (2, true));
    }
    assert_eq!(fake.requests(), ["r-1", "r-2"]);
    assert_eq!(engine.redrive_all(messages()).limit(2).id("c-2").await.unwrap().redriven, 2);
}

#[tokio::test(start_paused = true)]
async fn letters_of_all_kinds_are_tried_and_only_those_that_are_asked_for() {
    let fake = Fake::failing([]);
    let engine = engine(&Memory::new()).redeliver(fake.clone()).register(fragile).start().await.unwrap();
    for run in ["all-1", "all-2"] {
        engine.start("fragile", &1).id(run).await.unwrap().result::<u32>().await.unwrap_err();
    }
    until("they are letters", async || count(&engine).await == 2).await;
    posted(&engine, 1..=2).await;
    let other = MessageLetter { route: "other".into(), ..message("r-9") };
    engine.post_message(other).await.unwrap();
    let of_route = LetterFilter { home: LetterHome::parse("route:other"), ..LetterFilter::default() };
    assert_eq!(engine.redrive_all(of_route).await.unwrap().redriven, 1);
    assert_eq!((fake.requests(), count(&engine).await), (vec!["r-9".to_string()], 4));
    let done = engine.redrive_all(LetterFilter::default()).id("all").await.unwrap();
    assert_eq!((done.redriven, done.refused, done.more), (4, 0, false));
    for run in ["all-1", "all-2"] {
        assert_eq!(engine.run(run).unwrap().result::<u32>().await.unwrap(), 7);
    }
    until("all are gone", async || count(&engine).await == 0).await;
}

#[tokio::test(start_paused = true)]
async fn what_becomes_a_letter_again_meanwhile_is_not_tried_a_second_time() {
    let engine = engine(&Memory::new()).register(hopeless).start().await.unwrap();
    for run in ["again-1", "again-2", "again-3"] {
        engine.start("hopeless", &1).id(run).await.unwrap().result::<u32>().await.unwrap_err();
    }
    until("they are letters", async || count(&engine).await == 3).await;
    let done = engine.redrive_all(LetterFilter::default()).await.unwrap();
    assert_eq!((done.redriven, done.refused, done.more), (3, 0, false));
    for run in ["again-1", "again-2", "again-3"] {
        let run = engine.run(run).unwrap();
        run.result::<u32>().await.unwrap_err();
        assert_eq!(run.view().await.unwrap().epoch, 2, "it was tried once");
    }
    until("they are letters again", async || count(&engine).await == 3).await;
}

#[tokio::test(start_paused = true)]
async fn without_anybody_who_delivers_all_stay() {
    let engine = engine(&Memory::new()).start().await.unwrap();
    posted(&engine, 1..=3).await;
    let done = engine.redrive_all(messages()).await.unwrap();
    assert_eq!((done.redriven, done.refused, done.reasons[0].1.code()), (0, 3, "SF0139"));
    engine.clone().shutdown().await;
    assert_eq!(engine.redrive_all(messages()).await.unwrap_err().code(), "SF0202");
}
