//! The letters of a route: messages that nobody will send or handle again by itself.

use super::*;
use crate::support::routes::{about, add, dropped, fail, letter_of, mail, redriven};
use steadfast_kernel::route::{COMMANDS_MAX, LETTERS_BYTES_MAX, LETTERS_MAX, RouteBox, decide, evolve};
use steadfast_kernel::{Direction, MessageKind, RouteName};

fn added(request: &str) -> Event {
    Event::LetterAdded(Box::new(letter_of(request)))
}

fn failed(letter: u64, attempt: u32, failure: Failure) -> Event {
    Event::LetterFailed { letter, attempt, failure: after(attempt, failure) }
}

fn after(attempts: u32, mut failure: Failure) -> Failure {
    failure.attempts = attempts;
    failure
}

#[track_caller]
fn state(entries: &[Entry]) -> Option<Box<RouteBox>> {
    let next = |state, entry: &Entry| Some(evolve(&mail(), state, entry).unwrap_or_else(|illegal| panic!("{illegal}")));
    entries.iter().fold(None, next)
}

#[track_caller]
fn check(history: &[Entry], command: Command, expected: Result<Decision, Refusal>) {
    let decided = decide(&mail(), state(history).as_deref(), command, at(70));
    assert_eq!(decided, expected);
    if let Ok(Decision { entries, .. }) = decided {
        state(&[history, &entries].concat());
    }
}

fn kept(entries: impl Into<Vec<Entry>>, letter: u64) -> Result<Decision, Refusal> {
    Ok(decision(entries, [answer(Answer::Kept { letter })]))
}

fn not_found(seq: u64) -> Result<Decision, Refusal> {
    Err(Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Route(mail()), seq } })
}

fn two() -> Vec<Entry> {
    vec![entry(1, 0, added("r-1")), entry(2, 0, added("r-2"))]
}

#[test]
fn a_message_is_kept() {
    check(&[], add("r-1"), kept([entry(1, 70, added("r-1"))], 1));
    check(&two(), add("r-3"), kept([entry(3, 70, added("r-3"))], 3));
}

#[test]
fn the_same_message_again_is_one_letter_and_its_newer_failure_counts() {
    let again = Letter { attempt: 4, failure: timeout(), ..letter_of("r-1") };
    check(&two(), Command::AddLetter(Box::new(again)), kept([entry(3, 70, failed(1, 5, timeout()))], 1));
    let journal = [two(), vec![entry(3, 70, failed(1, 5, timeout()))]].concat();
    let letters = state(&journal).unwrap().letters;
    assert_eq!(letters.iter().map(|(seq, kept)| (*seq, kept.attempts)).collect::<Vec<_>>(), [(1, 5), (2, 1)]);
}

#[test]
fn another_peer_direction_request_or_content_is_another_message() {
    let letter = |about| Letter { about, ..letter_of("r-1") };
    let LetterAbout::Message { route, direction, kind, request, .. } = letter_of("r-1").about else { panic!("a message") };
    let others = [
        letter(about(Direction::Sent, MessageKind::Tell, "r-1")),
        letter(about(Direction::Received, MessageKind::Tell, "r-9")),
        letter(LetterAbout::Message { route, direction, kind, request, peer: "peer-2".into() }),
        Letter { payload: Payload::bytes("18"), ..letter_of("r-1") },
    ];
    for other in others {
        let expected = kept([entry(3, 70, Event::LetterAdded(Box::new(other.clone())))], 3);
        check(&two(), Command::AddLetter(Box::new(other)), expected);
    }
}

#[test]
fn a_letter_of_something_else_is_not_kept() {
    let of_step = Letter { about: LetterAbout::Step { run: other_run("r"), step: id("charge#1") }, ..letter_of("r-1") };
    check(&two(), Command::AddLetter(Box::new(of_step)), Ok(decision([], [answer(Answer::NotFound)])));
    let other = RouteName::new("other").unwrap();
    assert_eq!(decide(&other, None, add("r-1"), at(70)), Ok(decision([], [answer(Answer::NotFound)])));
}

#[test]
fn a_failure_of_another_try_is_kept_with_all_attempts() {
    check(&two(), fail(2, timeout()), kept([entry(3, 70, failed(2, 2, timeout()))], 2));
    check(&two(), fail(2, after(3, timeout())), kept([entry(3, 70, failed(2, 4, timeout()))], 2));
    check(&two(), fail(3, timeout()), not_found(3));
    check(&[], fail(1, timeout()), not_found(1));
}

