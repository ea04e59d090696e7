//! The checks of journals: each holds where it should, and shows the journal where it does not.

use steadfast::testing::{Journal, Lab};
use steadfast::{Code, Ctx, Failure, Policy, SECOND, Status, workflow};

#[workflow]
async fn work(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    let failing = ctx.step("first", || async { Err::<(), _>(Failure::transient("down")) });
    let failed = failing.retry(Policy::constant(SECOND).max_attempts(2)).await;
    ctx.version("change", 1..=2);
    for _ in 0..2 {
        ctx.step("second", || async { Ok::<_, Failure>(()) }).await?;
    }
    failed
}

async fn journal() -> Journal {
    let lab = Lab::new().register(work).open().await;
    lab.start(work, "w-1", &()).await;
    assert!(lab.result::<()>("w-1").await.is_err());
    lab.journal("w-1").await
}

#[tokio::test]
async fn what_is_so_can_be_said() {
    let journal = journal().await;
    journal
        .ended(Status::Failed)
        .no_step("third")
        .steps("second", 2)
        .steps("first", 1)
        .no_step("version:change");
    journal.step("first").attempts(2).failed(Code::Unavailable);
    journal
        .step("second#2")
        .attempts(1)
        .completed()
        .after("first")
        .after("second#1")
        .journal()
        .ended(Status::Failed);
    journal.kinds(["RUN_STARTED", "RETRY_SCHEDULED", "STEP_FAILED", "STEP_COMPLETED", "STEP_COMPLETED", "STEP_COMPLETED", "RUN_FAILED"]);
}

type Check<'a> = &'a dyn Fn(&Journal);

#[tokio::test]
async fn what_is_not_so_is_shown_with_the_whole_journal() {
    let journal = journal().await;
    let checks: [(&str, Check); 9] = [
        ("it has ended as FAILED, not as COMPLETED", &|journal| _ = journal.ended(Status::Completed)),
        ("it should have 0 steps second, and has {\"second#1\", \"second#2\"}", &|journal| _ = journal.no_step("second")),
        ("there is no step third", &|journal| _ = journal.step("third")),
        ("there are several steps second; say which", &|journal| _ = journal.step("second")),
        ("step first#1 should have 3 attempts on record, and has 2", &|journal| _ = journal.step("first").attempts(3)),
        ("step first#1 has not completed", &|journal| _ = journal.step("first").completed()),
        ("step first#1 should have failed with NOT_FOUND", &|journal| _ = journal.step("first").failed(Code::NotFound)),
        ("step first#1 should come after second#1", &|journal| _ = journal.step("first").after("second#1")),
        ("its entries are not [\"RUN_STARTED\"]", &|journal| _ = journal.kinds(["RUN_STARTED"])),
    ];
    for (expected, check) in checks {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&journal))).expect_err(expected);
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.starts_with(&format!("the journal of run w-1 is not as it should be: {expected}")), "{message}");
        assert!(message.contains("RETRY_SCHEDULED first#1 a2/2 UNAVAILABLE\n") && message.ends_with("RUN_FAILED UNAVAILABLE"), "{message}");
    }
}
