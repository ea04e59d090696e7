//! Runs that only wait need not be in memory. The one that was not touched for longest is let go when there are too many.
//!
//! The session itself says whether it has nothing to do. Whatever it is told between being asked and having left is not lost: the run is then hosted again from
//! its journal, and its timers are told again.
//!
//! Tested by `crates/sdk/tests/it/waiting.rs`.

use super::{Ask, Done, Seat, Shard};
use crate::host::ToHost;
use futures_util::FutureExt;
use std::time::Duration;
use steadfast_kernel::{EntityId, Run, Seq, TimerName, WorkflowName};

/// A run stays for at least this long after it was touched: what it was hosted for is on its way.
const STAY_MIN: Duration = Duration::from_secs(1);

/// So many runs that have left are remembered; of others it is not known that they have left in good order.
const LEFT_MAX: usize = 100_000;

impl Shard {
    /// The place up to which the last session of an idle run left nothing unsaid, if that matters when the run comes back to memory.
    pub(super) fn left_unsaid(&self, idle: &Seat) -> Option<Seq> {
        let unsure_until = idle.unsure_until?;
        let may_begin = |run: &Run| may_begin(run) || self.state.is_draining(); // nothing begins there while the shard comes to rest
        (self.state.left.len() < LEFT_MAX && idle.run().is_some_and(may_begin)).then_some(unsure_until)
    }

    /// Something happened to an entity: if it is a hosted run that only waits, it is the last to be let go.
    pub(super) fn touch(&mut self, id: &EntityId) {
        let committed = self.committed.seq;
        let Some(seat) = self.state.seats.get_mut(id) else { return };
        if let Some(place) = seat.idle.take() {
            self.state.idle.remove(&place);
        }
        let waits = seat.session.is_some() && seat.begun.is_empty() && seat.changed <= committed && seat.run().is_some_and(Run::is_waiting);
        if waits && seat.leaving.is_none() {
            self.state.touches += 1;
            seat.idle = Some(self.state.touches);
            self.state.idle.insert(self.state.touches, (id.clone(), self.clock.now()));
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.state.idle.len() > self.config.runs_idle_max
            && let Some(first) = self.state.idle.first_entry()
            && first.get().1.saturating_add(STAY_MIN) <= self.clock.now()
        {
            let (longest, _) = first.remove();
            self.ask_to_leave(&longest);
        }
        if self.state.idle.len() > self.config.runs_idle_max && !self.state.makes_room_later {
            self.state.makes_room_later = true; // nobody may touch anything until then
            self.state.tasks.push(self.clock.sleep(STAY_MIN).map(|()| Done::Stayed).boxed());
        }
    }

    /// Those that were too many a while ago have stayed for long enough.
    pub(super) fn have_stayed(&mut self) {
        self.state.makes_room_later = false;
        self.make_room();
    }

    /// Of those that have stayed for long enough at a worker that has no room for that workflow, so many leave, the one that was not touched for longest first.
    /// How many that are.
    pub(super) fn leave_room(&mut self, workflow: &WorkflowName, runs: usize) -> usize {
        let now = self.clock.now();
        let takes_room = |id: &EntityId| {
            let session = self.state.seats.get(id).and_then(|seat| seat.session.as_ref());
            session.is_some_and(|session| session.line.takes_room_of(workflow))
        };
        let stayed = self.state.idle.iter().take_while(|(_, (_, at))| at.saturating_add(STAY_MIN) <= now);
        let found: Vec<u64> = stayed.filter(|(_, (id, _))| takes_room(id)).map(|(place, _)| *place).take(runs).collect();
        let count = found.len();
        for place in found {
            if let Some((longest, _)) = self.state.idle.remove(&place) {
                self.ask_to_leave(&longest);
            }
        }
        count
    }

    fn ask_to_leave(&mut self, id: &EntityId) {
        let seat = self.seat(id);
        seat.idle = None;
        seat.tell(ToHost::Leave);
        seat.leaving = Some(false);
    }

    /// A session that was asked to go has gone. True if it was.
    pub(super) fn has_left(&mut self, id: &EntityId) -> bool {
        match self.seat(id).leaving.take() {
            Some(true) => self.ask(id.clone(), Ask::Resume), // what it was told last it did not hear
            Some(false) => {}
            None => return false,
        }
        true
    }
}

/// Whether a step may begin when the run is hosted again, without anything new on record.
pub(super) fn may_begin(run: &Run) -> bool {
    let retries = || run.timers().iter().any(|timer| matches!(timer.name, TimerName::Retry(_)));
    run.open().is_some_and(|open| open.stands_still() || retries())
}
