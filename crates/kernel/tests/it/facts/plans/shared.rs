//! Two instances, each with a store of its own, share tenants. The commons say who has a lock and who owns a task; answers of theirs come late or never,
//! instances die and come back, tasks go from one to the other, and once in a while the commons lose everything.

mod commons;
mod ends;

use super::held::is_under_way;
use super::*;
use commons::{Commons, Holding, Owned, Who};
use steadfast_kernel::{AdoptRun, Claimed, HandOver, InstanceId, Payload, Recovery, RunId, RunOptions, Seq, SettleClaim, StartRun};

/// What happens.
#[derive(Clone, Debug)]
enum Act {
    /// Something that also happens to an instance that is alone.
    Own(Who, Op),
    /// A task takes a turn, if it is still its instance's; the commons hear what became of it at once, or when they are next told.
    Turn(Who, Index, Move, bool),
    /// An instance claims a lock that somebody of it waits for.
    Claim(Who, Index, Comes),
    /// An answer of the commons that was late comes.
    Answer(Index),
    /// An instance tells the commons what it has, and hears what it has no more.
    Sync(Who),
    /// An instance goes on with a task of one that is gone; or dies when only the commons know.
    Adopt(Who, Index, bool),
    /// An instance gives a task up.
    GiveUp(Who, Index),
    /// An instance dies, and its heartbeat with it or not.
    Down(Who, bool),
    /// It comes back.
    Up(Who),
    /// The commons lose everything.
    Flush,
}

/// How an answer of the commons comes.
#[derive(Clone, Copy, Debug)]
enum Comes {
    Now,
    Late,
    Never,
}

fn plot() -> impl Strategy<Value = Vec<Act>> {
    let who = || 0..2_usize;
    let which = any::<Index>;
    let comes = prop_oneof![4 => Just(Comes::Now), 2 => Just(Comes::Late), 1 => Just(Comes::Never)];
    let act = prop_oneof![
        30 => (who(), super::op()).prop_map(|(who, op)| Act::Own(who, op)),
        16 => who().prop_map(|who| Act::Own(who, Op::Heal)),
        24 => (who(), which(), host::moved(), proptest::bool::weighted(0.8)).prop_map(|(who, task, moved, told)| Act::Turn(who, task, moved, told)),
        16 => (who(), which(), comes).prop_map(|(who, lock, comes)| Act::Claim(who, lock, comes)),
        4 => which().prop_map(Act::Answer),
        6 => who().prop_map(Act::Sync),
        6 => (who(), which(), proptest::bool::weighted(0.9)).prop_map(|(who, task, told)| Act::Adopt(who, task, told)),
        6 => (who(), which()).prop_map(|(who, task)| Act::Own(who, Op::Task(task, Wish::Retry))),
        2 => (who(), which()).prop_map(|(who, task)| Act::GiveUp(who, task)),
        2 => (who(), proptest::bool::weighted(0.7)).prop_map(|(who, gone)| Act::Down(who, gone)),
        6 => who().prop_map(Act::Up),
    ];
    let flush = proptest::option::weighted(0.2, any::<Index>());
    (shape(), shape(), any::<Index>(), prop::collection::vec(act, 0..200), flush).prop_map(|(one, other, only, acts, flush)| {
        let began = [one, other].into_iter().enumerate().flat_map(|(who, shape)| began(who, shape, only));
        let mut plot: Vec<Act> = began.chain(acts).collect();
        if let Some(place) = flush {
            plot.insert(place.index(plot.len() + 1), Act::Flush);
        }
        plot
    })
}

/// An instance begins a plan.
fn began(who: Who, shape: Shape, only: Index) -> [Act; 4] {
    let start = Op::Plan(only, Verb::Start, None);
    [Op::Create(0, shape), Op::Heal, start, Op::Heal].map(|op| Act::Own(who, op))
}

/// What the commons have said of a claim.
#[derive(Clone, Debug)]
struct Said {
    to: Who,
    tenant: TenantId,
    task: RunId,
    asked: Seq,
    claimed: Claimed,
    /// They have lost everything since.
    is_lost: bool,
}

struct Pair {
    of: [Rollouts; 2],
    up: [bool; 2],
    beats: [bool; 2],
    commons: Commons,
    late: Vec<Said>,
    /// Tasks of which a person has discarded stages.
    discarded: BTreeSet<(Who, RunId)>,
    /// Whoever has not told the commons what it has since they lost everything.
    unfilled: [bool; 2],
    flushed: bool,
}

