//! A lab: its time, its crashes, its failures.

use super::{TAKEN, order, ship};
use steadfast::testing::{Crash, Lab};
use steadfast::{Code, Ctx, DAY, Failure, HOUR, MINUTE, SECOND, Status, workflow};

async fn lab() -> Lab {
    Lab::new().register(order).register(ship).open().await
}

#[tokio::test]
async fn a_day_passes_at_once_though_nobody_stopped_the_time() {
    let lab = lab().await;
    lab.start(order, "o-1", &5).await;
    lab.signal("o-1", "word", &true).await;
    let begun = tokio::time::Instant::now();
    assert!(lab.result::<String>("o-1").await.unwrap().starts_with("parcel of 5"));
    assert!((DAY..DAY + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_brings_what_falls_into_it_and_no_more() {
    let lab = lab().await;
    lab.start(order, "o-1", &5).await;
    lab.signal("o-1", "word", &true).await;
    lab.advance(DAY - MINUTE).await;
    lab.journal("o-1").await.step("charge").completed();
    assert!(lab.calls("pack").is_empty());
    lab.advance(MINUTE).await;
    lab.journal("o-1").await.ended(Status::Completed);
}

#[tokio::test]
async fn chance_is_the_same_in_every_lab() {
    let mut results = Vec::new();
    for _ in 0..2 {
        let lab = lab().await;
        lab.start(order, "o-1", &5).await;
        lab.signal("o-1", "word", &true).await;
        results.push(lab.result::<String>("o-1").await.unwrap());
    }
    assert_eq!(results[0], results[1]);
}

#[tokio::test]
async fn the_process_dies_right_after_that_event_is_durable() {
    for (seq, charges) in [(1, 1), (2, 1), (3, 1)] {
        let lab = lab().await;
        lab.crash_at(Crash::AfterEvent("o-1".into(), seq));
        lab.start(order, "o-1", &5).await;
        lab.signal("o-1", "word", &true).await;
        lab.result::<String>("o-1").await.unwrap();
        assert_eq!(lab.calls("charge").len(), charges, "event {seq}");
        lab.journal("o-1").await.step("charge").attempts(1);
    }
}

#[tokio::test]
async fn an_attempt_whose_record_is_lost_is_made_again_with_its_number_and_key() {
    let lab = lab().await;
    lab.crash_at(Crash::BeforeCommit(2));
    lab.start(order, "o-1", &5).await;
    lab.signal("o-1", "word", &true).await;
    lab.result::<String>("o-1").await.unwrap();
    let [first, second] = &lab.calls("charge")[..] else { panic!("{:?}", lab.calls("charge")) };
    assert_eq!(first, second);
    assert_eq!((first.run.as_str(), first.step.as_str(), first.attempt), ("o-1", "charge#1", 1));
}

#[tokio::test]
async fn a_failed_attempt_never_calls_the_closure_and_a_lost_answer_does() {
    let lab = lab().await;
    lab.fail_attempt("charge", 1, Failure::transient("down"));
    lab.lose_answer("charge", 2, Failure::transient("timed out"));
    lab.start(order, "o-1", &5).await;
    lab.advance(MINUTE).await;
    let attempts: Vec<_> = lab.calls("charge").iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [2, 3]);
    assert_eq!(TAKEN.get(), 10, "the service was not made for it, and that shows");
    lab.journal("o-1").await.step("charge").completed().attempts(3);
}

#[tokio::test]
async fn a_failure_that_was_given_is_the_one_on_record() {
    let lab = lab().await;
    lab.fail_attempt("charge#1", 1, Failure::permanent("no such card").code(Code::NotFound));
    lab.start(order, "o-1", &5).await;
    assert_eq!(lab.result::<String>("o-1").await.unwrap_err().code, Code::NotFound);
    lab.journal("o-1").await.ended(Status::Failed).step("charge").failed(Code::NotFound).attempts(1);
}

#[tokio::test]
async fn undos_can_be_made_to_fail_too() {
    let lab = lab().await;
    lab.fail_attempt("charge/undo", 1, Failure::transient("down"));
    lab.start(order, "o-1", &5).await;
    lab.signal("o-1", "word", &false).await;
    assert!(lab.result::<String>("o-1").await.is_err());
    lab.journal("o-1").await.step("charge/undo").completed().attempts(2).after("charge");
    assert_eq!((TAKEN.get(), lab.calls("charge/undo").len()), (0, 1));
}

/// Two halves with a wait between them, in each of two branches.
#[workflow]
async fn halves(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    let slow = ctx.step("slow", || async {
        tokio::time::sleep(HOUR).await;
        TAKEN.set(TAKEN.get() + 1);
        Ok::<_, Failure>(())
    });
    let quick = ctx.step("quick", || async { Ok::<_, Failure>(()) });
    let (slow, quick) = ctx.join((slow, quick)).await;
    slow.and(quick)
}

#[tokio::test]
async fn nothing_happens_in_a_process_that_has_died() {
    let lab = Lab::new().register(halves).open().await;
    lab.start(halves, "h-1", &()).await;
    lab.advance(HOUR / 2).await;
    let engine = lab.engine().await; // somebody holds on to it
    lab.crash().await;
    assert!(engine.start("halves", &()).await.is_err(), "the dead do not answer");
    lab.advance(HOUR * 3 / 4).await;
    assert_eq!(TAKEN.get(), 0, "the first attempt would have been over");
    lab.result::<()>("h-1").await.unwrap();
    assert_eq!((TAKEN.get(), lab.calls("slow").len(), lab.calls("quick").len()), (1, 2, 1));
}

#[tokio::test]
#[should_panic(expected = "the code waits for the signal \"word\"")]
async fn a_run_that_will_never_end_is_not_waited_for_but_explained() {
    let lab = lab().await;
    lab.start(order, "o-1", &5).await;
    let _never = lab.result::<String>("o-1").await;
}

#[tokio::test]
#[should_panic(expected = "attempt 1 of step chrage was to fail, but it never came to that; steps that were called: {\"charge#1\"}")]
async fn a_failure_that_never_came_fails_the_test() {
    let lab = lab().await;
    lab.fail_attempt("chrage", 1, Failure::transient("down"));
    lab.start(order, "o-1", &5).await;
    lab.settle().await;
}

#[tokio::test]
#[should_panic(expected = "there was to be a crash after commit 9, but it never came to that")]
async fn a_crash_that_never_came_fails_the_test() {
    let lab = lab().await;
    lab.crash_at(Crash::AfterCommit(9));
    lab.start(order, "o-1", &5).await;
}
