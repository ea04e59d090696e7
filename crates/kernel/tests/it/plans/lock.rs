//! The lock: one holder at a time, first come, first served, and a fence that only rises.

use super::*;

pub(super) const LEASE: Duration = Duration::from_secs(9);

pub(super) fn lock() -> One {
    One::new(lock_entity())
}

pub(super) fn who(name: &str) -> EntityId {
    EntityId::from(&other_run(name))
}

pub(super) fn acquire(asked: Seq, waits: bool) -> Message {
    Message::AcquireLock { epoch: 1, asked, plan: plan_named("p"), lease: LEASE, waits }
}

pub(super) fn holder(lock: &One) -> Option<(&str, u64)> {
    lock.lock().held().map(|lease| (lease.task.as_str(), lease.fence))
}

pub(super) fn line(lock: &One) -> Vec<&str> {
    lock.lock().line.iter().map(|waiter| waiter.task.as_str()).collect()
}

/// Held by `a` since 1000, with fence 1; `b` and `c` wait.
pub(super) fn in_line() -> One {
    let mut lock = lock();
    assert_eq!(lock.hears(&who("a"), acquire(3, true)), ["LOCK_REQUESTED", "LOCK_ACQUIRED"]);
    assert_eq!(lock.hears(&who("b"), acquire(3, true)), ["LOCK_REQUESTED"]);
    assert_eq!(lock.hears(&who("c"), acquire(3, true)), ["LOCK_REQUESTED"]);
    lock
}

#[test]
fn who_asks_first_has_it_and_is_told_so() {
    let mut lock = lock();
    lock.hears(&who("a"), acquire(3, true));
    let lease = Lease { plan: plan_named("p"), task: other_run("a"), epoch: 1, fence: 1, lease: LEASE, expires_at: at(10_000) };
    assert_eq!(lock.said, [(who("a"), Message::LockGranted { lease: Box::new(lease), asked: 3 })]);
    assert!(lock.effects.contains(&Effect::Arm(steadfast_kernel::Timer {
        entity: lock_entity(),
        name: TimerName::Lease,
        due: at(4_000),
        revision: 2
    })));
}

#[test]
fn the_others_wait_in_the_order_in_which_they_came() {
    let mut lock = in_line();
    assert_eq!((holder(&lock), line(&lock)), (Some(("a", 1)), vec!["b", "c"]));
    assert_eq!(lock.hears(&who("b"), acquire(3, true)), [""; 0], "who waits already keeps its place");
    assert_eq!(lock.hears(&who("a"), Message::ReleaseLock { fence: Some(1) }), ["LOCK_RELEASED", "LOCK_ACQUIRED"]);
    assert_eq!((holder(&lock), line(&lock)), (Some(("b", 2)), vec!["c"]));
    assert!(matches!(&lock.said[..], [(to, Message::LockGranted { .. })] if *to == who("b")));
}

#[test]
fn who_does_not_wait_is_told_who_has_it() {
    let mut lock = in_line();
    assert_eq!(lock.hears(&who("d"), acquire(7, false)), [""; 0]);
    let back = lock.back();
    assert_eq!((&back[0].to, &back[0].message), (&who("d"), &Message::LockRefused { asked: 7, holder: "p:a".into() }));
    assert_eq!(line(&lock), ["b", "c"]);
}

#[test]
fn who_no_longer_waits_leaves_the_line() {
    let mut lock = in_line();
    assert_eq!(lock.hears(&who("b"), Message::ReleaseLock { fence: None }), ["LOCK_RELEASED"]);
    assert_eq!((holder(&lock), line(&lock)), (Some(("a", 1)), vec!["c"]));
}

#[test]
fn what_others_than_the_holder_say_of_it_changes_nothing() {
    let mut lock = in_line();
    for (from, message) in [
        ("b", Message::RenewLock { fence: 1, seen: 9 }),
        ("a", Message::RenewLock { fence: 7, seen: 9 }),
        ("d", Message::ReleaseLock { fence: Some(1) }),
        ("d", Message::ReleaseLock { fence: None }),
        ("a", Message::ReleaseLock { fence: Some(7) }),
    ] {
        assert_eq!(lock.hears(&who(from), message.clone()), [""; 0], "{from} says {message:?}");
    }
    assert_eq!(lock.hears(&EntityId::Plan(plan_named("p")), acquire(3, true)), [""; 0], "only tasks have locks");
    assert_eq!((holder(&lock), line(&lock)), (Some(("a", 1)), vec!["b", "c"]));
}

#[test]
fn a_release_of_an_old_holding_does_not_leave_the_line() {
    let mut lock = in_line();
    assert_eq!(lock.hears_as(&who("b"), 0, Message::ReleaseLock { fence: Some(0) }), [""; 0]);
    assert_eq!(line(&lock), ["b", "c"]);
}

