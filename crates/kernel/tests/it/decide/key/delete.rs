//! A key is removed.

use super::*;

fn delete() -> DeleteKey {
    DeleteKey { owner: None, if_revision: None }
}

fn deleted(revision: Revision) -> Effect {
    answer(Answer::Deleted { revision })
}

#[test]
fn it_is_gone_and_nobody_is_called_back() {
    let effects = [disarm(TimerName::Expiry), Effect::Retire(2), deleted(5)];
    let expected = decision([entry(2, 500, key_deleted(5))], effects);
    check(&plain(), 500, Command::DeleteKey(delete()), Ok(expected.clone()));
    check(&owned(), 500, Command::DeleteKey(DeleteKey { owner: gate(), ..delete() }), Ok(expected));
    assert_eq!(state(&[owned(), vec![entry(2, 500, key_deleted(5))]].concat()).callbacks.len(), 0);
}

#[test]
fn it_is_removed_by_its_owner_alone() {
    for owner in [None, Some("other".to_string())] {
        check(&owned(), 500, Command::DeleteKey(DeleteKey { owner, ..delete() }), is_owned());
    }
}

#[test]
fn only_the_revision_that_is_expected_is_removed() {
    let delete_if = |if_revision| Command::DeleteKey(DeleteKey { if_revision: Some(if_revision), ..delete() });
    check(&plain(), 500, delete_if(4), changed(Some(5)));
    check(&plain(), 500, delete_if(0), changed(Some(5)));
    let effects = [disarm(TimerName::Expiry), Effect::Retire(2), deleted(5)];
    check(&plain(), 500, delete_if(5), Ok(decision([entry(2, 500, key_deleted(5))], effects)));
}

#[test]
fn what_is_not_there_is_not_found() {
    for history in [vec![], spent(), owing()] {
        check(&history, 1000, Command::DeleteKey(delete()), not_found());
    }
    check(&plain(), 1000, Command::DeleteKey(delete()), not_found());
    check(&owned(), 1000, Command::DeleteKey(delete()), not_found());
}

#[test]
fn those_below_a_directory_go_with_it() {
    let directory = history([key_put(Held { directory: true, on_expire: Some(url()), ..held(5) })]);
    let effects = [disarm(TimerName::Expiry), call_back(5, 1), deleted(5)];
    check(&directory, 500, Command::DeleteKey(delete()), Ok(decision([entry(2, 500, key_deleted(5))], effects)));
    let key = state(&[directory, vec![entry(2, 500, key_deleted(5))]].concat());
    let callback = &key.callbacks[&5];
    assert_eq!((callback.ended_at, callback.below, callback.target.clone()), (at(500), Some(Below::Delete), None));
}

#[test]
fn what_is_still_to_be_told_of_an_earlier_one_is_not_forgotten() {
    for history in [owing(), with_letter()] {
        let seq = history.len() as u64 + 1;
        let again = [history, vec![entry(seq, 1500, key_put(held_from(9, 1500)))]].concat();
        let effects = [disarm(TimerName::Expiry), deleted(9)];
        check(&again, 1600, Command::DeleteKey(delete()), Ok(decision([entry(seq + 1, 1600, key_deleted(9))], effects)));
    }
}
