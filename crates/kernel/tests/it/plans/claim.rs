//! Locks where the commons say who has them: whoever is next stands in line until a claim is settled.

use super::lock::*;
use super::*;

fn shared(command: Command) -> Command {
    Command::Shared(Box::new(command))
}

/// Somebody says something to a lock that is shared.
#[track_caller]
fn says(lock: &mut One, from: &str, message: Message) -> Vec<&'static str> {
    lock.told += 1;
    let envelope = Envelope { from: who(from), seq: lock.told, to: lock_entity(), message };
    lock.does(shared(Command::Hear(Box::new(envelope))))
}

fn settle(name: &str, asked: Seq, claimed: Claimed) -> Command {
    Command::SettleClaim(SettleClaim { task: other_run(name), asked, claimed })
}

fn granted(name: &str, asked: Seq, fence: u64) -> Command {
    shared(settle(name, asked, Claimed::Granted { fence: Some(fence) }))
}

fn held(name: &str, asked: Seq) -> Command {
    shared(settle(name, asked, Claimed::Held { holder: "q:q/acme".into() }))
}

fn wanted(lock: &One) -> Option<(&str, Seq)> {
    lock.lock().wanted().map(|waiter| (waiter.task.as_str(), waiter.asked))
}

/// `a` and `b` stand in line, and nobody has it.
fn asked_for() -> One {
    let mut lock = lock();
    assert_eq!(says(&mut lock, "a", acquire(3, true)), ["LOCK_REQUESTED"]);
    assert_eq!(says(&mut lock, "b", acquire(4, true)), ["LOCK_REQUESTED"]);
    lock
}

/// Held by `a` with fence 17; `b` waits.
fn claimed() -> One {
    let mut lock = asked_for();
    assert_eq!(lock.does(granted("a", 3, 17)), ["LOCK_ACQUIRED"]);
    lock
}

#[test]
fn a_shared_lock_gives_itself_to_nobody() {
    let lock = asked_for();
    assert_eq!((holder(&lock), line(&lock), wanted(&lock)), (None, vec!["a", "b"], Some(("a", 3))));
    assert!(lock.said.is_empty() && lock.lock().timer().is_none());
}

#[test]
fn a_claim_that_is_granted_is_a_holding_with_the_fence_of_the_commons() {
    let lock = claimed();
    assert_eq!((holder(&lock), line(&lock), wanted(&lock)), (Some(("a", 17)), vec!["b"], None));
    let lease = Lease { plan: plan_named("p"), task: other_run("a"), epoch: 1, fence: 17, lease: LEASE, expires_at: at(10_000) };
    assert_eq!(lock.said, [(who("a"), Message::LockGranted { lease: Box::new(lease), asked: 3 })]);
    assert!(matches!(&lock.effects[..], [Effect::Arm(_), Effect::Answer(Answer::Heard)]));
}

#[test]
fn a_claim_that_is_granted_without_the_commons_has_the_next_fence() {
    let mut lock = claimed();
    assert_eq!(says(&mut lock, "a", Message::ReleaseLock { fence: Some(17) }), ["LOCK_RELEASED"]);
    assert_eq!(lock.does(shared(settle("b", 4, Claimed::Granted { fence: None }))), ["LOCK_ACQUIRED"]);
    assert_eq!(holder(&lock), Some(("b", 18)));
}

#[test]
fn a_grant_with_a_fence_that_is_not_higher_is_a_holding_with_the_next_one() {
    for fence in [0, 1, 16, 17] {
        let mut lock = claimed();
        says(&mut lock, "a", Message::ReleaseLock { fence: Some(17) });
        assert_eq!(lock.does(granted("b", 4, fence)), ["LOCK_ACQUIRED"]);
        assert_eq!(holder(&lock), Some(("b", 18)), "the fence of the commons was {fence}");
    }
}