#[test]
fn the_fence_rises_and_outlives_its_holders() {
    let mut lock = lock();
    for fence in 1..4 {
        lock.hears(&who("a"), acquire(fence, true));
        assert_eq!(holder(&lock), Some(("a", fence)));
        assert_eq!(lock.hears(&who("a"), Message::ReleaseLock { fence: Some(fence) }), ["LOCK_RELEASED"]);
        assert!(lock.effects.contains(&Effect::Disarm(TimerName::Lease)));
        assert_eq!((holder(&lock), lock.lock().fence), (None, fence));
    }
}

#[test]
fn who_has_it_and_asks_anew_has_it_with_a_new_fence() {
    let mut lock = in_line();
    assert_eq!(lock.hears(&who("a"), acquire(9, true)), ["LOCK_REQUESTED", "LOCK_ACQUIRED"]);
    assert_eq!((holder(&lock), line(&lock)), (Some(("a", 2)), vec!["b", "c"]), "it does not go to the end of the line");
}

#[test]
fn the_same_request_again_changes_nothing() {
    let mut lock = in_line();
    for (number, from) in (1..).zip(["a", "b", "c"]) {
        assert_eq!(lock.hears_as(&who(from), number, acquire(3, true)), [""; 0]);
        assert_eq!(lock.effects, [answer(Answer::Heard)]);
    }
    assert_eq!((holder(&lock), line(&lock)), (Some(("a", 1)), vec!["b", "c"]));
}

#[test]
fn a_request_that_comes_again_does_not_bring_back_who_has_lost_it() {
    fn is_over(lock: &mut One) -> Vec<&'static str> {
        lock.now = 10_000;
        lock.fires(TimerName::Lease)
    }
    let is_broken = |lock: &mut One| lock.does(Command::BreakLock(ada()));
    let is_given_back = |lock: &mut One| lock.hears_as(&who("a"), 0, Message::ReleaseLock { fence: Some(1) });
    for way in [is_over, is_broken, is_given_back] {
        let mut lock = in_line();
        assert_eq!(way(&mut lock).len(), 2);
        assert_eq!(lock.hears_as(&who("a"), 1, acquire(3, true)), [""; 0]);
        assert_eq!((holder(&lock), line(&lock)), (Some(("b", 2)), vec!["c"]));
        assert_eq!(lock.hears(&who("a"), acquire(9, true)), ["LOCK_REQUESTED"], "another request is one");
        assert_eq!(line(&lock), ["c", "a"]);
    }
}

#[test]
fn a_request_that_ends_the_holding_of_another_is_remembered_too() {
    let mut lock = lock();
    lock.hears(&who("a"), acquire(3, true));
    lock.now = 10_000;
    assert_eq!(lock.hears(&who("b"), acquire(3, true)), ["LOCK_LOST", "LOCK_REQUESTED", "LOCK_ACQUIRED"]);
    lock.does(Command::BreakLock(ada()));
    assert_eq!(lock.hears_as(&who("b"), 2, acquire(3, true)), [""; 0]);
    assert_eq!(lock.hears_as(&who("a"), 1, acquire(3, true)), [""; 0]);
    assert_eq!((holder(&lock), line(&lock)), (None, vec![]));
}

#[test]
fn what_is_remembered_of_requests_has_an_end() {
    let remembered = |lock: &One| lock.lock().requests.len();
    let mut lock = lock();
    lock.hears(&who("a"), acquire(3, true));
    lock.hears(&who("a"), Message::ReleaseLock { fence: Some(1) });
    assert_eq!(remembered(&lock), 0, "who says that it is out does not ask again by an old message");
    let tasks: Vec<EntityId> = (0..300).map(|task| who(&format!("t-{task}"))).collect();
    for task in &tasks {
        lock.hears(task, acquire(3, true));
    }
    assert_eq!((line(&lock).len(), remembered(&lock)), (299, 300), "nobody is forgotten who has it or waits");
    for task in &tasks {
        let number = lock
            .lock()
            .requests
            .iter()
            .find(|request| EntityId::from(&request.task) == *task)
            .expect("a request")
            .message;
        assert_eq!(lock.does(Command::BreakLock(ada()))[0], "LOCK_BROKEN");
        assert_eq!(lock.hears_as(task, number, acquire(3, true)), [""; 0], "{task} was in last");
    }
    assert_eq!((holder(&lock), remembered(&lock)), (None, 64));
    let latest = lock.lock().requests.last().map(|request| EntityId::from(&request.task));
    assert_eq!(latest.as_ref(), tasks.last());
}

