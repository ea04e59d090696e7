//! The inbox behind a lock, as a node has it: in whatever order its threads come, one runs and each gets one answer.

use crate::inbox::start;
use bytes::Bytes;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use steadfast_kernel::Failure;
use steadfast_messaging::inbox::{Finish, Inbox, Kind, Seat, Settings, Ticket, Verdict};
use tokio::time::Instant;

type Outcome = Result<Bytes, Failure>;

/// How many schedules are tried.
const SCHEDULES: usize = 2000;

const CALLERS: usize = 3;

/// A node with one handler.
struct Node {
    inbox: Mutex<Inbox<usize>>,
    now: Instant,
    /// How many handlers run, and how many ever did.
    running: AtomicUsize,
    ran: AtomicUsize,
    /// What each of those who wait was told.
    told: Mutex<Vec<Vec<Outcome>>>,
    seats: Mutex<Vec<Option<Seat>>>,
}

/// Holds a ticket, so that it is never lost.
struct Guard<'a>(&'a Node, Option<Ticket>);

impl Guard<'_> {
    fn finish(mut self, outcome: Outcome) {
        self.0.running.fetch_sub(1, SeqCst);
        self.answer(Finish::of(&outcome), outcome);
    }

    fn answer(&mut self, finish: Finish, outcome: Outcome) {
        let Some(ticket) = self.1.take() else { return };
        let waiters = self.0.inbox.lock().unwrap().finish(ticket, finish, self.0.now);
        waiters.into_iter().for_each(|waiter| self.0.tell(waiter, outcome.clone()));
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.1.is_some() {
            self.0.running.fetch_sub(1, SeqCst);
        }
        self.answer(Finish::Forget, Err(Failure::transient("called off")));
    }
}

impl Node {
    fn new() -> Arc<Self> {
        Arc::new(Node {
            inbox: Mutex::new(Inbox::new(Settings::default())),
            now: start(),
            running: AtomicUsize::new(0),
            ran: AtomicUsize::new(0),
            told: Mutex::new(vec![Vec::new(); CALLERS]),
            seats: Mutex::new(vec![None; CALLERS]),
        })
    }

    fn tell(&self, waiter: usize, outcome: Outcome) {
        self.told.lock().unwrap()[waiter].push(outcome);
    }

    /// One delivery. The handler is given how many ran before; nothing says that it was called off.
    fn deliver(&self, waiter: usize, handler: impl Fn(usize) -> Option<Outcome>) {
        let verdict = self.inbox.lock().unwrap().check("alice", "a", Kind::Call, 1, waiter, self.now);
        match verdict {
            Verdict::New(ticket, seat) => {
                let guard = Guard(self, Some(ticket));
                assert_eq!(self.running.fetch_add(1, SeqCst), 0, "one at a time");
                self.seats.lock().unwrap()[waiter] = Some(seat);
                thread::yield_now();
                if let Some(outcome) = handler(self.ran.fetch_add(1, SeqCst)) {
                    guard.finish(outcome);
                }
            }
            Verdict::Waits(seat) => self.seats.lock().unwrap()[waiter] = Some(seat),
            Verdict::Known(outcome, waiter) => self.tell(waiter, outcome),
            other => panic!("{other:?}"),
        }
    }

    /// The connection of that one is cut.
    fn cut(&self, waiter: usize) -> bool {
        let seat = self.seats.lock().unwrap()[waiter];
        seat.is_some_and(|seat| self.inbox.lock().unwrap().leave(seat).is_some())
    }

    fn told(&self) -> Vec<Vec<Outcome>> {
        self.told.lock().unwrap().clone()
    }
}

fn done(_ran_before: usize) -> Option<Outcome> {
    Some(Ok(Bytes::from_static(b"done")))
}

