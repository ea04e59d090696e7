//! Random scenarios: what may be asked of a run, sensible or not, while time moves on.

use crate::support::{id, retry, sleep};
use proptest::prelude::*;
use proptest::sample::Index;
use std::time::Duration;
use steadfast_kernel::{Class, Jitter, Policy, Seq, StepId, TimerName};

/// The children that code may start, and the runs that they are.
pub(crate) const CHILDREN: [(&str, &str); 3] =
    [("child:parcel#1", "parcel-1"), ("child:parcel#2", "parcel-2"), ("left/child:parcel#1", "parcel-3")];
const NOTES: [&str; 2] = ["note:#1", "note:#2"];

const STEPS: [&str; 5] = ["charge#1", "charge#2", "all#1.0/ship#1", "all#1.1/ship#1", "sleep#1"];
const SLEEPS: [&str; 3] = ["sleep#1", "sleep#2", "all#1.0/sleep#1"];
const WAITS: [&str; 4] = ["signal:approve#1", "all#1.1/signal:approve#1", "charge#1/in-doubt#1", "charge#1/undo-failed#1"];
const SIGNALS: [&str; 4] = ["approve", "refuse", "in-doubt:charge#1", "undo:charge#1"];

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: [u8; 32],
    pub(crate) deadline: Option<Duration>,
    /// It does not go on by itself after its process died.
    pub(crate) manual: bool,
    /// How many limits it needs a slot of.
    pub(crate) limits: usize,
    /// It is a child of another run.
    pub(crate) child: bool,
    pub(crate) policies: Vec<Policy>,
    pub(crate) ops: Vec<Op>,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Start {
        same: bool,
    },
    Turn {
        epoch: Guess,
        items: Vec<Item>,
        end: Option<End>,
        and_more: bool,
        in_flight: u32,
        abandoned: Vec<Abandoned>,
    },
    Fail {
        epoch: Guess,
        step: StepId,
        attempt: Guess,
        class: Class,
        retry_after: Option<Duration>,
        policy: Index,
        in_flight: u32,
    },
    Signal {
        name: &'static str,
        id: Option<u32>,
    },
    /// As many signals as may wait, and one more.
    Flood,
    Cancel(Option<u32>),
    Terminate(Option<u32>),
    Pause(Option<u32>),
    Resume(Option<u32>),
    Interrupt,
    Retry {
        from: From,
        input: bool,
        outputs: Vec<&'static str>,
        blocked: bool,
        command: Option<u32>,
    },
    Heartbeat {
        epoch: Guess,
        step: StepId,
        attempt: Guess,
    },
    /// What others say; the number is the place in their outbox, mostly the next.
    Hear(Word, Guess),
    FireArmed {
        which: Index,
        revision: Guess,
    },
    FireAny {
        name: TimerName,
        revision: Seq,
    },
    Pass(Duration),
}

/// How a turn closes the code, or the undoing of what it did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Completed,
    Failed,
    Compensating { called_off: bool },
    Cancelled,
    Continued,
}

/// From where a run is to be retried.
#[derive(Clone, Debug)]
pub(crate) enum From {
    Failed,
    Start,
    OnRecord(Index),
    Any(&'static str),
}

/// What another entity may say to the run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// The slot that it waits for, or one that it does not.
    Grant { right: bool },
    /// Its parent, or a run that is not.
    CallOff { right: bool },
    /// One of its children has ended.
    Ended { child: usize, well: bool },
    /// A child could not be started.
    Bounced { child: usize },
    /// Its parent, or another run, wants a child of that id.
    Start { right: bool },
}

/// What a turn says that the code no longer waits for.
#[derive(Clone, Debug)]
pub(crate) enum Abandoned {
    Armed(Index),
    Any(TimerName),
}

