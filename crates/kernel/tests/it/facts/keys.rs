//! A key, whatever is asked of it and in whatever order: every end is told once or is a letter, timers and journal say what the state says, and what a shortened
//! journal folds into is what the whole one does.

mod model;

use super::journal::sequences_have_no_gap;
use super::reach;
use super::saved::a_snapshot_restores_the_state;
use crate::support::keys::*;
use crate::support::*;
use model::Model;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseResult, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::key::{Key, decide};
use steadfast_kernel::{
    Attempt, Class, Command, Decision, DeleteKey, Effect, EndKey, Entity, EntityId, Entry, Event, ExpireKey, Failure, FireTimer,
    LetterAbout, Payload, Policy, PutKey, Refusal, RenewKey, ReportCallback, Revision, Seq, Target, Timer, TimerName, Timestamp, code,
};

/// What happens to a key.
#[derive(Clone, Debug)]
enum Op {
    Put {
        ttl: Duration,
        owner: Option<&'static str>,
        directory: bool,
        target: Option<Target>,
        expected: Option<bool>,
        handled: bool,
    },
    Renew {
        ttl: Duration,
        owner: Option<&'static str>,
        expected: Option<bool>,
    },
    /// So often that the journal is shortened.
    RenewOften,
    Delete {
        owner: Option<&'static str>,
        expected: Option<bool>,
    },
    Expire {
        right: bool,
        handled: bool,
    },
    /// Its directory ended that long ago.
    End {
        ago: Duration,
        deleted: bool,
        handled: bool,
    },
    Report {
        which: Index,
        stale: bool,
        outcome: Outcome,
    },
    /// One of the timers that are armed is due, or one that is not.
    Fire {
        which: Index,
        real: bool,
    },
    Redrive {
        which: Index,
        real: bool,
    },
    Drop {
        which: Index,
        real: bool,
    },
    Pass(Duration),
    /// The process dies, and all that is left is what the store has.
    Crash,
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Told,
    Unreachable,
    Refused,
}

fn op() -> impl Strategy<Value = Op> {
    let ttl = || prop_oneof![8 => (1..9_u64).prop_map(|halves| millis(500 * halves)), 1 => Just(Duration::MAX), 1 => Just(Duration::from_nanos(1))];
    let owner = || prop_oneof![3 => Just(None), 3 => Just(Some("a")), 1 => Just(Some("b"))];
    let expected = || proptest::option::weighted(0.2, proptest::bool::weighted(0.7));
    let start = || Target::StartRun { workflow: workflow("log-out"), input: Payload::json("1") };
    let target = prop_oneof![2 => Just(None), 2 => Just(Some(url())), 1 => Just(Some(start())), 1 => Just(Some(Target::Handler))];
    let outcome = prop_oneof![Just(Outcome::Told), Just(Outcome::Unreachable), Just(Outcome::Refused)];
    let (rarely, mostly) = (|| proptest::bool::weighted(0.2), || proptest::bool::weighted(0.8));
    let put = (ttl(), owner(), rarely(), target, expected(), rarely())
        .prop_map(|(ttl, owner, directory, target, expected, handled)| Op::Put { ttl, owner, directory, target, expected, handled });
    prop_oneof![
        8 => put,
        4 => (ttl(), owner(), expected()).prop_map(|(ttl, owner, expected)| Op::Renew { ttl, owner, expected }),
        1 => Just(Op::RenewOften),
        3 => (owner(), expected()).prop_map(|(owner, expected)| Op::Delete { owner, expected }),
        3 => (mostly(), rarely()).prop_map(|(right, handled)| Op::Expire { right, handled }),
        2 => ((0..7_u64).prop_map(|halves| millis(500 * halves)), any::<bool>(), rarely()).prop_map(|(ago, deleted, handled)| Op::End { ago, deleted, handled }),
        8 => (any::<Index>(), rarely(), outcome).prop_map(|(which, stale, outcome)| Op::Report { which, stale, outcome }),
        8 => (any::<Index>(), mostly()).prop_map(|(which, real)| Op::Fire { which, real }),
        2 => (any::<Index>(), mostly()).prop_map(|(which, real)| Op::Redrive { which, real }),
        2 => (any::<Index>(), mostly()).prop_map(|(which, real)| Op::Drop { which, real }),
        6 => (1..7_u64).prop_map(|halves| Op::Pass(millis(500 * halves))),
        1 => Just(Op::Crash),
    ]
}

pub(crate) fn plot() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(op().prop_map(Step), 0..60)
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) struct Step(Op);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct World {
    now: Timestamp,
    /// The number of the last commit, by which revisions are given.
    commit: Revision,
    state: Option<Key>,
    /// What the store has.
    pub(crate) left: Vec<Entry>,
    /// The whole journal, from the first put after everything was forgotten; the last one is the one that goes on.
    pub(crate) lives: Vec<Vec<Entry>>,
    /// Where the journal could have begun.
    bases: BTreeSet<Seq>,
    armed: BTreeMap<TimerName, Timer>,
    model: Model,
}

