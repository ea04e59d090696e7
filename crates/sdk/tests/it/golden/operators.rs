//! Runs that somebody pauses, cancels, ends, or sees to.

use super::{Story, begin, comes_to, the_end};
use steadfast::memory::Memory;
use steadfast::{DAY, Engine, HOUR, Resolution, Status};

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story { name: "paused", make: |store| Box::pin(paused(store)), go_on: |engine| Box::pin(resumed(engine)) },
        Story { name: "called-off", make: |store| Box::pin(called_off(store)), go_on: the_end },
        Story { name: "out-of-time", make: |store| Box::pin(out_of_time(store)), go_on: the_end },
        Story { name: "undo-fails", make: |store| Box::pin(undo_fails(store)), go_on: |engine| Box::pin(undo_skipped(engine)) },
        Story { name: "letters", make: |store| Box::pin(letters(store)), go_on: |engine| Box::pin(redriven(engine)) },
    ]
}

/// One that was paused and goes on, and one that is paused.
async fn paused(store: Memory) {
    let engine = begin(&store).await;
    for id in ["paused-once", "paused"] {
        let run = engine.start("order", "desk").id(id).deadline(3 * DAY).await.unwrap();
        tokio::time::sleep(HOUR / 2).await;
        run.pause().by("ada").why("stocktaking").id("pause-1").await.unwrap();
        tokio::time::sleep(HOUR).await;
    }
    let run = engine.run("paused-once").unwrap();
    run.resume().by("ben").await.unwrap();
    run.signal("approve", "ada").await.unwrap();
    run.result::<String>().await.unwrap();
    engine.shutdown().await;
}

async fn resumed(engine: Engine) {
    let run = engine.run("paused").unwrap();
    assert_eq!(run.view().await.unwrap().status, Status::Paused);
    run.signal("approve", "cleo").await.unwrap();
    run.pause().id("pause-1").await.unwrap(); // the same command again is one
    run.resume().await.unwrap();
    let result: String = run.result().await.unwrap();
    assert!(result.starts_with("bag after 2 attempts, approved by cleo, 1, "), "{result}");
}

async fn called_off(store: Memory) {
    let engine = begin(&store).await;
    for id in ["called-off", "ended"] {
        engine.start("trip", "waits").id(id).await.unwrap();
        comes_to(&engine, id, Status::Waiting).await;
    }
    engine.run("called-off").unwrap().cancel().by("ada").why("ill").id("cancel-1").await.unwrap();
    engine.run("ended").unwrap().terminate().by("ada").await.unwrap();
    for id in ["called-off", "ended"] {
        engine.run(id).unwrap().result::<String>().await.unwrap_err();
    }
    engine.shutdown().await;
}

async fn out_of_time(store: Memory) {
    let engine = begin(&store).await;
    let run = engine.start("trip", "out of time").id("out-of-time").deadline(HOUR).await.unwrap();
    run.result::<String>().await.unwrap_err();
    engine.shutdown().await;
}

/// One undo that is tried again on a person's word, and one that waits for it.
async fn undo_fails(store: Memory) {
    let engine = begin(&store).await;
    for id in ["undo-retried", "undo-fails"] {
        engine.start("trip", "cannot be undone").id(id).await.unwrap();
        comes_to(&engine, id, Status::Compensating).await;
        let asked = async || !engine.run(id).unwrap().view().await.unwrap().waits.is_empty();
        crate::support::until("a person is asked", asked).await;
    }
    let run = engine.run("undo-retried").unwrap();
    run.resolve("car#1", Resolution::RetryUndo).await.unwrap();
    run.result::<String>().await.unwrap_err();
    engine.shutdown().await;
}

async fn undo_skipped(engine: Engine) {
    let run = engine.run("undo-fails").unwrap();
    run.resolve("car#1", Resolution::SkipUndo).await.unwrap();
    let failure = run.result::<String>().await.unwrap_err();
    assert_eq!(failure.failure().unwrap().message, "the card is refused");
}

/// One that was tried again, one that was dropped, one that is there.
async fn letters(store: Memory) {
    let engine = begin(&store).await;
    for (n, id) in ["letter-redriven", "letter-dropped", "letter"].into_iter().enumerate() {
        let start = engine.start("parse", "x").id(id);
        let start = if n == 1 { start } else { start.tenant("acme") };
        start.await.unwrap().result::<u32>().await.unwrap_err();
        crate::support::until("it is there", async || engine.letters(None, 10).await.unwrap().items.len() == n + 1).await;
    }
    engine.redrive("parse.1").by("ada").why("the parser is fixed").id("redrive-1").await.unwrap();
    engine.drop_letter("parse.2").by("ada").why("nonsense").id("drop-1").await.unwrap();
    engine.run("letter-redriven").unwrap().result::<u32>().await.unwrap();
    crate::support::until("one is left", async || engine.letters(None, 10).await.unwrap().items.len() == 1).await;
    engine.shutdown().await;
}

async fn redriven(engine: Engine) {
    let page = engine.letters(None, 10).await.unwrap();
    let ids: Vec<_> = page.items.iter().map(|row| row.letter.to_string()).collect();
    assert_eq!(ids, ["parse.3"]);
    assert_eq!(engine.letter("parse.3").await.unwrap().payload.bytes.as_ref(), b"\"x\"");
    engine.drop_letter("parse.2").id("drop-1").await.unwrap(); // the same command again is one
    engine.drop_letter("parse.3").await.unwrap();
}
