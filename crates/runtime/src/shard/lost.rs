//! Runs that a worker hosted and hosts no longer, or may host since before the start, and runs that wait for room at one.
//!
//! A worker that is lost is a process that died: its runs are opened elsewhere from their journals, or are interrupted if they do not go on by themselves. One that
//! drains has left nothing in flight, so what it gives back always goes on.
//!
//! Tested by `crates/sdk/tests/it/messages/random.rs`.
//! Tested by `crates/crash-test/tests/it/workers.rs`.

use super::evict::may_begin;
use super::{Ask, Done, Shard};
use crate::host::Opening;
use futures_util::FutureExt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{EntityId, Run, Wait, WorkflowName};

/// Runs that wait for room are looked at this often, beside when there is room.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// At most so many make room at once.
const LEAVE_MAX: usize = 100;

impl Shard {
    /// The worker that hosted a run is gone.
    pub(super) fn lost(&mut self, id: &EntityId) {
        let manual = match self.seat(id).run() {
            Some(run) => Run::recover(run) == Some(Recover::Interrupt),
            None => true, // nobody knows before it is read; it is interrupted only if it does not go on by itself
        };
        self.give_away(id, manual);
    }

    /// A session has ended because its process drains, and nothing of the run is in flight there.
    pub(super) fn given_back(&mut self, id: &EntityId) {
        if self.seat(id).leaving.is_some() {
            return self.closed(id); // it was asked to go before, and nobody need host it
        }
        self.end_in_good_order(id);
        self.give_away(id, false);
    }

    fn give_away(&mut self, id: &EntityId, interrupt: bool) {
        self.end_session(id);
        self.seat(id).leaving = None;
        match interrupt {
            _ if self.seat(id).has_ended() => {}
            true => {
                self.state.to_interrupt.insert(id.clone());
                self.interrupt(id.clone());
            }
            false if self.state.is_draining() => {} // whoever has the shard next hosts it
            false => self.ask(id.clone(), Ask::Resume),
        }
        self.tidy(id);
    }

    /// Nobody knows whom an earlier process has given runs to. Who that was lets go of them before its heartbeat is over, and before that they are given to nobody.
    pub(super) fn take_over(&mut self) {
        self.state.takes_over = true;
        let time = self.config.workers.heartbeat_max;
        self.state.tasks.push(self.clock.sleep(time).map(|()| Done::TakenOver).boxed());
    }

    /// Whether nothing of a run can be in flight at a worker that an earlier process has given it to.
    pub(super) fn may_open(&mut self, id: &EntityId, opening: &Opening) -> bool {
        let begins_nothing = |run: &Run| run.is_waiting() && !may_begin(run);
        !self.state.takes_over || !self.host.is_elsewhere(opening) || self.seat(id).run().is_some_and(begins_nothing)
    }

    /// Whoever had a run before the start has let go of it.
    pub(super) fn has_taken_over(&mut self) {
        self.state.takes_over = false;
        let mut workflows = BTreeSet::new();
        for seat in self.state.seats.values_mut().filter(|seat| seat.held_back) {
            seat.held_back = false;
            if let Some(Wait::NoWorker { workflow, .. }) = &seat.blocked {
                workflows.insert(workflow.clone());
            }
        }
        self.host_again(&workflows);
    }

    /// There is code of these names now, or room for it: runs that waited for it are opened, as many as there is room for.
    pub(super) fn host_again(&mut self, workflows: &BTreeSet<WorkflowName>) {
        let mut waiting: BTreeMap<WorkflowName, Vec<EntityId>> = BTreeMap::new();
        for (id, seat) in self.state.seats.iter() {
            if let Some(Wait::NoWorker { workflow, .. }) = &seat.blocked
                && workflows.contains(workflow)
                && !seat.held_back
            {
                waiting.entry(workflow.clone()).or_default().push(id.clone());
            }
        }
        for (workflow, runs) in waiting {
            self.host_these(&workflow, runs);
        }
    }

    fn host_these(&mut self, workflow: &WorkflowName, runs: Vec<EntityId>) {
        let room = self.host.room(workflow);
        let left = runs.len().saturating_sub(room);
        for id in runs.into_iter().take(room) {
            self.seat(&id).blocked = None;
            self.ask(id, Ask::Resume);
        }
        if left > 0 {
            self.wait_for_room(workflow, left);
        }
    }

    /// Nobody has room for so many runs of that workflow: those that only wait and take it up are let go, and it is looked for again.
    pub(super) fn wait_for_room(&mut self, workflow: &WorkflowName, runs: usize) {
        self.host.want(workflow);
        let runs = runs.min(LEAVE_MAX);
        let left = runs - self.leave_room(workflow, runs);
        if left > 0
            && let Some(ways) = self.ways.upgrade()
        {
            ways.leave_room(self.id, workflow, left);
        }
        self.state.without_room.insert(workflow.clone());
        if !std::mem::replace(&mut self.state.looks_for_room, true) {
            self.state.tasks.push(self.clock.sleep(LOOK_EVERY).map(|()| Done::RoomAgain).boxed());
        }
    }

    /// It is time to look again.
    pub(super) fn look_for_room(&mut self) {
        self.state.looks_for_room = false;
        let workflows = std::mem::take(&mut self.state.without_room);
        self.host_again(&workflows);
    }
}