/// Two more attempts, a second apart.
fn policy() -> Policy {
    Policy::constant(SECOND).max_attempts(3)
}

impl World {
    fn new() -> Self {
        let (state, left, bases, armed, model) = Default::default();
        World { now: at(5000), commit: 0, state, left, lives: vec![vec![]], bases, armed, model }
    }

    fn whole(&self) -> &[Entry] {
        self.lives.last().expect("a life")
    }

    fn commands(&mut self, op: &Op) -> Vec<Command> {
        self.commit += 1;
        let held = self.state.as_ref().and_then(|key| key.held.as_ref());
        let revision = held.map_or(0, |held| held.revision);
        let expects = |expected: Option<bool>| expected.map(|right| if right { revision } else { revision + 7 });
        let text = |owner: Option<&str>| owner.map(ToString::to_string);
        let letter = |which: &Index, real| match &self.state {
            Some(key) if real && !key.letters.is_empty() => *which.get(&key.letters.keys().collect::<Vec<_>>()),
            _ => &999_999,
        };
        vec![match op.clone() {
            Op::Put { ttl, owner, directory, target, expected, handled } => Command::PutKey(PutKey {
                ttl,
                owner: text(owner),
                directory,
                on_expire: target,
                if_revision: expects(expected),
                handled,
                ..put_key(self.commit)
            }),
            Op::Renew { ttl, owner, expected } => {
                Command::RenewKey(RenewKey { revision: self.commit, ttl, owner: text(owner), if_revision: expects(expected) })
            }
            Op::RenewOften => {
                let owner = held.and_then(|held| held.owner.clone());
                let renew = |revision| Command::RenewKey(RenewKey { revision, ttl: SECOND, owner: owner.clone(), if_revision: None });
                let first = self.commit;
                self.commit += 130;
                return (first..self.commit).map(renew).collect();
            }
            Op::Delete { owner, expected } => Command::DeleteKey(DeleteKey { owner: text(owner), if_revision: expects(expected) }),
            Op::Expire { right, handled } => Command::ExpireKey(ExpireKey { revision: revision + u64::from(!right), handled }),
            Op::End { ago, deleted, handled } => {
                let micros = self.now.as_micros() - i64::try_from(ago.as_micros()).expect("not long ago");
                Command::EndKey(EndKey { directory: name("sessions"), ended_at: Timestamp::from_micros(micros), deleted, handled })
            }
            Op::Report { which, stale, outcome } => {
                let owed: Vec<_> = self.model.owed.iter().collect();
                let (revision, attempt) = if owed.is_empty() { (&5, &1) } else { *which.get(&owed) };
                let outcome = match outcome {
                    Outcome::Told => Ok(None),
                    Outcome::Unreachable => Err(timeout()),
                    Outcome::Refused => Err(Failure::permanent("no")),
                };
                let attempt = if !stale {
                    *attempt
                } else if *attempt > 1 {
                    attempt - 1
                } else {
                    attempt + 1
                };
                reported(*revision, attempt, outcome, &policy())
            }
            Op::Fire { which, real } => {
                let timers: Vec<_> = self.armed.values().cloned().collect();
                match timers.is_empty() {
                    false => fired(which.get(&timers), real),
                    true => fire(TimerName::Callback(5), 2),
                }
            }
            Op::Redrive { which, real } => redrive(*letter(&which, real), ada_with(&format!("c-{}", self.commit))),
            Op::Drop { which, real } => drop_letter(*letter(&which, real), ada_with(&format!("c-{}", self.commit))),
            Op::Pass(_) | Op::Crash => return vec![],
        }]
    }

    /// Decides, commits and folds, as the shard of that key would.
    fn tell(&mut self, command: Command) -> Result<Result<Decision, Refusal>, TestCaseError> {
        let before = self.clone();
        let expected = match &command {
            Command::FireTimer(fire) => self.fires(fire),
            command => self.model.expect(command, self.now, self.state.as_ref().map_or(0, |key| key.seq)),
        };
        let decided = decide(&session(), self.state.as_ref(), command, self.now);
        match &decided {
            Err(refusal) => {
                prop_assert_eq!(refusal.code(), expected);
                prop_assert_eq!(&*self, &before, "a refusal leaves a trace");
            }
            Ok(decision) => {
                let told = decision.effects.last().map(reach::name);
                prop_assert!(told == Some(expected), "{:?} where {} is expected", decision, expected);
                let begun = decision
                    .effects
                    .iter()
                    .filter_map(|effect| if let Effect::CallBack { revision, .. } = effect { Some(revision) } else { None });
                let (begun, owed): (BTreeSet<_>, BTreeSet<_>) = (begun.collect(), self.model.owed.keys().collect());
                let was_owed = before.model.owed.keys().collect();
                prop_assert!(owed.difference(&was_owed).all(|revision| begun.contains(revision)), "nobody begins to tell: {:?}", decision);
                self.commit(decision)?;
            }
        }
        Ok(decided)
    }

