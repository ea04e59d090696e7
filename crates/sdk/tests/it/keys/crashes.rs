//! The process dies before and after every commit: an end is told at least once, and never again once that is on record.
//!
//! Subject: `crates/runtime/src/shard/keys.rs`.

use super::{config, pass};
use std::cell::RefCell;
use std::collections::BTreeSet;
use steadfast::testing::{Lab, LabBuilder};
use steadfast::{Ctx, Expired, Failure, HOUR, SECOND, workflow};

thread_local! {
    /// What was told, over all processes of a play: idempotency key and attempt.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn told() -> Vec<String> {
    TOLD.with_borrow(Clone::clone)
}

async fn tell(expired: Expired, failures: u32) -> Result<(), Failure> {
    TOLD.with_borrow_mut(|told| told.push(format!("{} a{}", expired.idempotency_key(), expired.attempt)));
    if expired.attempt <= failures { Err(Failure::transient("down")) } else { Ok(()) }
}

/// The keys that were told of.
fn keys() -> BTreeSet<String> {
    told().iter().filter_map(|line| line.split('/').next()).map(ToString::to_string).collect()
}

fn lab() -> LabBuilder {
    Lab::new().config(config()).on_expire("", |expired| tell(expired, 1))
}

async fn put(lab: &Lab, key: &str) {
    lab.ask(async |engine| engine.put(key, &key).ttl(SECOND).await).await.unwrap();
}

/// Everything is told; and if the process dies once more, nothing is told again.
async fn all_told(lab: &Lab) -> BTreeSet<String> {
    pass(60 * SECOND).await;
    let pending = lab.ask(async |engine| engine.callbacks("", None, 10).await).await.unwrap();
    assert_eq!(pending.items, [], "{:?}", told());
    let before = told();
    lab.crash().await;
    pass(HOUR).await;
    assert_eq!(told(), before, "what is on record as told is not told again");
    keys()
}

#[tokio::test]
async fn an_end_is_told_wherever_the_process_dies_and_never_after_that_is_on_record() {
    let report = lab()
        .crash_everywhere(async |lab| {
            TOLD.take();
            put(lab, "k").await;
            all_told(lab).await
        })
        .await;
    assert_eq!(report.outcome, BTreeSet::from(["k".to_string()]));
    assert!(report.plays.len() >= 8, "put, expiry, failed attempt, settlement: {}", report.plays.len());
}

#[tokio::test]
async fn the_ends_of_a_key_that_is_put_again_and_again_are_told_wherever_the_process_dies() {
    lab()
        .crash_everywhere(async |lab| {
            TOLD.take();
            for _ in 0..3 {
                put(lab, "k").await;
                pass(SECOND + SECOND / 2).await;
            }
            all_told(lab).await;
            let ends: BTreeSet<_> = told().iter().filter_map(|line| line.split(' ').next()).map(ToString::to_string).collect();
            ends.len()
        })
        .await;
}

#[tokio::test]
async fn a_directory_ends_with_all_below_it_wherever_the_process_dies() {
    let report = lab()
        .crash_everywhere(async |lab| {
            TOLD.take();
            lab.ask(async |engine| engine.put("d", &1).ttl(SECOND).directory().await).await.unwrap();
            for key in ["d/a", "d/b"] {
                lab.ask(async |engine| engine.put(key, &1).ttl(HOUR).await).await.unwrap();
            }
            pass(60 * SECOND).await;
            let left = lab.ask(async |engine| engine.keys("").await).await.unwrap();
            assert_eq!(left.items, []);
            all_told(lab).await;
            told().iter().map(|line| line.rsplit_once('/').unwrap().0.to_string()).collect::<BTreeSet<_>>()
        })
        .await;
    assert_eq!(report.outcome, ["d", "d/a", "d/b"].map(ToString::to_string).into());
}

#[workflow]
async fn follow_up(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("work", || async { Ok::<_, Failure>(()) }).await
}

#[tokio::test]
async fn an_expiry_starts_exactly_one_run_wherever_the_process_dies() {
    let report = Lab::new()
        .config(config())
        .register(follow_up)
        .crash_everywhere(async |lab| {
            let stamp = lab.ask(async |engine| engine.put("k", &1).ttl(SECOND).start("follow_up", &()).await).await.unwrap();
            let id = format!("expired/k/{}", stamp.revision);
            pass(60 * SECOND).await;
            lab.result::<()>(&id).await.unwrap();
            lab.ask(async |engine| engine.list().await).await.unwrap().items.len()
        })
        .await;
    assert_eq!(report.outcome, 1);
}

#[tokio::test]
async fn a_letter_that_was_redriven_is_told_wherever_the_process_dies() {
    let broken = Lab::new().config(config()).on_expire("", async |expired: Expired| match told().len() {
        0 => tell(expired, 1).await.map_err(|_| Failure::permanent("no")),
        _ => tell(expired, 0).await,
    });
    broken
        .crash_everywhere(async |lab| {
            TOLD.take();
            put(lab, "k").await;
            pass(60 * SECOND).await;
            let letters = lab.ask(async |engine| engine.letters(None, 10).await).await.unwrap().items;
            for letter in letters {
                let id = letter.letter.to_string();
                lab.ask(async |engine| engine.redrive(&id).id("once").await).await.unwrap();
            }
            all_told(lab).await
        })
        .await;
}
