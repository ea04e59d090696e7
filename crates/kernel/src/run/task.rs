//! A run that is a task: it begins when its plan lets it and it has its tenant's lock, says how far it has come, and is undone only if a person wants it.
//!
//! ```text
//!   ready --AdmitTask--> ready: TASK_ADMITTED, and it asks for the lock | running: TASK_ADMITTED, TASK_STARTED, if it has kept it
//!   ready --LockGranted--> running: LOCK_ACQUIRED, TASK_STARTED · ready --LockRefused--> cancelled
//!   ready --RecallTask--> ready: TASK_RECALLED · ready, let begin by its plan --InterruptRun--> ready: TASK_RECALLED
//!   open --LockLost--> interrupted: LOCK_LOST, RUN_INTERRUPTED · ended --LockLost--> ended: LOCK_LOST
//!   any --OperateTask--> as the command that it stands for
//!   – or handed over --AdoptRun--> interrupted · any --HandOverRun--> handed over: `adopt`
//! ```
//!
//! Tested by `crates/crash-test/tests/it/plans.rs`.
//! Tested by `crates/sdk/tests/it/plans/flow.rs`.

mod fold;

pub(super) use fold::{begin_again, end, may_come, may_follow, record, record_done, refused_stage, undo};

use super::evolve::evolve;
use super::turn::disarm_all;
use super::{Decision, Ended, Open, Phase, Run, Stage, Status, Verb, cancel, pause, roll_back};
use crate::{
    CancelRun, Checkpoint, Effect, EntityId, Entry, Envelope, Epoch, Event, InstanceId, Lease, Message, OnFailure, Origin, Refusal, RunId,
    Seq, TaskChanged, TaskEvent, TaskOptions, TaskStatus, Timestamp, Wants,
};
use serde::{Deserialize, Serialize};

/// What is known of a run that is a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its plan lets it begin.
    pub admitted: bool,
    /// The sequence of the event that says so.
    pub asked: Seq,
    /// It has begun in this life.
    pub started: bool,
    /// When it first began.
    pub started_at: Option<Timestamp>,
    /// Its tenant's lock, while it has it.
    pub lock: Option<Lease>,
    /// A stage has begun.
    pub staged: bool,
    /// The sequences of the events that say that a stage is done, in order.
    pub completed: Vec<Seq>,
    /// Where a retry goes on from.
    pub checkpoint: Option<Checkpoint>,
    /// A person wants what it did to be undone.
    pub rolls_back: bool,
    /// The number of its last holding of the lock, or that under which it was adopted; 0 before the first.
    #[serde(default)]
    pub fence: u64,
    /// What another instance has done of it, if that still counts.
    #[serde(default)]
    pub adopted: Option<Checkpoint>,
    /// What was done elsewhere is being put on record.
    #[serde(default)]
    pub adopting: bool,
    /// Its plan is not here: it begins when a person says so.
    #[serde(default)]
    pub alone: bool,
    /// Another instance may have undone some of it.
    #[serde(default)]
    pub half_undone: bool,
    /// What was done when its undoing began: whoever takes it up in between has all of that undone.
    #[serde(default)]
    pub undoing: Option<Checkpoint>,
    /// Another instance goes on with it.
    #[serde(default)]
    pub handed_over: Option<HandedOver>,
}

/// Another instance goes on with a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandedOver {
    /// Which; whoever wants it, if there is none.
    pub to: Option<InstanceId>,
}

impl Run {
    /// What makes it a task.
    pub fn task_options(&self) -> Option<&TaskOptions> {
        self.options.task.as_deref()
    }

    /// What is known of it as a task.
    pub fn task(&self) -> Option<&Task> {
        self.task.as_deref()
    }

