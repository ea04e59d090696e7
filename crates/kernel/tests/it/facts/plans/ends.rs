//! People see to everything that waits for them: then every plan ends, and every lock is free.

use super::held::is_under_way;
use super::*;
use steadfast_kernel::RunId;
use steadfast_kernel::plan::Phase;

/// So many things are seen to at the most.
const ROUNDS: usize = 2_000;

impl Rollouts {
    pub(super) fn end(&mut self) -> TestCaseResult {
        for round in 0.. {
            prop_assert!(round < ROUNDS, "they never come to an end");
            self.heal()?;
            self.holds_when_healed()?;
            let Some((id, command)) = self.to_be_seen_to().or_else(|| self.in_the_way()) else { break };
            self.now = self.now.saturating_add(Duration::from_millis(1));
            let decided = self.ask(&id, command.clone(), None)?;
            prop_assert!(decided.is_ok(), "{} of {}: {:?}", format!("{command:?}"), id, decided);
            self.holds()?;
        }
        for plan in self.plans() {
            prop_assert!(matches!(plan.phase, Phase::Ended { .. }), "{} does not end: {:?}", plan.id, plan);
        }
        let kept: Vec<RunId> = self.locks().filter_map(|lock| self.owner(&lock.tenant)).collect();
        for task in kept {
            prop_assert!(self.ask(&task.into(), cancel(), None)?.is_ok());
        }
        self.heal()?;
        prop_assert!(self.locks().all(|lock| lock.holder.is_none()), "a lock is left");
        Ok(())
    }

    /// What a person or a host would do next.
    pub(super) fn to_be_seen_to(&self) -> Option<(EntityId, Command)> {
        let of_run = |run: &Run, command| Some((EntityId::from(&run.id), command));
        let of_plan = |plan: &Plan, verb| Some((plan.entity(), operate(verb, ada())));
        let still = |run: &&Run| run.open().is_some_and(|open| open.paused.is_some() && open.interrupted.is_none());
        let interrupted = |run: &&Run| run.task_status() == Some(TaskStatus::Interrupted);
        if let Some(run) = self.runs().find(still) {
            return of_run(run, resume());
        }
        if let Some(run) = self.runs().find(|run| is_under_way(run) && !run.is_ready()) {
            return of_run(run, host::turn(run, Move::Done, self.now));
        }
        if let Some(plan) = self.plans().find(|plan| plan.phase == Phase::New) {
            return of_plan(plan, Verb::Start);
        }
        if let Some(run) = self.runs().find(interrupted) {
            return of_run(run, if run.task().is_some_and(|task| task.rolls_back) { Command::RollBackRun(ada()) } else { retry_run() });
        }
        if let Some(plan) = self.plans().find(|plan| matches!(plan.phase, Phase::Paused { .. })) {
            let stands_in_the_way = |task: &&std::sync::Arc<steadfast_kernel::plan::Task>| {
                matches!(task.status, TaskStatus::Failed | TaskStatus::RollbackFailed)
            };
            return match plan.tasks.iter().find(stands_in_the_way) {
                Some(task) => Some((EntityId::from(&task.run), cancel())),
                None => of_plan(plan, Verb::Resume),
            };
        }
        None
    }

    /// Whoever has a lock that others wait for is called off.
    pub(super) fn in_the_way(&self) -> Option<(EntityId, Command)> {
        let blocks = |lock: &&Lock| !lock.line.is_empty();
        self.locks()
            .find(blocks)
            .and_then(|lock| Some((EntityId::from(&self.owner(&lock.tenant)?), cancel())))
    }
}
