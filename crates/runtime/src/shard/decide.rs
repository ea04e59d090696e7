//! Commands through the kernel: decide, move the cached state on, submit.

use super::{Ask, Follow, From, Health, Memory, Pending, RunView, Shard, Then};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::timers::Order;
use std::sync::Arc;
use steadfast_kernel::{Command, Decision, Effect, FireTimer, Record, Refusal, Run, RunId, Timer, TimerName, run};
use steadfast_store::{Append, Batch, Fence, RunRow, TimerChange};

impl Shard {
    /// Takes up something asked of a run, now or once the run is in memory.
    pub(super) fn ask(&mut self, id: RunId, ask: Ask) {
        if let Health::Healing(error) | Health::Over(error) = &self.state.health {
            let error = Arc::clone(error);
            self.turn_away(&id, ask, &error);
            return self.tidy(&id);
        }
        let hosting = !self.state.is_draining(); // while draining nothing is hosted anew
        let slot = self.slot(&id);
        match &mut slot.memory {
            Memory::Loading(waiting) => waiting.push(ask),
            Memory::Absent => self.load(id, ask),
            Memory::Ready(Some(run)) if hosting && slot.session.is_none() && slot.blocked.is_none() && ask.needs_host(run) => {
                self.load(id, ask);
            }
            Memory::Ready(_) => self.answer(&id, ask),
        }
    }

    /// Answers from memory.
    pub(super) fn answer(&mut self, id: &RunId, ask: Ask) {
        match ask {
            Ask::Command(command, from) => self.decide(id, *command, from),
            Ask::Await(reply) => self.wait_for_end(id, reply),
            Ask::View(reply) => match self.view(id) {
                Ok(view) => self.follow(id, From::Viewer(reply, Box::new(view)), Ok(Follow::default())),
                Err(error) => drop(reply.send(Err(error))),
            },
            Ask::Resume => {}
        }
        self.tidy(id);
    }

    fn decide(&mut self, id: &RunId, mut command: Command, from: From) {
        if let From::Turn(session) | From::Failure(session, _) = &from
            && !self.is_current(id, *session)
        {
            return;
        }
        let now = self.clock.now();
        if matches!(command, Command::StartRun(_)) && matches!(self.slot(id).memory, Memory::Ready(None)) && self.is_full() {
            return from.fail(Error::busy("runs_live_max"));
        }
        let slot = self.slot(id);
        if let Command::CancelRun(cancel) = &mut command {
            cancel.blocked = slot.blocked.is_some();
        }
        let Memory::Ready(state) = &slot.memory else { return };
        match run::decide(id, state.as_ref(), command, now) {
            Ok(decision) if decision.entries.is_empty() => {
                self.follow(id, from, Ok(Follow { effects: decision.effects, entries: Vec::new() }));
            }
            Ok(decision) => self.submit(id, decision, from),
            Err(refusal) => self.follow(id, from, Err(refusal)),
        }
    }

    /// Moves the cached state on and hands the batch to the committer; the rest follows the commit.
    fn submit(&mut self, id: &RunId, decision: Decision, from: From) {
        let (shard, after, term) = (self.id, self.state.submitted, self.committed.term);
        let slot = self.slot(id);
        let Memory::Ready(state) = std::mem::take(&mut slot.memory) else { return };
        let before = state.as_ref().map(|run| RunRow::of(shard, run));
        let run = match fold(id, state, &decision) {
            Ok(run) => run,
            Err(bug) => {
                from.fail(Error::JournalBroken { run: id.clone(), why: bug.to_string() });
                return self.set_aside(id, bug.to_string());
            }
        };
        let row = RunRow::of(shard, &run);
        slot.memory = Memory::Ready(Some(run));
        slot.changed = after + 1;
        slot.stale = 0;
        self.state.submitted = after + 1;

        let append = |entry| Append { run: id.clone(), record: Record::from(entry) };
        let batch = Batch {
            fences: vec![Fence { shard, term, after, upto: after + 1 }],
            events: decision.entries.iter().map(append).collect(),
            runs: if before.as_ref() == Some(&row) { Vec::new() } else { vec![row] },
            timers: decision.effects.iter().filter_map(|effect| timer_change(shard, id, effect)).collect(),
        };
        let _committer_outlives_the_shard = self.ports.batches.send(batch);
        let outcome = Ok(Follow { effects: decision.effects, entries: decision.entries });
        self.state
            .pending
            .push_back(Pending { seq: after + 1, run: id.clone(), then: Then::Follow(from, outcome) });
    }

