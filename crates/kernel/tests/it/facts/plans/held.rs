//! What must always hold among plans, tasks and locks.

use super::*;
use steadfast_kernel::plan::Phase;
use steadfast_kernel::{Entry, Event, LockEvent, Message, RunId, Seq, TaskEvent};

impl Rollouts {
    pub(super) fn holds(&self) -> TestCaseResult {
        for plan in self.plans() {
            let most = plan.created.settings.max_concurrency as usize;
            let begun = self.tasks(plan).filter(|run| is_under_way(run)).count();
            prop_assert!(plan.admitted.len() <= most, "{} lets {} of {} begin", plan.id, plan.admitted.len(), most);
            prop_assert!(begun <= most, "{} tasks of {} are under way, of {}", begun, plan.id, most);
            counts_agree(plan)?;
        }
        for lock in self.locks() {
            prop_assert!(self.shares || lock.holder.is_some() || lock.line.is_empty(), "{} is free and somebody waits", lock.tenant);
        }
        for run in self.runs() {
            self.runs_with_its_lock(run)?;
        }
        let armed: BTreeMap<_, _> = self.armed.iter().map(|(place, timer)| (place, timer.revision)).collect();
        let timers = self.timers();
        let expected: BTreeMap<_, _> = timers.iter().map(|(place, timer)| (place, timer.revision)).collect();
        prop_assert_eq!(armed, expected, "timers are a fold of the entries");
        Ok(())
    }

    fn tasks<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a Run> {
        plan.tasks.iter().filter_map(|task| self.run(&task.run))
    }

    /// A task is under way only with a lock in its hand, which is its own unless it is about to hear that it is not.
    fn runs_with_its_lock(&self, run: &Run) -> TestCaseResult {
        let (Some(task), Some(options)) = (run.task(), run.task_options()) else { return Ok(()) };
        if is_under_way(run) && task.started {
            prop_assert!(task.lock.is_some(), "{} is under way without its lock", run.id);
        }
        let Some(lease) = &task.lock else { return Ok(()) };
        let held = self.lock(&options.tenant).and_then(Lock::held);
        let is_its_own = held.is_some_and(|held| held.task == run.id && held.fence == lease.fence);
        let news = self
            .outbox
            .get(&EntityId::Lock(options.tenant.clone()))
            .into_iter()
            .flatten()
            .any(|said| match &said.message {
                Message::LockLost { fence, .. } => *fence == lease.fence,
                Message::LockGranted { lease: other, .. } => other.task == run.id && other.fence > lease.fence,
                _ => false,
            });
        prop_assert!(is_its_own || news, "{} believes to have the lock of {}, which {:?} has", run.id, options.tenant, held);
        Ok(())
    }

    /// What a task has asked for once, it is given once: a message that comes again brings nobody back.
    fn requests_count_once(&self, lock: &Lock) -> TestCaseResult {
        let mut seen = BTreeSet::new();
        for entry in &self.journals[&EntityId::Lock(lock.tenant.clone())] {
            if let Event::Lock(event) = &entry.event
                && let LockEvent::Requested(waiter) = &**event
            {
                prop_assert!(
                    seen.insert((&waiter.task, waiter.asked)),
                    "{} asks twice for {} by {}",
                    waiter.task,
                    lock.tenant,
                    waiter.asked
                );
            }
        }
        Ok(())
    }

    fn fences_rise(&self, lock: &Lock) -> TestCaseResult {
        let journal = &self.journals[&EntityId::Lock(lock.tenant.clone())];
        let (mut last, mut holder) = (0, None);
        for entry in journal {
            let Event::Lock(event) = &entry.event else { continue };
            match &**event {
                LockEvent::Acquired(lease) => {
                    prop_assert!(lease.fence > last && holder.is_none(), "two holders of {}", lock.tenant);
                    (last, holder) = (lease.fence, Some(&lease.task));
                }
                LockEvent::Released { fence: Some(_), .. } | LockEvent::Lost { .. } | LockEvent::Broken { .. } => holder = None,
                LockEvent::Requested(waiter) if holder == Some(&waiter.task) => holder = None,
                LockEvent::Requested(_)
                | LockEvent::Released { fence: None, .. }
                | LockEvent::Renewed { .. }
                | LockEvent::Suspected { .. }
                | LockEvent::BrokenElsewhere { .. } => {}
            }
        }
        prop_assert_eq!(lock.fence, last);
        prop_assert_eq!(lock.held().map(|lease| &lease.task), holder);
        Ok(())
    }