#[test]
fn a_claim_of_what_somebody_else_has_waits_on() {
    let mut lock = asked_for();
    assert_eq!(lock.does(held("a", 3)), [""; 0]);
    assert_eq!((lock.effects.clone(), wanted(&lock)), (vec![answer(Answer::Heard)], Some(("a", 3))));
    assert_eq!(lock.does(settle("a", 3, Claimed::Held { holder: "q:q/acme".into() })), [""; 0], "also if it does not come as shared");
    assert_eq!(holder(&lock), None);
}

#[test]
fn whoever_does_not_wait_is_told_durably_who_has_it_and_leaves_the_line() {
    let mut lock = lock();
    says(&mut lock, "a", acquire(3, false));
    assert_eq!(wanted(&lock), Some(("a", 3)), "the commons may say that it is free");
    says(&mut lock, "b", acquire(4, true));
    says(&mut lock, "c", acquire(5, false));
    assert_eq!(lock.does(held("a", 3)), ["LOCK_RELEASED", "LOCK_RELEASED"]);
    let refused = |asked| Message::LockRefused { asked, holder: "q:q/acme".into() };
    assert_eq!(lock.said, [(who("a"), refused(3)), (who("c"), refused(5))]);
    assert_eq!((line(&lock), wanted(&lock)), (vec!["b"], Some(("b", 4))));
}

#[test]
fn whoever_does_not_wait_and_is_first_gets_what_is_free() {
    let mut lock = lock();
    says(&mut lock, "a", acquire(3, false));
    assert_eq!(lock.does(granted("a", 3, 5)), ["LOCK_ACQUIRED"]);
    assert_eq!(holder(&lock), Some(("a", 5)));
}

#[test]
fn whoever_does_not_wait_is_told_when_the_one_before_it_is_granted_the_lock() {
    let mut lock = asked_for();
    says(&mut lock, "c", acquire(5, false));
    assert_eq!(lock.does(granted("a", 3, 17)), ["LOCK_ACQUIRED", "LOCK_RELEASED"]);
    assert_eq!(lock.said[1], (who("c"), Message::LockRefused { asked: 5, holder: "p:a".into() }));
    assert_eq!(line(&lock), ["b"]);
}

#[test]
fn whoever_does_not_wait_is_not_left_in_line_by_a_lease_that_is_over() {
    let mut lock = in_line();
    lock.now = 10_000;
    let happened = lock.hears(&who("d"), acquire(7, false));
    assert_eq!(happened, ["LOCK_LOST", "LOCK_REQUESTED", "LOCK_ACQUIRED", "LOCK_RELEASED"]);
    assert_eq!((holder(&lock), line(&lock)), (Some(("b", 2)), vec!["c"]));
    assert_eq!(lock.said.last(), Some(&(who("d"), Message::LockRefused { asked: 7, holder: "p:b".into() })));
}

#[test]
fn what_the_commons_say_of_one_that_is_not_first_in_line_any_more_changes_nothing() {
    let mut lock = claimed();
    for command in [granted("a", 3, 18), granted("b", 4, 18), held("b", 4), granted("d", 1, 18)] {
        assert_eq!(lock.does(command.clone()), [""; 0], "{command:?} while somebody has it");
    }
    let mut lock = asked_for();
    for command in [granted("a", 2, 18), granted("b", 4, 18), held("b", 4), granted("d", 1, 18)] {
        assert_eq!(lock.does(command.clone()), [""; 0], "{command:?} is of another request, or not of the first");
    }
    says(&mut lock, "a", Message::ReleaseLock { fence: None });
    assert_eq!(lock.does(granted("a", 3, 18)), [""; 0], "it has left");
    assert_eq!((holder(&lock), wanted(&lock)), (None, Some(("b", 4))));
    assert_eq!(One::new(lock_entity()).does(granted("a", 3, 18)), [""; 0], "nobody has ever asked");
}

/// How a lock comes to be free.
type Way<'a> = &'a dyn Fn(&mut One) -> Vec<&'static str>;

