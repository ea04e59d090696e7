//! Which copies of locks are written, renewed and removed, without any Redis.

use super::*;
use steadfast_kernel::{Epoch, PlanId, RunId};

fn me() -> InstanceId {
    InstanceId::new("a").unwrap()
}

fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.saturating_add(Duration::from_secs(seconds))
}

fn lease(task: &str, fence: u64, until: u64) -> Lease {
    let (plan, task) = (PlanId::new("night").unwrap(), RunId::new(task).unwrap());
    Lease { plan, task, epoch: Epoch::default(), fence, lease: Duration::from_secs(60), expires_at: at(until) }
}

fn holder(task: &str, fence: u64) -> LockHolder {
    of(&lease(task, fence, 0), &me())
}

fn put(copies: &mut Copies, seq: Seq, holder: Option<Lease>) {
    let fence = holder.as_ref().map_or(0, |lease| lease.fence);
    copies.put(&me(), LockImage { seq, tenant: tenant(), holder, wanted: None, fence });
}

/// What is sent, in short.
fn line(write: &Write) -> String {
    match write {
        Write::RaiseFence { to, .. } => format!("raise {to}"),
        Write::TakeLock { holder, lease, instead_of, .. } => {
            let instead_of = instead_of.as_ref().map(|other| format!(" instead of {other}")).unwrap_or_default();
            format!("take {holder} for {}s{instead_of}", lease.as_secs())
        }
        Write::RenewLock { holder, lease, .. } => format!("renew {holder} for {}s", lease.as_secs()),
        Write::ReleaseLock { holder, .. } => format!("release {holder}"),
        other => format!("{other:?}"),
    }
}

/// Sends all there is; what becomes of a write is said by its line.
fn send_with(copies: &mut Copies, now: u64, answer: impl Fn(&str) -> Wrote) -> (Vec<String>, Vec<Then>) {
    let (mut sent, mut thens) = (Vec::new(), Vec::new());
    for (about, write) in copies.writes(&me(), at(now)) {
        let line = line(&write);
        thens.push(copies.wrote(&me(), about, answer(&line)));
        sent.push(line);
    }
    thens.retain(|then| *then != Then::Nothing);
    (sent, thens)
}

fn send(copies: &mut Copies, now: u64) -> Vec<String> {
    send_with(copies, now, |_| Wrote::Done).0
}

/// A copy of a holding that is there.
fn copied() -> Copies {
    let mut copies = Copies::default();
    put(&mut copies, 1, Some(lease("t1", 1, 60)));
    assert_eq!(send(&mut copies, 10), ["raise 1", "take night:t1:a:1 for 50s"], "it lives as long as the holding");
    assert!(!copies.has_news());
    copies
}

#[test]
fn a_copy_is_written_renewed_and_removed_as_the_lock_is() {
    let mut copies = copied();
    put(&mut copies, 2, Some(lease("t1", 1, 80)));
    assert_eq!(send(&mut copies, 20), ["renew night:t1:a:1 for 60s"]);
    put(&mut copies, 3, Some(lease("t2", 2, 90)));
    assert_eq!(send(&mut copies, 30), ["release night:t1:a:1", "raise 2", "take night:t2:a:2 for 60s"]);
    put(&mut copies, 3, None); // that is not news
    assert!(!copies.has_news());
    put(&mut copies, 4, None);
    assert_eq!(send(&mut copies, 31), ["release night:t2:a:2"]);
    assert!(copies.places.is_empty(), "nothing is remembered of it");
}

#[test]
fn the_number_of_a_holding_that_came_and_went_is_told_all_the_same() {
    let mut copies = Copies::default();
    copies.put(&me(), LockImage { seq: 9, tenant: tenant(), holder: None, wanted: None, fence: 4 });
    assert!(copies.has_news());
    assert_eq!(send(&mut copies, 1), ["raise 4"]);
    assert!(copies.places.is_empty());
    let mut copies = copied();
    put(&mut copies, 2, Some(lease("t1", 1, 80)));
    assert_eq!(send(&mut copies, 20), ["renew night:t1:a:1 for 60s"], "once");
}

#[test]
fn a_copy_that_is_gone_is_written_again() {
    let mut copies = copied();
    put(&mut copies, 2, Some(lease("t1", 1, 80)));
    let (_, thens) = send_with(&mut copies, 20, |_| Wrote::Missing);
    assert_eq!(thens, [Then::Lost]);
    assert_eq!(send(&mut copies, 20), ["take night:t1:a:1 for 60s"]);
    copies.doubt();
    assert_eq!(send(&mut copies, 50), ["raise 1", "take night:t1:a:1 for 30s"]);
}

#[test]
fn what_a_former_writer_has_left_gives_way_to_a_higher_number_only() {
    let mut copies = Copies::default();
    put(&mut copies, 7, Some(lease("t3", 3, 60)));
    let held = |fence| move |line: &str| if line.starts_with("take") { Wrote::Held(holder("t2", fence)) } else { Wrote::Done };
    assert_eq!(send_with(&mut copies, 0, held(2)).1, []);
    assert_eq!(send(&mut copies, 0), ["take night:t3:a:3 for 60s instead of night:t2:a:2"]);

    let mut late = Copies::default();
    put(&mut late, 7, Some(lease("t3", 3, 60)));
    assert_eq!(send_with(&mut late, 0, held(4)).1, []);
    assert!(!late.has_news(), "the lock has gone on, so that this one is late");
}

#[test]
fn a_lock_that_somebody_else_has_there_is_left_alone() {
    let other = LockHolder { instance: InstanceId::new("b").unwrap(), ..holder("t9", 1) };
    let mut copies = Copies::default();
    put(&mut copies, 1, Some(lease("t1", 5, 60)));
    let answer = |line: &str| if line.starts_with("take") { Wrote::Held(other.clone()) } else { Wrote::Done };
    assert_eq!(send_with(&mut copies, 0, answer).1, [Then::Another(tenant(), other.clone())]);
    assert!(!copies.has_news());
    copies.try_again();
    assert_eq!(send(&mut copies, 1), ["take night:t1:a:5 for 59s"], "and tried again later");
    let foreign = |_: &str| Wrote::Foreign { key: "k".into() };
    put(&mut copies, 2, None);
    assert_eq!(send_with(&mut copies, 2, foreign).1, [Then::Foreign("k".into())]);
    assert!(copies.places.is_empty());
}

#[test]
fn what_goes_elsewhere_is_left_to_others_but_for_what_is_over() {
    let mut copies = copied();
    copies.leave(|_| true);
    assert!(copies.places.is_empty());
    let mut copies = copied();
    put(&mut copies, 2, Some(lease("t2", 2, 90)));
    copies.leave(|gone| *gone == tenant());
    assert_eq!(send(&mut copies, 20), ["release night:t1:a:1", "raise 2"]);
    copies.left_over(&tenant(), holder("t2", 2));
    assert_eq!(send(&mut copies, 20), ["release night:t2:a:2"]);
}
