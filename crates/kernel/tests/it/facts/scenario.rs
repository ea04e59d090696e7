//! Random scenarios: what may be asked of a run, sensible or not, while time moves on.

use crate::support::{retry, sleep};
use proptest::prelude::*;
use proptest::sample::Index;
use std::time::Duration;
use steadfast_kernel::{Class, Jitter, Policy, Seq, TimerName};

const STEPS: [&str; 5] = ["charge#1", "charge#2", "left/ship#1", "right/ship#1", "sleep#1"];
const SLEEPS: [&str; 3] = ["sleep#1", "sleep#2", "left/sleep#1"];

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) seed: [u8; 32],
    pub(super) deadline: Option<Duration>,
    pub(super) policies: Vec<Policy>,
    pub(super) ops: Vec<Op>,
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Start { same: bool },
    Turn { epoch: u32, items: Vec<Item>, end: Option<bool>, and_more: bool, in_flight: u32 },
    Fail { epoch: u32, step: &'static str, attempt: Guess, class: Class, retry_after: Option<Duration>, policy: Index, in_flight: u32 },
    FireArmed { which: Index, revision: Guess },
    FireAny { name: TimerName, revision: Seq },
    Pass(Duration),
}

/// A thing that a turn proposes besides an end.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Completed(&'static str, Guess),
    Failed(&'static str, Guess),
    Set(&'static str, Duration),
    Fired(&'static str),
    Retry(&'static str),
    Started,
}

/// A number that the host knows, or gets wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Guess {
    Right,
    Wrong(u32),
}

impl Guess {
    pub(super) fn or(self, right: u32) -> u32 {
        match self {
            Guess::Right => right,
            Guess::Wrong(number) => number,
        }
    }
}

fn step() -> impl Strategy<Value = &'static str> {
    prop::sample::select(STEPS.as_slice())
}

fn nap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(SLEEPS.as_slice())
}

fn guess() -> impl Strategy<Value = Guess> {
    prop_oneof![9 => Just(Guess::Right), 1 => (0..6_u32).prop_map(Guess::Wrong)]
}

fn epoch() -> impl Strategy<Value = u32> {
    prop_oneof![19 => Just(1_u32), 1 => 0..3_u32]
}

fn some_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0..5_000_000_000_u64).prop_map(Duration::from_nanos), Just(Duration::MAX)]
}

pub(super) fn policy() -> impl Strategy<Value = Policy> {
    let base = prop_oneof![Just(Duration::ZERO), (0..3_000_000_000_u64).prop_map(Duration::from_nanos)];
    let kind = base.prop_flat_map(|base| {
        prop_oneof![
            Just(Policy::exponential(base)),
            Just(Policy::linear(base)),
            Just(Policy::constant(base)),
            Just(Policy::schedule([base, base * 2])),
        ]
    });
    let jitter =
        prop_oneof![Just(Jitter::None), Just(Jitter::Additive), Just(Jitter::Proportional(200)), Just(Jitter::Full), Just(Jitter::Equal)];
    let deadline = prop_oneof![4 => Just(None), 1 => (1..20_u64).prop_map(|secs| Some(Duration::from_secs(secs)))];
    (kind, jitter, 1..6_u32, deadline).prop_map(|(policy, jitter, max, deadline)| {
        let policy = policy.jitter(jitter).max_attempts(max);
        match deadline {
            Some(deadline) => policy.deadline(deadline),
            None => policy,
        }
    })
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        6 => (step(), guess()).prop_map(|(step, attempt)| Item::Completed(step, attempt)),
        3 => (step(), guess()).prop_map(|(step, attempt)| Item::Failed(step, attempt)),
        6 => (nap(), some_duration()).prop_map(|(sleep, for_long)| Item::Set(sleep, for_long)),
        6 => nap().prop_map(Item::Fired),
        1 => step().prop_map(Item::Retry),
        1 => Just(Item::Started),
    ]
}

fn any_timer() -> impl Strategy<Value = TimerName> {
    prop_oneof![step().prop_map(retry), nap().prop_map(sleep), Just(TimerName::Deadline),]
}

fn op() -> impl Strategy<Value = Op> {
    let end = prop_oneof![14 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let and_more = prop_oneof![4 => Just(false), 1 => Just(true)];
    let class = prop_oneof![8 => Just(Class::Transient), 1 => Just(Class::Permanent), 1 => Just(Class::Poison)];
    let retry_after = proptest::option::weighted(0.2, some_duration());
    let fail = (epoch(), step(), guess(), class, retry_after, any::<Index>(), 0..3_u32);
    prop_oneof![
        1 => any::<bool>().prop_map(|same| Op::Start { same }),
        6 => (epoch(), prop::collection::vec(item(), 0..3), end, and_more, 0..3_u32)
            .prop_map(|(epoch, items, end, and_more, in_flight)| Op::Turn { epoch, items, end, and_more, in_flight }),
        8 => fail.prop_map(|(epoch, step, attempt, class, retry_after, policy, in_flight)| {
            Op::Fail { epoch, step, attempt, class, retry_after, policy, in_flight }
        }),
        5 => (any::<Index>(), guess()).prop_map(|(which, revision)| Op::FireArmed { which, revision }),
        1 => (any_timer(), 0..20_u64).prop_map(|(name, revision)| Op::FireAny { name, revision }),
        5 => (0..6_000_000_u64).prop_map(|micros| Op::Pass(Duration::from_micros(micros))),
    ]
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    let deadline = proptest::option::of((1..90_u64).prop_map(Duration::from_secs));
    let policies = prop_oneof![prop::collection::vec(policy(), 1), prop::collection::vec(policy(), 3)];
    (any::<[u8; 32]>(), deadline, policies, any::<bool>(), prop::collection::vec(op(), 0..50)).prop_map(
        |(seed, deadline, policies, early, ops)| {
            // Mostly the run is started first; now and then something comes before.
            let at = usize::from(early).min(ops.len());
            let (before, after) = ops.split_at(at);
            let ops = [before, &[Op::Start { same: true }], after].concat();
            Scenario { seed, deadline, policies, ops }
        },
    )
}
