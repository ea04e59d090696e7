//! Running a request once more that has run before, for whoever tries dead letters again: those who repeat it meanwhile wait for the new outcome.

use super::entries::State;
use super::{Finish, Inbox, Kind, Ticket};
use std::time::Duration;
use tokio::time::Instant;

/// What to do with a request that is to be run once more.
#[derive(Debug)]
#[must_use]
pub enum Again {
    /// Run it. With what it has left behind before, if that is still known: to be kept if nothing new comes of it.
    Run(Ticket, Option<Finish>),
    /// It has succeeded since.
    Done,
    /// It runs already.
    Running,
    /// Another request has that id.
    Different,
    /// There is no room for it; to be tried again after that time.
    Full(Duration),
}

impl<W> Inbox<W> {
    /// Takes up a request once more, as [`check`](Self::check) takes it up the first time, with nobody who waits.
    pub fn take_up_again(&mut self, caller: &str, id: &str, kind: Kind, digest: u64, now: Instant) -> Again {
        self.set_now(now);
        let sought = self.entries.seek(caller, id);
        let known = self.entries.find(&sought);
        let before = match known.filter(|entry| !self.is_over(*entry)).map(|entry| &self.entries[entry]) {
            None => None,
            Some(entry) if (entry.kind, entry.digest) != (kind, digest) => return Again::Different,
            Some(entry) => match &entry.state {
                State::Running(_) => return Again::Running,
                State::Finished(finished) => Some(self.entries.left(finished)),
            },
        };
        if let Some(Finish::Keep(Ok(_))) = before {
            return Again::Done;
        }
        if !self.leave_room(caller, id) {
            return Again::Full(self.settings.retry_after); // what is known of it stays
        }
        if let Some(entry) = known {
            self.entries.remove(entry);
        }
        if !self.make_room(caller, id) {
            return Again::Full(self.settings.retry_after);
        }
        let (ticket, _) = self.begin(&sought, kind, digest, None);
        if kind == Kind::Tell {
            drop(self.taken(&ticket)); // its letter is kept until it has succeeded
        }
        Again::Run(ticket, before)
    }
}
