//! A session: one run, hosted. It owns the future and takes turns with it.
//!
//! ```text
//!   replay --> turn --> (wait: inbox, attempts) --> turn --> … --> [undo --> turn …] --> ended | closed | blocked
//! ```
//!
//! A turn delivers what is handed over, one at a time, and polls to quiescence after each; all that came of it is sent as one list. Until it is
//! committed no other turn is taken, and nothing that was asked for in it begins. Attempts that were in flight before go on meanwhile.
//!
//! Tested by `crates/sdk/tests/it/last_words.rs`.
//! Tested by `crates/sdk/tests/it/programs/mod.rs`.

use super::board::{Handed, Key};
use super::workflow::Workflow;
use super::{Code, Host, Observer, Opening, Report, Says, SessionId, SharedBoard, ToHost, What};
use crate::clock::Clock;
use crate::cluster::Others;
use crate::error::STORE_RETRY_AFTER;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use steadfast_kernel::{Attempt, Completion, Epoch, Event, Failure, Proposal, RecordHeartbeat, RunId, StepId, TakeTurn, Timestamp, Wait};
use tokio::sync::mpsc;

pub(super) struct Session {
    run: RunId,
    id: SessionId,
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    payload_bytes_max: usize,
    inbox: mpsc::UnboundedReceiver<ToHost>,
    board: SharedBoard,
    reports: mpsc::UnboundedSender<Report>,
    /// The turn that was sent and is not yet committed.
    turn: Option<Turn>,
    /// The run is to end: called off (nothing), or out of time.
    stop: Option<Option<Failure>>,
    /// What is undone when the code is over.
    undoes: Undoes,
    /// What the store could not write, and when to say it again.
    again: BTreeSet<What>,
    patience: Option<BoxFuture<'static, ()>>,
    /// It ends when nothing is in flight; what it does not begin meanwhile.
    draining: Option<HeldBack>,
    /// Nothing is begun; what may begin once the run goes on.
    paused: Option<Vec<Key>>,
    heartbeat_every: Duration,
    observer: Option<Arc<dyn Observer>>,
    others: Option<Arc<Others>>,
    /// When the heartbeat of a step was last said.
    said_at: BTreeMap<StepId, Timestamp>,
}

/// A turn on its way.
struct Turn {
    command: TakeTurn,
    /// What may begin once it is committed.
    asked: Vec<Key>,
    /// What follows it.
    then: Then,
}

/// Whether what the code did is undone when it is over and has not completed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undoes {
    Always,
    /// Of a task: only if a person wants it, and then also if it has completed.
    OnRequest {
        wanted: bool,
    },
}

/// What a session that drains did not begin. If it ends, replay finds all of it again.
#[derive(Default)]
struct HeldBack {
    asked: Vec<Key>,
    attempts: Vec<(StepId, Attempt)>,
}

/// What follows a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Undo,
    End,
}

/// Tells the shard that the session is over, however that comes about.
struct Farewell {
    reports: mpsc::UnboundedSender<Report>,
    last: Option<Report>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(report) = self.last.take() {
            let _shard_is_gone = self.reports.send(report);
        }
    }
}

/// Why a session is over.
enum Exit {
    /// Everything is recorded.
    Done,
    /// It had to drain, and nothing is in flight.
    Drained,
    /// The code and the journal do not fit.
    Blocked(Wait),
}

enum News {
    Message(Option<ToHost>),
    SayAgain,
    Progress,
}

impl Session {
    pub(super) fn new(host: &Host, opening: &Opening, id: SessionId, inbox: mpsc::UnboundedReceiver<ToHost>) -> Self {
        Session {
            run: opening.run.clone(),
            id,
            epoch: opening.epoch,
            clock: Arc::clone(&host.clock),
            payload_bytes_max: host.payload_bytes_max,
            inbox,
            board: SharedBoard::default(),
            reports: host.reports.clone(),
            turn: None,
            stop: None,
            undoes: match opening.task {
                Some(_) => Undoes::OnRequest { wanted: opening.rolls_back },
                None => Undoes::Always,
            },
            again: BTreeSet::new(),
            patience: None,
            draining: None,
            paused: opening.paused.then(Vec::new),
            heartbeat_every: host.heartbeat_every,
            observer: host.observer.clone(),
            others: host.others.clone(),
            said_at: BTreeMap::new(),
        }
    }

    /// Where its board is going to be.
    pub(super) fn board(&self) -> SharedBoard {
        Arc::clone(&self.board)
    }