#[test]
fn the_holder_is_asked_at_a_third_whether_it_is_to_be_renewed() {
    let mut lock = in_line();
    assert_eq!(lock.timer(&TimerName::Lease).0, 4_000);
    lock.now = 4_000;
    assert_eq!(lock.fires(TimerName::Lease), [""; 0]);
    assert_eq!((&lock.back()[0].to, &lock.back()[0].message), (&who("a"), &Message::ConfirmLock { fence: 1, seen: 0 }));
    lock.now = 4_100;
    assert_eq!(lock.hears_as(&who("a"), 0, Message::RenewLock { fence: 1, seen: 12 }), ["LOCK_RENEWED"]);
    let lease = lock.lock().held().expect("a holder");
    assert_eq!((lease.fence, lease.expires_at, lock.timer(&TimerName::Lease).0), (1, at(13_100), 7_100));
    lock.now = 7_100;
    lock.fires(TimerName::Lease);
    assert_eq!(lock.back()[0].message, Message::ConfirmLock { fence: 1, seen: 12 }, "it says how far the task had come");
}

#[test]
fn a_holder_that_denies_it_is_asked_again_until_the_lease_is_over() {
    let mut lock = in_line();
    assert_eq!(lock.hears_as(&who("a"), 0, Message::DenyLock { fence: 7 }), [""; 0], "it is another holding");
    for (now, due) in [(4_000, 7_000), (7_000, 10_000)] {
        lock.now = now;
        assert_eq!(lock.fires(TimerName::Lease), [""; 0]);
        assert_eq!(lock.hears_as(&who("a"), 0, Message::DenyLock { fence: 1 }), ["LOCK_SUSPECTED"]);
        assert_eq!(lock.timer(&TimerName::Lease).0, due);
    }
    lock.now = 10_000;
    assert_eq!(lock.fires(TimerName::Lease), ["LOCK_LOST", "LOCK_ACQUIRED"]);
    let lost = Message::LockLost { fence: 1, origin: Origin::default() };
    assert_eq!(lock.said[0], (who("a"), lost));
    assert_eq!(holder(&lock), Some(("b", 2)));
}

#[test]
fn a_timer_of_an_earlier_holding_does_nothing() {
    let mut lock = in_line();
    let (_, revision) = lock.timer(&TimerName::Lease);
    lock.hears(&who("a"), Message::ReleaseLock { fence: Some(1) });
    lock.now = 99_000;
    assert_eq!(lock.does(fire(TimerName::Lease, revision)), [""; 0]);
    assert_eq!(holder(&lock), Some(("b", 2)));
}

#[test]
fn nothing_renews_a_lease_that_is_over() {
    let mut lock = in_line();
    lock.now = 10_000;
    assert_eq!(lock.hears_as(&who("a"), 0, Message::RenewLock { fence: 1, seen: 12 }), [""; 0]);
}

#[test]
fn who_asks_when_the_lease_is_over_need_not_wait_for_the_timer() {
    let mut lock = lock();
    lock.hears(&who("a"), acquire(3, true));
    lock.now = 10_000;
    assert_eq!(lock.hears(&who("b"), acquire(3, false)), ["LOCK_LOST", "LOCK_REQUESTED", "LOCK_ACQUIRED"]);
    assert_eq!(holder(&lock), Some(("b", 2)));
    assert!(matches!(&lock.said[0], (to, Message::LockLost { fence: 1, .. }) if *to == who("a")));
}

#[test]
fn a_person_breaks_it_with_a_reason_and_the_next_one_has_it() {
    let mut lock = in_line();
    assert_eq!(lock.does(Command::BreakLock(ada_with("c-1"))), ["LOCK_BROKEN", "LOCK_ACQUIRED"]);
    assert_eq!(lock.said[0], (who("a"), Message::LockLost { fence: 1, origin: ada_with("c-1") }));
    let record = steadfast_kernel::Record::from(&lock.journal[lock.journal.len() - 2]);
    assert_eq!((record.kind.as_str(), record.reason.as_deref()), ("LOCK_BROKEN", Some("ordered twice")));
    assert_eq!(lock.does(Command::BreakLock(ada_with("c-1"))), [""; 0], "the same command again is one");
    assert_eq!(lock.effects, [answer(Answer::Broken)]);
    assert_eq!(holder(&lock), Some(("b", 2)));
}

#[test]
fn a_lock_that_nobody_has_is_not_broken() {
    let nobody = Refusal::LockNotFound { tenant: tenant("acme") };
    assert_eq!(lock().ask(Command::BreakLock(ada())), Err(nobody.clone()));
    let mut lock = lock();
    lock.hears(&who("a"), acquire(3, true));
    lock.hears(&who("a"), Message::ReleaseLock { fence: Some(1) });
    assert_eq!(lock.ask(Command::BreakLock(ada())), Err(nobody.clone()));
    assert_eq!(nobody.code(), code::LOCK_NOT_FOUND);
}
