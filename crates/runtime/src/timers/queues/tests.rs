//! The traps of earlier queues by name, and random operations against a naive model.

use super::*;
use proptest::prelude::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

const HOUR: i64 = 3600;

fn queues(entries: impl IntoIterator<Item = (u32, i64)>) -> ExpiryQueues<u32> {
    let mut queues = ExpiryQueues::new(Limits::default());
    entries.into_iter().for_each(|(key, due)| queues.update(key, 1, at(due)));
    queues
}

fn keys(pass: &Pass<u32>) -> Vec<u32> {
    pass.handed.iter().map(|handed| handed.key).collect()
}

#[test]
fn what_is_due_comes_in_the_order_of_due_time_and_insertion_and_never_early() {
    let mut queues = queues([(3, 20), (1, 10), (2, 20), (4, 21)]);
    assert_eq!(keys(&queues.pass(at(9))), [0; 0]);
    assert_eq!(queues.next_at(), Some(at(10)));
    assert_eq!(keys(&queues.pass(at(20))), [1, 3, 2]);
    assert_eq!(queues.pass(at(20)).handed, [], "nobody is handed out twice");
}

#[test]
fn a_failed_one_is_tried_again_on_time_though_the_next_is_an_hour_away() {
    let mut queues = queues([(1, 10), (2, HOUR)]);
    queues.pass(at(10));
    assert!(queues.fail(&1, 1, 1, at(11)));
    assert_eq!(queues.next_at(), Some(at(11)));
    assert_eq!(queues.pass(at(11)).handed, [Handed { key: 1, revision: 1, attempt: 2, due: at(10) }]);
}

#[test]
fn one_in_flight_at_the_head_holds_up_nobody_behind_it() {
    let mut queues = queues([(1, 10), (2, 11)]);
    queues.pass(at(11));
    assert!(queues.fail(&2, 1, 1, at(12)));
    assert_eq!(keys(&queues.pass(at(12))), [2]);
}