fn named(who: Who) -> Option<InstanceId> {
    InstanceId::new(format!("i-{who}")).ok()
}

/// How many stages a task has done, as its checkpoint says.
fn done(run: &Run) -> usize {
    run.task()
        .and_then(|task| task.checkpoint.as_ref())
        .map_or(0, |checkpoint| checkpoint.index as usize + 1)
}

impl Pair {
    fn new() -> Self {
        let one = || Rollouts { shares: true, ..Rollouts::new() };
        Pair {
            of: [one(), one()],
            up: [true; 2],
            beats: [true; 2],
            commons: Commons::default(),
            late: Vec::new(),
            discarded: BTreeSet::new(),
            unfilled: [false; 2],
            flushed: false,
        }
    }

    fn now(&self) -> steadfast_kernel::Timestamp {
        self.of[0].now.max(self.of[1].now)
    }

    /// Asks an entity of an instance something that must not be refused.
    fn ask(&mut self, who: Who, id: &EntityId, command: Command) -> Result<Decision, TestCaseError> {
        let asked = format!("{command:?}");
        let decided = self.of[who].ask(id, command, None)?;
        decided.map_err(|refusal| TestCaseError::fail(format!("{asked} of {id}: {refusal}")))
    }

    fn happens(&mut self, act: &Act) -> TestCaseResult {
        let now = self.now().saturating_add(Duration::from_millis(1));
        self.of.iter_mut().for_each(|one| one.now = now);
        match act {
            Act::Own(who, _) | Act::Turn(who, ..) | Act::Claim(who, ..) | Act::Sync(who) | Act::Adopt(who, ..) | Act::GiveUp(who, _)
                if !self.up[*who] => {}
            Act::Own(who, op) => self.own(*who, op)?,
            Act::Turn(who, which, moved, told) => {
                let has_begun = |run: &&Run| run.task().is_some_and(|task| task.started);
                if let Some(task) = chosen(which, self.of[*who].runs().filter(has_begun)).map(|run| run.id.clone()) {
                    self.turn(*who, &task, *moved, *told)?;
                }
            }
            Act::Claim(who, which, comes) => {
                let wanted: Vec<_> = self.wanted(*who);
                if let Some(tenant) = chosen(which, wanted.iter()) {
                    self.claim(*who, tenant, *comes)?;
                }
            }
            Act::Answer(which) => {
                let many = self.late.len();
                if many > 0 {
                    let said = self.late.remove(which.index(many));
                    self.hears(said)?;
                }
            }
            Act::Sync(who) => self.sync(*who)?,
            Act::Adopt(who, which, told) => {
                let free = self.adoptable(*who);
                if let Some(task) = chosen(which, free.iter()) {
                    self.adopt(*who, task, *told)?;
                }
            }
            Act::GiveUp(who, which) => {
                if let Some(task) = chosen(which, self.of[*who].runs()).map(|run| run.id.clone()) {
                    self.give_up(*who, &task)?;
                }
            }
            Act::Down(who, gone) => {
                self.dies(*who);
                self.beats[*who] &= !gone;
            }
            Act::Up(who) => self.comes_back(*who)?,
            Act::Flush => {
                self.commons = Commons::default();
                (self.unfilled, self.flushed) = ([true; 2], true);
                self.late.iter_mut().for_each(|said| said.is_lost = true);
            }
        }
        Ok(())
    }

    fn dies(&mut self, who: Who) {
        self.up[who] = false;
        self.late.retain(|said| said.to != who);
    }

    fn comes_back(&mut self, who: Who) -> TestCaseResult {
        if !self.up[who] {
            self.of[who].die()?;
            (self.up[who], self.beats[who]) = (true, true);
        }
        Ok(())
    }

    /// What happens to an instance that is alone, but for turns. Its plans have names of their own.
    fn own(&mut self, who: Who, op: &Op) -> TestCaseResult {
        let before: BTreeMap<RunId, usize> = self.of[who].runs().map(|run| (run.id.clone(), done(run))).collect();
        match op {
            Op::Turn(..) => return Ok(()),
            Op::Create(plan, shape) => drop(self.of[who].happens(&Op::Create(plan + 10 * who, shape.clone()))?),
            Op::Crash => {
                self.dies(who);
                self.comes_back(who)?;
            }
            op => drop(self.of[who].happens(op)?),
        }
        let discarded = self.of[who].runs().filter(|run| before.get(&run.id).is_some_and(|before| done(run) < *before));
        self.discarded.extend(discarded.map(|run| (who, run.id.clone())));
        Ok(())
    }

