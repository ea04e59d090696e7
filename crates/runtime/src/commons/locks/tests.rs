//! What is asked for, renewed and given back, without any Redis.

use super::*;
use steadfast_kernel::{Epoch, PlanId, RunId};

fn me() -> InstanceId {
    InstanceId::new("a").unwrap()
}

fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::EPOCH.saturating_add(Duration::from_millis(millis))
}

fn waiter(task: &str, asked: Seq) -> Waiter {
    let (task, plan) = (RunId::new(task).unwrap(), PlanId::new("night").unwrap());
    Waiter { task, plan, epoch: Epoch::default(), asked, lease: Duration::from_secs(60), waits: true }
}

fn holder(task: &str, fence: u64) -> LockHolder {
    waiter(task, 1).holder(&me(), fence)
}

fn lease(task: &str, fence: u64) -> Lease {
    let Waiter { task, plan, epoch, lease, .. } = waiter(task, 1);
    Lease { plan, task, epoch, fence, lease, expires_at: at(60_000) }
}

fn image(seq: Seq, holder: Option<Lease>, wanted: Option<Waiter>) -> LockImage {
    let fence = holder.as_ref().map_or(0, |lease| lease.fence);
    LockImage { seq, tenant: tenant(), holder, wanted, fence }
}

/// Locks in which a task wants the one of the tenant.
fn claimed(task: &str) -> Locks {
    let mut locks = Locks::default();
    locks.put(&me(), image(1, None, Some(waiter(task, 1))), at(0));
    locks
}

fn sent(locks: &Locks, now: u64) -> Vec<Write> {
    locks.writes(&me(), at(now), true).into_iter().map(|(_, write)| write).collect()
}

/// Sends all there is; each answer is the next of these.
fn answer(locks: &mut Locks, now: u64, answers: &[Wrote]) -> Vec<Then> {
    let writes = locks.writes(&me(), at(now), true);
    assert_eq!(writes.len(), answers.len(), "{writes:?}");
    let abouts = writes.into_iter().map(|(about, _)| about);
    abouts
        .zip(answers)
        .map(|(about, wrote)| locks.wrote(&me(), about, wrote.clone(), at(now)))
        .collect()
}

/// Asks for a number; what is to be taken with it.
fn number(locks: &mut Locks, now: u64, fence: u64) -> About {
    match answer(locks, now, &[Wrote::Fence(fence)]).pop() {
        Some(Then::Take(about, Write::TakeLock { holder, instead_of: None, .. })) => {
            assert_eq!(holder.fence, fence);
            about
        }
        other => panic!("{other:?}"),
    }
}

fn take(locks: &mut Locks, fence: u64) {
    let about = number(locks, 0, fence);
    let then = locks.wrote(&me(), about, Wrote::Done, at(0));
    assert!(matches!(then, Then::Granted(_, _, Some(number)) if number == fence), "{then:?}");
}

fn release(task: &str, fence: u64) -> Write {
    Write::ReleaseLock { tenant: tenant(), holder: holder(task, fence) }
}

fn renew(task: &str, fence: u64) -> Write {
    Write::RenewLock { tenant: tenant(), holder: holder(task, fence), lease: Duration::from_secs(60) }
}

#[test]
fn a_claim_asks_for_a_number_above_the_last_and_then_takes_the_lock() {
    let mut locks = Locks::default();
    locks.put(&me(), LockImage { fence: 7, ..image(1, None, Some(waiter("t", 1))) }, at(0));
    assert_eq!(sent(&locks, 0), [Write::NextFence { tenant: tenant(), above: 7 }]);
    take(&mut locks, 8);
    assert_eq!(sent(&locks, 0), [], "it waits for the record");
    locks.put(&me(), image(2, Some(lease("t", 8)), None), at(1));
    assert_eq!(sent(&locks, 1), [], "and there is nothing to say about what the commons gave");
    assert_eq!(locks.held(), [tenant()]);
}

#[test]
fn no_lock_is_claimed_before_it_may_be_and_what_is_held_is_still_asserted() {
    let locks = claimed("t");
    assert_eq!(locks.writes(&me(), at(0), false), []);
    assert!(!locks.has_news(at(0), false) && locks.has_news(at(0), true));
    let mut locks = Locks::default();
    locks.put(&me(), image(1, Some(lease("t", 3)), None), at(0));
    let writes: Vec<_> = locks.writes(&me(), at(0), false).into_iter().map(|(_, write)| write).collect();
    assert_eq!(writes, [renew("t", 3)]);
}

