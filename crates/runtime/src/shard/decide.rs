//! Commands through the kernel: decide, move the cached state on, submit.

use super::keys::{retired, shortened};
use super::view::row;
use super::{Ask, Follow, From, Health, Memory, Pending, Shard, Then};
use crate::commons::Notes;
use crate::error::Error;
use crate::timers::{Fired, Order, Role};
use std::sync::Arc;
use steadfast_kernel::{
    Command, Decision, Effect, Entity, EntityId, Envelope, ExpireKey, FireTimer, IllegalTransition, Message, Record, Refusal, Run, Status,
    Timer, TimerName, Timestamp, machine, run, run::Verb,
};
use steadfast_store::{Append, Batch, Fence, LetterChange, LockChange, OutboxChange, PlanRow, TimerChange, key_changes};

impl Shard {
    /// Takes up something asked of an entity, now or once it is in memory.
    pub(super) fn ask(&mut self, id: EntityId, ask: Ask) {
        if let Health::Healing(error) | Health::Over(error) = &self.state.health {
            let error = Arc::clone(error);
            match ask {
                Ask::Look(_) | Ask::Await(_) if matches!(self.state.health, Health::Healing(_)) => self.look_aside(id.clone(), ask, error),
                _ => self.turn_away(&id, ask, &error),
            }
            return self.tidy(&id);
        }
        let hosting = !self.state.is_draining() && !self.state.to_interrupt.contains(&id); // while draining nothing is hosted anew
        let seat = self.seat(&id);
        match &mut seat.memory {
            Memory::Loading(waiting) => waiting.push(ask),
            Memory::Absent => self.load(id, ask),
            Memory::Ready(Some(Entity::Run(run))) if hosting && seat.session.is_none() && seat.blocked.is_none() && ask.needs_host(run) => {
                self.load(id, ask);
            }
            Memory::Ready(_) => self.answer(&id, ask),
        }
    }

    /// Answers from memory.
    pub(super) fn answer(&mut self, id: &EntityId, ask: Ask) {
        match ask {
            Ask::Command(command, from) => self.decide(id, *command, from),
            Ask::Await(waiter) => self.wait_for_end(id, waiter),
            Ask::Look(look) => self.look(id, look),
            Ask::Tell(lane, errand) => self.tell_of(id, lane, &errand),
            Ask::CallBack(revision, attempt) => self.call_back(id, revision, attempt),
            Ask::Resume => {}
        }
        self.tidy(id);
    }

    fn decide(&mut self, id: &EntityId, mut command: Command, from: From) {
        if let From::Turn(session) | From::Failure(session, _) = &from
            && !self.is_current(id, *session)
        {
            return;
        }
        let now = self.clock.now();
        if matches!(command, Command::StartRun(_)) && matches!(self.seat(id).memory, Memory::Ready(None)) && self.is_full() {
            return from.fail(Error::busy("runs_live_max"));
        }
        if let EntityId::Key(key) = id {
            self.complete_for(key, &mut command);
        }
        let shares = self.notes.as_ref().is_some_and(Notes::ask_for_locks);
        let seat = self.seat(id);
        match &mut command {
            Command::CancelRun(cancel) => cancel.blocked = seat.blocked.is_some(),
            Command::RetryRun(retry) => seat.complete(retry),
            _ => {}
        }
        let Memory::Ready(state) = &seat.memory else { return };
        let command = if shares && matches!(id, EntityId::Lock(_)) { Command::Shared(Box::new(command)) } else { command };
        match machine::decide(id, state.as_ref(), command, now) {
            Ok(decision) if decision.effects == [Effect::Forget] => self.forget_all(id, from),
            Ok(decision) if decision.entries.is_empty() => {
                self.follow(id, from, Ok(Follow { effects: decision.effects, ..Follow::default() }));
            }
            Ok(decision) => self.submit(id, decision, from, now),
            Err(refusal) => self.follow(id, from, Err(refusal)),
        }
    }

