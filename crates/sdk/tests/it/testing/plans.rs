//! Checks of plans: a good plan stands them, and what is wrong with another one is found and named.

use std::cell::RefCell;
use std::collections::BTreeSet;
use steadfast::testing::PlanCheck;
use steadfast::{Engine, EngineBuilder, Failure, HOUR, Plan, Task};

thread_local! {
    /// Where tenants are, and what was done to them.
    static PLACE: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

fn enter(what: &str) -> bool {
    PLACE.with_borrow_mut(|place| place.insert(what.into()))
}

fn leave(what: &str) -> bool {
    PLACE.with_borrow_mut(|place| place.remove(what))
}

fn fresh(plan: Plan) -> EngineBuilder {
    PLACE.take();
    Engine::in_memory().plan(plan)
}

/// Stages that can be repeated, a gate and a wait between them.
fn good() -> Plan {
    Plan::new("switch")
        .stage("drain", |task: Task| async move {
            enter("drained");
            Ok::<_, Failure>(serde_json::json!({ "from": task.var::<String>("from")? }))
        })
        .undo(|_task| async {
            leave("drained");
            Ok::<_, Failure>(())
        })
        .approve("ok", ["operator"], Some(2 * HOUR))
        .stage("move", |task: Task| async move {
            leave(&task.checkpoint::<String>("from")?);
            enter("new");
            Ok::<_, Failure>(())
        })
        .undo(|task| async move {
            leave("new");
            enter(&task.checkpoint::<String>("from")?);
            Ok::<_, Failure>(())
        })
        .wait("settle", 24 * HOUR)
        .stage("verify", |_task| async { if enter("new") { Err(Failure::permanent("it is not there")) } else { Ok(()) } })
}

#[tokio::test]
async fn a_plan_whose_stages_can_be_repeated_stands_everything() {
    let check = PlanCheck::new("switch", || fresh(good()))
        .tenant("globex")
        .vars(&serde_json::json!({ "from": "old" }));
    check.fail_at_every_stage().await;
    check.run_every_stage_twice().await;
    check.undo_twice().await;
    PLACE.with_borrow(|place| assert_eq!(*place, BTreeSet::from(["old".to_string()]), "the last play was rolled back"));
}

/// A tenant can be moved only once.
fn once() -> Plan {
    Plan::new("switch")
        .stage("look", |_task| async { Ok::<_, Failure>(()) })
        .stage("move", |_task| async { if enter("new") { Ok(()) } else { Err(Failure::permanent("it is there already")) } })
        .undo(|_task| async { if leave("new") { Ok(()) } else { Err(Failure::permanent("it is not there")) } })
        .stage("tell", |_task| async { Ok::<_, Failure>(()) })
}

#[tokio::test]
#[should_panic(
    expected = "plan switch does not stand this:\nstage move, run twice: the task is FAILED at stage move: it is there already, not COMPLETED"
)]
async fn a_stage_that_cannot_be_repeated_is_named() {
    let check = PlanCheck::new("switch", || fresh(once()));
    check.fail_at_every_stage().await;
    check.run_every_stage_twice().await;
}

#[tokio::test]
#[should_panic(expected = "plan switch does not stand this:\nstage move, undone twice: the task is ROLLBACK_FAILED")]
async fn an_undo_that_cannot_be_repeated_is_named() {
    PlanCheck::new("switch", || fresh(once())).undo_twice().await;
}

/// A process keeps in its memory what belongs into the checkpoint.
#[tokio::test]
#[should_panic(expected = "stage read, run twice: the task is FAILED at stage read: nothing was written, not COMPLETED")]
async fn a_stage_that_needs_what_no_checkpoint_keeps_is_named() {
    let plan = || {
        let write = |_task| async {
            enter("a word");
            Ok::<_, Failure>(())
        };
        let read = |_task| async { if leave("a word") { Ok(()) } else { Err(Failure::permanent("nothing was written")) } };
        Plan::new("letter").stage("write", write).stage("read", read)
    };
    let check = PlanCheck::new("letter", || fresh(plan()));
    check.fail_at_every_stage().await;
    check.run_every_stage_twice().await;
}

#[tokio::test]
#[should_panic(expected = "plan switch does not complete when nothing goes wrong: the task is FAILED at stage drain: from cannot be used")]
async fn a_plan_that_does_not_complete_shows_nothing() {
    PlanCheck::new("switch", || fresh(good())).fail_at_every_stage().await;
}