#[test]
fn a_letter_is_redriven_or_dropped_once() {
    let event = Event::LetterRedriven { letter: 1, origin: ada_with("c-1") };
    check(&two(), redriven(1, ada_with("c-1")), Ok(decision([entry(3, 70, event.clone())], [answer(Answer::Redriven)])));
    let gone = [two(), vec![entry(3, 70, event)]].concat();
    check(&gone, redriven(1, ada_with("c-1")), Ok(decision([], [answer(Answer::Redriven)])));
    check(&gone, redriven(1, ada_with("c-2")), not_found(1));
    check(
        &gone,
        redriven(2, ada_with("c-1")),
        Ok(decision([entry(4, 70, Event::LetterRedriven { letter: 2, origin: ada_with("c-1") })], [answer(Answer::Redriven)])),
    );
    check(&gone, dropped(1, ada_with("c-1")), not_found(1));
    let event = Event::LetterDropped { letter: 2, origin: ada_with("c-3") };
    check(&gone, dropped(2, ada_with("c-3")), Ok(decision([entry(4, 70, event.clone())], [answer(Answer::Dropped)])));
    let empty = [gone, vec![entry(4, 70, event)]].concat();
    check(&empty, dropped(2, ada_with("c-3")), Ok(decision([], [answer(Answer::Dropped)])));
    check(&empty, add("r-1"), kept([entry(5, 70, added("r-1"))], 5));
}

#[test]
fn a_full_box_refuses_and_says_so() {
    let mut full = state(&two()).unwrap();
    let kept = full.letters[&1].clone();
    full.letters.extend((3..).map(|seq| (seq, kept.clone())).take(LETTERS_MAX - 2));
    let refusal = decide(&mail(), Some(&full), add("r-3"), at(70)).expect_err("there is no room");
    assert_eq!(refusal, Refusal::TooManyLetters { route: mail(), max: LETTERS_MAX });
    assert_eq!((refusal.code(), refusal.to_string().contains("redrive or drop")), (code::TOO_MANY_LETTERS, true));
    assert!(decide(&mail(), Some(&full), add("r-1"), at(70)).is_ok(), "what is here needs no room");
}

#[test]
fn messages_are_kept_up_to_so_many_bytes_together() {
    let mut full = state(&two()).unwrap();
    let one = full.letters[&1].bytes;
    assert!(one > 0 && full.bytes == 2 * one, "two of the same length");
    full.bytes = LETTERS_BYTES_MAX - one;
    assert!(decide(&mail(), Some(&full), add("r-3"), at(70)).is_ok(), "it fits exactly");
    full.bytes += 1;
    let refusal = decide(&mail(), Some(&full), add("r-3"), at(70)).expect_err("there is no room");
    assert_eq!(refusal, Refusal::LettersTooLong { route: mail(), max: LETTERS_BYTES_MAX });
    assert_eq!((refusal.code(), refusal.to_string().contains("redrive or drop")), (code::TOO_MANY_LETTERS, true));
    assert!(decide(&mail(), Some(&full), add("r-1"), at(70)).is_ok(), "what is here needs no room");
    let without = [two(), vec![entry(3, 60, Event::LetterDropped { letter: 1, origin: Origin::default() })]].concat();
    assert_eq!(state(&without).unwrap().bytes, one, "what is gone leaves room");
}

#[test]
fn so_many_commands_are_remembered() {
    let mut journal = Vec::new();
    for number in 0..=COMMANDS_MAX as u64 {
        journal.push(entry(2 * number + 1, 0, added("r-1")));
        let origin = Origin { command: Some(format!("c-{number}")), ..Origin::default() };
        journal.push(entry(2 * number + 2, 0, Event::LetterDropped { letter: 2 * number + 1, origin }));
    }
    let commands = state(&journal).unwrap().commands;
    assert_eq!((commands.len(), commands[0].as_str()), (COMMANDS_MAX, "3 dropped c-1"));
}

#[test]
fn what_cannot_come_next_is_named() {
    let wrong = |event: Event, why: &str| {
        let next = entry(3, 70, event);
        let illegal = evolve(&mail(), state(&two()), &next).expect_err("an entry that does not fit");
        let kind = next.event.kind();
        assert_eq!(illegal.to_string(), format!("the journal of route:mail/send.v2 cannot be followed at event 3 ({kind}): {why}"));
    };
    wrong(Event::LetterRedriven { letter: 9, origin: ada() }, "there is no such letter");
    wrong(Event::LetterDropped { letter: 9, origin: ada() }, "there is no such letter");
    wrong(failed(9, 1, timeout()), "there is no such letter");
    wrong(added("r-1"), "the message has a letter already");
    wrong(run_started(), "no such event can happen to the letters of a route");
    let illegal = evolve(&mail(), state(&two()), &entry(4, 70, added("r-4"))).expect_err("a gap");
    assert_eq!(illegal.why, "an event is missing");
}

#[test]
fn nothing_else_is_of_concern() {
    check(&two(), cancel(), Ok(decision([], [answer(Answer::Heard)])));
    let decided = steadfast_kernel::machine::decide(&EntityId::Route(mail()), None, add("r-1"), at(70));
    assert_eq!(decided, decide(&mail(), None, add("r-1"), at(70)));
}