/// A thing that a turn proposes besides an end.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Begun(&'static str, Guess),
    Undoable(&'static str, Guess),
    Undone(&'static str, Guess),
    UndoFailed(&'static str, Guess),
    Awaited(&'static str, &'static str, Option<Duration>),
    /// A signal that is there, by a wait that may be asked for in the same turn.
    TakenEarly(&'static str, Index),
    /// A signal that is there, by a wait that is on record.
    TakenRight(Index, Index),
    TakenAny(&'static str, Seq),
    Arrived(&'static str),
    CancelRequested,
    Noted(&'static str),
    /// A child that nobody waits for, or one that somebody does.
    ChildStarted(usize, bool),
    /// The outcome of a child that has ended.
    ChildTaken(Index),
    ChildTakenAny(usize),
    Completed(&'static str, Guess),
    Failed(&'static str, Guess),
    Poisoned(&'static str, Guess),
    Set(&'static str, Duration),
    Fired(&'static str),
    Retry(&'static str),
    Started,
}

/// A number that the host knows, or gets wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guess {
    Right,
    Wrong(u32),
}

impl Guess {
    pub(crate) fn or(self, right: u32) -> u32 {
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

fn epoch() -> impl Strategy<Value = Guess> {
    prop_oneof![19 => Just(Guess::Right), 1 => (0..3_u32).prop_map(Guess::Wrong)]
}

/// The id of a command, if it has one; few, so that some come again.
fn command() -> impl Strategy<Value = Option<u32>> {
    proptest::option::weighted(0.4, 0..6_u32)
}

fn child() -> impl Strategy<Value = usize> {
    0..CHILDREN.len()
}

fn some_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0..5_000_000_000_u64).prop_map(Duration::from_nanos), Just(Duration::MAX)]
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
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

fn wait() -> impl Strategy<Value = &'static str> {
    prop::sample::select(WAITS.as_slice())
}

fn signal() -> impl Strategy<Value = &'static str> {
    prop::sample::select(SIGNALS.as_slice())
}

/// The name that a wait asks for, mostly.
fn asked(wait: &'static str) -> impl Strategy<Value = &'static str> {
    let usual = if wait.contains("in-doubt") {
        SIGNALS[2]
    } else if wait.contains("undo") {
        SIGNALS[3]
    } else {
        SIGNALS[0]
    };
    prop_oneof![4 => Just(usual), 1 => signal()]
}

fn awaited() -> impl Strategy<Value = Item> {
    let within = proptest::option::of(some_duration());
    (wait().prop_flat_map(|wait| (Just(wait), asked(wait))), within).prop_map(|((wait, name), within)| Item::Awaited(wait, name, within))
}

fn item() -> impl Strategy<Value = Item> {
    let undo = prop_oneof![
        3 => (step(), guess()).prop_map(|(step, attempt)| Item::Undone(step, attempt)),
        2 => (step(), guess()).prop_map(|(step, attempt)| Item::UndoFailed(step, attempt)),
    ];
    let taken = prop_oneof![
        3 => (wait(), any::<Index>()).prop_map(|(wait, signal)| Item::TakenEarly(wait, signal)),
        6 => (any::<Index>(), any::<Index>()).prop_map(|(wait, signal)| Item::TakenRight(wait, signal)),
        1 => (wait(), 0..20_u64).prop_map(|(wait, signal)| Item::TakenAny(wait, signal)),
    ];
    prop_oneof![
        3 => (step(), guess()).prop_map(|(step, attempt)| Item::Begun(step, attempt)),
        7 => (step(), guess()).prop_map(|(step, attempt)| Item::Undoable(step, attempt)),
        5 => undo,
        6 => awaited(),
        6 => taken,
        2 => wait().prop_map(Item::Fired),
        1 => signal().prop_map(Item::Arrived),
        2 => prop::sample::select(NOTES.as_slice()).prop_map(Item::Noted),
        4 => (child(), prop_oneof![4 => Just(false), 1 => Just(true)]).prop_map(|(child, detached)| Item::ChildStarted(child, detached)),
        5 => any::<Index>().prop_map(Item::ChildTaken),
        1 => child().prop_map(Item::ChildTakenAny),
        1 => (step(), guess()).prop_map(|(step, attempt)| Item::Poisoned(step, attempt)),
        1 => Just(Item::CancelRequested),
        6 => (step(), guess()).prop_map(|(step, attempt)| Item::Completed(step, attempt)),
        3 => (step(), guess()).prop_map(|(step, attempt)| Item::Failed(step, attempt)),
        6 => (nap(), some_duration()).prop_map(|(sleep, for_long)| Item::Set(sleep, for_long)),
        6 => nap().prop_map(Item::Fired),
        1 => step().prop_map(Item::Retry),
        1 => Just(Item::Started),
    ]
}

fn any_timer() -> impl Strategy<Value = TimerName> {
    prop_oneof![
        4 => step().prop_map(retry),
        1 => step().prop_map(|step| TimerName::Retry(id(step).undo())),
        4 => nap().prop_map(sleep),
        2 => wait().prop_map(sleep),
        1 => child().prop_map(|child| sleep(CHILDREN[child].0)),
        1 => Just(TimerName::Deadline),
    ]
}

/// What people want of a run, and what befalls it.
fn verb() -> impl Strategy<Value = Op> {
    let place = prop_oneof![Just("child:parcel#1"), step()];
    let from = prop_oneof![
        4 => Just(From::Failed),
        1 => Just(From::Start),
        4 => any::<Index>().prop_map(From::OnRecord),
        1 => place.prop_map(From::Any),
    ];
    let rarely = || prop_oneof![5 => Just(false), 1 => Just(true)];
    let outputs = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(step(), 1..3)];
    let retry = (from, rarely(), outputs, rarely(), command());
    prop_oneof![
        2 => command().prop_map(Op::Cancel),
        1 => command().prop_map(Op::Terminate),
        4 => command().prop_map(Op::Pause),
        5 => command().prop_map(Op::Resume),
        3 => Just(Op::Interrupt),
        9 => retry.prop_map(|(from, input, outputs, blocked, command)| Op::Retry { from, input, outputs, blocked, command }),
    ]
}

fn word() -> impl Strategy<Value = Word> {
    let mostly = || prop_oneof![4 => Just(true), 1 => Just(false)];
    prop_oneof![
        6 => mostly().prop_map(|right| Word::Grant { right }),
        1 => mostly().prop_map(|right| Word::CallOff { right }),
        4 => (child(), any::<bool>()).prop_map(|(child, well)| Word::Ended { child, well }),
        1 => child().prop_map(|child| Word::Bounced { child }),
        1 => mostly().prop_map(|right| Word::Start { right }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let end = prop_oneof![
        26 => Just(None),
        1 => Just(Some(End::Completed)),
        1 => Just(Some(End::Failed)),
        4 => any::<bool>().prop_map(|called_off| Some(End::Compensating { called_off })),
        1 => Just(Some(End::Cancelled)),
        1 => Just(Some(End::Continued)),
    ];
    let abandoned = prop_oneof![
        4 => any::<Index>().prop_map(Abandoned::Armed),
        1 => any_timer().prop_map(Abandoned::Any),
    ];
    let abandoned = prop_oneof![5 => Just(Vec::new()), 1 => prop::collection::vec(abandoned, 1..3)];
    let tried = prop_oneof![4 => step().prop_map(id), 1 => step().prop_map(|step| id(step).undo())];
    let and_more = prop_oneof![4 => Just(false), 1 => Just(true)];
    let class = prop_oneof![8 => Just(Class::Transient), 1 => Just(Class::Permanent), 1 => Just(Class::Poison)];
    let retry_after = proptest::option::weighted(0.2, some_duration());
    let fail = (epoch(), tried, guess(), class, retry_after, any::<Index>(), 0..3_u32);
    prop_oneof![
        1 => any::<bool>().prop_map(|same| Op::Start { same }),
        10 => (epoch(), prop::collection::vec(item(), 0..3), end, and_more, 0..3_u32, abandoned).prop_map(
            |(epoch, items, end, and_more, in_flight, abandoned)| Op::Turn { epoch, items, end, and_more, in_flight, abandoned }
        ),
        4 => (signal(), proptest::option::of(0..4_u32)).prop_map(|(name, id)| Op::Signal { name, id }),
        6 => verb(),
        5 => (word(), guess()).prop_map(|(word, seq)| Op::Hear(word, seq)),
        1 => (epoch(), step().prop_map(id), guess()).prop_map(|(epoch, step, attempt)| Op::Heartbeat { epoch, step, attempt }),
        8 => fail.prop_map(|(epoch, step, attempt, class, retry_after, policy, in_flight)| {
            Op::Fail { epoch, step, attempt, class, retry_after, policy, in_flight }
        }),
        5 => (any::<Index>(), guess()).prop_map(|(which, revision)| Op::FireArmed { which, revision }),
        1 => (any_timer(), 0..20_u64).prop_map(|(name, revision)| Op::FireAny { name, revision }),
        5 => (0..6_000_000_u64).prop_map(|micros| Op::Pass(Duration::from_micros(micros))),
    ]
}

pub(crate) fn scenario() -> impl Strategy<Value = Scenario> {
    let deadline = proptest::option::of((1..90_u64).prop_map(Duration::from_secs));
    let policies = prop_oneof![prop::collection::vec(policy(), 1), prop::collection::vec(policy(), 3)];
    let flood = proptest::option::weighted(0.01, any::<Index>());
    let limits = prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => Just(2)];
    let options = (proptest::bool::weighted(0.4), limits, proptest::bool::weighted(0.3));
    (any::<[u8; 32]>(), deadline, options, policies, any::<bool>(), flood, prop::collection::vec(op(), 0..60)).prop_map(
        |(seed, deadline, (manual, limits, child), policies, early, flood, mut ops)| {
            if let Some(at) = flood.filter(|_| !ops.is_empty()) {
                *at.get_mut(&mut ops) = Op::Flood;
            }
            // Mostly the run is started first; now and then something comes before.
            let at = usize::from(early).min(ops.len());
            let (before, after) = ops.split_at(at);
            let ops = [before, &[Op::Start { same: true }], after].concat();
            Scenario { seed, deadline, manual, limits, child, policies, ops }
        },
    )
}
