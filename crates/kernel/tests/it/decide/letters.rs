//! The letter box: what nobody will try again by itself, until a person redrives or drops it.

use super::*;
use steadfast_kernel::letter::{LetterBox, decide, evolve};

fn checkout() -> WorkflowName {
    workflow("checkout")
}

fn letter_of(run: &str, step: &str) -> Letter {
    let (run, step) = (other_run(run), id(step));
    Letter { about: LetterAbout::Step { run, step }, attempt: 1, tenant: None, failure: poison(), payload: Payload::json("17") }
}

fn told(run: &str, seq: u64, message: Message) -> Command {
    Command::Hear(Box::new(Envelope { from: other_run(run).into(), seq, to: EntityId::Letters(checkout()), message }))
}

fn post(run: &str, seq: u64, step: &str) -> Command {
    told(run, seq, Message::PostLetter(letter_of(run, step)))
}

fn settle(run: &str, seq: u64, step: &str) -> Command {
    told(run, seq, Message::SettleLetter { step: id(step), after: 0 })
}

fn throw_away(letter: u64, origin: Origin) -> Command {
    Command::DropLetter(DropLetter { letter, origin })
}

fn added(run: &str, step: &str) -> Event {
    Event::LetterAdded(Box::new(letter_of(run, step)))
}

fn dropped(letter: u64, origin: Origin) -> Event {
    Event::LetterDropped { letter, origin }
}

/// The run knows who wanted it.
fn redriven_letter(letter: u64) -> Event {
    Event::LetterRedriven { letter, origin: Origin::default() }
}

#[track_caller]
fn state(entries: &[Entry]) -> Option<LetterBox> {
    let next = |state, entry: &Entry| Some(evolve(&checkout(), state, entry).unwrap_or_else(|illegal| panic!("{illegal}")));
    entries.iter().fold(None, next)
}

#[track_caller]
fn check(history: &[Entry], command: Command, expected: Result<Decision, Refusal>) {
    let decided = decide(&checkout(), state(history).as_ref(), command, at(70));
    assert_eq!(decided, expected);
    if let Ok(Decision { entries, .. }) = decided {
        state(&[history, &entries].concat());
    }
}

fn heard(entries: impl Into<Vec<Entry>>) -> Result<Decision, Refusal> {
    Ok(decision(entries, [answer(Answer::Heard)]))
}

/// `charge#1` and `ship#1` of `r-1`, and `charge#1` of `r-2`, by entries 1 to 3.
fn three() -> Vec<Entry> {
    vec![
        entry(1, 0, added("r-1", "charge#1")).heard(other_run("r-1"), 1),
        entry(2, 0, added("r-1", "ship#1")).heard(other_run("r-1"), 2),
        entry(3, 0, added("r-2", "charge#1")).heard(other_run("r-2"), 1),
    ]
}

fn letters(journal: &[Entry]) -> Vec<u64> {
    state(journal).expect("a box").letters.into_keys().collect()
}

#[test]
fn a_letter_is_added_once() {
    check(&[], post("r-1", 1, "charge#1"), heard([entry(1, 70, added("r-1", "charge#1")).heard(other_run("r-1"), 1)]));
    check(&three(), post("r-1", 1, "charge#1"), heard([]));
    check(&three(), post("r-1", 2, "ship#1"), heard([]));
    check(&three(), post("r-1", 3, "charge#1"), heard([entry(4, 70, added("r-1", "charge#1")).heard(other_run("r-1"), 3)]));
    assert_eq!(letters(&three()), [1, 2, 3]);
}

#[test]
fn the_letters_of_a_step_that_is_tried_again_are_settled() {
    let redriven = |seq, letter| entry(seq, 70, redriven_letter(letter)).heard(other_run("r-1"), 3);
    check(&three(), settle("r-1", 3, "charge#1"), heard([redriven(4, 1)]));
    let settled = [three(), vec![redriven(4, 1)]].concat();
    assert_eq!(letters(&settled), [2, 3], "that of another run stays");
    check(&settled, settle("r-1", 3, "charge#1"), heard([]));
    let twice = [three(), vec![entry(4, 0, added("r-1", "charge#1")).heard(other_run("r-1"), 3)]].concat();
    let both = [1, 4]
        .into_iter()
        .zip(5..)
        .map(|(letter, seq)| entry(seq, 70, redriven_letter(letter)).heard(other_run("r-1"), 4));
    check(&twice, settle("r-1", 4, "charge#1"), heard(both.collect::<Vec<_>>()));
}

#[test]
fn a_step_without_a_letter_has_nothing_to_settle() {
    check(&three(), settle("r-2", 2, "ship#1"), heard([]));
    check(&[], settle("r-1", 1, "charge#1"), heard([]));
}

#[test]
fn a_person_drops_a_letter() {
    let expected = decision([entry(4, 70, dropped(2, ada()))], [answer(Answer::Dropped)]);
    check(&three(), throw_away(2, ada()), Ok(expected));
    let journal = [three(), vec![entry(4, 70, dropped(2, ada()))]].concat();
    assert_eq!(letters(&journal), [1, 3]);
}

#[test]
fn a_letter_that_is_not_there_is_not_found() {
    let not_found = |seq| Err(Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Workflow(checkout()), seq } });
    check(&[], throw_away(1, ada()), not_found(1));
    check(&three(), throw_away(4, ada()), not_found(4));
    let gone = [three(), vec![entry(4, 0, dropped(2, ada())), entry(5, 0, redriven_letter(1))]].concat();
    check(&gone, throw_away(2, ada()), not_found(2));
    check(&gone, throw_away(1, ada()), not_found(1));
}

#[test]
fn the_same_command_again_is_answered() {
    let gone = [three(), vec![entry(4, 0, dropped(2, ada_with("c-1")))]].concat();
    check(&gone, throw_away(2, ada_with("c-1")), Ok(decision([], [answer(Answer::Dropped)])));
    check(
        &gone,
        throw_away(2, ada_with("c-2")),
        Err(Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Workflow(checkout()), seq: 2 } }),
    );
}

#[test]
fn nothing_else_is_of_concern() {
    check(&three(), told("r-1", 9, Message::GrantSlot { epoch: 1 }), heard([]));
    check(&three(), cancel(), heard([]));
}

#[test]
fn what_cannot_come_next_is_named() {
    let wrong = |event: Event, why: &str| {
        let next = entry(4, 70, event);
        let illegal = evolve(&checkout(), state(&three()), &next).expect_err("an entry that does not fit");
        let kind = next.event.kind();
        assert_eq!(illegal.to_string(), format!("the journal of letters:checkout cannot be followed at event 4 ({kind}): {why}"));
    };
    wrong(redriven_letter(9), "there is no such letter");
    wrong(dropped(9, ada()), "there is no such letter");
    wrong(run_started(), "no such event can happen to a letter box");
    let illegal = evolve(&checkout(), state(&three()), &entry(5, 70, dropped(1, ada()))).expect_err("a gap");
    assert_eq!(illegal.why, "an event is missing");
}

#[test]
fn the_way_in_is_by_the_kind_of_the_id() {
    let id = EntityId::Letters(checkout());
    let decided = steadfast_kernel::machine::decide(&id, None, post("r-1", 1, "charge#1"), at(70));
    assert_eq!(decided, decide(&checkout(), None, post("r-1", 1, "charge#1"), at(70)));
}
