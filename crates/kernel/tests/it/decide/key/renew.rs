//! A key gets another time.

use super::*;

fn renew(revision: Revision, ttl_ms: u64) -> RenewKey {
    RenewKey { revision, ttl: millis(ttl_ms), owner: None, if_revision: None }
}

fn renewed_until(revision: Revision, expires_ms: i64) -> Effect {
    answer(Answer::Renewed { revision, expires_at: at(expires_ms) })
}

#[test]
fn it_ends_later_or_sooner_and_is_armed_anew() {
    for (ttl, expires) in [(1000, 1500), (100, 600)] {
        let entries = [entry(2, 500, key_renewed(6, ttl, expires))];
        let effects = [arm_expiry(expires, 6), renewed_until(6, expires)];
        check(&plain(), 500, Command::RenewKey(renew(6, ttl)), Ok(decision(entries.clone(), effects)));
        let expected = Held { revision: 6, ttl: millis(ttl), expires_at: at(expires), ..held(5) };
        assert_eq!(state(&[plain(), entries.to_vec()].concat()).held, Some(expected), "all else is as it was");
    }
}

#[test]
fn it_is_renewed_by_its_owner_alone() {
    for owner in [None, Some("other".to_string())] {
        check(&owned(), 500, Command::RenewKey(RenewKey { owner, ..renew(6, 1000) }), is_owned());
    }
    let mine = RenewKey { owner: gate(), ..renew(6, 1000) };
    let decided = decision([entry(2, 500, key_renewed(6, 1000, 1500))], [arm_expiry(1500, 6), renewed_until(6, 1500)]);
    check(&owned(), 500, Command::RenewKey(mine), Ok(decided.clone()));
    check(&plain(), 500, Command::RenewKey(RenewKey { owner: Some("anybody".into()), ..renew(6, 1000) }), Ok(decided));
}

#[test]
fn what_is_over_cannot_be_renewed_though_nobody_has_seen_its_end() {
    check(&plain(), 1000, Command::RenewKey(renew(6, 1000)), not_found());
    check(&owned(), 1000, Command::RenewKey(renew(6, 1000)), not_found());
    for history in [vec![], spent(), owing(), with_letter()] {
        check(&history, 1000, Command::RenewKey(renew(6, 1000)), not_found());
    }
}

#[test]
fn only_the_revision_that_is_expected_is_renewed() {
    let renew_if = |if_revision| Command::RenewKey(RenewKey { if_revision: Some(if_revision), ..renew(6, 1000) });
    let decided = decision([entry(2, 500, key_renewed(6, 1000, 1500))], [arm_expiry(1500, 6), renewed_until(6, 1500)]);
    check(&plain(), 500, renew_if(5), Ok(decided));
    check(&plain(), 500, renew_if(4), changed(Some(5)));
    check(&plain(), 500, renew_if(0), changed(Some(5)));
    check(&plain(), 1000, renew_if(5), not_found());
}

#[test]
fn a_huge_time_saturates() {
    let (ttl, expires_at) = (Duration::from_micros(u64::MAX), Timestamp::MAX);
    let entries = [entry(2, 500, Event::KeyRenewed { revision: 6, ttl, expires_at, restated: None })];
    let effects = [arm_key(TimerName::Expiry, Timestamp::MAX, 6), answer(Answer::Renewed { revision: 6, expires_at })];
    check(&plain(), 500, Command::RenewKey(RenewKey { ttl: Duration::MAX, ..renew(6, 0) }), Ok(decision(entries, effects)));
}
