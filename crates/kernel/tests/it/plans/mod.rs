//! The machines of plans, tasks and locks, one at a time: what is asked, what happens, and what is said to others.

mod adopt;
mod alert;
mod claim;
mod hand_over;
mod lock;
mod plan;
mod roll_back;
mod stages;
mod task;
mod verbs;

use crate::support::plans::*;
use crate::support::*;
use std::time::Duration;
use steadfast_kernel::machine::{advance, decide};
use steadfast_kernel::plan::{Cause, Phase, Settings, StopWhen};
use steadfast_kernel::run::Verb;
use steadfast_kernel::{
    AdoptRun, Answer, Claimed, Command, Completion, Conflict, Effect, Entity, EntityId, Entry, Envelope, Epoch, Event, FireTimer,
    InstanceId, Lease, Lock, Message, OnFailure, OperatePlan, Origin, Payload, Plan, PlanStatus, Proposal, Recovery, Refusal, RetryFrom,
    Run, RunId, RunOptions, Seq, SettleClaim, StartChild, StepId, TakeTurn, TaskChanged, TaskOptions, TaskStatus, TimerName, Wants, code,
    task_id,
};

/// An entity, and everything that is known of it from outside.
#[derive(Clone)]
struct One {
    id: EntityId,
    state: Option<Entity>,
    now: i64,
    journal: Vec<Entry>,
    /// What the last thing that was asked has led to.
    effects: Vec<Effect>,
    said: Vec<(EntityId, Message)>,
    /// How many messages it was told.
    told: u64,
}

impl One {
    fn new(id: EntityId) -> Self {
        One { id, state: None, now: 1000, journal: Vec::new(), effects: Vec::new(), said: Vec::new(), told: 0 }
    }

    /// Asks it; the events that happen. What is decided must fold.
    #[track_caller]
    fn ask(&mut self, command: Command) -> Result<Vec<&'static str>, Refusal> {
        let decision = decide(&self.id, self.state.as_ref(), command, at(self.now))?;
        (self.effects, self.said) = (decision.effects, Vec::new());
        let kinds = decision.entries.iter().map(|entry| entry.event.kind()).collect();
        for entry in decision.entries {
            let (state, said) = advance(&self.id, self.state.take(), &entry).unwrap_or_else(|illegal| panic!("{illegal}"));
            self.state = Some(state);
            self.said.extend(said.into_iter().map(|Envelope { to, message, .. }| (to, message)));
            self.journal.push(entry);
        }
        Ok(kinds)
    }

    /// As [`One::ask`], of what must not be refused.
    #[track_caller]
    fn does(&mut self, command: Command) -> Vec<&'static str> {
        self.ask(command).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// Why that is refused.
    #[track_caller]
    fn refuses(&mut self, command: Command) -> String {
        self.ask(command).expect_err("it is not refused").to_string()
    }

    /// Tells it something new.
    #[track_caller]
    fn hears(&mut self, from: &EntityId, message: Message) -> Vec<&'static str> {
        self.told += 1;
        self.hears_as(from, self.told, message)
    }

    /// Tells it something under a number; zero is what came back of something.
    #[track_caller]
    fn hears_as(&mut self, from: &EntityId, seq: u64, message: Message) -> Vec<&'static str> {
        self.does(Command::Hear(Box::new(Envelope { from: from.clone(), seq, to: self.id.clone(), message })))
    }

    #[track_caller]
    fn fires(&mut self, name: TimerName) -> Vec<&'static str> {
        let revision = self.timer(&name).1;
        self.does(Command::FireTimer(FireTimer { name, revision }))
    }

    /// When that timer is due, and its revision.
    #[track_caller]
    fn timer(&self, name: &TimerName) -> (i64, Seq) {
        let timer = match &self.state {
            Some(Entity::Lock(lock)) => lock.timer(),
            Some(Entity::Plan(plan)) => plan.timers(),
            _ => None,
        };
        let timer = timer.filter(|timer| timer.name == *name).expect("a timer");
        (timer.due.as_micros() / 1000, timer.revision)
    }

    /// What comes back to who said something.
    fn back(&self) -> Vec<&Envelope> {
        let back = |effect: &'_ Effect| matches!(effect, Effect::Bounce(_));
        let backs = self.effects.iter().filter(|effect| back(effect));
        backs
            .filter_map(|effect| if let Effect::Bounce(envelope) = effect { Some(&**envelope) } else { None })
            .collect()
    }

    #[track_caller]
    fn lock(&self) -> &Lock {
        self.state.as_ref().and_then(Entity::lock).expect("a lock")
    }

    #[track_caller]
    fn plan(&self) -> &Plan {
        self.state.as_ref().and_then(Entity::plan).expect("a plan")
    }

    #[track_caller]
    fn run(&self) -> &Run {
        self.state.as_ref().and_then(Entity::run).expect("a run")
    }

    #[track_caller]
    fn task_status(&self) -> TaskStatus {
        self.run().task_status().expect("a task")
    }
}

/// The task of a tenant in the plan `p`.
fn task_of(tenant_name: &str) -> RunId {
    task_id(&plan_named("p"), &tenant(tenant_name))
}

fn plan_entity() -> EntityId {
    EntityId::Plan(plan_named("p"))
}

fn lock_entity() -> EntityId {
    EntityId::Lock(tenant("acme"))
}

fn retry(from: RetryFrom) -> Command {
    Command::RetryRun(retry_from(from))
}
