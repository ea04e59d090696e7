//! Attempts and the timers that start them.

use super::*;
use futures_util::task::noop_waker;

fn step() -> StepId {
    StepId::from_stored("charge#1")
}

/// A board with a step whose attempt of that number has just failed.
fn failed(attempt: Attempt) -> Board {
    let opening = Opening {
        run: RunId::new("order-17").unwrap(),
        workflow: steadfast_kernel::WorkflowName::new("checkout").unwrap(),
        definition: None,
        epoch: 1,
        generations: Generations::default(),
        supplied: BTreeMap::new(),
        details: BTreeMap::new(),
        paused: false,
        retried: None,
        task: None,
        rolls_back: false,
        adopted: None,
        gate: None,
        unsure_until: 0,
        script: Vec::new(),
    };
    let board = Board::new(Seed([0; 32]), Timestamp::EPOCH, &opening);
    let key = Key::Step(step());
    board.ask(&key, Ask::Step { policy: Policy::default(), asked_at: Timestamp::EPOCH, undo: None, not_repeatable: false });
    board.open(std::slice::from_ref(&key));
    for number in 1..=attempt {
        board.start_attempt(&step(), number);
        board.hand_over(&key, number, Err(Failure::transient("down")), &noop_waker());
    }
    board
}

fn runs(board: &Board) -> Option<Attempt> {
    match board.poll(&Key::Step(step()), &noop_waker()) {
        Gate::Run(attempt) => Some(attempt),
        _ => None,
    }
}

#[test]
fn an_attempt_that_has_failed_is_not_begun_again() {
    let board = failed(2);
    board.start_attempt(&step(), 2); // its timer was armed twice, and the store was away when it fired
    assert_eq!(runs(&board), None);
}

#[test]
fn the_next_attempt_may_begin_before_the_verdict_is_heard() {
    let board = failed(2);
    board.start_attempt(&step(), 3);
    assert_eq!(runs(&board), Some(3));
}