    /// Does what follows a decision that writes nothing: now, or after the commit of what it was decided on.
    fn follow(&mut self, id: &RunId, from: From, outcome: Result<Follow, Refusal>) {
        let changed = self.slot(id).changed;
        if changed <= self.committed.seq {
            return self.perform(id, from, outcome);
        }
        self.state
            .pending
            .push_back(Pending { seq: self.state.submitted, run: id.clone(), then: Then::Follow(from, outcome) });
    }

    /// A timer is due.
    pub(super) fn fire(&mut self, timer: Timer) {
        if self.state.is_draining() {
            return; // its row stays, and it fires after the next start
        }
        let command = Command::FireTimer(FireTimer { name: timer.name.clone(), revision: timer.revision });
        self.ask(timer.run.clone(), Ask::Command(Box::new(command), From::Keeper(timer)));
    }

    /// A timer that could not be dealt with now is due again soon.
    pub(super) fn fire_later(&mut self, timer: Timer) {
        if matches!(self.state.health, Health::Over(_)) {
            return; // it fires where the shard is now
        }
        let due = self.clock.now().saturating_add(STORE_RETRY_AFTER);
        let _keeper_is_gone = self.ports.timers.send(Order::Arm(Timer { due, ..timer }));
    }

    pub(super) fn turn_away(&mut self, id: &RunId, ask: Ask, error: &Arc<steadfast_store::Error>) {
        match ask {
            Ask::Command(_, from) => from.unavailable(self, id, error),
            Ask::Await(reply) => drop(reply.send(Err(Error::from_store(Arc::clone(error))))),
            Ask::View(reply) => drop(reply.send(Err(Error::from_store(Arc::clone(error))))),
            Ask::Resume => {}
        }
    }

    fn view(&mut self, id: &RunId) -> Result<RunView, Error> {
        let slot = self.slot(id);
        match &slot.memory {
            Memory::Ready(Some(run)) => Ok(RunView::of(run, slot.blocked.as_ref())),
            _ => Err(Refusal::RunNotFound { run: id.clone() }.into()),
        }
    }
}

impl Ask {
    /// True if it leads to something only a host can do.
    pub(super) fn needs_host(&self, run: &Run) -> bool {
        if run.ended().is_some() {
            return false;
        }
        match self {
            Ask::Resume => true,
            Ask::Command(command, _) => match &**command {
                Command::FireTimer(FireTimer { name: TimerName::Deadline, .. }) => run.has_undoable(),
                Command::FireTimer(_) | Command::SendSignal(_) | Command::CancelRun(_) => true,
                Command::StartRun(_) | Command::TakeTurn(_) | Command::ReportFailure(_) => false,
            },
            Ask::Await(_) | Ask::View(_) => false,
        }
    }
}

fn fold(id: &RunId, state: Option<Run>, decision: &Decision) -> Result<Run, run::IllegalTransition> {
    let mut state = state;
    for entry in &decision.entries {
        state = Some(run::evolve(id, state, entry)?);
    }
    state.ok_or_else(|| unreachable!("a decision that is submitted has entries"))
}

fn timer_change(shard: u32, id: &RunId, effect: &Effect) -> Option<TimerChange> {
    match effect {
        Effect::Arm(timer) => Some(TimerChange::Arm { shard, timer: timer.clone() }),
        Effect::Disarm(name) => Some(TimerChange::Disarm { run: id.clone(), name: name.clone() }),
        _ => None,
    }
}