    /// Moves the cached state on and hands the batch to the committer; the rest follows the commit.
    fn submit(&mut self, id: &EntityId, decision: Decision, from: From, now: Timestamp) {
        let (shard, snapshot_every) = (self.id, self.config.snapshot_every);
        let seat = self.seat(id);
        let Memory::Ready(state) = std::mem::take(&mut seat.memory) else { return };
        let blocked = seat.blocked.as_ref().filter(|_| !decision.effects.contains(&Effect::Host)); // that tries again
        let before = state.as_ref().and_then(Entity::run).map(|run| row(shard, run, blocked));
        let key = state.as_ref().and_then(Entity::key).cloned();
        let plan = state.as_ref().and_then(Entity::plan).map(|plan| PlanRow::of(shard, plan));
        let lock = state.as_ref().and_then(Entity::lock).cloned();
        let (entity, said) = match fold(id, state, &decision) {
            Ok(folded) => folded,
            Err(bug) => {
                if let From::Courier(told) = &from {
                    self.on_record(told); // it never will be
                }
                from.fail(Error::JournalBroken { entity: id.clone(), why: bug.to_string() });
                return self.set_aside(id, bug.to_string());
            }
        };
        let row = entity
            .run()
            .map(|run| row(shard, run, blocked))
            .filter(|row| seat.row_says_blocked || before.as_ref() != Some(row));
        seat.row_says_blocked = blocked.is_some();
        let snapshot = seat.saved.save(id, &entity, snapshot_every);
        let (keys, callbacks) = entity.key().map(|after| key_changes(shard, key.as_ref(), after)).unwrap_or_default();
        let plans = entity.plan().map(|plan| PlanRow::of(shard, plan)).filter(|row| plan.as_ref() != Some(row));
        let locks = entity.lock().and_then(|after| LockChange::between(shard, lock.as_ref(), after));
        seat.memory = Memory::Ready(Some(entity));
        seat.stale = 0;

        let append = |entry| Append { shard, entity: id.clone(), record: Record::from(entry) };
        let kept_for = self.config.keys_kept_for;
        let effects: Vec<_> = decision.effects.into_iter().map(|effect| retired(id, effect, now, kept_for)).collect();
        let batch = Batch {
            events: decision.entries.iter().map(append).collect(),
            runs: row.into_iter().collect(),
            timers: effects.iter().filter_map(|effect| timer_change(shard, id, effect)).collect(),
            outbox: said.iter().map(|envelope| OutboxChange::Add { shard, envelope: envelope.clone() }).collect(),
            letters: decision.entries.iter().filter_map(|entry| LetterChange::of(shard, id, entry)).collect(),
            keys,
            callbacks,
            plans: plans.into_iter().collect(),
            locks: locks.into_iter().collect(),
            snapshots: snapshot.into_iter().collect(),
            forgotten: effects.iter().filter_map(|effect| shortened(id, effect)).collect(),
            ..Batch::default()
        };
        let follow = Follow { effects, entries: decision.entries, said };
        let seq = self.write(id, batch, Then::Follow(from, Ok(follow)));
        self.seat(id).changed = seq;
    }

    /// Hands a batch to the committer, and keeps what is to be done once it is durable. Its number.
    pub(super) fn write(&mut self, id: &EntityId, mut batch: Batch, then: Then) -> u64 {
        let (after, term) = (self.state.submitted, self.committed.term);
        let seq = after + 1;
        batch.fences = vec![Fence { shard: self.id, term, after, upto: seq }];
        self.state.submitted = seq;
        let _committer_outlives_the_shard = self.ports.batches.send(batch);
        self.state.pending.push_back(Pending { seq, id: id.clone(), then });
        seq
    }

    /// Does what follows a decision that writes nothing: now, or after the commit of what it was decided on.
    pub(super) fn follow(&mut self, id: &EntityId, from: From, outcome: Result<Follow, Refusal>) {
        let changed = self.seat(id).changed;
        if changed <= self.committed.seq {
            return self.perform(id, from, outcome);
        }
        self.state
            .pending
            .push_back(Pending { seq: self.state.submitted, id: id.clone(), then: Then::Follow(from, outcome) });
    }

    /// A timer is due.
    pub(super) fn fire(&mut self, fired: Fired) {
        if *self.ports.role.borrow() == Role::Follower {
            return; // it fires where the shard is led
        }
        if !self.lets_fire(&fired.timer.name) {
            return self.order(Order::Settle(fired.timer)); // its row stays, and is read when the shard goes on, or is opened; here it is in nobody's way
        }
        let Timer { entity, name, revision, due } = fired.timer.clone();
        if let TimerName::Retry(_) = name {
            self.metrics.late(self.clock.now().saturating_since(due));
        }
        let command = match name {
            TimerName::Expiry => Command::ExpireKey(ExpireKey { revision, handled: false }),
            name => Command::FireTimer(FireTimer { name, revision }),
        };
        self.ask(entity, Ask::Command(Box::new(command), From::Keeper(fired)));
    }

    /// A timer that could not be dealt with now is told again soon.
    pub(super) fn fire_later(&mut self, fired: Fired) {
        if matches!(self.state.health, Health::Over(_)) {
            return; // it fires where the shard is now
        }
        let _keeper_is_gone = self.ports.timers.send(Order::Again(fired));
    }

