//! Several plans over the same tenants, with people who want things of them, processes that die, leases that run out and a relay that loses acknowledgements.

mod ends;
mod held;
mod host;
mod shared;

use super::saved::a_snapshot_restores_the_state;
use super::talk::Talk;
use crate::support::plans::*;
use crate::support::*;
use host::Move;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseResult, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use steadfast_kernel::plan::{Settings, StopWhen};
use steadfast_kernel::run::{Recover, Verb};
use steadfast_kernel::{
    Command, Conflict, CreatePlan, Decision, Effect, Entity, EntityId, Envelope, FireTimer, Lock, OnFailure, OperatePlan, Origin, Plan,
    PlanCreated, PlanId, Refusal, RetryFrom, RetryRun, Run, TaskStatus, TenantId, Timer, TimerName,
};

const TENANTS: [&str; 4] = ["acme", "bob", "cleo", "dora"];
const LEASE: Duration = Duration::from_secs(3);

/// What happens.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A plan is created, or created again.
    Create(usize, Shape),
    /// Somebody wants something of one of the plans, under one of a few ids or none.
    Plan(Index, Verb, Option<u8>),
    /// Somebody wants something of one of the tasks.
    Task(Index, Wish),
    /// A task takes a turn.
    Turn(Index, Move),
    /// Somebody breaks one of the locks.
    Break(Index),
    /// The next message of somebody to somebody is delivered; without an acknowledgement it comes again.
    Deliver { which: Index, settled: bool },
    /// What came back of a message is heard.
    Back(Index),
    /// A timer is due.
    Fire(Index),
    /// Time goes by.
    Pass(u64),
    /// Everything that was said is heard.
    Heal,
    /// Every process dies, and all that is left is what the store has.
    Crash,
}

/// How a plan goes about its tenants.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    tenants: Vec<&'static str>,
    settings: Settings,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    Cancel,
    Terminate,
    Pause,
    Resume,
    Interrupt,
    Retry,
    RetryFromStart,
    RollBack,
}

fn shape() -> impl Strategy<Value = Shape> {
    let stop = prop_oneof![3 => Just(None), 1 => Just(Some(StopWhen::Failed(1))), 1 => Just(Some(StopWhen::FailedPercent(50)))];
    let how = (1..4_u32, 0..3_u32, stop, any::<bool>(), any::<bool>(), proptest::option::weighted(0.2, 1..9_u64));
    (prop::collection::vec(prop::sample::select(&TENANTS[..]), 1..5), how).prop_map(|(tenants, how)| {
        let (max_concurrency, canary, stop_when, skips, releases, deadline) = how;
        let conflict = if skips { Conflict::Skip } else { Conflict::Refuse };
        let on_failure = if releases { OnFailure::Release } else { OnFailure::Keep };
        let deadline = deadline.map(Duration::from_secs);
        Shape { tenants, settings: Settings { max_concurrency, canary, stop_when, conflict, on_failure, lease: LEASE, deadline } }
    })
}

pub(crate) fn plot() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 0..160)
}

fn op() -> impl Strategy<Value = Op> {
    let verb = prop_oneof![
        6 => Just(Verb::Start),
        2 => Just(Verb::Pause),
        3 => Just(Verb::Resume),
        1 => Just(Verb::Cancel),
        1 => Just(Verb::RollBack),
        1 => Just(Verb::Retry),
    ];
    let wish = prop_oneof![
        2 => Just(Wish::Cancel),
        1 => Just(Wish::Terminate),
        1 => Just(Wish::Pause),
        1 => Just(Wish::Resume),
        1 => Just(Wish::Interrupt),
        4 => Just(Wish::Retry),
        2 => Just(Wish::RetryFromStart),
        3 => Just(Wish::RollBack),
    ];
    prop_oneof![
        3 => (0..3_usize, shape()).prop_map(|(plan, shape)| Op::Create(plan, shape)),
        6 => (any::<Index>(), verb, proptest::option::weighted(0.3, 0..3_u8)).prop_map(|(plan, verb, id)| Op::Plan(plan, verb, id)),
        6 => (any::<Index>(), wish).prop_map(|(task, wish)| Op::Task(task, wish)),
        12 => (any::<Index>(), host::moved()).prop_map(|(task, moved)| Op::Turn(task, moved)),
        1 => any::<Index>().prop_map(Op::Break),
        24 => (any::<Index>(), proptest::bool::weighted(0.7)).prop_map(|(which, settled)| Op::Deliver { which, settled }),
        4 => any::<Index>().prop_map(Op::Back),
        3 => any::<Index>().prop_map(Op::Fire),
        2 => (1..2500_u64).prop_map(Op::Pass),
        3 => Just(Op::Heal),
        1 => Just(Op::Crash),
    ]
}