#[test]
fn a_shared_lock_that_is_free_again_waits_for_the_next_claim() {
    let loses = || Command::LoseLock { fence: 17, origin: ada() };
    let release = |lock: &mut One| says(lock, "a", Message::ReleaseLock { fence: Some(17) });
    let broken = |lock: &mut One| lock.does(shared(Command::BreakLock(ada())));
    let lost = |lock: &mut One| lock.does(shared(loses()));
    let over = |lock: &mut One| {
        let (_, revision) = lock.timer(&TimerName::Lease);
        lock.now = 10_000;
        lock.does(shared(fire(TimerName::Lease, revision)))
    };
    let ways: [(&str, Way); 4] = [("LOCK_RELEASED", &release), ("LOCK_BROKEN", &broken), ("LOCK_LOST", &lost), ("LOCK_LOST", &over)];
    for (event, way) in ways {
        let mut lock = claimed();
        assert_eq!(way(&mut lock), [event]);
        assert_eq!((holder(&lock), wanted(&lock), lock.lock().timer()), (None, Some(("b", 4)), None));
        assert_eq!(lock.does(granted("b", 4, 40)), ["LOCK_ACQUIRED"]);
        assert_eq!(holder(&lock), Some(("b", 40)));
    }
}

#[test]
fn a_lock_that_is_this_instances_own_again_is_given_as_before() {
    let mut lock = asked_for();
    assert_eq!(lock.hears(&who("c"), acquire(5, true)), ["LOCK_REQUESTED", "LOCK_ACQUIRED"], "the commons are not asked any more");
    assert_eq!((holder(&lock), line(&lock)), (Some(("a", 1)), vec!["b", "c"]));
    assert_eq!(lock.hears(&who("a"), Message::ReleaseLock { fence: Some(1) }), ["LOCK_RELEASED", "LOCK_ACQUIRED"]);
    assert_eq!(holder(&lock), Some(("b", 2)));
}

#[test]
fn a_holding_that_the_commons_have_given_away_is_lost_with_who_found_it() {
    let mut lock = claimed();
    for fence in [0, 16, 18] {
        let lost = Command::LoseLock { fence, origin: ada() };
        assert_eq!(lock.does(shared(lost.clone())), [""; 0], "{fence} is another holding");
        assert_eq!(lock.does(lost), [""; 0]);
    }
    assert_eq!(holder(&lock), Some(("a", 17)));
    assert_eq!(lock.does(Command::LoseLock { fence: 17, origin: ada() }), ["LOCK_LOST", "LOCK_ACQUIRED"], "it is not shared any more");
    assert_eq!(lock.said[0], (who("a"), Message::LockLost { fence: 17, origin: ada() }));
    let record = steadfast_kernel::Record::from(&lock.journal[lock.journal.len() - 2]);
    assert_eq!((record.kind.as_str(), record.reason.as_deref()), ("LOCK_LOST", Some("ordered twice")));
    assert_eq!(holder(&lock), Some(("b", 18)));
    assert_eq!(One::new(lock_entity()).does(Command::LoseLock { fence: 0, origin: ada() }), [""; 0]);
}

#[test]
fn what_a_person_broke_elsewhere_is_put_on_record_once() {
    let broken = |origin| Command::BreakElsewhere { holder: "q:q/acme".into(), origin };
    let mut fresh = lock();
    assert_eq!(fresh.does(broken(ada_with("c-1"))), ["LOCK_BROKEN"]);
    assert_eq!((fresh.effects.clone(), fresh.said.len(), wanted(&fresh)), (vec![answer(Answer::Broken)], 0, None));
    assert_eq!(fresh.does(broken(ada_with("c-1"))), [""; 0], "the same command again is one");
    assert_eq!(fresh.does(broken(ada_with("c-2"))), ["LOCK_BROKEN"]);
    let mut lock = asked_for();
    assert_eq!(lock.does(broken(ada())), ["LOCK_BROKEN"], "nobody here has it by that");
    assert_eq!((holder(&lock), wanted(&lock)), (None, Some(("a", 3))));
    let mut lock = claimed();
    assert_eq!(lock.does(shared(broken(ada()))), ["LOCK_BROKEN"]);
    assert_eq!(holder(&lock), Some(("a", 17)), "its own holding is another");
}
