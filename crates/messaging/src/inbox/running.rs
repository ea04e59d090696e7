//! Requests that run, and who waits for their outcome.

use super::slab::{NONE, Slab};

/// Of a request that runs: whoever has it runs the handler, and gives it back with [`Inbox::finish`](super::Inbox::finish).
///
/// An entry that runs is never forgotten, so a ticket that is lost would block its request for ever. Hold it in a guard whose `drop` finishes it with
/// [`Finish::Forget`](super::Finish::Forget) and answers those who wait: then a panic and a task that is called off free the entry as well.
#[derive(Debug)]
#[must_use = "a request without its ticket runs for ever"]
pub struct Ticket(pub(super) u32);

/// The place of one who waits for a request that runs. It means nothing once the request has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    request: u32,
    number: u64,
}

/// Somebody does not wait any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left<W> {
    /// Who.
    pub waiter: W,
    /// Nobody else waits for that request. It runs on until it is finished; whoever repeats it meanwhile waits for it again.
    pub nobody: bool,
}

/// Those who wait for one request. Nearly always it is one.
#[derive(Debug)]
pub struct Waiters<W> {
    first: Option<(u64, W)>,
    more: Vec<(u64, W)>,
}

impl<W> Waiters<W> {
    fn nobody() -> Self {
        Waiters { first: None, more: Vec::new() }
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn take(&mut self, number: u64) -> Option<W> {
        if let Some((_, waiter)) = self.first.take_if(|(seat, _)| *seat == number) {
            return Some(waiter);
        }
        let place = self.more.iter().position(|(seat, _)| *seat == number)?;
        Some(self.more.remove(place).1)
    }
}

impl<W> IntoIterator for Waiters<W> {
    type Item = W;
    type IntoIter = std::iter::Map<std::iter::Chain<std::option::IntoIter<(u64, W)>, std::vec::IntoIter<(u64, W)>>, fn((u64, W)) -> W>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more).map(|(_, waiter)| waiter)
    }
}

struct Request<W> {
    entry: u32,
    waiters: Waiters<W>,
    /// It is a tell, and whoever runs it answers for it from now on.
    taken: bool,
}

impl<W> Default for Request<W> {
    fn default() -> Self {
        Request { entry: NONE, waiters: Waiters::nobody(), taken: false }
    }
}

pub(super) struct Running<W> {
    requests: Slab<Request<W>, 64>,
    /// How many ever waited. Numbers are not given twice, so that a seat of a request that has finished is nobody's.
    seats: u64,
}

impl<W> Default for Running<W> {
    fn default() -> Self {
        Running { requests: Slab::default(), seats: 0 }
    }
}

impl<W> Running<W> {
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn begin(&mut self, entry: u32, waiter: Option<W>) -> (u32, Seat) {
        let number = self.number();
        let first = waiter.map(|waiter| (number, waiter));
        let request = self.requests.insert(Request { entry, waiters: Waiters { first, more: Vec::new() }, taken: false });
        (request, Seat { request, number })
    }

    /// One more waits, unless so many do already.
    pub(super) fn wait(&mut self, request: u32, waiter: W, waiters_max: usize) -> Result<Seat, W> {
        let number = self.number();
        let waiters = &mut self.requests[request].waiters;
        if waiters.len() >= waiters_max {
            return Err(waiter);
        }
        waiters.more.push((number, waiter));
        Ok(Seat { request, number })
    }

    /// Whoever runs that tell answers for it: those who wait are handed back.
    pub(super) fn take(&mut self, request: u32) -> Waiters<W> {
        let Request { waiters, taken, .. } = &mut self.requests[request];
        *taken = true;
        std::mem::replace(waiters, Waiters::nobody())
    }

    pub(super) fn is_taken(&self, request: u32) -> bool {
        self.requests[request].taken
    }

    pub(super) fn leave(&mut self, seat: Seat) -> Option<Left<W>> {
        let waiters = &mut self.requests.get_mut(seat.request)?.waiters;
        let waiter = waiters.take(seat.number)?;
        Some(Left { waiter, nobody: waiters.len() == 0 })
    }

    /// The entry, and those who wait.
    pub(super) fn end(&mut self, request: u32) -> (u32, Waiters<W>) {
        let Request { entry, waiters, .. } = self.requests.remove(request);
        self.requests.trim();
        (entry, waiters)
    }

    fn number(&mut self) -> u64 {
        self.seats += 1;
        self.seats
    }
}