    /// Within what counts of its journal, stages are done in order and each once; the checkpoint is that of the last one.
    fn stages_go_forward(&self, run: &Run) -> TestCaseResult {
        let Some(task) = run.task() else { return Ok(()) };
        let journal = &self.journals[&EntityId::from(&run.id)];
        let (script, elsewhere) = (steadfast_kernel::run::script(journal.clone()), done_elsewhere(journal));
        let mut done = Vec::new();
        for entry in &script {
            done.extend(elsewhere.get(&entry.seq).map(|index| (*index, entry.seq)));
            if let Event::Task(event) = &entry.event
                && let TaskEvent::StageCompleted { index, .. } = &**event
            {
                prop_assert!(done.last().is_none_or(|(last, _)| last < index), "stage {} of {} is done again", index, run.id);
                done.push((*index, entry.seq));
            }
        }
        let on_record: Vec<_> = done.iter().map(|(_, seq)| *seq).collect();
        prop_assert_eq!(&task.completed, &on_record, "stages of {}", run.id);
        let last = done.last().map(|(index, _)| *index);
        let is_at_the_end = last.is_some_and(|last| last as usize + 1 == host::STAGES.len());
        if let Some(checkpoint) = &task.checkpoint {
            let expected = if is_at_the_end { last.map(|last| last - 1) } else { last };
            prop_assert_eq!(Some(checkpoint.index), expected, "the checkpoint of {}", run.id);
        }
        Ok(())
    }

    /// What whole journals are read for.
    pub(super) fn journals_hold(&self) -> TestCaseResult {
        for (id, entity) in &self.entities {
            a_snapshot_restores_the_state(id, entity)?;
        }
        for lock in self.locks() {
            self.fences_rise(lock)?;
            self.requests_count_once(lock)?;
        }
        for run in self.runs() {
            self.stages_go_forward(run)?;
        }
        Ok(())
    }

    /// When everything was heard, all agree, and nobody waits for what cannot come.
    pub(super) fn holds_when_healed(&self) -> TestCaseResult {
        for plan in self.plans() {
            prop_assert!(plan.silent.is_empty(), "{} waits to hear of {:?}", plan.id, plan.silent);
            for (place, task) in plan.tasks.iter().enumerate() {
                let run = self.run(&task.run).expect("a task that was begun");
                prop_assert_eq!(task.epoch, run.epoch, "the life of {}", &task.run);
                prop_assert!(agree(task.status, run), "{} is {:?}, and its plan knows {:?}", task.run, run.task_status(), task.status);
                prop_assert_eq!(plan.admitted.contains(&place), is_under_way(run), "{} was let begin", &task.run);
                let waits = run.open().is_some_and(|open| open.interrupted.is_none()) && !is_under_way(run);
                prop_assert_eq!(plan.waiting.contains(&place), waits, "{} waits for its turn", &task.run);
            }
            let is_over = plan.tasks.iter().all(|task| task.status.is_final());
            let is_adopted = |status| self.shares && status == TaskStatus::Interrupted; // and a person has not said what becomes of it
            let may_stay = plan.tasks.iter().all(|task| task.status.is_final() || is_adopted(task.status));
            prop_assert!(!matches!(plan.phase, Phase::Ended { .. }) || may_stay, "{} has ended, and a task has not", plan.id);
            let may_end = !matches!(plan.phase, Phase::Ended { .. } | Phase::New);
            prop_assert!(!(may_end && is_over), "all tasks of {} have ended, and it has not", plan.id);
            prop_assert!(plan.phase != Phase::Running || !plan.admitted.is_empty(), "{} is under way, and nothing of it is", plan.id);
        }
        for lock in self.locks() {
            if let Some(held) = lock.held() {
                let run = self.run(&held.task).expect("a holder");
                let mine = run.task().and_then(|task| task.lock.as_ref()).map(|lease| lease.fence);
                prop_assert_eq!(mine, Some(held.fence), "{} has the lock of {} and does not know", &held.task, &lock.tenant);
            }
            for waiter in &lock.line {
                let run = self.run(&waiter.task).expect("who waits");
                let waits = is_under_way(run) && run.is_ready() && run.epoch == waiter.epoch;
                prop_assert!(waits, "{} stands in line for {} and does not want it", waiter.task, lock.tenant);
            }
        }
        for run in self.runs() {
            self.has_or_gets_its_lock(run)?;
        }
        Ok(())
    }