    /// True for a task that has not begun in this life.
    pub(super) fn is_held_back(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.started)
    }

    /// True for a task that its plan has let begin and that has no lock yet.
    pub(super) fn is_let_begin(&self) -> bool {
        let is_let = |task: &Task| task.admitted && !task.started && task.lock.is_none() && !task.rolls_back;
        self.is_ready() && self.task().is_some_and(is_let)
    }

    /// True for a task that waits for its turn, and may have it.
    fn waits_for_its_turn(&self) -> bool {
        let is_interrupted = self.open().is_some_and(|open| open.interrupted.is_some());
        self.is_ready() && !is_interrupted && self.task().is_some_and(|task| !task.admitted)
    }

    /// True for a task that waits for its turn while there is no plan here to give it one.
    pub(super) fn is_let_begin_by_nobody(&self) -> bool {
        self.waits_for_its_turn() && self.task().is_some_and(|task| task.alone && !task.rolls_back)
    }

    /// True if another instance goes on with it.
    pub fn is_handed_over(&self) -> bool {
        self.task().is_some_and(|task| task.handed_over.is_some())
    }

    /// The public status of a task; nothing if it is none.
    pub fn task_status(&self) -> Option<TaskStatus> {
        let task = self.task()?;
        Some(match (&self.phase, self.status()) {
            _ if task.handed_over.is_some() => TaskStatus::HandedOver,
            (_, Status::Interrupted) => TaskStatus::Interrupted,
            (Phase::Open(Open { paused: Some(_), in_flight, .. }), _) if *in_flight > 0 && task.started => match task.rolls_back {
                true => TaskStatus::RollingBack,
                false => TaskStatus::Running, // it pauses at the end of its stage
            },
            (_, Status::Paused) => TaskStatus::Paused,
            (Phase::Open(_), _) if task.rolls_back => TaskStatus::RollingBack,
            (_, Status::Compensating) => TaskStatus::RollingBack,
            (_, Status::Ready) if task.admitted => TaskStatus::Waiting,
            (_, Status::Ready) => TaskStatus::Pending,
            (_, Status::Running) => TaskStatus::Running,
            (_, Status::Waiting) => TaskStatus::Waiting,
            (_, Status::Completed) => TaskStatus::Completed,
            (_, Status::Cancelled) if task.rolls_back => TaskStatus::RolledBack,
            (_, Status::Cancelled) => TaskStatus::Cancelled,
            (_, Status::Failed) if task.rolls_back => TaskStatus::RollbackFailed,
            (_, Status::Failed) => TaskStatus::Failed,
        })
    }

    /// The stage that it is at, or was at when it stopped, counted from 0; nothing before the first one.
    pub fn stage_at(&self) -> Option<u32> {
        let (task, options) = (self.task()?, self.task_options()?);
        let last = options.stages.len().saturating_sub(1);
        task.staged.then(|| u32::try_from(task.completed.len().min(last)).unwrap_or(u32::MAX))
    }

    /// True for a task that was under way before and waits for its turn once more.
    pub(super) fn waits_again(&self) -> bool {
        self.is_ready() && self.task().is_some_and(|task| task.started_at.is_some() && !task.admitted && !task.rolls_back)
    }

    /// True for a task of which something may be undone, though not all of it: where it stands, nobody can go on from.
    pub(super) fn is_half_undone(&self) -> bool {
        let elsewhere = self.task().is_some_and(|task| task.half_undone);
        let undone = matches!(self.records().stage, Stage::Compensating { .. }) || elsewhere;
        undone && self.task_status().is_some_and(|status| status != TaskStatus::RolledBack)
    }

    /// Why it cannot be done, in the words of what it is.
    pub(super) fn refuse(&self, what_to_do: &'static str) -> Refusal {
        match self.task_status() {
            Some(status) => Refusal::TaskStatus { task: self.id.clone(), status, what_to_do: what_to_do.into() },
            None => Refusal::WrongStatus { run: self.id.clone(), status: self.status(), what_to_do: what_to_do.into() },
        }
    }

    /// It has ended.
    pub(super) fn over(&self) -> Refusal {
        match self.task {
            Some(_) if self.is_handed_over() => self.refuse(ELSEWHERE),
            Some(_) => self.refuse("it has ended; retry it, or roll it back"),
            None => Refusal::Ended { run: self.id.clone() },
        }
    }

    fn plan(&self) -> Option<EntityId> {
        Some(EntityId::Plan(self.task_options()?.plan.clone()))
    }

    fn tenant_lock(&self) -> Option<EntityId> {
        Some(EntityId::Lock(self.task_options()?.tenant.clone()))
    }
}