    /// Only who has the lock, as the commons say, and owns the task does anything; and it knows that before it does.
    fn turn(&mut self, who: Who, task: &RunId, moved: Move, told: bool) -> TestCaseResult {
        self.sync_task(who, task)?;
        let Some(run) = self.of[who].run(task).filter(|run| self.has_its_lock(who, run)) else { return Ok(()) };
        let before = done(run);
        let turn = host::turn(run, moved, self.of[who].now);
        let _refused_or_not = self.of[who].ask(&task.into(), turn, None)?;
        let after = self.of[who].run(task).map_or(0, done);
        if after < before {
            self.discarded.insert((who, task.clone())); // it is being undone
        }
        if told { self.sync_task(who, task) } else { Ok(()) }
    }

    fn has_its_lock(&self, who: Who, run: &Run) -> bool {
        let lease = run.task().and_then(|task| task.lock.as_ref());
        let (Some(lease), Some(options)) = (lease, run.task_options()) else { return true }; // whatever it says is refused
        self.commons
            .holding(&options.tenant, self.now())
            .is_some_and(|there| (there.instance, &there.task, there.fence) == (who, &run.id, lease.fence))
    }

    /// The tenants whose locks somebody of that instance waits for, and of which nothing was said yet.
    fn wanted(&self, who: Who) -> Vec<TenantId> {
        let is_claimed = |lock: &&Lock| self.late.iter().any(|said| said.to == who && said.tenant == lock.tenant);
        let wanted = self.of[who].locks().filter(|lock| lock.wanted().is_some() && !is_claimed(lock));
        wanted.map(|lock| lock.tenant.clone()).collect()
    }

    fn claim(&mut self, who: Who, tenant: &TenantId, comes: Comes) -> TestCaseResult {
        let Some(task) = self.of[who].lock(tenant).and_then(Lock::wanted).map(|first| first.task.clone()) else { return Ok(()) };
        self.sync_task(who, &task)?;
        if self.of[who].run(&task).is_some_and(Run::is_handed_over) {
            return Ok(()); // it leaves the line
        }
        let Some(lock) = self.of[who].lock(tenant) else { return Ok(()) };
        let Some(first) = lock.wanted().cloned() else { return Ok(()) };
        let (above, now) = (lock.fence, self.now());
        let fence = self.commons.next_fence(tenant, above);
        let new = Holding { instance: who, task: task.clone(), fence, until: now.saturating_add(first.lease) };
        let claimed = match self.commons.take(tenant, new, None, now) {
            Ok(()) => Claimed::Granted { fence: Some(fence) },
            Err(other) => Claimed::Held { holder: format!("{}@{}", other.task, other.instance) },
        };
        let said = Said { to: who, tenant: tenant.clone(), task, asked: first.asked, claimed, is_lost: false };
        match comes {
            Comes::Now => self.hears(said),
            Comes::Late => {
                self.late.push(said);
                Ok(())
            }
            Comes::Never => Ok(()),
        }
    }

    /// A claim is settled; what nobody wants any more is given back.
    fn hears(&mut self, said: Said) -> TestCaseResult {
        let Said { to, tenant, task, asked, claimed, is_lost } = said;
        self.unfilled[to] |= is_lost;
        let settle = Command::SettleClaim(SettleClaim { task, asked, claimed: claimed.clone() });
        let decision = self.ask(to, &EntityId::Lock(tenant.clone()), settle)?;
        let is_taken = decision.entries.iter().any(|entry| entry.event.kind() == "LOCK_ACQUIRED");
        if let (Claimed::Granted { fence: Some(fence) }, false) = (claimed, is_taken) {
            self.commons.release(&tenant, to, fence);
        }
        Ok(())
    }