/// Who was asked, and what came of it.
type Asked = (EntityId, Result<Decision, Refusal>);
/// Which message of whom.
type Place = (EntityId, u64);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rollouts {
    talk: Talk,
    /// What came back of messages, with the message that is settled once that was heard; timers have none.
    back: Vec<(Envelope, Option<Place>)>,
    /// Messages that are settled once what came back of them was heard.
    under_way: BTreeSet<Place>,
    armed: BTreeMap<(EntityId, TimerName), Timer>,
    /// Others share the tenants: the commons say who has a lock.
    shares: bool,
}

impl Deref for Rollouts {
    type Target = Talk;

    fn deref(&self) -> &Talk {
        &self.talk
    }
}

impl DerefMut for Rollouts {
    fn deref_mut(&mut self) -> &mut Talk {
        &mut self.talk
    }
}

impl Rollouts {
    fn new() -> Self {
        let (back, under_way, armed) = Default::default();
        Rollouts { talk: Talk::new(at(1000)), back, under_way, armed, shares: false }
    }

    fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.entities.values().filter_map(Entity::plan)
    }

    fn locks(&self) -> impl Iterator<Item = &Lock> {
        self.entities.values().filter_map(Entity::lock)
    }

    fn lock(&self, tenant: &TenantId) -> Option<&Lock> {
        self.entities.get(&EntityId::Lock(tenant.clone()))?.lock()
    }

    /// Asks an entity, and sees to what is to be done after it.
    fn ask(&mut self, id: &EntityId, command: Command, of: Option<Place>) -> Result<Result<Decision, Refusal>, TestCaseError> {
        let is_claimed = self.shares && matches!(id, EntityId::Lock(_));
        let decided = self.tell(id, if is_claimed { Command::Shared(Box::new(command)) } else { command })?;
        for effect in decided.iter().flat_map(|decision| &decision.effects) {
            match effect {
                Effect::Arm(timer) => drop(self.armed.insert((id.clone(), timer.name.clone()), timer.clone())),
                Effect::Disarm(name) => drop(self.armed.remove(&(id.clone(), name.clone()))),
                Effect::Bounce(back) => {
                    self.under_way.extend(of.clone());
                    self.back.push(((**back).clone(), of.clone()));
                }
                _ => {}
            }
        }
        Ok(decided)
    }

    /// What can be delivered.
    fn next(&self) -> Vec<Envelope> {
        let heads = self.heads().into_iter();
        heads.filter(|envelope| !self.under_way.contains(&(envelope.from.clone(), envelope.seq))).collect()
    }

    fn deliver(&mut self, envelope: &Envelope, settled: bool) -> Result<Asked, TestCaseError> {
        let place = (envelope.from.clone(), envelope.seq);
        let decided = self.ask(&envelope.to, Command::Hear(Box::new(envelope.clone())), Some(place.clone()))?;
        prop_assert!(decided.is_ok(), "a message is refused");
        if settled && !self.under_way.contains(&place) {
            self.settle(&place.0, place.1);
        }
        Ok((envelope.to.clone(), decided))
    }

    /// What came back is heard; unless something comes back of that, what it came of is settled.
    fn back(&mut self, which: usize) -> Result<Asked, TestCaseError> {
        let (envelope, of) = self.back.remove(which);
        let decided = self.ask(&envelope.to, Command::Hear(Box::new(envelope.clone())), of.clone())?;
        prop_assert!(decided.is_ok(), "a message is refused");
        if let Some(place) = of.filter(|place| !self.back.iter().any(|(_, other)| other.as_ref() == Some(place))) {
            self.under_way.remove(&place);
            self.settle(&place.0, place.1);
        }
        Ok((envelope.to, decided))
    }

    /// Everything that was said is heard, some of it twice.
    fn heal(&mut self) -> TestCaseResult {
        let mut twice = BTreeSet::new();
        for round in 0.. {
            prop_assert!(round < 3_000, "they never stop talking");
            if !self.back.is_empty() {
                let _heard = self.back(0)?;
            } else if let Some(envelope) = self.next().into_iter().next() {
                let settled = round % 3 != 0 || !twice.insert((envelope.from.clone(), envelope.seq));
                let _heard = self.deliver(&envelope, settled)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// One thing happens; what was decided, if anything was asked.
    fn happens(&mut self, op: &Op) -> Result<Option<Asked>, TestCaseError> {
        self.now = self.now.saturating_add(Duration::from_millis(1));
        let (id, command) = match op {
            Op::Create(plan, shape) => self.create(&plan_named(&format!("p-{plan}")), shape),
            Op::Plan(which, verb, command) => {
                let Some(plan) = chosen(which, self.plans()) else { return Ok(None) };
                let origin = Origin { command: command.map(|id| id.to_string()), ..ada() };
                let locked = self.locked(&plan.id, &plan.created.tenants);
                (plan.entity(), Command::OperatePlan(OperatePlan { verb: *verb, origin, locked }))
            }
            Op::Task(which, wish) => {
                let Some(run) = chosen(which, self.runs()) else { return Ok(None) };
                (EntityId::from(&run.id), wished(*wish))
            }
            Op::Turn(which, moved) => {
                let Some(run) = chosen(which, self.runs()) else { return Ok(None) };
                (EntityId::from(&run.id), host::turn(run, *moved, self.now))
            }
            Op::Break(which) => {
                let Some(lock) = chosen(which, self.locks()) else { return Ok(None) };
                (EntityId::Lock(lock.tenant.clone()), Command::BreakLock(ada()))
            }
            Op::Deliver { which, settled } => {
                let next = self.next();
                let Some(envelope) = chosen(which, next.iter()) else { return Ok(None) };
                return self.deliver(envelope, *settled).map(Some);
            }
            Op::Back(which) => {
                let many = self.back.len();
                return if many == 0 { Ok(None) } else { self.back(which.index(many)).map(Some) };
            }
            Op::Fire(which) => {
                let Some(timer) = chosen(which, self.armed.values()).cloned() else { return Ok(None) };
                return self.fire(&timer).map(Some);
            }
            Op::Pass(ms) => {
                self.now = self.now.saturating_add(Duration::from_millis(*ms));
                return Ok(None);
            }
            Op::Heal => {
                self.heal()?;
                self.holds_when_healed()?;
                return self.journals_hold().map(|()| None);
            }
            Op::Crash => return self.die().map(|()| None),
        };
        let before = self.clone();
        let decided = self.ask(&id, command, None)?;
        prop_assert!(decided.is_ok() || *self == before, "a refusal leaves a trace");
        Ok(Some((id, decided)))
    }

    fn create(&self, plan: &PlanId, shape: &Shape) -> (EntityId, Command) {
        let created = PlanCreated { stages: host::STAGES.map(String::from).into(), ..plan_created(&shape.tenants, shape.settings.clone()) };
        let locked = self.locked(plan, &created.tenants);
        (EntityId::Plan(plan.clone()), Command::CreatePlan(Box::new(CreatePlan { created: Box::new(created), locked })))
    }

    /// Who has the locks of those tenants, unless it is a task of that plan.
    fn locked(&self, plan: &PlanId, tenants: &[TenantId]) -> Vec<(TenantId, String)> {
        let tenants: BTreeSet<_> = tenants.iter().collect();
        let held = tenants.into_iter().filter_map(|tenant| Some((tenant, self.lock(tenant)?.held()?)));
        held.filter(|(_, lease)| lease.plan != *plan)
            .map(|(tenant, lease)| (tenant.clone(), lease.holder()))
            .collect()
    }

    /// A timer is due, or time goes by until it is.
    fn fire(&mut self, timer: &Timer) -> Result<Asked, TestCaseError> {
        self.now = self.now.max(timer.due);
        self.armed.remove(&(timer.entity.clone(), timer.name.clone()));
        let fire = FireTimer { name: timer.name.clone(), revision: timer.revision };
        let decided = self.ask(&timer.entity, Command::FireTimer(fire), None)?;
        prop_assert!(decided.is_ok(), "a timer is refused");
        let asks = decided
            .iter()
            .flat_map(|decision| &decision.effects)
            .any(|effect| matches!(effect, Effect::Bounce(_)));
        if asks {
            self.armed.insert((timer.entity.clone(), timer.name.clone()), timer.clone()); // until there is an answer
        }
        Ok((timer.entity.clone(), decided))
    }

    /// What was on its way between processes is lost; what was under way when they died is seen to by the restart.
    fn die(&mut self) -> TestCaseResult {
        self.journals_hold()?;
        self.crash()?;
        self.back.clear();
        self.under_way.clear();
        self.armed = self.timers();
        let plans: Vec<_> = self.plans().filter(|plan| plan.is_under_way()).map(Plan::entity).collect();
        let runs: Vec<EntityId> = self
            .runs()
            .filter(|run| run.recover() == Some(Recover::Interrupt))
            .map(|run| (&run.id).into())
            .collect();
        for plan in plans {
            prop_assert!(self.ask(&plan, Command::InterruptPlan, None)?.is_ok());
        }
        for run in runs {
            prop_assert!(self.ask(&run, Command::InterruptRun, None)?.is_ok());
        }
        Ok(())
    }

    /// The timers that must be armed, as the states say.
    fn timers(&self) -> BTreeMap<(EntityId, TimerName), Timer> {
        let of = |entity: &Entity| match entity {
            Entity::Run(run) => run.timers(),
            Entity::Plan(plan) => plan.timers().into_iter().collect(),
            Entity::Lock(lock) => lock.timer().into_iter().collect(),
            _ => Vec::new(),
        };
        let timers = self.entities.values().flat_map(of);
        timers.map(|timer| ((timer.entity.clone(), timer.name.clone()), timer)).collect()
    }
}

fn chosen<'a, T: 'a>(which: &Index, all: impl Iterator<Item = &'a T>) -> Option<&'a T> {
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| *which.get(&all))
}

fn wished(wish: Wish) -> Command {
    match wish {
        Wish::Cancel => cancel(),
        Wish::Terminate => terminate(),
        Wish::Pause => pause(),
        Wish::Resume => resume(),
        Wish::Interrupt => Command::InterruptRun,
        Wish::Retry => retry_run(),
        Wish::RetryFromStart => Command::RetryRun(RetryRun { input: None, ..retry_from(RetryFrom::Start) }),
        Wish::RollBack => Command::RollBackRun(ada()),
    }
}

/// Plays a plot to its end; what was decided is told to `saw`, with the state before it.
pub(crate) fn play(plot: &[Op], mut saw: impl FnMut(&Rollouts, &EntityId, &Result<Decision, Refusal>)) -> Result<Rollouts, TestCaseError> {
    let mut rollouts = Rollouts::new();
    for op in plot {
        let before = rollouts.clone();
        if let Some((id, decided)) = rollouts.happens(op)? {
            saw(&before, &id, &decided);
        }
        rollouts.holds()?;
    }
    rollouts.heal()?;
    rollouts.holds()?;
    rollouts.holds_when_healed()?;
    rollouts.end()?;
    rollouts.journals_hold()?;
    Ok(rollouts)
}

proptest! {
    #[test]
    fn plans_tasks_and_locks_come_to_their_end(plot in plot()) {
        play(&plot, |_, _, _| {})?;
    }
}

#[test]
fn the_plots_reach_every_event_of_plans_tasks_and_locks() {
    let (mut seen, mut statuses) = (BTreeSet::new(), BTreeSet::new());
    let mut runner = TestRunner::deterministic();
    for _ in 0..200 {
        let plot = plot().new_tree(&mut runner).expect("a plot").current();
        let saw = |rollouts: &Rollouts, id: &EntityId, decided: &Result<Decision, Refusal>| {
            statuses.extend(rollouts.entities.get(id).and_then(Entity::run).and_then(Run::task_status));
            match decided {
                Ok(decision) => seen.extend(decision.entries.iter().map(|entry| entry.event.kind())),
                Err(refusal) => drop(seen.insert(refusal.code())),
            }
        };
        play(&plot, saw).expect("every fact holds");
    }
    let of_plans = |kind: &&str| ["PLAN", "TASK", "STAGE", "CHECKPOINT", "LOCK"].iter().any(|prefix| kind.starts_with(prefix));
    let expected = "CHECKPOINT_SAVED \
        LOCK_ACQUIRED LOCK_BROKEN LOCK_LOST LOCK_RELEASED LOCK_RENEWED LOCK_REQUESTED LOCK_SUSPECTED \
        PLAN_CANCELLED PLAN_CANCEL_REQUESTED PLAN_COMPLETED PLAN_CREATED PLAN_FAILED PLAN_PAUSED PLAN_RESUMED PLAN_ROLLBACK_REQUESTED \
        PLAN_STARTED STAGE_COMPLETED STAGE_FAILED STAGE_STARTED TASK_ADMITTED TASK_CHANGED TASK_RECALLED TASK_STARTED";
    assert_eq!(seen.iter().copied().filter(of_plans).collect::<Vec<_>>(), expected.split_whitespace().collect::<Vec<_>>());
    let all = TaskStatus::ALL.into_iter().filter(|status| *status != TaskStatus::HandedOver);
    assert_eq!(statuses, all.collect(), "tasks in every status");
}
