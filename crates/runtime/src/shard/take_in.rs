//! What comes in, one thing at a time, for as long as the shard is this instance's.

use super::{Control, Done, Ports, Request, Said, Shard};
use crate::committer::Outcome;
use crate::host::Report;
use crate::timers::Fired;
use futures_util::StreamExt;
use tokio::sync::mpsc::error::TryRecvError;

/// Something that has come in.
enum Came {
    Control(Control),
    Outcome(Outcome),
    Done(Done),
    Role,
    Report(Report),
    Said(Said),
    Fired(Fired),
    Request(Option<Request>),
}

impl Shard {
    /// Takes in one thing. False when it is over.
    ///
    /// A process that did not get to run for a while finds many things at once that were due meanwhile. What it is told before it hears that its shards were
    /// lost must not make it begin what another instance may have done by now.
    pub(super) async fn take_in(&mut self) -> bool {
        match self.next().await {
            Came::Request(Some(request)) if self.is_past() => {
                request.refuse();
                return false;
            }
            Came::Outcome(outcome) if self.is_past() => {
                self.state.has_ended = true;
                self.settle(outcome);
                return false;
            }
            _ if self.is_past() => return false,
            Came::Control(Control::Drain { reply }) => self.drain(reply),
            Came::Control(Control::GoOn { reply }) => self.go_on(reply),
            Came::Control(Control::Registered(workflows)) => self.host_again(&workflows),
            Came::Control(Control::LeaveRoom { workflow, runs }) => drop(self.leave_room(&workflow, runs)),
            Came::Control(Control::Handled) => self.call_handlers(),
            Came::Control(Control::Stop) => return false,
            Came::Outcome(outcome) => self.settle(outcome),
            Came::Done(done) => self.done(done),
            Came::Role => self.change_role(),
            Came::Report(report) => self.report(report),
            Came::Said(said) => self.hear(said),
            Came::Fired(fired) => self.fire(fired),
            Came::Request(request) => return self.request(request),
        }
        // Work under way goes first, but whoever asks is not kept waiting by it for ever.
        match self.ports.requests.try_recv() {
            Ok(request) => self.request(Some(request)),
            Err(TryRecvError::Disconnected) => false,
            Err(TryRecvError::Empty) => !self.is_drained(),
        }
    }

    async fn next(&mut self) -> Came {
        let Ports { control, requests, reports, said, fired, outcomes, role, .. } = &mut self.ports;
        tokio::select! {
            biased;
            Some(control) = control.recv() => Came::Control(control),
            Some(outcome) = outcomes.recv() => Came::Outcome(outcome),
            Some(done) = self.state.tasks.next(), if !self.state.tasks.is_empty() => Came::Done(done),
            Ok(()) = role.changed() => Came::Role,
            Some(report) = reports.recv() => Came::Report(report),
            Some(said) = said.recv() => Came::Said(said),
            Some(fired) = fired.recv() => Came::Fired(fired),
            request = requests.recv() => Came::Request(request),
        }
    }

    /// Another instance may have the shard: its lease was not renewed in time.
    fn is_past(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.is_past())
    }
}