    /// What comes of a timer: nothing, if it is not the one that is armed.
    fn fires(&self, fire: &FireTimer) -> &'static str {
        let armed = self.armed.get(&fire.name).filter(|timer| timer.revision == fire.revision);
        match (armed, &fire.name) {
            (None, _) if self.state.is_none() => "NotFound",
            (None, _) => "Superseded",
            (Some(_), TimerName::Forget) => "Forget",
            (Some(timer), _) if timer.due > self.now => "Arm",
            (Some(_), _) => "CallBack",
        }
    }

    fn commit(&mut self, Decision { entries, effects }: &Decision) -> TestCaseResult {
        for entry in entries {
            let key = next_key(self.state.take(), entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
            self.bases.insert(key.base);
            self.state = Some(key);
            self.left.push(entry.clone());
            self.lives.last_mut().expect("a life").push(entry.clone());
        }
        for effect in effects {
            match effect {
                Effect::Arm(timer) => drop(self.armed.insert(timer.name.clone(), timer.clone())),
                Effect::Disarm(name) => drop(self.armed.remove(name)),
                Effect::Retire(revision) => drop(self.armed.insert(TimerName::Forget, forget(self.now, *revision))),
                Effect::Shorten(begin) => {
                    prop_assert!(self.bases.contains(begin), "{} does not say all", begin);
                    self.left.retain(|entry| entry.seq >= *begin);
                }
                Effect::Forget => {
                    prop_assert!(self.model.owed.is_empty() && self.model.letters.is_empty(), "something is forgotten that is owed");
                    (self.state, self.left) = (None, vec![]);
                    self.bases.clear();
                    self.armed.clear();
                    self.lives.push(vec![]);
                }
                Effect::CallBack { revision, attempt } => {
                    prop_assert_eq!(self.model.owed.get(revision), Some(attempt), "somebody is told of what is not owed")
                }
                Effect::Answer(_) => {}
                other => prop_assert!(false, "{:?} is none of a key", other),
            }
        }
        Ok(())
    }

    fn holds(&self) -> TestCaseResult {
        sequences_have_no_gap(self.whole())?;
        prop_assert_eq!(&stored(self.whole()), self.whole(), "the store keeps every entry as it is");
        prop_assert_eq!(&fold_key(self.whole()).expect("a good journal"), &self.state, "state is the fold of its entries");
        prop_assert_eq!(&fold_key(&self.left).expect("a good journal"), &self.state, "a shortened journal is as good");
        for base in &self.bases {
            let from_there: Vec<_> = self.whole().iter().filter(|entry| entry.seq >= *base).cloned().collect();
            prop_assert_eq!(&fold_key(&from_there).expect("a good journal"), &self.state, "{} does not say all", base);
        }
        revisions_rise(&self.lives)?;
        let Some(key) = &self.state else { return Ok(()) };
        prop_assert_eq!(&implied(key, &self.armed), &self.armed, "timers are a fold of the entries");
        prop_assert_eq!(key.callbacks.keys().collect::<Vec<_>>(), self.model.owed.keys().collect::<Vec<_>>());
        prop_assert_eq!(key.letters.keys().collect::<Vec<_>>(), self.model.letters.keys().collect::<Vec<_>>());
        a_snapshot_restores_the_state(&EntityId::Key(session()), &Entity::Key(Box::new(key.clone())))
    }

    /// All attempts are made and reported; then every end was told once, or is a letter, or was one.
    fn comes_to_an_end(&mut self) -> TestCaseResult {
        while let Some((revision, attempt)) = self.model.owed.first_key_value().map(|(revision, attempt)| (*revision, *attempt)) {
            let outcome = if revision % 2 == 0 { Ok(None) } else { Err(timeout()) };
            prop_assert!(self.tell(reported(revision, attempt, outcome, &policy()))?.is_ok());
            self.holds()?;
        }
        let mut told: BTreeMap<Revision, i32> = self.model.ever_owed.iter().map(|revision| (*revision, 0)).collect();
        for journal in &self.lives {
            let mut letters = BTreeMap::new();
            for entry in journal {
                let (revision, change) = match &entry.event {
                    Event::CallbackSettled { revision, .. } => (*revision, 1),
                    Event::LetterAdded(letter) => {
                        let LetterAbout::Expiry { revision, .. } = letter.about else { panic!("{letter:?} is none of a key") };
                        letters.insert(entry.seq, revision);
                        (revision, 1)
                    }
                    Event::LetterRedriven { letter, .. } => (letters[letter], -1),
                    _ => continue,
                };
                *told.entry(revision).or_default() += change;
                prop_assert!((0..=1).contains(&told[&revision]), "{} is told twice", revision);
            }
        }
        prop_assert!(told.values().all(|times| *times == 1), "not everything is told once: {:?}", told);
        Ok(())
    }
}

