//! The journal of a key: it does not grow for ever, its revisions rise, and what cannot come next is named.

use super::*;

/// A put, and so many renewals, all decided and folded as a shard does; the journal, and where it may begin by the last effect that said so.
fn renewed(times: u64) -> (Vec<Entry>, Option<u64>) {
    let (mut journal, mut begin) = (plain(), None);
    let mut key = folded_key(&journal);
    for time in 0..times {
        let renew = RenewKey { revision: 6 + time, ttl: SECOND, owner: None, if_revision: None };
        let decided = decide(&session(), key.as_ref(), Command::RenewKey(renew), at(1)).expect("it is there");
        for effect in &decided.effects {
            begin = if let Effect::Shorten(seq) = effect { Some(*seq) } else { begin };
        }
        for entry in decided.entries {
            key = Some(next_key(key.take(), &entry).unwrap_or_else(|illegal| panic!("{illegal}")));
            journal.push(entry);
        }
    }
    assert_eq!(key, folded_key(&journal));
    (journal, begin)
}

fn restates(entry: &Entry) -> bool {
    matches!(entry.event, Event::KeyRenewed { restated: Some(_), .. })
}

#[test]
fn now_and_then_a_renewal_says_all_there_is_to_be_known() {
    let (journal, begin) = renewed(200);
    let bases: Vec<u64> = journal.iter().filter(|entry| restates(entry)).map(|entry| entry.seq).collect();
    assert_eq!((bases, begin), (vec![65, 129, 193], Some(129)));
}

#[test]
fn what_is_left_of_a_shortened_journal_says_the_same() {
    for times in [63, 64, 65, 127, 128, 129, 300] {
        let (journal, begin) = renewed(times);
        let begin = begin.unwrap_or(1);
        let left: Vec<_> = journal.iter().filter(|entry| entry.seq >= begin).cloned().collect();
        assert_eq!(folded_key(&left), folded_key(&journal), "after {times} from {begin}");
        assert!(left.len() < 130, "{} entries are kept", left.len());
        assert!(left.len() >= 64 || begin == 1, "those who follow it have nothing to read");
    }
}

#[test]
fn a_put_says_all_there_is_to_be_known_too() {
    let (journal, _) = renewed(63);
    let entries = [entry(65, 500, key_put(held_from(99, 500)))];
    let put = Answer::Put { revision: 99, expires_at: at(1500) };
    let effects = [arm_expiry(1500, 99), Effect::Shorten(1), answer(put)];
    check(&journal, 500, Command::PutKey(put_key(99)), Ok(decision(entries.clone(), effects)));
    let key = state(&[journal, entries.to_vec()].concat());
    assert_eq!(key.base, 65);
    assert_eq!(folded_key(&entries), Some(key));
}

#[test]
fn nothing_is_removed_that_has_still_to_be_told() {
    for owes in [owing(), with_letter()] {
        let seq = owes.len() as u64 + 1;
        let mut journal = [owes, vec![entry(seq, 1500, key_put(held_from(9, 1500)))]].concat();
        for time in 1..100 {
            journal.push(entry(seq + time, 1500, key_renewed(9 + time, 1000, 2500)));
        }
        let renew = RenewKey { revision: 999, ttl: SECOND, owner: None, if_revision: None };
        let effects = [arm_expiry(2500, 999), answer(Answer::Renewed { revision: 999, expires_at: at(2500) })];
        let entries = [entry(seq + 100, 1500, key_renewed(999, 1000, 2500))];
        check(&journal, 1500, Command::RenewKey(renew), Ok(decision(entries, effects)));
        let entries = [entry(seq + 100, 1500, key_put(held_from(999, 1500)))];
        let effects = [arm_expiry(2500, 999), answer(Answer::Put { revision: 999, expires_at: at(2500) })];
        check(&journal, 1500, Command::PutKey(put_key(999)), Ok(decision(entries, effects)));
        assert_eq!(state(&journal).base, 1);
    }
}

#[test]
fn ids_of_commands_are_forgotten_with_what_they_came_with() {
    let mut journal =
        [with_letter(), vec![entry(4, 1500, letter_dropped(3, ada_with("c-1"))), entry(5, 1500, key_put(held_from(9, 1500)))]].concat();
    for time in 1..60 {
        journal.push(entry(5 + time, 1500, key_renewed(9 + time, 1000, 2500)));
    }
    assert_eq!(state(&journal).commands, ["3 dropped c-1"]);
    journal.push(entry(65, 1500, key_put(held_from(99, 1500))));
    let key = state(&journal);
    assert_eq!((key.commands.len(), key.base), (0, 65));
    assert_eq!(folded_key(&journal[64..]), Some(key));
}

#[track_caller]
fn does_not_follow(history: &[Entry], next: &Entry, why: &str) {
    let illegal = next_key(folded_key(history), next).expect_err("an entry that does not fit");
    let (seq, kind) = (next.seq, next.event.kind());
    assert_eq!(illegal.to_string(), format!("the journal of key:sessions/ada cannot be followed at event {seq} ({kind}): {why}"));
}

#[test]
fn revisions_rise_also_when_the_key_is_gone() {
    for revision in [4, 5] {
        does_not_follow(&plain(), &entry(2, 0, key_put(held(revision))), "revisions rise");
        does_not_follow(&plain(), &entry(2, 0, key_renewed(revision, 1000, 1000)), "revisions rise");
        does_not_follow(&owing(), &entry(3, 0, key_put(held(revision))), "revisions rise");
        does_not_follow(&spent(), &entry(3, 0, key_put(held(revision))), "revisions rise");
        does_not_follow(&with_letter(), &entry(4, 0, key_put(held(revision))), "revisions rise");
    }
}

#[test]
fn a_journal_begins_with_what_the_key_holds() {
    let why = "a journal of a key begins with what it holds";
    for event in [key_renewed(5, 1000, 1000), key_deleted(5), key_expired(5, 1000), callback_settled(5, 1), run_started()] {
        does_not_follow(&[], &entry(1, 0, event), why);
    }
    let restated = Event::KeyRenewed { revision: 5, ttl: SECOND, expires_at: at(1000), restated: Some(Box::new(held(5))) };
    assert_eq!(state(&[entry(65, 0, restated)]).held, Some(held(5)));
}

#[test]
fn what_cannot_come_next_is_named() {
    let next = |history: Vec<Entry>, event, why| does_not_follow(&history, &entry(history.len() as u64 + 1, 0, event), why);
    does_not_follow(&plain(), &entry(3, 0, key_deleted(5)), "an event is missing");
    next(spent(), key_renewed(6, 1000, 1000), "there is nothing to renew");
    for history in [plain(), spent()] {
        next(history.clone(), key_deleted(6), "there is no such revision");
        next(history, key_expired(6, 1000), "there is no such revision");
    }
    for event in [callback_failed(6, 1, 3, 2000), callback_settled(6, 1), expiry_letter(6, 1, poison())] {
        next(owing(), event, "there is no such callback");
    }
    for event in [callback_failed(5, 2, 3, 2000), callback_settled(5, 2)] {
        next(owing(), event, "it is not the attempt to come");
    }
    for event in [letter_redriven(2, ada()), letter_dropped(2, ada())] {
        next(with_letter(), event, "there is no such letter");
    }
    next(plain(), run_started(), "no such event can happen to a key");
    let other = Held { value: Payload::json("18"), ..held(6) };
    let restated = Event::KeyRenewed { revision: 6, ttl: SECOND, expires_at: at(1000), restated: Some(Box::new(other)) };
    next(plain(), restated, "it says something else than what is known");
}