    /// The commons hear of everything that an instance has, and it hears of what it has no more.
    fn sync(&mut self, who: Who) -> TestCaseResult {
        let tasks: Vec<RunId> = self.of[who].runs().map(|run| run.id.clone()).collect();
        tasks.iter().try_for_each(|task| self.sync_task(who, task))?;
        let locks: Vec<TenantId> = self.of[who].locks().map(|lock| lock.tenant.clone()).collect();
        locks.iter().try_for_each(|tenant| self.sync_lock(who, tenant))?;
        let holds = |tenant: &TenantId, fence| self.of[who].lock(tenant).and_then(Lock::held).is_some_and(|lease| lease.fence == fence);
        let is_on_its_way = |tenant: &TenantId| self.late.iter().any(|said| said.to == who && said.tenant == *tenant);
        let left = self
            .commons
            .held()
            .filter(|(tenant, there)| there.instance == who && !holds(tenant, there.fence) && !is_on_its_way(tenant));
        let left: Vec<_> = left.map(|(tenant, there)| (tenant.clone(), there.fence)).collect();
        left.iter().for_each(|(tenant, fence)| self.commons.release(tenant, who, *fence));
        self.unfilled[who] = false;
        Ok(())
    }

    fn sync_task(&mut self, who: Who, id: &RunId) -> TestCaseResult {
        let Some(run) = self.of[who].run(id).filter(|run| !run.is_handed_over()) else { return Ok(()) };
        let (Some(task), Some(options)) = (run.task(), run.task_options()) else { return Ok(()) };
        let is_over = matches!(run.task_status(), Some(TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::RolledBack));
        let (fence, started_at, options) = (task.fence, task.started_at, options.clone());
        let new = Owned { owner: Some(who), fence, done: done(run), is_over, started_at, options };
        let there = self.commons.tasks.get(id).filter(|there| there.owner == Some(who)).map_or(0, |there| there.done);
        let is_less = new.done < there;
        match self.commons.own(id, new) {
            Ok(()) => {
                let may_be = self.discarded.remove(&(who, id.clone())) || self.flushed;
                prop_assert!(!is_less || may_be, "the checkpoint of {} goes back", id);
                Ok(())
            }
            Err(owner) => {
                let to = owner.and_then(named);
                self.ask(who, &id.into(), Command::HandOverRun(HandOver { to, origin: ada() })).map(drop)
            }
        }
    }

    /// The higher fence wins; the commons do if they are equal.
    fn sync_lock(&mut self, who: Who, tenant: &TenantId) -> TestCaseResult {
        let Some(lease) = self.of[who].lock(tenant).and_then(Lock::held).cloned() else { return Ok(()) };
        let now = self.now();
        let there = self.commons.holding(tenant, now).cloned();
        let mine = Holding { instance: who, task: lease.task.clone(), fence: lease.fence, until: lease.expires_at };
        let is_mine = |there: &Holding| (there.instance, &there.task, there.fence) == (who, &lease.task, lease.fence);
        if let Some(other) = there
            .as_ref()
            .filter(|there| there.task == lease.task && there.instance != who && there.fence >= lease.fence)
        {
            let to = named(other.instance);
            return self.ask(who, &(&lease.task).into(), Command::HandOverRun(HandOver { to, origin: ada() })).map(drop);
        }
        let is_lost = match &there {
            Some(there) if is_mine(there) => false,
            Some(there) => there.fence >= lease.fence,
            None => self.commons.fence(tenant) > lease.fence,
        };
        if is_lost {
            let lost = Command::LoseLock { fence: lease.fence, origin: ada() };
            return self.ask(who, &EntityId::Lock(tenant.clone()), lost).map(drop);
        }
        self.commons.raise(tenant, lease.fence);
        let taken = self.commons.take(tenant, mine, there.as_ref(), now);
        prop_assert!(taken.is_ok(), "the lock of {} is taken back", tenant);
        Ok(())
    }

    /// The tasks that an instance may go on with: their owner is gone, or has given them up, or is itself and does not know.
    fn adoptable(&self, who: Who) -> Vec<RunId> {
        let is_here = |task: &RunId| self.of[who].run(task).is_some_and(|run| !run.is_handed_over());
        let is_free = |(task, there): &(&RunId, &Owned)| match there.owner {
            _ if there.is_over => false,
            None => true,
            Some(owner) if owner == who => !is_here(task),
            Some(owner) => !self.beats[owner],
        };
        let is_locked = |task: &RunId, there: &Owned| {
            self.commons.holding(&there.options.tenant, self.now()).is_some_and(|holding| holding.task != *task)
        };
        let free = self.commons.tasks.iter().filter(is_free).filter(|(task, there)| !is_locked(task, there));
        free.map(|(task, _)| task.clone()).collect()
    }