#[test]
fn a_lock_that_another_has_is_looked_at_later_and_later_and_taken_when_it_is_free() {
    let mut locks = claimed("t");
    let other = LockHolder { instance: InstanceId::new("b").unwrap(), ..holder("u", 4) };
    let about = number(&mut locks, 0, 5);
    let then = locks.wrote(&me(), about, Wrote::Held(other.clone()), at(0));
    assert_eq!(then, Then::Held(tenant(), waiter("t", 1), other.to_string()));
    assert_eq!((sent(&locks, 499), locks.polled(at(499))), (vec![], vec![]));
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..6 {
        let next = locks.next().unwrap();
        pauses.push(next.saturating_since(at(now)).as_millis());
        now = u64::try_from(next.saturating_since(Timestamp::EPOCH).as_millis()).unwrap();
        assert_eq!((locks.polled(next), sent(&locks, now)), (vec![tenant()], vec![]), "it is looked at, not asked for");
        let found = SharedLock { tenant: tenant(), holder: other.clone(), left: Duration::from_secs(9) };
        locks.looked(&[tenant()], &[found], next);
    }
    assert_eq!(pauses, [500, 1000, 2000, 4000, 5000, 5000]);
    let next = locks.next().unwrap();
    locks.looked(&[tenant()], &[], next);
    assert_eq!(locks.writes(&me(), next, true).len(), 1, "it is free: it is asked for");
}

#[test]
fn a_claim_whose_answer_was_lost_is_made_again_with_another_number() {
    let mut locks = claimed("t");
    let about = number(&mut locks, 0, 1);
    locks.in_doubt(&about);
    take(&mut locks, 2);
    locks.put(&me(), image(2, Some(lease("t", 2)), None), at(1));
    locks.put(&me(), image(3, None, None), at(2));
    assert_eq!(sent(&locks, 2), [release("t", 2)]);
}

#[test]
fn a_claim_in_doubt_that_nobody_wants_any_more_is_given_back_whatever_its_number() {
    let mut locks = claimed("t");
    let about = number(&mut locks, 0, 1);
    locks.in_doubt(&about);
    locks.put(&me(), image(2, None, Some(waiter("u", 2))), at(1));
    assert_eq!(sent(&locks, 1), [release("t", 0), Write::NextFence { tenant: tenant(), above: 0 }], "before the next one asks");
}

#[test]
fn a_grant_that_came_too_late_is_given_back() {
    let mut locks = claimed("t");
    take(&mut locks, 1);
    locks.put(&me(), image(2, None, None), at(1));
    locks.unwanted(&tenant(), holder("t", 1));
    assert_eq!(sent(&locks, 1), [release("t", 1)]);
    answer(&mut locks, 1, &[Wrote::Done]);
    assert_eq!((sent(&locks, 2), locks.places.len()), (vec![], 0), "and nothing is remembered");
}

#[test]
fn a_lock_that_is_granted_is_not_given_back_because_another_joins_the_line_meanwhile() {
    let mut locks = claimed("t");
    take(&mut locks, 1);
    locks.put(&me(), image(2, None, Some(waiter("t", 1))), at(1));
    assert_eq!(sent(&locks, 1), []);
    locks.put(&me(), image(3, Some(lease("t", 1)), None), at(2));
    assert_eq!(sent(&locks, 2), []);
}

#[test]
fn a_lock_that_should_not_have_been_taken_yet_is_given_back_and_asked_for_again() {
    let mut locks = claimed("t");
    assert!(locks.claims(at(0)));
    let about = number(&mut locks, 0, 1);
    locks.withdraw(about);
    assert_eq!(locks.held(), []);
    assert_eq!(sent(&locks, 0), [release("t", 1), Write::NextFence { tenant: tenant(), above: 0 }]);
}

#[test]
fn a_take_that_nobody_waits_for_is_given_back() {
    let mut locks = claimed("t");
    let about = number(&mut locks, 0, 1);
    locks.put(&me(), image(2, None, None), at(1));
    locks.wrote(&me(), about, Wrote::Done, at(1));
    assert!(sent(&locks, 1).contains(&release("t", 1)));
}

#[test]
fn what_is_held_is_renewed_when_it_changes_and_when_there_is_doubt() {
    let mut locks = claimed("t");
    take(&mut locks, 1);
    locks.put(&me(), image(2, Some(lease("t", 1)), None), at(0));
    locks.put(&me(), image(3, Some(Lease { expires_at: at(90_000), ..lease("t", 1) }), None), at(1));
    assert_eq!(sent(&locks, 1), [renew("t", 1)]);
    answer(&mut locks, 1, &[Wrote::Done]);
    assert_eq!(sent(&locks, 1), []);
    locks.doubt();
    assert_eq!(sent(&locks, 1), [renew("t", 1)]);
    answer(&mut locks, 1, &[Wrote::Done]);
    locks.compare(&me(), &[tenant()], &[Some(holder("t", 1))]);
    assert_eq!(sent(&locks, 1), [], "it is as it should be");
    locks.compare(&me(), &[tenant()], &[None]);
    assert_eq!(sent(&locks, 1), [renew("t", 1)], "it is gone");
}