    /// Hosts the run until it ends, is closed, or cannot go on.
    pub(super) async fn host(mut self, code: Arc<dyn Code>, opening: Opening) {
        let mut farewell = Farewell { reports: self.reports.clone(), last: Some(self.report(Says::Closed)) };
        let Some(mut workflow) = Workflow::begin(&*code, &opening, Arc::clone(&self.clock), self.payload_bytes_max, self.observer.take())
        else {
            return;
        };
        let _it_is_the_first = self.board.set(Arc::downgrade(&workflow.board));
        let exit = self.drive(&mut workflow, opening).await;
        workflow.close();
        farewell.last = Some(self.report(match exit {
            Exit::Done => Says::Closed,
            Exit::Drained => Says::GivenBack,
            Exit::Blocked(wait) => Says::Blocked(wait),
        }));
    }

    async fn drive(&mut self, workflow: &mut Workflow, opening: Opening) -> Exit {
        let called_off = |entry: &steadfast_kernel::Entry| matches!(entry.event, Event::RunCancelRequested { .. });
        self.stop = opening.script.iter().any(called_off).then_some(None);
        if let Err(mismatch) = super::replay::replay(workflow, opening).await {
            return Exit::Blocked(mismatch);
        }
        loop {
            if self.is_past() {
                return Exit::Done;
            }
            let failed = workflow.board.take_failed();
            if !failed.is_empty() {
                self.report_failures(workflow, failed);
            }
            self.report_heartbeats(workflow);
            if self.turn.is_none() && (self.paused.is_none() || workflow.board.has_handed()) {
                self.take_turn(workflow).await;
            }
            if self.draining.is_some() && self.turn.is_none() && !workflow.board.is_busy() {
                return Exit::Drained;
            }
            match self.next(workflow).await {
                News::Progress => {}
                News::SayAgain => self.say_again(workflow),
                News::Message(None | Some(ToHost::Close)) => return Exit::Done,
                News::Message(Some(ToHost::Leave)) if self.is_idle(workflow) => return Exit::Done,
                News::Message(Some(ToHost::TurnTaken)) => match self.turn.take() {
                    Some(Turn { then: Then::End, .. }) => return Exit::Done,
                    Some(turn) => self.go_on(workflow, &turn),
                    None => {}
                },
                News::Message(Some(ToHost::GoOn)) => self.stay(workflow),
                News::Message(Some(message)) => self.hear(message, workflow),
            }
        }
    }

