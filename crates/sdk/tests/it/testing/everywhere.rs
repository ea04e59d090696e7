//! Crashes everywhere: what they leave alone, and what they find.

use super::{TAKEN, order, ship};
use std::cell::Cell;
use steadfast::testing::{Crash, Lab, crash_everywhere};
use steadfast::{Ctx, Failure, workflow};

fn builder() -> steadfast::testing::LabBuilder {
    Lab::new().register(order).register(ship)
}

#[tokio::test]
async fn signals_sleeps_children_and_chance_come_out_the_same() {
    let report = builder()
        .crash_everywhere(async |lab| {
            lab.fail_attempt("charge", 1, Failure::transient("down"));
            lab.start(order, "o-1", &5).await;
            lab.signal("o-1", "word", &true).await;
            lab.result::<String>("o-1").await
        })
        .await;
    assert!(report.outcome.as_ref().unwrap().starts_with("parcel of 5 "));
    report.called_at_most("charge", 2).called_at_most("pack", 2);
    assert_eq!(report.undisturbed.len(), 2);
    let twice: Vec<_> = report.plays.iter().filter(|play| play.calls("charge").len() == 2).map(|play| &play.crash).collect();
    assert!(matches!(twice[..], [Crash::BeforeCommit(_)]), "one place: between its work and the record of it: {twice:?}");
    for play in &report.plays {
        let charges = play.calls("charge");
        assert!(charges.iter().all(|call| call.key == charges[0].key), "{:?}", play.crash);
    }
}

#[tokio::test]
async fn an_undo_is_part_of_it() {
    let scenario = async |lab: &Lab| {
        lab.start(order, "o-1", &5).await;
        lab.signal("o-1", "word", &false).await;
        (lab.result::<String>("o-1").await, lab.journal("o-1").await.lines())
    };
    let report = builder().crash_everywhere(scenario).await;
    report.called_at_most("charge", 2).called_at_most("charge/undo", 2);
    let undone = ["RUN_COMPENSATING FAILED_PRECONDITION", "UNDO_COMPLETED charge#1 a1", "RUN_FAILED FAILED_PRECONDITION"];
    assert_eq!(report.outcome.1[5..], undone);
}

#[tokio::test]
#[should_panic(expected = "with a crash before commit 2, the outcome was 10, not 5 as without it")]
async fn a_step_that_cannot_be_repeated_is_found() {
    let scenario = async |lab: &Lab| {
        TAKEN.set(0);
        lab.start(order, "o-1", &5).await;
        lab.signal("o-1", "word", &true).await;
        lab.result::<String>("o-1").await.unwrap();
        TAKEN.get()
    };
    builder().crash_everywhere(scenario).await;
}

thread_local! {
    static TOSSED: Cell<bool> = const { Cell::new(false) };
}

/// Takes another way every time it is read.
#[workflow]
async fn fickle(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    TOSSED.set(!TOSSED.get());
    let name = if TOSSED.get() { "heads" } else { "tails" };
    ctx.step(name, || async { Ok::<_, Failure>(()) }).await?;
    ctx.sleep(steadfast::SECOND).await
}

#[tokio::test]
#[should_panic(expected = "run fickle cannot be replayed: the code does not fit the journal: event 2 is STEP_COMPLETED tails#1")]
async fn code_that_does_not_take_the_same_way_again_is_found() {
    crash_everywhere(fickle, &()).await.outcome.unwrap();
}

#[tokio::test]
#[should_panic(expected = "step pack is never called; these are: {\"charge#1\"}")]
async fn a_step_that_does_not_exist_is_not_called_seldom() {
    let scenario = async |lab: &Lab| {
        lab.start(order, "o-1", &5).await;
        lab.settle().await;
    };
    builder().crash_everywhere(scenario).await.called_at_most("pack", 1);
}

#[tokio::test]
#[should_panic(expected = "step charge was called 2 times, not 1 at the most, with a crash before commit 2")]
async fn a_step_that_is_called_too_often_is_named_with_its_crash() {
    let scenario = async |lab: &Lab| {
        lab.start(order, "o-1", &5).await;
        lab.settle().await;
    };
    builder().crash_everywhere(scenario).await.called_at_most("charge", 1);
}