/// Each of them delivers the same request, in a thread of its own.
fn deliveries(node: &Arc<Node>, handler: fn(usize) -> Option<Outcome>) -> Vec<thread::JoinHandle<()>> {
    let deliver = |waiter| {
        let node = Arc::clone(node);
        thread::spawn(move || node.deliver(waiter, handler))
    };
    (0..CALLERS).map(deliver).collect()
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn of_deliveries_at_once_one_runs_and_each_gets_its_result_once() {
    let deliver = || {
        let node = Node::new();
        join(deliveries(&node, done));
        assert_eq!(node.ran.load(SeqCst), 1);
        assert!(node.told().into_iter().all(|told| told == [done(0).unwrap()]));
    };
    shuttle::check_random(deliver, SCHEDULES);
    shuttle::check_pct(deliver, SCHEDULES, 3);
}

#[test]
fn one_that_is_cut_during_the_finish_is_answered_or_has_left_and_never_both() {
    static LEFT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let cut = || {
        let node = Node::new();
        let threads = deliveries(&node, done);
        let left: Vec<bool> = (0..CALLERS).map(|waiter| node.cut(waiter)).collect();
        join(threads);
        assert_eq!(node.ran.load(SeqCst), 1);
        LEFT.fetch_add(left.iter().filter(|left| **left).count(), SeqCst);
        for (told, left) in node.told().into_iter().zip(left) {
            assert_eq!(told.len() + usize::from(left), 1);
        }
    };
    shuttle::check_random(cut, SCHEDULES);
    shuttle::check_pct(cut, SCHEDULES, 3);
    let left = LEFT.load(SeqCst);
    assert!((100..2 * SCHEDULES * CALLERS - 100).contains(&left), "both happen: {left} have left");
}

#[test]
fn a_handler_that_is_called_off_frees_its_entry_and_the_next_delivery_runs() {
    let called_off_once = |ran_before| if ran_before == 0 { None } else { done(ran_before) };
    let deliver = move || {
        let node = Node::new();
        join(deliveries(&node, called_off_once));
        assert_eq!(node.inbox.lock().unwrap().counts().running, 0);
        node.deliver(0, done);
        let told = node.told();
        let answers: Vec<&Outcome> = told.iter().flatten().collect();
        assert_eq!(answers.len(), CALLERS + 1, "each delivery is answered once");
        assert_eq!(told[0].last(), done(0).as_ref());
        assert_eq!(node.ran.load(SeqCst), 2, "the second one stays");
    };
    shuttle::check_random(deliver, SCHEDULES);
}

/// A tell that may be refused after it was found to be new, because there is no room for it.
fn tell(node: &Node, waiter: usize, has_room: bool) {
    let verdict = node.inbox.lock().unwrap().check("alice", "a", Kind::Tell, 1, waiter, node.now);
    match verdict {
        Verdict::New(ticket, _) => {
            let guard = Guard(node, Some(ticket));
            node.running.fetch_add(1, SeqCst);
            thread::yield_now();
            if !has_room {
                return; // dropped: nothing is left of it, and all who wait are told
            }
            if let Some(ticket) = &guard.1 {
                let taken = node.inbox.lock().unwrap().taken(ticket);
                taken.into_iter().for_each(|waiter| node.tell(waiter, Ok(Bytes::new())));
            }
            node.ran.fetch_add(1, SeqCst);
            guard.finish(Ok(Bytes::new()));
        }
        Verdict::Waits(_) => {}
        Verdict::Dropped(waiter) => node.tell(waiter, Ok(Bytes::new())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tell_is_acknowledged_only_if_it_runs_or_has_run() {
    static ACKNOWLEDGED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let deliver = || {
        let node = Node::new();
        let threads = (0..CALLERS).map(|waiter| {
            let node = Arc::clone(&node);
            thread::spawn(move || tell(&node, waiter, waiter > 0)) // whoever is first may be the one for whom there is no room
        });
        join(threads.collect());
        let told = node.told();
        assert!(told.iter().all(|told| told.len() == 1), "each is answered once: {told:?}");
        let acknowledged = told.iter().flatten().filter(|outcome| outcome.is_ok()).count();
        assert!(node.ran.load(SeqCst) <= 1 && (acknowledged == 0 || node.ran.load(SeqCst) == 1), "{told:?}");
        ACKNOWLEDGED.fetch_add(acknowledged, SeqCst);
    };
    shuttle::check_random(deliver, SCHEDULES);
    shuttle::check_pct(deliver, SCHEDULES, 3);
    let acknowledged = ACKNOWLEDGED.load(SeqCst);
    assert!((100..2 * SCHEDULES * CALLERS - 100).contains(&acknowledged), "both happen: {acknowledged}");
}