/// What the shard tells a key whose timer is due.
fn fired(timer: &Timer, real: bool) -> Command {
    let revision = timer.revision + u64::from(!real);
    match &timer.name {
        TimerName::Expiry => Command::ExpireKey(ExpireKey { revision, handled: false }),
        name => Command::FireTimer(FireTimer { name: name.clone(), revision }),
    }
}

/// The shard decides how long a key is kept; here it is as long as somebody likes.
fn forget(due: Timestamp, revision: Seq) -> Timer {
    Timer { entity: EntityId::Key(session()), name: TimerName::Forget, due, revision }
}

/// The timers that a key has; when it is forgotten is not for the key to say.
fn implied(key: &Key, armed: &BTreeMap<TimerName, Timer>) -> BTreeMap<TimerName, Timer> {
    let timer = |name, due, revision| Timer { entity: EntityId::Key(session()), name, due, revision };
    let expiry = key.held.iter().map(|held| timer(TimerName::Expiry, held.expires_at, held.revision));
    let retries = key.callbacks.values().filter_map(|callback| {
        let failed = callback.failed.as_ref()?;
        Some(timer(TimerName::Callback(callback.revision), failed.due_at, failed.seq))
    });
    let spent = key.held.is_none() && key.callbacks.is_empty() && key.letters.is_empty();
    let due = armed.get(&TimerName::Forget).map_or(Timestamp::EPOCH, |timer| timer.due);
    let forget = spent.then(|| forget(due, key.seq));
    expiry.chain(retries).chain(forget).map(|timer| (timer.name.clone(), timer)).collect()
}

fn revisions_rise(lives: &[Vec<Entry>]) -> TestCaseResult {
    let revisions = lives.iter().flatten().filter_map(|entry| match &entry.event {
        Event::KeyPut(held) => Some(held.revision),
        Event::KeyRenewed { revision, .. } => Some(*revision),
        _ => None,
    });
    prop_assert!(revisions.is_sorted_by(|one, next| one < next), "a revision is given twice");
    Ok(())
}

/// Plays a plot to its end; every fact is checked after every step. What was decided is told to `saw`.
pub(crate) fn play(plot: &[Step], mut saw: impl FnMut(&Result<Decision, Refusal>)) -> Result<World, TestCaseError> {
    let mut world = World::new();
    for Step(op) in plot {
        match op {
            Op::Pass(time) => world.now = world.now.saturating_add(*time),
            Op::Crash => {
                world.left = stored(&world.left);
                world.state = folded_key(&world.left);
            }
            op => {
                for command in world.commands(op) {
                    saw(&world.tell(command)?);
                }
            }
        }
        world.holds()?;
    }
    world.comes_to_an_end()?;
    Ok(world)
}

proptest! {
    #[test]
    fn every_end_is_told_once_or_is_a_letter(plot in plot()) {
        play(&plot, |_| {})?;
    }
}

#[test]
fn the_plots_reach_every_event_effect_and_refusal_of_keys() {
    let (mut seen, mut lives) = (BTreeSet::new(), 0);
    let mut runner = TestRunner::deterministic();
    for _ in 0..150 {
        let plot = plot().new_tree(&mut runner).expect("a plot").current();
        let world = play(&plot, |decided| match decided {
            Ok(decision) => {
                seen.extend(decision.entries.iter().map(|entry| entry.event.kind()));
                seen.extend(decision.effects.iter().map(reach::name));
            }
            Err(refusal) => drop(seen.insert(refusal.code())),
        });
        lives += world.expect("every fact holds").lives.len() - 1;
    }
    let expected = "Arm Disarm CallBack Retire Shorten Forget \
        Put Renewed Deleted Expired NotFound Mismatch Reported Redriven Dropped Superseded \
        SF0115 SF0117 SF0118 SF0119 \
        KEY_PUT KEY_RENEWED KEY_DELETED KEY_EXPIRED CALLBACK_FAILED CALLBACK_SETTLED LETTER_ADDED LETTER_REDRIVEN LETTER_DROPPED";
    assert_eq!(seen, expected.split_whitespace().collect());
    assert!(lives > 20, "keys that were forgotten are made anew");
}