    fn adopt(&mut self, who: Who, task: &RunId, told: bool) -> TestCaseResult {
        self.sync_task(who, task)?; // it may be one that it had
        let is_here = self.of[who].run(task).is_some_and(|run| !run.is_handed_over());
        let Some(Owned { fence, done, started_at, options, owner, .. }) = self.commons.tasks.get(task).cloned().filter(|_| !is_here) else {
            return Ok(());
        };
        let (now, tenant) = (self.now(), options.tenant.clone());
        let there = self.commons.holding(&tenant, now).cloned();
        let above = there.as_ref().map_or(0, |there| there.fence).max(fence);
        let fence = self.commons.next_fence(&tenant, above);
        let new = Holding { instance: who, task: task.clone(), fence, until: now.saturating_add(options.lease) };
        prop_assert!(self.commons.take(&tenant, new, there.as_ref(), now).is_ok());
        if let Some(owned) = self.commons.tasks.get_mut(task) {
            (owned.owner, owned.fence) = (Some(who), fence);
        }
        if !told {
            self.dies(who);
            return Ok(());
        }
        let alone = !self.of[who].entities.contains_key(&EntityId::Plan(options.plan.clone()));
        let options = RunOptions {
            tenant: Some(tenant.to_string()),
            recovery: Recovery::Manual,
            task: Some(Box::new(options)),
            ..RunOptions::default()
        };
        let (run, input) = (task.clone(), Payload::json("{}"));
        let start = StartRun { run, workflow: workflow("switch"), input, seed: SEED, deadline: None, options };
        let (from, data, done) = (owner.and_then(named), Payload::json("{}"), vec![true; done]);
        let adopt = AdoptRun { start, from, origin: ada(), started_at, fence, done, half_undone: false, data, alone };
        self.ask(who, &task.into(), Command::AdoptRun(Box::new(adopt)))?;
        let run = self.of[who].run(task);
        prop_assert_eq!(run.and_then(Run::task_status), Some(TaskStatus::Interrupted), "{} is adopted", task);
        Ok(())
    }

    /// A task that is not under way is given up: whoever wants it goes on with it.
    fn give_up(&mut self, who: Who, task: &RunId) -> TestCaseResult {
        self.sync_task(who, task)?;
        let may_be = |run: &&Run| !run.is_handed_over() && !is_under_way(run);
        if self.of[who].run(task).filter(may_be).is_none() {
            return Ok(());
        }
        if let Some(owned) = self.commons.tasks.get_mut(task).filter(|owned| owned.owner == Some(who) && !owned.is_over) {
            owned.owner = None;
            self.ask(who, &task.into(), Command::HandOverRun(HandOver { to: None, origin: ada() }))?;
        }
        Ok(())
    }
}

fn play(plot: &[Act]) -> Result<Pair, TestCaseError> {
    let mut pair = Pair::new();
    for act in plot {
        pair.happens(act)?;
        pair.holds()?;
    }
    pair.end()?;
    Ok(pair)
}

proptest! {
    #[test]
    fn tasks_of_two_instances_come_to_their_end_with_one_holder_of_each_lock(plot in plot()) {
        play(&plot)?;
    }
}

#[test]
fn the_plots_reach_everything_that_instances_do_together() {
    let (mut seen, mut statuses) = (BTreeSet::new(), BTreeSet::new());
    let mut runner = TestRunner::deterministic();
    for _ in 0..150 {
        let plot = plot().new_tree(&mut runner).expect("a plot").current();
        let pair = play(&plot).expect("every fact holds");
        for one in &pair.of {
            seen.extend(one.journals.values().flatten().map(|entry| entry.event.kind()));
            statuses.extend(one.runs().filter_map(Run::task_status));
        }
    }
    let together = ["TASK_ADOPTED", "TASK_HANDED_OVER", "LOCK_ACQUIRED", "LOCK_LOST", "LOCK_BROKEN", "TASK_RECALLED", "PLAN_COMPLETED"];
    assert!(together.iter().all(|kind| seen.contains(kind)), "{seen:?}");
    assert!([TaskStatus::HandedOver, TaskStatus::Completed].iter().all(|status| statuses.contains(status)), "{statuses:?}");
}