#[test]
fn of_31_that_have_failed_none_is_forgotten_after_the_first_ten() {
    let mut queues = queues((0..31).map(|key| (key, 10)));
    assert_eq!(queues.pass(at(10)).handed.len(), 31);
    (0..31).for_each(|key| assert!(queues.fail(&key, 1, 1, at(11))));
    let passes: Vec<_> = (0..4).map(|_| queues.pass(at(11))).collect();
    assert_eq!(passes.iter().map(|pass| pass.handed.len()).collect::<Vec<_>>(), [10, 10, 10, 1]);
    assert_eq!(passes.iter().map(|pass| pass.again).collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn one_that_never_settles_is_taken_up_again_after_its_time() {
    let mut queues = queues([(1, 10)]);
    queues.pass(at(10));
    assert_eq!(queues.next_at(), Some(at(40)));
    assert_eq!(queues.pass(at(39)).handed, []);
    assert_eq!(queues.pass(at(40)).handed[0].attempt, 2);
    assert!(!queues.fail(&1, 1, 1, at(41)), "the first attempt is out of date");
    assert!(queues.settle(&1, 1), "but if it succeeds after all, it is done");
    assert_eq!((queues.len(), queues.in_flight()), (0, 0));
}

#[test]
fn one_that_is_updated_in_flight_is_kept() {
    let mut queues = queues([(1, 10)]);
    queues.pass(at(10));
    queues.update(1, 2, at(HOUR));
    assert!(!queues.settle(&1, 1) && !queues.fail(&1, 1, 1, at(11)), "it is not the same any more");
    assert_eq!((queues.next_at(), queues.in_flight()), (Some(at(HOUR)), 0));
    queues.update(1, 1, at(20));
    assert_eq!(queues.next_at(), Some(at(HOUR)), "an older revision is ignored");
}

#[test]
fn remove_works_from_either_queue() {
    let mut queues = queues([(1, 10), (2, 20), (3, 10)]);
    queues.pass(at(10));
    queues.fail(&3, 1, 1, at(15));
    assert!([1, 2, 3].iter().all(|key| queues.remove(key)) && !queues.remove(&1));
    assert_eq!((queues.len(), queues.in_flight(), queues.next_at()), (0, 0, None));
}

#[test]
fn ten_thousand_in_one_moment_come_in_bounded_batches() {
    let mut queues = queues((0..10_000).map(|key| (key, 10)));
    let mut passes = 0;
    loop {
        let pass = queues.pass(at(10));
        assert_eq!(pass.handed.len(), 50);
        pass.handed.iter().for_each(|handed| assert!(queues.settle(&handed.key, 1)));
        passes += 1;
        if !pass.again {
            break;
        }
    }
    assert_eq!((passes, queues.len()), (200, 0));
}

#[test]
fn of_a_million_that_are_due_a_thousand_are_in_flight() {
    let mut queues = queues((0..1_000_000).map(|key| (key, 10)));
    while queues.pass(at(10)).again {}
    assert_eq!(queues.in_flight(), 1_000);
    assert_eq!(queues.next_at(), Some(at(40)), "there is nothing to do before one of them is settled, or silent for too long");
    assert!(queues.settle(&0, 1) && queues.remove(&1) && queues.fail(&2, 1, 1, at(11)));
    assert_eq!(keys(&queues.pass(at(10))), [1_000, 1_001, 1_002]);
}

#[test]
fn those_that_never_settle_hold_up_nobody() {
    let mut queues = queues((0..1_000).map(|key| (key, 10)).chain([(5_000, 20)]));
    while queues.pass(at(20)).again {}
    assert_eq!(queues.in_flight(), 1_000);
    assert_eq!(queues.pass(at(50)).handed.len(), 10, "they are tried for the second time");
    assert_eq!(keys(&queues.pass(at(50))).last(), Some(&5_000));
}

#[test]
fn a_follower_hands_out_nothing_and_a_new_leader_everything() {
    let mut queues = queues([(1, 10), (2, 11), (3, 12)]);
    queues.pass(at(11));
    queues.fail(&2, 1, 1, at(500));
    queues.follow();
    assert_eq!((queues.next_at(), queues.pass(at(1000)).handed.len(), queues.in_flight()), (None, 0, 0));
    assert!(!queues.settle(&1, 1), "it is the new leader's");
    queues.lead();
    assert_eq!(keys(&queues.pass(at(1000))), [1, 2, 3]);
}

#[test]
fn what_is_stopped_lets_settle_what_is_in_flight() {
    let mut queues = queues([(1, 10), (2, 11)]);
    queues.pass(at(10));
    queues.stop();
    assert_eq!((queues.pass(at(100)).handed.len(), queues.in_flight()), (0, 1));
    assert!(queues.settle(&1, 1));
    assert_eq!(queues.in_flight(), 0);
}

#[test]
fn what_is_stopped_stays_so_whatever_its_role_becomes() {
    let mut queues = queues([(1, 10), (2, 11)]);
    queues.pass(at(10));
    queues.stop();
    queues.lead();
    assert_eq!((queues.pass(at(100)).handed.len(), queues.next_at()), (0, None));
    queues.follow();
    queues.lead();
    assert_eq!((queues.pass(at(100)).handed.len(), queues.next_at(), queues.in_flight()), (0, None, 0));
}

#[test]
fn huge_times_saturate() {
    let mut queues = queues([]);
    queues.update(1, 1, at(10).saturating_add(Duration::MAX));
    assert_eq!(keys(&queues.pass(at(100 * 365 * 24 * HOUR))), [0; 0]);
}

/// The same by walking a list: no queue, no index.
#[derive(Debug, Default)]
struct Naive {
    entries: Vec<Plain>,
    count: u64,
    following: bool,
    stopping: bool,
}

#[derive(Clone, Debug)]
struct Plain {
    key: u32,
    revision: Seq,
    due: Timestamp,
    insertion: u64,
    attempt: Attempt,
    /// When something has to be done about it while it is pending.
    act_at: Option<Timestamp>,
    failed: bool,
}

impl Naive {
    fn update(&mut self, key: u32, revision: Seq, due: Timestamp) {
        if self.entries.iter().any(|entry| entry.key == key && entry.revision > revision) {
            return;
        }
        self.entries.retain(|entry| entry.key != key);
        self.count += 1;
        self.entries
            .push(Plain { key, revision, due, insertion: self.count, attempt: 0, act_at: None, failed: false });
    }

    fn remove(&mut self, key: u32) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.key != key);
        self.entries.len() < before
    }

    fn pass(&mut self, now: Timestamp, limits: Limits) -> Pass<u32> {
        if self.following || self.stopping {
            return Pass { handed: vec![], again: false };
        }
        let mut pending: Vec<_> = self.entries.iter().filter(|entry| entry.act_at.is_some_and(|at| at <= now)).cloned().collect();
        pending.sort_by_key(|entry| (entry.act_at, entry.insertion));
        let mut waiting: Vec<_> = self.entries.iter().filter(|entry| entry.act_at.is_none() && entry.due <= now).cloned().collect();
        waiting.sort_by_key(|entry| (entry.due, entry.insertion));
        pending.truncate(limits.retry_batch);
        waiting.truncate(limits.expire_batch.min(limits.in_flight_max.saturating_sub(self.fresh())));
        let mut handed = Vec::new();
        for chosen in pending.into_iter().chain(waiting) {
            let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == chosen.key) else { continue };
            entry.attempt += 1;
            (entry.act_at, entry.failed) = (Some(now.saturating_add(limits.attempt_timeout)), false);
            handed.push(Handed { key: entry.key, revision: entry.revision, attempt: entry.attempt, due: entry.due });
        }
        let again = self.next_at(limits).is_some_and(|next| next <= now);
        Pass { handed, again }
    }

    fn settle(&mut self, key: u32, revision: Seq) -> bool {
        let there = self
            .entries
            .iter()
            .any(|entry| entry.key == key && entry.revision == revision && entry.act_at.is_some());
        there && self.remove(key)
    }

    fn fail(&mut self, key: u32, revision: Seq, attempt: Attempt, next_try: Timestamp) -> bool {
        let mine = |entry: &&mut Plain| {
            entry.key == key && entry.revision == revision && entry.attempt == attempt && entry.act_at.is_some() && !entry.failed
        };
        match self.entries.iter_mut().find(mine) {
            Some(entry) => {
                (entry.act_at, entry.failed) = (Some(next_try), true);
                true
            }
            None => false,
        }
    }

    fn follow(&mut self) {
        self.following = true;
        for entry in &mut self.entries {
            (entry.attempt, entry.act_at, entry.failed) = (0, None, false);
        }
    }

    fn next_at(&self, limits: Limits) -> Option<Timestamp> {
        if self.following || self.stopping {
            return None;
        }
        let is_full = self.fresh() >= limits.in_flight_max;
        let counts = self.entries.iter().filter(|entry| entry.act_at.is_some() || !is_full);
        counts.map(|entry| entry.act_at.unwrap_or(entry.due)).min()
    }

    fn fresh(&self) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.act_at.is_some() && !entry.failed && entry.attempt == 1)
            .count()
    }

    fn in_flight(&self) -> usize {
        self.entries.iter().filter(|entry| entry.act_at.is_some() && !entry.failed).count()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Update { key: u32, revision: Seq, in_s: i64 },
    Remove(u32),
    Pass,
    Settle { key: u32, revision: Seq },
    Fail { key: u32, revision: Seq, attempt: Attempt, in_s: i64 },
    Passes(i64),
    Follow,
    Lead,
    Stop,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, revision) = (0..12_u32, 1..4_u64);
    prop_oneof![
        60 => (key.clone(), revision.clone(), -2..20_i64).prop_map(|(key, revision, in_s)| Op::Update { key, revision, in_s }),
        10 => key.clone().prop_map(Op::Remove),
        60 => Just(Op::Pass),
        30 => (key.clone(), revision.clone()).prop_map(|(key, revision)| Op::Settle { key, revision }),
        40 => (key, revision, 1..4_u32, -1..10_i64).prop_map(|(key, revision, attempt, in_s)| Op::Fail { key, revision, attempt, in_s }),
        40 => (0..12_i64).prop_map(Op::Passes),
        10 => Just(Op::Follow),
        20 => Just(Op::Lead),
        1 => Just(Op::Stop), // there is nothing after it
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queues_do_what_walking_a_list_does(ops in prop::collection::vec(op(), 1..60), retry_batch in 1..4_usize, expire_batch in 1..5_usize, in_flight_max in 1..9_usize) {
        let limits = Limits { expire_batch, retry_batch, in_flight_max, attempt_timeout: Duration::from_secs(7) };
        let (mut queues, mut naive) = (ExpiryQueues::new(limits), Naive::default());
        let mut now = 100;
        for op in ops {
            match op {
                Op::Update { key, revision, in_s } => {
                    queues.update(key, revision, at(now + in_s));
                    naive.update(key, revision, at(now + in_s));
                }
                Op::Remove(key) => prop_assert_eq!(queues.remove(&key), naive.remove(key)),
                Op::Pass => prop_assert_eq!(queues.pass(at(now)), naive.pass(at(now), limits)),
                Op::Settle { key, revision } => prop_assert_eq!(queues.settle(&key, revision), naive.settle(key, revision)),
                Op::Fail { key, revision, attempt, in_s } => {
                    let next_try = at(now + in_s);
                    prop_assert_eq!(queues.fail(&key, revision, attempt, next_try), naive.fail(key, revision, attempt, next_try));
                }
                Op::Passes(seconds) => now += seconds,
                Op::Follow => {
                    queues.follow();
                    naive.follow();
                }
                Op::Lead => {
                    queues.lead();
                    naive.following = false;
                }
                Op::Stop => {
                    queues.stop();
                    naive.stopping = true;
                }
            }
            prop_assert_eq!(queues.next_at(), naive.next_at(limits));
            prop_assert_eq!((queues.len(), queues.in_flight()), (naive.entries.len(), naive.in_flight()));
        }
    }
}
