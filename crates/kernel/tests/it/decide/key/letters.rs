//! What a person does about an end that nobody will tell by itself.

use super::*;

fn no_letter(seq: u64) -> Result<Decision, Refusal> {
    Err(Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Key(session()), seq } })
}

#[test]
fn a_letter_that_is_redriven_begins_with_its_first_attempt() {
    let retried = [failed_once(), vec![entry(4, 2000, expiry_letter(5, 2, after(2, poison())))]].concat();
    let entries = [entry(5, 7000, letter_redriven(4, ada()))];
    check(&retried, 7000, redrive(4, ada()), Ok(decision(entries.clone(), [call_back(5, 1), answer(Answer::Redriven)])));
    let key = state(&[retried, entries.to_vec()].concat());
    let callback = &key.callbacks[&5];
    assert_eq!((key.letters.len(), callback.attempt, callback.failed.clone()), (0, 1, None));
    assert_eq!((callback.ended_at, callback.target.clone()), (at(1000), Some(url())));
}

#[test]
fn what_was_redriven_can_be_told_and_can_become_a_letter_again() {
    let redriven = [with_letter(), vec![entry(4, 7000, letter_redriven(3, ada()))]].concat();
    let settled = [entry(5, 7100, callback_settled(5, 1))];
    check(&redriven, 7100, told(5, 1), Ok(decision(settled, [Effect::Retire(5), answer(Answer::Reported)])));
    let again = [entry(5, 7100, expiry_letter(5, 1, after(1, poison())))];
    let failed = reported(5, 1, Err(poison()), &Policy::once());
    check(&redriven, 7100, failed, Ok(decision(again.clone(), [answer(Answer::Reported)])));
    let twice = [redriven, again.to_vec()].concat();
    check(&twice, 7200, redrive(3, ada()), no_letter(3));
    check(
        &twice,
        7200,
        drop_letter(5, ada()),
        Ok(decision([entry(6, 7200, letter_dropped(5, ada()))], [Effect::Retire(6), answer(Answer::Dropped)])),
    );
}

#[test]
fn a_letter_that_is_dropped_is_gone_and_the_key_may_be_forgotten() {
    let entries = [entry(4, 7000, letter_dropped(3, ada()))];
    check(&with_letter(), 7000, drop_letter(3, ada()), Ok(decision(entries, [Effect::Retire(4), answer(Answer::Dropped)])));
}

#[test]
fn a_key_that_is_there_or_owes_more_is_not_forgotten_for_a_dropped_letter() {
    let again = [with_letter(), vec![entry(4, 1500, key_put(Held { on_expire: Some(url()), ..held_from(9, 1500) }))]].concat();
    let dropped = |seq| [entry(seq, 7000, letter_dropped(3, ada()))];
    check(&again, 7000, drop_letter(3, ada()), Ok(decision(dropped(5), [answer(Answer::Dropped)])));
    let owing = [again, vec![entry(5, 2500, key_expired(9, 2500))]].concat();
    check(&owing, 7000, drop_letter(3, ada()), Ok(decision(dropped(6), [answer(Answer::Dropped)])));
    let two_letters = [owing, vec![entry(6, 2500, expiry_letter(9, 1, after(1, poison())))]].concat();
    check(&two_letters, 7000, drop_letter(3, ada()), Ok(decision(dropped(7), [answer(Answer::Dropped)])));
}

#[test]
fn a_letter_that_is_not_there_is_not_found() {
    for history in [vec![], plain(), owing()] {
        check(&history, 7000, redrive(3, ada()), no_letter(3));
        check(&history, 7000, drop_letter(3, ada()), no_letter(3));
    }
    check(&with_letter(), 7000, redrive(2, ada()), no_letter(2));
    assert!(no_letter(3).unwrap_err().to_string().contains("key:sessions/ada.3"), "the message names it");
}

#[test]
fn the_same_command_again_is_answered_and_does_nothing() {
    let redriven = [with_letter(), vec![entry(4, 7000, letter_redriven(3, ada_with("c-1")))]].concat();
    check(&redriven, 7100, redrive(3, ada_with("c-1")), nothing_but(Answer::Redriven));
    check(&redriven, 7100, redrive(3, ada_with("c-2")), no_letter(3));
    check(&redriven, 7100, redrive(3, ada()), no_letter(3));
    let dropped = [with_letter(), vec![entry(4, 7000, letter_dropped(3, ada_with("c-1")))]].concat();
    check(&dropped, 7100, drop_letter(3, ada_with("c-1")), nothing_but(Answer::Dropped));
    check(&dropped, 7100, drop_letter(3, ada_with("c-2")), no_letter(3));
}

#[test]
fn the_last_commands_are_remembered_and_not_all_of_them() {
    let mut journal = with_letter();
    for round in 0..20_u64 {
        let seq = journal.len() as u64 + 1;
        journal.push(entry(seq, 7000, letter_redriven(seq - 1, ada_with(&format!("c-{round}")))));
        journal.push(entry(seq + 1, 7000, expiry_letter(5, 1, after(1, poison()))));
    }
    let expected: Vec<String> = (4..20).map(|round| format!("{} redriven c-{round}", 2 * round + 3)).collect();
    assert_eq!(state(&journal).commands, expected);
}

#[test]
fn a_command_is_one_thing_done_to_one_letter() {
    let again = vec![
        entry(4, 1500, key_put(Held { on_expire: Some(url()), ..held_from(9, 1500) })),
        entry(5, 2500, key_expired(9, 2500)),
        entry(6, 2500, expiry_letter(9, 1, after(1, poison()))),
        entry(7, 7000, letter_redriven(3, ada_with("c-1"))),
    ];
    let history = [with_letter(), again].concat();
    check(&history, 7000, redrive(3, ada_with("c-1")), Ok(decision([], [answer(Answer::Redriven)])));
    check(&history, 7000, drop_letter(3, ada_with("c-1")), no_letter(3));
    let other = [entry(8, 7000, letter_redriven(6, ada_with("c-1")))];
    check(&history, 7000, redrive(6, ada_with("c-1")), Ok(decision(other, [call_back(9, 1), answer(Answer::Redriven)])));
}
