//! The limit: so many slots, first come, first served.

use super::*;
use steadfast_kernel::limit::{Limit, advance, decide};

fn request(run: &str, seq: u64, epoch: u32, slots: u32) -> Command {
    told(run, seq, Message::RequestSlot { epoch, slots })
}

fn release(run: &str, seq: u64, epoch: u32) -> Command {
    told(run, seq, Message::ReleaseSlot { epoch })
}

fn told(run: &str, seq: u64, message: Message) -> Command {
    Command::Hear(Box::new(Envelope { from: other_run(run).into(), seq, to: limit_id("a"), message }))
}

fn requested(run: &str, epoch: u32, slots: u32) -> Event {
    Event::SlotRequested { run: other_run(run), epoch, slots }
}

fn granted(run: &str) -> Event {
    Event::SlotGranted { run: other_run(run) }
}

fn released(run: &str) -> Event {
    Event::SlotReleased { run: other_run(run) }
}

/// The state after those entries, and what the last of them says.
#[track_caller]
fn state(entries: &[Entry]) -> (Option<Limit>, Vec<Envelope>) {
    let next = |(state, _), entry: &Entry| {
        let (limit, said) = advance(&limit_key("a"), state, entry).unwrap_or_else(|illegal| panic!("{illegal}"));
        (Some(limit), said)
    };
    entries.iter().fold((None, Vec::new()), next)
}

#[track_caller]
fn check(history: &[Entry], command: &Command, entries: impl Into<Vec<Entry>>) -> Vec<Entry> {
    let entries = entries.into();
    let decided = decide(state(history).0.as_ref(), command, at(70));
    assert_eq!(decided, decision(entries.clone(), [answer(Answer::Heard)]));
    let journal = [history, &entries].concat();
    state(&journal);
    journal
}

/// A limit with one slot, which `r-1` has and `r-2` and `r-3` wait for.
#[track_caller]
fn in_line() -> Vec<Entry> {
    let journal = check(
        &[],
        &request("r-1", 5, 1, 1),
        [entry(1, 70, requested("r-1", 1, 1)).heard(other_run("r-1"), 5), entry(2, 70, granted("r-1"))],
    );
    let journal = check(&journal, &request("r-2", 1, 1, 1), [entry(3, 70, requested("r-2", 1, 1)).heard(other_run("r-2"), 1)]);
    check(&journal, &request("r-3", 1, 4, 1), [entry(4, 70, requested("r-3", 4, 1)).heard(other_run("r-3"), 1)])
}

fn line(journal: &[Entry]) -> (usize, [Option<usize>; 3]) {
    let limit = state(journal).0.expect("a limit");
    (limit.held(), ["r-1", "r-2", "r-3"].map(|run| limit.position(&other_run(run))))
}

#[test]
fn the_first_has_the_slot_and_the_others_wait_in_line() {
    assert_eq!(line(&in_line()), (1, [None, Some(1), Some(2)]));
    let (_, said) = state(&in_line()[..2]);
    let grant = Envelope { from: limit_id("a"), seq: 1, to: other_run("r-1").into(), message: Message::GrantSlot { epoch: 1 } };
    assert_eq!(said, [grant]);
}

#[test]
fn who_leaves_makes_room_for_who_is_next() {
    let released = [entry(5, 70, released("r-1")).heard(other_run("r-1"), 6), entry(6, 70, granted("r-2"))];
    let journal = check(&in_line(), &release("r-1", 6, 1), released);
    assert_eq!(line(&journal), (1, [None, None, Some(1)]));
    let grant = Envelope { from: limit_id("a"), seq: 2, to: other_run("r-2").into(), message: Message::GrantSlot { epoch: 1 } };
    assert_eq!(state(&journal).1, [grant]);
}

#[test]
fn who_no_longer_waits_leaves_the_line() {
    let journal = check(&in_line(), &release("r-2", 2, 1), [entry(5, 70, released("r-2")).heard(other_run("r-2"), 2)]);
    assert_eq!(line(&journal), (1, [None, None, Some(1)]));
    let journal =
        check(&journal, &release("r-1", 6, 1), [entry(6, 70, released("r-1")).heard(other_run("r-1"), 6), entry(7, 70, granted("r-3"))]);
    let journal = check(&journal, &release("r-3", 2, 4), [entry(8, 70, released("r-3")).heard(other_run("r-3"), 2)]);
    assert_eq!(line(&journal), (0, [None, None, None]));
    let limit = state(&journal).0.expect("a limit");
    assert!(limit.members.is_empty() && limit.line.is_empty(), "no slot is lost");
}

