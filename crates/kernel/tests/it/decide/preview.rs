//! What a retry would do, and nothing changes.

use super::*;
use steadfast_kernel::run::{Preview, preview};

/// Steps `a#1` (succeeded), `b#1` (undone), `c#1` (failed); children that ended and that did not; a signal that was taken.
fn journal() -> Vec<Entry> {
    history([
        run_started_with(None, limited(&["a"])),
        slot_acquired("a"),
        step_completed("a#1", 1, "1"),
        step_completed("version:fees#1", 1, "2"),
        undoable_completed("b#1", 1, "2"),
        child_started("child:parcel#1", "parcel-1"),
        child_ended("child:parcel#1", Ok("2")),
        child_taken("child:parcel#1"),
        child_started("child:parcel#2", "parcel-2"),
        signal_received("approve", None),
        signal_awaited("signal:approve#1", "approve"),
        signal_taken("signal:approve#1", 10),
        step_failed("c#1", 1, timeout()),
        run_compensating(Some(timeout())),
        undo_completed("b#1", 1),
        run_failed(timeout()),
    ])
}

fn ids(steps: &[&str]) -> Vec<StepId> {
    steps.iter().map(|step| id(step)).collect()
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn previewed(history: &[Entry], command: RetryRun) -> Result<Preview, Refusal> {
    preview(&folded(history).expect("a run"), command)
}

#[test]
fn it_says_what_is_kept_and_what_is_done_again() {
    let expected = Preview {
        epoch: 2,
        runs_again: ids(&["b#1", "c#1"]),
        kept: ids(&["a#1"]),
        in_doubt: vec![],
        supplied: vec![],
        repeated_keys: keys(&["order-17/c#1/1"]),
        new_keys: keys(&["order-17/b#1/2"]),
        cancelled_children: vec![],
        restarted_children: vec![other_run("parcel-1"), other_run("parcel-2")],
        signals_asked_again: vec!["approve".into()],
        slots: vec![limit_key("a")],
    };
    assert_eq!(previewed(&journal(), retry_from(RetryFrom::Failed)), Ok(expected));
}

#[test]
fn what_is_supplied_is_not_done_again() {
    let outputs = vec![(id("c#1"), Payload::json("3")), (id("d#1"), Payload::json("4"))];
    let preview = previewed(&journal(), RetryRun { outputs, ..retry_from(RetryFrom::Failed) }).expect("a preview");
    assert_eq!((preview.runs_again, preview.supplied), (ids(&["b#1"]), ids(&["c#1", "d#1"])));
    assert_eq!((preview.repeated_keys, preview.new_keys), (vec![], keys(&["order-17/b#1/2"])));
}

#[test]
fn a_run_that_has_not_ended_keeps_its_slot_and_calls_children_off() {
    let waiting = [
        entry(1, 0, run_started_with(None, limited(&["a"]))),
        entry(2, 0, slot_acquired("a")),
        entry(3, 0, step_completed("a#1", 1, "1")),
        entry(4, 0, child_started("child:parcel#1", "parcel-1")),
        entry(5, 0, detached_started("child:parcel#2", "parcel-2")).leaving(0),
    ];
    let preview = previewed(&waiting, retry_from(RetryFrom::Start)).expect("a preview");
    assert_eq!((preview.cancelled_children, preview.restarted_children), (vec![other_run("parcel-1")], vec![other_run("parcel-2")]));
    assert_eq!((preview.slots, preview.new_keys), (vec![], keys(&["order-17/a#1/2"])));
}

#[test]
fn it_is_what_the_retry_does() {
    for from in [RetryFrom::Failed, RetryFrom::Start, RetryFrom::Step(id("a#1")), RetryFrom::Step(id("child:parcel#1"))] {
        let preview = previewed(&journal(), retry_from(from.clone())).expect("a preview");
        let before = folded(&journal()).expect("a run");
        let decided = decide(&run_id(), Some(&before), Command::RetryRun(retry_from(from)), at(70)).expect("a retry");
        let run = folded(&[journal(), decided.entries].concat()).expect("a run");
        let kept: Vec<_> = run.open().expect("an open run").steps.keys().filter(|step| !step.is_version()).cloned().collect();
        assert_eq!((preview.kept, preview.epoch), (kept, run.epoch));
        let raised = |step: &&StepId| run.generations.get(step) > before.generations.get(step);
        let new: Vec<_> = preview.runs_again.iter().filter(raised).map(|step| run.generations.key(&run.id, step)).collect();
        assert_eq!(preview.new_keys, new);
    }
}

#[test]
fn what_cannot_be_retried_has_no_preview() {
    let not_found = Err(Refusal::StepNotFound { run: run_id(), step: id("z#1") });
    assert_eq!(previewed(&journal(), retry_from(RetryFrom::Step(id("z#1")))), not_found);
    assert!(matches!(previewed(&open(), retry_from(RetryFrom::Failed)), Err(Refusal::WrongStatus { .. })));
}