    pub(super) fn turn_away(&mut self, id: &EntityId, ask: Ask, error: &Arc<steadfast_store::Error>) {
        match ask {
            Ask::Command(_, from) => from.unavailable(self, id, error),
            Ask::Await(waiter) => waiter.fail(Error::from_store(Arc::clone(error))),
            Ask::Look(look) => look.fail(Error::from_store(Arc::clone(error))),
            Ask::Tell(lane, errand) => self.give_back(&lane, &errand),
            Ask::Resume if matches!(self.state.health, Health::Healing(_)) => drop(self.state.in_doubt.insert(id.clone())), // it is hosted once the store writes again
            Ask::Resume | Ask::CallBack(..) => {} // the store knows it
        }
    }
}

/// What is told of a run that does not exist. Nobody asks for another entity that way.
pub(super) fn not_found(id: &EntityId) -> Error {
    match id {
        EntityId::Run(run) => Refusal::RunNotFound { run: run.clone() }.into(),
        EntityId::Plan(plan) => Refusal::PlanNotFound { plan: plan.clone() }.into(),
        EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Key(_) | EntityId::Lock(_) | EntityId::Route(_) => {
            Error::JournalBroken { entity: id.clone(), why: "it is no run".into() }
        }
    }
}

impl Ask {
    /// True if it leads to something only a host can do.
    pub(super) fn needs_host(&self, run: &Run) -> bool {
        let stands_still = run.open().is_none_or(run::Open::stands_still);
        if run.ended().is_some() || run.is_ready() {
            return false;
        }
        match self {
            Ask::Resume => !stands_still,
            Ask::Command(command, _) => match &**command {
                Command::FireTimer(FireTimer { name: TimerName::Deadline, .. }) => run.has_undoable() && !stands_still,
                Command::FireTimer(_) | Command::SendSignal(_) => !stands_still,
                Command::CancelRun(_) => run.task().is_none(), // a task ends at once
                Command::ResumeRun(_) => true,
                Command::RollBackRun(_) => run.status() != Status::Interrupted,
                Command::Hear(envelope) => match &envelope.message {
                    Message::OperateTask { verb: Verb::Resume, .. } | Message::CancelChild { .. } => true,
                    Message::OperateTask { verb: Verb::RollBack, .. } => run.status() != Status::Interrupted,
                    Message::OperateTask { .. } | Message::RecallTask { .. } | Message::ConfirmLock { .. } | Message::LockLost { .. } => {
                        false
                    }
                    _ => !stands_still,
                },
                Command::StartRun(_)
                | Command::TakeTurn(_)
                | Command::ReportFailure(_)
                | Command::TerminateRun(_)
                | Command::PauseRun(_)
                | Command::RetryRun(_)
                | Command::InterruptRun
                | Command::RecordHeartbeat(_)
                | Command::DropLetter(_)
                | Command::RedriveLetter(_)
                | Command::AddLetter(_)
                | Command::FailLetter(_)
                | Command::BreakElsewhere { .. }
                | Command::Shared(_)
                | Command::SettleClaim(_)
                | Command::LoseLock { .. }
                | Command::AdoptRun(_)
                | Command::HandOverRun(_)
                | Command::AlertPlan { .. }
                | Command::PutKey(_)
                | Command::RenewKey(_)
                | Command::DeleteKey(_)
                | Command::ExpireKey(_)
                | Command::EndKey(_)
                | Command::ReportCallback(_)
                | Command::CreatePlan(_)
                | Command::OperatePlan(_)
                | Command::InterruptPlan
                | Command::BreakLock(_) => false,
            },
            Ask::Await(_) | Ask::Look(_) | Ask::Tell(..) | Ask::CallBack(..) => false,
        }
    }
}

fn fold(id: &EntityId, state: Option<Entity>, decision: &Decision) -> Result<(Entity, Vec<Envelope>), IllegalTransition> {
    let (mut state, mut said) = (state, Vec::new());
    for entry in &decision.entries {
        let (next, says) = machine::advance(id, state.take(), entry)?;
        said.extend(says);
        state = Some(next);
    }
    state
        .map(|state| (state, said))
        .ok_or_else(|| unreachable!("a decision that is submitted has entries"))
}

fn timer_change(shard: u32, id: &EntityId, effect: &Effect) -> Option<TimerChange> {
    match effect {
        Effect::Arm(timer) => Some(TimerChange::Arm { shard, timer: timer.clone() }),
        Effect::Disarm(name) => Some(TimerChange::Disarm { entity: id.clone(), name: name.clone() }),
        _ => None,
    }
}