#[test]
fn a_holding_that_the_commons_do_not_know_is_contested() {
    let mut locks = Locks::default();
    locks.put(&me(), image(1, Some(lease("t", 3)), None), at(0));
    let minute = Duration::from_secs(60);
    assert_eq!(answer(&mut locks, 0, &[Wrote::Missing]), [Then::Contested(tenant(), holder("t", 3), minute, None)]);
    locks.doubt();
    let other = holder("u", 4);
    let then = answer(&mut locks, 0, &[Wrote::Held(other.clone())]);
    assert_eq!(then, [Then::Contested(tenant(), holder("t", 3), minute, Some(other))]);
    locks.doubt();
    assert_eq!(answer(&mut locks, 0, &[Wrote::Foreign { key: "k".into() }]), [Then::Foreign("k".into())]);
}

#[test]
fn an_answer_about_a_holding_that_is_over_changes_nothing() {
    let mut locks = Locks::default();
    locks.put(&me(), image(1, Some(lease("t", 3)), None), at(0));
    let (about, _) = locks.writes(&me(), at(0), true).remove(0);
    locks.put(&me(), image(2, Some(lease("t", 5)), None), at(0));
    assert_eq!(locks.wrote(&me(), about, Wrote::Missing, at(0)), Then::Nothing);
    assert!(sent(&locks, 0).contains(&renew("t", 5)));
}

#[test]
fn while_the_commons_are_away_each_claim_is_granted_once() {
    let mut locks = claimed("t");
    assert_eq!(locks.grant_all(), [Then::Granted(tenant(), waiter("t", 1), None)]);
    assert_eq!(locks.grant_all(), []);
    assert_eq!(locks.next(), None);
    locks.put(&me(), image(2, Some(lease("t", 1)), None), at(1));
    assert!(locks.is_local(&tenant(), &holder("t", 1)));
    assert_eq!(sent(&locks, 1), [renew("t", 1)], "the commons are told when they are back");
    locks.renewed(&tenant(), holder("t", 1));
    assert!(!locks.is_local(&tenant(), &holder("t", 1)));
}

#[test]
fn what_was_granted_by_the_commons_or_found_after_a_restart_is_not_local() {
    let mut locks = claimed("t");
    take(&mut locks, 4);
    locks.put(&me(), image(2, Some(lease("t", 4)), None), at(1));
    assert!(!locks.is_local(&tenant(), &holder("t", 4)));
    let mut locks = Locks::default();
    locks.put(&me(), image(9, Some(lease("t", 4)), None), at(1));
    assert!(!locks.is_local(&tenant(), &holder("t", 4)));
}

#[test]
fn a_lost_claim_of_a_task_that_went_on_alone_is_given_back_at_its_end() {
    let mut locks = claimed("t");
    let about = number(&mut locks, 0, 1);
    locks.in_doubt(&about); // it may be there from now on
    assert_eq!(locks.grant_all().len(), 1);
    locks.put(&me(), image(2, Some(lease("t", 1)), None), at(1));
    locks.put(&me(), image(3, None, None), at(2)); // the task has ended before the commons were back
    assert_eq!(sent(&locks, 2), [release("t", 0)]);
}

#[test]
fn a_lost_claim_of_a_task_that_was_called_off_is_given_back_though_it_was_granted_here() {
    let mut locks = claimed("t");
    let about = number(&mut locks, 0, 1);
    locks.in_doubt(&about);
    assert_eq!(locks.grant_all().len(), 1);
    locks.put(&me(), image(2, None, None), at(1));
    assert_eq!(sent(&locks, 1), [release("t", 0)]);
}

#[test]
fn what_an_earlier_life_has_left_is_given_back_unless_it_is_held() {
    let mut locks = Locks::default();
    locks.put(&me(), image(1, Some(lease("t", 3)), None), at(0));
    answer(&mut locks, 0, &[Wrote::Done]);
    locks.left_over(&tenant(), holder("t", 3));
    assert_eq!(sent(&locks, 0), []);
    locks.left_over(&tenant(), holder("t", 2));
    assert_eq!(sent(&locks, 0), [release("t", 2)]);
}

#[test]
fn an_image_that_comes_late_is_passed_over() {
    let mut locks = claimed("t");
    locks.put(&me(), image(5, Some(lease("t", 1)), None), at(0));
    locks.put(&me(), image(4, None, None), at(0));
    assert_eq!(locks.held(), [tenant()]);
}

#[test]
fn a_holding_that_was_over_before_anybody_was_told_is_given_back() {
    let mut locks = claimed("night/acme");
    take(&mut locks, 7);
    locks.put(&me(), LockImage { fence: 7, ..image(4, None, None) }, at(1));
    assert_eq!(sent(&locks, 1), [Write::ReleaseLock { tenant: tenant(), holder: holder("night/acme", 7) }]);
    answer(&mut locks, 1, &[Wrote::Done]);
    assert!(locks.places.is_empty() && !locks.owes());
}