#[test]
fn what_was_heard_before_changes_nothing() {
    check(&in_line(), &request("r-1", 5, 1, 1), []);
    check(&in_line(), &request("r-2", 1, 1, 1), []);
    check(&in_line(), &request("r-2", 1, 1, 9), []);
    check(&in_line(), &release("r-1", 5, 1), []);
    let left = [in_line(), vec![entry(5, 70, released("r-2")).heard(other_run("r-2"), 2)]].concat();
    check(&left, &release("r-2", 2, 1), []);
}

#[test]
fn a_slot_of_another_life_is_not_given_back() {
    check(&in_line(), &release("r-3", 9, 3), []);
    check(&in_line(), &release("r-3", 9, 5), []);
    check(&in_line(), &release("r-9", 9, 1), []);
    check(&[], &release("r-1", 1, 1), []);
}

#[test]
fn how_many_slots_there_are_is_what_was_said_last() {
    let more =
        [entry(5, 70, requested("r-4", 1, 3)).heard(other_run("r-4"), 1), entry(6, 70, granted("r-2")), entry(7, 70, granted("r-3"))];
    let journal = check(&in_line(), &request("r-4", 1, 1, 3), more);
    assert_eq!(line(&journal), (3, [None, None, None]));
    let fewer = check(&journal, &request("r-5", 1, 1, 1), [entry(8, 70, requested("r-5", 1, 1)).heard(other_run("r-5"), 1)]);
    let fewer = check(&fewer, &release("r-1", 6, 1), [entry(9, 70, released("r-1")).heard(other_run("r-1"), 6)]);
    assert_eq!(line(&fewer).0, 2, "nobody loses a slot, and nobody gets one until there is one");
}

#[test]
fn a_limit_has_a_slot() {
    let entries = [entry(1, 70, requested("r-1", 1, 1)).heard(other_run("r-1"), 1), entry(2, 70, granted("r-1"))];
    check(&[], &request("r-1", 1, 1, 0), entries);
}

#[test]
fn nothing_else_is_of_concern() {
    check(&in_line(), &told("r-1", 9, Message::GrantSlot { epoch: 1 }), []);
    check(&in_line(), &cancel(), []);
    let message = Message::RequestSlot { epoch: 1, slots: 1 };
    let from_a_limit = Envelope { from: limit_id("b"), seq: 9, to: limit_id("a"), message };
    check(&in_line(), &Command::Hear(Box::new(from_a_limit)), []);
}

#[test]
fn what_cannot_come_next_is_named() {
    let wrong = |event: Event, why: &str| {
        let next = entry(5, 70, event);
        let illegal = advance(&limit_key("a"), state(&in_line()).0, &next).expect_err("an entry that does not fit");
        let kind = next.event.kind();
        assert_eq!(illegal.to_string(), format!("the journal of limit:key/a cannot be followed at event 5 ({kind}): {why}"));
    };
    wrong(granted("r-2"), "it is not the run's turn");
    wrong(granted("r-3"), "it is not the run's turn");
    wrong(granted("r-1"), "it is not the run's turn");
    wrong(requested("r-2", 1, 1), "the run is a member already");
    wrong(released("r-9"), "the run is no member");
    wrong(run_started(), "no such event can happen to a limit");
    let gap = entry(7, 70, released("r-1"));
    let illegal = advance(&limit_key("a"), state(&in_line()).0, &gap).expect_err("a gap");
    assert_eq!(illegal.why, "an event is missing");
}

#[test]
fn the_way_in_is_by_the_kind_of_the_id() {
    let decided = steadfast_kernel::machine::decide(&limit_id("a"), None, request("r-1", 5, 1, 1), at(70)).expect("no refusal");
    assert_eq!(decided, decide(None, &request("r-1", 5, 1, 1), at(70)));
}