    fn has_or_gets_its_lock(&self, run: &Run) -> TestCaseResult {
        let (Some(task), Some(options)) = (run.task(), run.task_options()) else { return Ok(()) };
        let held = self.lock(&options.tenant).and_then(Lock::held);
        let fence = held.filter(|held| held.task == run.id).map(|held| held.fence);
        prop_assert_eq!(task.lock.as_ref().map(|lease| lease.fence), fence, "{} and the lock of {}", &run.id, &options.tenant);
        if is_under_way(run) && run.is_ready() {
            let waits = |lock: &Lock| lock.line.iter().any(|waiter| waiter.task == run.id);
            prop_assert!(self.lock(&options.tenant).is_some_and(waits), "{} does not stand in line", run.id);
        }
        let keeps =
            matches!(run.task_status(), Some(TaskStatus::Failed | TaskStatus::RollbackFailed)) && options.on_failure == OnFailure::Keep;
        let has_ended = run.task_status().is_some_and(TaskStatus::is_final);
        prop_assert!(!has_ended || keeps || fence.is_none(), "{} has ended and keeps the lock of {}", run.id, options.tenant);
        Ok(())
    }

    pub(super) fn owner(&self, tenant: &TenantId) -> Option<RunId> {
        self.lock(tenant)?.held().map(|lease| lease.task.clone())
    }
}

/// True for a task that was let begin, and has neither ended nor been interrupted.
pub(super) fn is_under_way(run: &Run) -> bool {
    run.open().is_some_and(|open| open.interrupted.is_none()) && run.task().is_some_and(|task| task.admitted)
}

/// The stages that were done by another instance, by the entries that say so.
fn done_elsewhere(journal: &[Entry]) -> BTreeMap<Seq, u32> {
    let (mut done, mut next) = (BTreeMap::new(), None);
    for entry in journal {
        match (&entry.event, &mut next) {
            (Event::Task(event), _) if matches!(**event, TaskEvent::Adopted { .. }) => next = Some(0),
            (Event::StepCompleted { .. }, Some(index)) => {
                done.insert(entry.seq, *index);
                *index += 1;
            }
            _ => next = None,
        }
    }
    done
}

/// Whether a plan's knowledge of a task is right: it is not told everything.
fn agree(known: TaskStatus, run: &Run) -> bool {
    let Some(status) = run.task_status() else { return false };
    let is_undone = run.task().is_some_and(|task| task.rolls_back);
    match known {
        TaskStatus::Pending => matches!(status, TaskStatus::Pending | TaskStatus::Waiting | TaskStatus::Paused) && run.is_ready(),
        TaskStatus::Running => matches!(status, TaskStatus::Running | TaskStatus::Waiting | TaskStatus::Paused) && !run.is_ready(),
        TaskStatus::RollingBack => matches!(status, TaskStatus::RollingBack | TaskStatus::Paused | TaskStatus::Running) && is_undone,
        known => known == status,
    }
}

fn counts_agree(plan: &Plan) -> TestCaseResult {
    let mut counts = BTreeMap::new();
    plan.tasks.iter().for_each(|task| *counts.entry(task.status).or_default() += 1_usize);
    prop_assert_eq!(&plan.counts, &counts, "{} counts its tasks", &plan.id);
    prop_assert!(plan.asked.is_subset(&plan.waiting) && plan.waiting.is_disjoint(&plan.admitted));
    Ok(())
}