/// What it tells its plan and its lock. `run` is the state before the entry; for the first entry, the one that it begins.
pub(super) fn said(run: &Run, entry: &Entry) -> Vec<(EntityId, Message)> {
    let (Some(task), Some(options), Some(plan), Some(lock)) = (run.task(), run.task_options(), run.plan(), run.tenant_lock()) else {
        return Vec::new();
    };
    let now = entry.heard.as_ref().filter(|heard| heard.from == plan).map(|heard| heard.seq);
    let heard = now.or_else(|| run.heard.get(&plan).copied()).unwrap_or_default();
    let tell = |status, wants| vec![(plan.clone(), Message::TaskChanged(TaskChanged { epoch: entry.epoch, status, wants, heard }))];
    let release = || {
        let fence = task.lock.as_ref().map(|lease| lease.fence);
        let asked = fence.is_some() || (task.admitted && !task.started);
        asked.then(|| (lock.clone(), Message::ReleaseLock { fence })).into_iter().collect::<Vec<_>>()
    };
    let under_way = if task.rolls_back { TaskStatus::RollingBack } else { TaskStatus::Running };
    match &entry.event {
        Event::RunStarted { .. } => tell(TaskStatus::Pending, Wants::Turn),
        Event::RunRetried(_) if run.is_handed_over() => Vec::new(), // it is adopted again
        Event::RunRetried(_) => tell(TaskStatus::Pending, Wants::TurnAsked),
        Event::RunInterrupted => tell(TaskStatus::Interrupted, Wants::Nothing),
        Event::RunCancelRequested { undo: true, .. } => {
            let wants = if run.is_held_back() && !task.admitted { Wants::TurnAsked } else { Wants::Nothing };
            tell(TaskStatus::RollingBack, wants)
        }
        Event::RunCompleted { .. } => [release(), tell(TaskStatus::Completed, Wants::Nothing)].concat(),
        Event::RunFailed { .. } => {
            let status = if task.rolls_back { TaskStatus::RollbackFailed } else { TaskStatus::Failed };
            let released = if options.on_failure == OnFailure::Release { release() } else { Vec::new() };
            [released, tell(status, Wants::Nothing)].concat()
        }
        Event::RunCancelled if run.is_handed_over() => Vec::new(), // that was said
        Event::RunCancelled => {
            let status = if task.rolls_back { TaskStatus::RolledBack } else { TaskStatus::Cancelled };
            [release(), tell(status, Wants::Nothing)].concat()
        }
        Event::Task(event) => match &**event {
            TaskEvent::Admitted { .. } if task.lock.is_none() => {
                let (plan, lease, waits) = (options.plan.clone(), options.lease, options.conflict == crate::Conflict::Refuse);
                vec![(lock, Message::AcquireLock { epoch: entry.epoch, asked: entry.seq, plan, lease, waits })]
            }
            TaskEvent::Recalled { .. } => {
                let released = if task.lock.is_none() { release() } else { Vec::new() };
                [released, tell(TaskStatus::Pending, Wants::Turn)].concat()
            }
            TaskEvent::Started => tell(under_way, Wants::Nothing),
            TaskEvent::HandedOver { .. } => [release(), tell(TaskStatus::HandedOver, Wants::Nothing)].concat(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Its plan lets it begin. If it has kept its lock it does; otherwise it asks for it.
pub(super) fn admit(run: &Run, epoch: Epoch, now: Timestamp) -> Option<Decision> {
    let task = run.task().filter(|_| run.epoch == epoch && run.waits_for_its_turn())?;
    let admitted = TaskEvent::Admitted { epoch };
    let started = task.lock.is_some().then_some(TaskEvent::Started);
    begin(run, [admitted].into_iter().chain(started), now)
}

/// A task whose plan is not here waits for nobody's turn: it is let begin in the same commit in which it asks.
pub(super) fn let_begin(run: &Run, mut decision: Decision, now: Timestamp) -> Decision {
    let next = decision
        .entries
        .iter()
        .try_fold(run.clone(), |run, entry| evolve(&run.id.clone(), Some(run), entry));
    let alone = next.ok().filter(|next| next.task().is_some_and(|task| task.alone) && !decision.entries.is_empty());
    if let Some(Decision { entries, effects }) = alone.and_then(|next| admit(&next, next.epoch, now)) {
        decision.entries.extend(entries);
        decision.effects.extend(effects);
    }
    decision
}

/// Its plan wants it to wait for its turn again. If it has begun meanwhile, it pauses at the end of its stage.
pub(super) fn recall(run: &Run, epoch: Epoch, now: Timestamp) -> Option<Decision> {
    let task = run.task().filter(|task| run.epoch == epoch && !task.rolls_back)?; // what is to be undone goes on
    if task.started {
        let origin = Origin { by: Some("the plan".into()), why: Some("the plan was paused when it began".into()), command: None };
        return pause::pause(run, origin, now).ok();
    }
    run.task().filter(|task| run.is_ready() && task.admitted)?;
    begin(run, [TaskEvent::Recalled { epoch }], now)
}

/// Its process has died before it had the lock: it waits for its turn again, and does not want the lock if it comes now. One whose plan is not here would
/// wait for ever: a person decides.
pub(super) fn interrupt(run: &Run, now: Timestamp) -> Option<Decision> {
    let mut decision = run.is_let_begin().then(|| begin(run, [TaskEvent::Recalled { epoch: run.epoch }], now))??;
    if run.task().is_some_and(|task| task.alone) {
        decision.entries.push(run.entry(1, now, Some(0), Event::RunInterrupted));
        decision.effects.push(Effect::Close);
    }
    Some(decision)
}

/// It has the lock. One that it does not want, or not any more, it gives back.
pub(super) fn locked(run: &Run, from: &EntityId, (lease, asked): (Lease, Seq), now: Timestamp) -> Option<Decision> {
    let task = run.task().filter(|_| run.tenant_lock().as_ref() == Some(from))?;
    if task.admitted && run.is_ready() && task.asked == asked {
        return begin(run, [TaskEvent::LockAcquired(lease), TaskEvent::Started], now);
    }
    if task.lock.as_ref().is_some_and(|held| held.fence < lease.fence) {
        return begin(run, [TaskEvent::LockAcquired(lease)], now);
    }
    let message = Message::ReleaseLock { fence: Some(lease.fence) };
    let held = task.lock.as_ref().is_some_and(|held| held.fence == lease.fence);
    (!held).then(|| bounce(&run.id, from.clone(), message))
}

/// These events; if it is ready no more after them, it begins.
fn begin(run: &Run, events: impl IntoIterator<Item = TaskEvent>, now: Timestamp) -> Option<Decision> {
    let entries: Vec<Entry> = events
        .into_iter()
        .enumerate()
        .map(|(offset, event)| run.entry(offset, now, None, Event::Task(Box::new(event))))
        .collect();
    let next = entries.iter().try_fold(run.clone(), |run, entry| evolve(&run.id.clone(), Some(run), entry)).ok()?;
    let begins = run.is_ready() && !next.is_ready() && next.open().is_some_and(|open| !open.stands_still());
    let arm = next.timers().into_iter().map(Effect::Arm).filter(|_| begins); // what an earlier life has left
    let effects = arm.chain(begins.then_some(Effect::Host)).collect();
    Some(Decision { entries, effects })
}

/// Another task has the lock, and this one does not wait for it.
pub(super) fn refused(run: &Run, asked: Seq, holder: &str, now: Timestamp) -> Option<Decision> {
    run.task().filter(|task| task.asked == asked && run.is_ready() && task.admitted)?;
    let why = format!("its tenant is locked by {holder}, and the plan goes on without such tenants");
    let origin = Origin { by: Some("the plan".into()), why: Some(why), command: None };
    cancel::decide(run, CancelRun { origin, blocked: false }, now).ok()
}

/// Its lock is not its own any more: what it was doing does not count, and a person decides.
pub(super) fn lock_lost(run: &Run, fence: u64, origin: Origin, now: Timestamp) -> Option<Decision> {
    let task = run.task().filter(|task| task.lock.as_ref().is_some_and(|lock| lock.fence == fence))?;
    let lost = run.entry(0, now, None, Event::Task(Box::new(TaskEvent::LockLost { fence, origin })));
    let is_under_way = task.started && run.open().is_some_and(|open| open.interrupted.is_none());
    if !is_under_way {
        return Some(Decision { entries: vec![lost], effects: Vec::new() });
    }
    let interrupted = run.entry(1, now, Some(0), Event::RunInterrupted);
    Some(Decision { entries: vec![lost, interrupted], effects: disarm_all(run).into_iter().chain([Effect::Close]).collect() })
}

/// Whether the lock is still to be its own: not if it seems to be at work and has not come any further.
pub(super) fn confirm(id: &RunId, run: Option<&Run>, from: &EntityId, fence: u64, seen: Seq) -> Decision {
    let holds = |run: &&Run| run.task().is_some_and(|task| task.lock.as_ref().is_some_and(|lock| lock.fence == fence));
    let is_stuck = |run: &Run| run.status() == Status::Running && run.seq <= seen;
    let message = match run.filter(holds) {
        Some(run) if !is_stuck(run) => Message::RenewLock { fence, seen: run.seq },
        _ => Message::DenyLock { fence },
    };
    bounce(id, from.clone(), message)
}

/// What its plan wants of all of its tasks. It is told where this one stands if nothing comes of it.
pub(super) fn operate(run: &Run, (from, heard): (&EntityId, u64), verb: Verb, origin: Origin, now: Timestamp) -> Option<Decision> {
    let status = run.task_status()?;
    let decided = match verb {
        _ if run.is_handed_over() => Err(run.refuse(ELSEWHERE)),
        Verb::Pause if run.is_held_back() => return None, // it is recalled
        Verb::Pause => return pause::pause(run, origin, now).ok(),
        Verb::Resume => return pause::resume(run, origin, now).ok(),
        Verb::Cancel => cancel::decide(run, CancelRun { origin, blocked: false }, now),
        Verb::RollBack => roll_back::decide(run, origin, now),
        Verb::Start | Verb::Terminate | Verb::Retry => return None,
    };
    let changed = TaskChanged { epoch: run.epoch, status, wants: Wants::Nothing, heard };
    let told = || bounce(&run.id, from.clone(), Message::TaskChanged(changed));
    Some(decided.ok().filter(|decision| !decision.entries.is_empty()).unwrap_or_else(told))
}

/// The run of that id is not the task that is to begin, or it was removed: its plan has to know that nothing will come of it.
pub(super) fn taken(id: &RunId, from: &EntityId, heard: u64) -> Decision {
    let changed = TaskChanged { epoch: 0, status: TaskStatus::Failed, wants: Wants::Nothing, heard };
    bounce(id, from.clone(), Message::TaskChanged(changed))
}

fn bounce(id: &RunId, to: EntityId, message: Message) -> Decision {
    let envelope = Envelope { from: EntityId::from(id), seq: 0, to, message };
    Decision { entries: Vec::new(), effects: vec![Effect::Bounce(Box::new(envelope))] }
}

/// What can be done with a task that another instance goes on with.
pub(super) const ELSEWHERE: &str = "another instance goes on with it: ask there";

/// True for a task that has failed, and that a person may still call off.
pub(super) fn may_be_called_off(run: &Run) -> bool {
    run.task.is_some() && matches!(&run.phase, Phase::Ended(Ended { outcome: Err(_), cancelled: false, .. }, _))
}

/// True while what it did is being undone.
pub(super) fn is_being_undone(run: &Run) -> bool {
    run.open().is_some_and(|open| matches!(open.stage, Stage::Compensating { .. }))
}
