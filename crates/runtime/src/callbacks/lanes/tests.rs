//! Lanes are apart, bounded, and know what they have.

use super::*;

fn lane(name: &str) -> Lane {
    Lane::Target(name.into())
}

fn errand(key: &str, revision: Revision) -> Errand {
    Errand { key: KeyName::new(key).unwrap(), revision, attempt: 1, callback: None, walked: false }
}

fn begun(errand: Option<Errand>) -> Option<Revision> {
    errand.map(|errand| errand.revision)
}

#[test]
fn a_lane_that_is_full_holds_no_other_up() {
    let mut lanes = Lanes::new(2);
    let (sick, well) = (lane("sick"), lane("well"));
    assert_eq!(begun(lanes.add(&sick, errand("a", 1))), Some(1));
    assert_eq!(begun(lanes.add(&sick, errand("a", 2))), Some(2));
    for revision in 3..100 {
        assert_eq!(begun(lanes.add(&sick, errand("a", revision))), None, "two are in flight");
    }
    assert_eq!(begun(lanes.add(&well, errand("b", 100))), Some(100));
    assert_eq!(lanes.unsettled(), 3);
}

#[test]
fn whoever_waits_has_its_turn_in_order() {
    let mut lanes = Lanes::new(1);
    let lane = lane("one");
    assert_eq!(begun(lanes.add(&lane, errand("a", 1))), Some(1));
    assert_eq!(begun(lanes.add(&lane, errand("b", 2))), None);
    assert_eq!(begun(lanes.add(&lane, errand("c", 3))), None);
    assert_eq!(begun(lanes.finished(&lane, How::Neither).pop()), Some(2));
    assert_eq!(begun(lanes.finished(&lane, How::Neither).pop()), Some(3));
    assert_eq!(begun(lanes.finished(&lane, How::Neither).pop()), None);
    assert!(lanes.lanes.is_empty(), "nothing is kept of a lane without errands");
}

#[test]
fn nothing_is_begun_twice_before_what_became_of_it_is_on_record() {
    let mut lanes = Lanes::new(8);
    let (lane, key) = (lane("one"), KeyName::new("a").unwrap());
    assert_eq!(begun(lanes.add(&lane, errand("a", 1))), Some(1));
    assert_eq!(begun(lanes.add(&lane, errand("a", 1))), None, "it is in flight");
    assert_eq!(begun(lanes.finished(&lane, How::Neither).pop()), None);
    assert_eq!(begun(lanes.add(&lane, errand("a", 1))), None, "it is reported, but not on record");
    lanes.forget(&key, 1);
    assert_eq!(begun(lanes.add(&lane, errand("a", 1))), Some(1), "its next attempt");
}

#[test]
fn a_follower_begins_nothing_and_keeps_nothing_that_waits() {
    let mut lanes = Lanes::new(1);
    let lane = lane("one");
    assert_eq!(begun(lanes.add(&lane, errand("a", 1))), Some(1));
    assert_eq!(begun(lanes.add(&lane, errand("b", 2))), None);
    lanes.hold();
    assert_eq!(begun(lanes.finished(&lane, How::Neither).pop()), None, "what was in flight may end, and nothing follows");
    assert_eq!(begun(lanes.add(&lane, errand("c", 3))), None);
    lanes.go_on();
    assert_eq!(begun(lanes.add(&lane, errand("b", 2))), Some(2), "it is read from the store again");
}

#[test]
fn what_has_no_handler_waits_for_one() {
    let mut lanes = Lanes::new(4);
    assert_eq!(begun(lanes.add(&Lane::NoHandler, errand("a", 1))), None);
    assert_eq!(lanes.unsettled(), 0);
    let waited = lanes.unhandled();
    assert_eq!(waited, [errand("a", 1)]);
    assert_eq!(begun(lanes.add(&Lane::Handler("a".into()), waited[0].clone())), Some(1));
}

#[test]
fn where_many_wait_only_the_first_hold_what_they_have_to_tell() {
    let mut lanes = Lanes::new(1);
    let lane = lane("one");
    let full = |revision| {
        let value = steadfast_kernel::Payload::json("1");
        let callback = Callback {
            revision,
            value,
            owner: None,
            ended_at: steadfast_kernel::Timestamp::EPOCH,
            target: None,
            below: None,
            attempt: 1,
            failed: None,
        };
        Errand { callback: Some(Box::new(callback)), ..errand("a", revision) }
    };
    for revision in 0..=HELD_MAX as u64 + 10 {
        let _begun_or_waiting = lanes.add(&lane, full(revision));
    }
    let held = lanes.lanes[&lane].line.iter().filter(|errand| errand.callback.is_some()).count();
    assert_eq!(held, HELD_MAX);
}

#[test]
fn a_target_that_does_not_work_is_called_by_fewer_at_once_until_it_works_again() {
    let mut lanes = Lanes::new(8);
    let lane = lane("one");
    let mut begun = (0..100).filter_map(|revision| lanes.add(&lane, errand("a", revision))).count();
    assert_eq!(begun, 8);
    for _ in 0..20 {
        begun = begun - 1 + lanes.finished(&lane, How::Sick).len();
    }
    assert_eq!(begun, 1);
    for at_once in 2..=8 {
        begun = begun - 1 + lanes.finished(&lane, How::Well).len();
        assert_eq!(begun, at_once);
    }
    begun = begun - 1 + lanes.finished(&lane, How::Well).len();
    assert_eq!(begun, 8, "and by no more than there may be");
}