    /// Another instance may have the run: a process that did not get to run for a while is told to begin what was done elsewhere meanwhile, before its shard hears that it is over.
    fn is_past(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.is_past())
    }

    fn hear(&mut self, message: ToHost, workflow: &Workflow) {
        match message {
            ToHost::RetryScheduled { step } => workflow.board.retry_scheduled(&step),
            ToHost::StartAttempt { step, attempt } => match &mut self.draining {
                Some(held) => held.attempts.push((step, attempt)),
                None => workflow.board.start_attempt(&step, attempt),
            },
            ToHost::Deliver(completion) => match *completion {
                Completion::Stopped { failure, undo } => {
                    self.stop = Some(failure);
                    if let Undoes::OnRequest { wanted } = &mut self.undoes {
                        *wanted |= undo;
                    }
                }
                completion => workflow.board.line_up(completion),
            },
            ToHost::SayAgain(what) => {
                self.again.insert(what);
                self.patience.get_or_insert_with(|| self.clock.sleep(STORE_RETRY_AFTER));
            }
            ToHost::Drain => drop(self.draining.get_or_insert_default()),
            ToHost::Pause => {
                self.paused.get_or_insert_default();
                workflow.board.stand_still(self.clock.now());
            }
            ToHost::Resume => {
                workflow.board.go_on(self.clock.now());
                let held = self.paused.take().unwrap_or_default();
                self.open(workflow, &held);
            }
            ToHost::TurnTaken | ToHost::Close | ToHost::Leave | ToHost::GoOn => {}
        }
    }

    /// True if nothing is under way, and nothing waits to be delivered or recorded.
    fn is_idle(&self, workflow: &Workflow) -> bool {
        let nothing_to_say = self.turn.is_none() && self.again.is_empty() && self.stop.is_none() && workflow.outcome.is_none();
        nothing_to_say && workflow.board.is_idle()
    }

    /// The turn is committed: what it asked for may begin.
    fn go_on(&mut self, workflow: &mut Workflow, turn: &Turn) {
        self.open(workflow, &turn.asked);
        if turn.then == Then::Undo && self.draining.is_none() {
            workflow.undo(); // else nothing is in flight, and it ends
        }
    }

    /// It need not end after all: what it did not begin for that begins.
    fn stay(&mut self, workflow: &Workflow) {
        let Some(HeldBack { asked, attempts }) = self.draining.take() else { return };
        self.open(workflow, &asked);
        let attempts = if self.paused.is_some() { Vec::new() } else { attempts }; // when it is resumed, their timers are armed again
        attempts.iter().for_each(|(step, attempt)| workflow.board.start_attempt(step, *attempt));
    }

    /// What was asked for may begin. While the session drains it has to wait, unless it is on record that it begins. While the run is paused all of it has
    /// to: the engine, which knew of the pause before it took the turn, has not recorded that anything begins.
    fn open(&mut self, workflow: &Workflow, asked: &[Key]) {
        let (held, paused) = match (&mut self.paused, &mut self.draining) {
            (Some(held), _) => (held, true),
            (None, Some(HeldBack { asked: held, .. })) => (held, false),
            (None, None) => return workflow.board.open(asked),
        };
        let (to_begin, others): (Vec<_>, Vec<_>) = asked.iter().cloned().partition(|key| workflow.board.is_to_begin(key));
        held.extend(others);
        if paused { workflow.board.ask_again(&to_begin) } else { workflow.board.open(&to_begin) }
    }

    /// The store could not write. The work that was done stays done: the same turn and the same failures are sent again.
    fn say_again(&mut self, workflow: &Workflow) {
        self.patience = None;
        for what in std::mem::take(&mut self.again) {
            match (what, &self.turn) {
                (What::Turn, Some(turn)) => self.say(Says::Turn(turn.command.clone())),
                (What::Turn, None) => {}
                (What::Failure(step), _) => self.report_failures(workflow, [step]),
            }
        }
    }

    /// Reports failures. What is said last counts, so only the last one says which of the others are under way.
    fn report_failures(&self, workflow: &Workflow, steps: impl IntoIterator<Item = StepId>) {
        let now = self.clock.now();
        let mut reports: Vec<_> = steps.into_iter().filter_map(|step| workflow.board.failure(self.epoch, &step, now)).collect();
        if let Some(last) = reports.last_mut() {
            last.unanswered = workflow.board.unanswered(Some(&last.step));
        }
        reports.into_iter().for_each(|report| self.say(Says::Failed(report)));
    }

    /// Passes on what attempts say of how far they have come, not more often than it is worth a record. What is left out is said with the failure.
    fn report_heartbeats(&mut self, workflow: &Workflow) {
        let beats = workflow.board.take_beats();
        if beats.is_empty() {
            return; // most passes of the loop have none, and need no time
        }
        let now = self.clock.now();
        for (step, attempt, details) in beats {
            let recently = self.said_at.get(&step).is_some_and(|at| now.saturating_since(*at) < self.heartbeat_every);
            if !recently {
                self.said_at.insert(step.clone(), now);
                self.say(Says::Heartbeat(RecordHeartbeat { epoch: self.epoch, step, attempt, details }));
            }
        }
    }

    /// One turn: everything that is handed over, delivered one at a time. Sent if anything of it must be recorded.
    async fn take_turn(&mut self, workflow: &mut Workflow) {
        let (mut proposals, mut asked) = (Vec::new(), Vec::new());
        let (paused, draining) = (self.paused.is_some(), self.draining.is_some());
        let collect_asked = |workflow: &Workflow, proposals: &mut Vec<Proposal>, asked: &mut Vec<Key>| {
            let at = workflow.board.now();
            for (key, record) in workflow.board.take_asked(paused || draining) {
                proposals.extend(record.map(|event| Proposal { at, event }));
                asked.push(key);
            }
            if !paused {
                workflow.board.match_arrivals();
            }
        };
        collect_asked(workflow, &mut proposals, &mut asked);
        while workflow.outcome.is_none()
            && let Some(handed) = workflow.board.next_handed()
        {
            let at = self.time(workflow);
            let (key, outcome) = (handed.key.clone(), handed.outcome.clone());
            proposals.push(Proposal { at, event: completion(handed) });
            workflow.board.deliver(&key, outcome, at);
            workflow.settle().await;
            collect_asked(workflow, &mut proposals, &mut asked);
        }
        for kept in workflow.board.take_kept() {
            if let (Key::Step(step), Ok(output)) = (&kept.key, &kept.outcome) {
                workflow.board.adopt(step, output);
            }
            proposals.push(Proposal { at: self.time(workflow), event: completion(kept) });
        }
        workflow.board.forget_orphans();
        let end = self.end_of_code(workflow);
        if proposals.is_empty() && end.is_none() {
            return self.open(workflow, &asked);
        }
        let abandoned = workflow.board.take_disarmed(); // by the code itself; what goes when it is closed needs no word
        let then = match end {
            Some(event) => {
                workflow.close();
                workflow.board.forget_children();
                drop(workflow.board.take_disarmed());
                let then = if matches!(event, Event::RunCompensating { .. }) { Then::Undo } else { Then::End };
                let at = self.time(workflow);
                workflow.board.set_now(at); // what is undone is asked for now, not when the code was last told something
                proposals.push(Proposal { at, event });
                then
            }
            None => Then::GoOn,
        };
        let in_flight = if then == Then::End { 0 } else { workflow.board.in_flight(None) };
        let unanswered = workflow.board.unanswered(None);
        let asked_for = if then == Then::End { 0 } else { workflow.board.asked() };
        let command = TakeTurn { epoch: self.epoch, proposals, in_flight, asked: asked_for, unanswered, abandoned, asks_again: true };
        self.say(Says::Turn(command.clone()));
        self.turn = Some(Turn { command, asked, then });
    }

    /// How the code, or the undoing of what it did, has come to an end; nothing if it has not.
    fn end_of_code(&self, workflow: &mut Workflow) -> Option<Event> {
        let wanted = self.undoes == Undoes::OnRequest { wanted: true };
        let failure = match (&workflow.undoing, &workflow.outcome, &self.stop) {
            (Some(_), Some(Err(failure)), _) if wanted => return Some(Event::RunFailed { failure: failure.clone() }),
            (None, Some(_), _) | (None, None, Some(_)) if wanted => None,
            (Some(failure), Some(_), _) => return Some(failed_or_cancelled(failure.clone())),
            (Some(_), None, _) | (None, None, None) => return None,
            (None, Some(Ok(output)), _) => return Some(Event::RunCompleted { output: output.clone() }),
            (None, Some(Err(failure)), _) if *failure == super::context::continues() => {
                return workflow.board.next_input().map(|input| Event::RunContinued { input });
            }
            (None, Some(Err(failure)), _) => Some(failure.clone()),
            (None, None, Some(stop)) => stop.clone(),
        };
        if workflow.board.has_undos() && self.undoes != (Undoes::OnRequest { wanted: false }) {
            (workflow.undoing, workflow.outcome) = (Some(failure.clone()), None);
            return Some(Event::RunCompensating { failure });
        }
        Some(failed_or_cancelled(failure))
    }

    /// The time of a delivery: never before the one that came before it.
    fn time(&self, workflow: &Workflow) -> Timestamp {
        self.clock.now().max(workflow.board.now())
    }

    /// Waits for a message, or for the future to have done something worth a look.
    async fn next(&mut self, workflow: &mut Workflow) -> News {
        poll_fn(|cx| {
            if let Poll::Ready(message) = self.inbox.poll_recv(cx) {
                return Poll::Ready(News::Message(message));
            }
            if self.patience.as_mut().is_some_and(|patience| patience.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(News::SayAgain);
            }
            workflow.board.wake_on_beat(cx.waker());
            workflow.poll_for(cx);
            let ended = workflow.outcome.is_some() && self.turn.is_none() && self.paused.is_none();
            if ended || workflow.board.has_news(self.turn.is_some(), self.paused.is_some(), self.draining.is_some()) {
                Poll::Ready(News::Progress)
            } else {
                Poll::Pending
            }
        })
        .await
    }

    fn say(&self, says: Says) {
        let _shard_is_gone = self.reports.send(self.report(says));
    }

    fn report(&self, says: Says) -> Report {
        Report { run: self.run.clone(), session: self.id, says, weight: None }
    }
}

fn completion(handed: Handed) -> Event {
    let Handed { key, attempt, outcome, signal, undoable } = handed;
    match (key, outcome, signal) {
        (Key::Signal(wait), _, Some(signal)) => Event::SignalTaken { wait, signal },
        (Key::Sleep(sleep) | Key::Signal(sleep), _, _) => Event::TimerFired { sleep },
        (Key::Child(child), _, _) => Event::ChildTaken { child },
        (Key::Step(step), Ok(output), _) => Event::StepCompleted { step, attempt, output, undoable },
        (Key::Step(step), Err(failure), _) => Event::StepFailed { step, attempt, failure },
        (Key::Undo(step), Ok(_), _) => Event::UndoCompleted { step, attempt },
        (Key::Undo(step), Err(failure), _) => Event::UndoFailed { step, attempt, failure },
    }
}

fn failed_or_cancelled(failure: Option<Failure>) -> Event {
    match failure {
        Some(failure) => Event::RunFailed { failure },
        None => Event::RunCancelled,
    }
}
