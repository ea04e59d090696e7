//! A run, and what the outside knows of it: the journal, the timers, the time, what it says to others.

use super::frozen::Frozen;
use super::scenario::{Abandoned, CHILDREN, End, From, Guess, Item, Op, Scenario, Word};
use crate::support::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::{Open, Phase, Stage, decide, preview, script};
use steadfast_kernel::{
    Answer, Attempt, CancelRun, Code, Command, Completion, Decision, Effect, EntityId, Entry, Envelope, Event, Failure, Message, Origin,
    Payload, Proposal, RecordHeartbeat, Refusal, ReportFailure, RetryFrom, RetryRun, Run, RunOptions, StartChild, StartRun, Status, StepId,
    TakeTurn, Timer, TimerName, Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct World {
    pub(super) now: Timestamp,
    pub(crate) state: Option<Run>,
    pub(crate) journal: Vec<Entry>,
    /// What arming and disarming has left, in the order of their names.
    pub(super) armed: BTreeMap<TimerName, Timer>,
    /// All that it has said to others.
    pub(super) said: Vec<Envelope>,
    /// What was left of what it waited for when its time began to stand still.
    pub(super) frozen: Option<Frozen>,
}

impl World {
    pub(crate) fn new() -> Self {
        World { now: at(1_000), state: None, journal: Vec::new(), armed: BTreeMap::new(), said: Vec::new(), frozen: None }
    }

    /// The attempt of a step or undo that the journal says is next, in this life. An undo that has failed begins again.
    fn attempt_to_come(&self, step: &StepId) -> Attempt {
        script(self.journal.clone()).iter().fold(1, |attempt, entry| match &entry.event {
            Event::RetryScheduled { step: of, .. } if of == step => attempt + 1,
            Event::UndoFailed { step: of, .. } if of.undo() == *step => 1,
            _ => attempt,
        })
    }

    fn open(&self) -> Option<&Open> {
        match self.state.as_ref().map(|run| &run.phase) {
            Some(Phase::Open(open)) => Some(open),
            _ => None,
        }
    }

    fn epoch(&self) -> u32 {
        self.state.as_ref().map_or(1, |run| run.epoch)
    }

    pub(crate) fn command(&self, scenario: &Scenario, op: &Op) -> Command {
        let forward = match op {
            Op::Turn { epoch: Guess::Right, in_flight: 1.., .. } => self.forward(scenario),
            _ => None,
        };
        forward.unwrap_or_else(|| self.just(scenario, op))
    }

    /// What a run that takes no turn needs before it does: most scenarios would be about standing still.
    fn forward(&self, scenario: &Scenario) -> Option<Command> {
        match self.state.as_ref()?.status() {
            Status::Ready => Some(self.hears(scenario, Word::Grant { right: true }, Guess::Right)),
            Status::Paused if self.now.as_micros() % 2 == 0 => Some(resume()),
            Status::Interrupted | Status::Failed | Status::Cancelled => Some(retry_run()),
            Status::Completed => Some(Command::RetryRun(retry_from(RetryFrom::Start))),
            _ => None,
        }
    }

    /// Now; no host says that something is over which is not.
    fn time_of(&self, event: &Event) -> Timestamp {
        let due = match (event, self.open()) {
            (Event::TimerFired { sleep }, Some(open)) => {
                let until = || open.awaits.get(sleep).and_then(|wait| wait.until);
                open.sleeps.get(sleep).map(|sleep| sleep.due_at).or_else(until)
            }
            _ => None,
        };
        due.unwrap_or(self.now).max(self.now)
    }

    fn just(&self, scenario: &Scenario, op: &Op) -> Command {
        match op {
            Op::Start { same } => {
                let input = Payload::json(if *same { "17" } else { "99" });
                let (seed, deadline, options) = (Seed(scenario.seed), scenario.deadline, scenario.options());
                Command::StartRun(StartRun { input, seed, deadline, options, ..start_run() })
            }
            Op::Turn { epoch, items, end, and_more, in_flight, abandoned } => {
                let ended = end.map(|end| match end {
                    End::Completed => run_completed("18"),
                    End::Failed => run_failed(timeout()),
                    End::Compensating { called_off } => run_compensating((!called_off).then(timeout)),
                    End::Cancelled => Event::RunCancelled,
                    End::Continued => run_continued("18"),
                });
                let more = and_more.then(|| step_completed("after#1", 1, "1")).filter(|_| ended.is_some());
                let events = items.iter().flat_map(|item| self.events(item)).chain(ended).chain(more);
                let proposals = events.map(|event| Proposal { at: self.time_of(&event), event }).collect();
                let abandoned = abandoned.iter().filter_map(|what| self.abandoned(what)).collect();
                let epoch = epoch.or(self.epoch());
                Command::TakeTurn(TakeTurn {
                    epoch,
                    proposals,
                    in_flight: *in_flight,
                    asked: 0,
                    unanswered: Vec::new(),
                    abandoned,
                    asks_again: true,
                })
            }
            Op::Fail { epoch, step, attempt, class, retry_after, policy, in_flight } => {
                let to_undo = id(self.to_undo(step.as_str())).undo();
                let undoing = matches!(self.open(), Some(Open { stage: Stage::Compensating { .. }, .. }));
                let step = if undoing && step.undone().is_none() { &to_undo } else { step };
                let mut failure = Failure::new(Code::Internal, "it broke").class(*class);
                if let Some(delay) = retry_after {
                    failure = failure.retry_after(*delay);
                }
                Command::ReportFailure(ReportFailure {
                    epoch: epoch.or(self.epoch()),
                    step: step.clone(),
                    attempt: attempt.or(self.attempt_to_come(step)),
                    failure,
                    policy: policy.get(&scenario.policies).clone(),
                    asked_at: at(1_000),
                    in_flight: *in_flight,
                    asked: 0,
                    unanswered: Vec::new(),
                    details: in_flight.is_multiple_of(2).then(|| Payload::json("7")),
                })
            }
            Op::FireArmed { which, revision } => {
                let armed: Vec<&Timer> = self.armed.values().collect();
                let (name, right) = if armed.is_empty() {
                    (TimerName::Deadline, 1)
                } else {
                    let timer = which.get(&armed);
                    (timer.name.clone(), timer.revision)
                };
                fire(name, u64::from(revision.or(u32::try_from(right).expect("a short journal"))))
            }
            Op::FireAny { name, revision } => fire(name.clone(), *revision),
            Op::Signal { name, id } => send_signal(name, id.map(|id| format!("m-{id}")).as_deref()),
            Op::Cancel(command) => {
                let blocked = self.state.as_ref().is_some_and(|run| run.seq.is_multiple_of(3));
                Command::CancelRun(CancelRun { origin: origin(*command), blocked })
            }
            Op::Terminate(command) => Command::TerminateRun(origin(*command)),
            Op::Pause(command) => Command::PauseRun(origin(*command)),
            Op::Resume(command) => Command::ResumeRun(origin(*command)),
            Op::Interrupt => Command::InterruptRun,
            Op::Retry { from, input, outputs, blocked, command } => Command::RetryRun(RetryRun {
                origin: origin(*command),
                from: self.from(from),
                input: input.then(|| Payload::json("19")),
                outputs: outputs.iter().map(|step| (id(step), Payload::json("20"))).collect(),
                in_flight: false,
                blocked: *blocked,
            }),
            Op::Heartbeat { epoch, step, attempt } => {
                let attempt = attempt.or(self.attempt_to_come(step));
                Command::RecordHeartbeat(RecordHeartbeat {
                    epoch: epoch.or(self.epoch()),
                    step: step.clone(),
                    attempt,
                    details: Payload::json("7"),
                })
            }
            Op::Hear(word, seq) => self.hears(scenario, *word, *seq),
            Op::Pass(_) | Op::Flood => unreachable!("not one command"),
        }
    }

    fn from(&self, from: &From) -> RetryFrom {
        match from {
            From::Failed => RetryFrom::Failed,
            From::Start => RetryFrom::Start,
            From::Any(step) => RetryFrom::Step(id(step)),
            From::OnRecord(which) => {
                let steps: Vec<_> = script(self.journal.clone())
                    .into_iter()
                    .filter_map(|entry| entry.event.subject().cloned())
                    .collect();
                if steps.is_empty() { RetryFrom::Failed } else { RetryFrom::Step(which.get(&steps).clone()) }
            }
        }
    }

    /// A message to the run; from each sender they are counted, and mostly the next one comes.
    fn hears(&self, scenario: &Scenario, word: Word, seq: Guess) -> Command {
        let nobody = || other_run("nobody-1");
        let (from, message): (EntityId, Message) = match word {
            Word::Grant { right } => {
                let wanted = self.state.as_ref().and_then(|run| run.wanted().cloned()).unwrap_or_else(|| limit_key("other"));
                let epoch = self.state.as_ref().map_or(1, |run| run.slots.epoch);
                let key = if right { wanted } else { limit_key("other") };
                (EntityId::Limit(key), Message::GrantSlot { epoch: epoch + u32::from(!right && self.journal.len().is_multiple_of(2)) })
            }
            Word::CallOff { right } => {
                let from = if right { other_run("parent-1") } else { nobody() };
                (from.into(), Message::CancelChild { origin: ada() })
            }
            Word::Ended { child, well } => {
                let outcome = if well { Ok(Payload::json("2")) } else { Err(timeout()) };
                let waiting = self.open().and_then(|open| open.children.iter().find(|(_, child)| !child.detached && !child.ended));
                let any = || (other_run(CHILDREN[child].1), id(CHILDREN[child].0));
                let (run, child) = waiting.map_or_else(any, |(name, child)| (child.run.clone(), name.clone()));
                (run.into(), Message::ChildEnded { child, outcome })
            }
            Word::Bounced { child } => {
                let (name, run) = CHILDREN[child];
                let message = Message::ChildEnded { child: id(name), outcome: Err(card_refused()) };
                return hear(other_run(run), 0, message);
            }
            Word::Start { right } => {
                let parent = if right { other_run("parent-1") } else { nobody() };
                let (workflow, input, options) = (workflow("checkout"), Payload::json("17"), child_of(&parent, "child:checkout#1", false));
                let child = StartChild { workflow, input, seed: Seed(scenario.seed), deadline: scenario.deadline, options };
                (parent.into(), Message::StartChild(child))
            }
        };
        let next = self.state.as_ref().and_then(|run| run.heard.get(&from)).copied().unwrap_or_default() + 1;
        let seq = u64::from(seq.or(u32::try_from(next).expect("few messages"))).max(1);
        hear(from, seq, message)
    }

    fn abandoned(&self, what: &Abandoned) -> Option<TimerName> {
        match what {
            Abandoned::Any(name) => Some(name.clone()),
            Abandoned::Armed(which) => {
                let of_the_code: Vec<_> = self.armed.keys().filter(|name| **name != TimerName::Deadline).collect();
                (!of_the_code.is_empty()).then(|| (*which.get(&of_the_code)).clone())
            }
        }
    }

    fn events(&self, item: &Item) -> Vec<Event> {
        let undoing = matches!(self.open(), Some(Open { stage: Stage::Compensating { .. }, undoable, .. }) if !undoable.is_empty());
        let item = match item {
            Item::Completed(step, Guess::Right) | Item::Undoable(step, Guess::Right) if undoing => &Item::Undone(step, Guess::Right),
            Item::Failed(step, Guess::Right) | Item::Begun(step, Guess::Right) if undoing => &Item::UndoFailed(step, Guess::Right),
            item => item,
        };
        let of_step = |step: &str, attempt: &Guess| attempt.or(self.attempt_to_come(&id(step)));
        let of_undo = |step: &str, attempt: &Guess| attempt.or(self.attempt_to_come(&id(step).undo()));
        vec![match item {
            Item::Begun(step, attempt) => step_started(step, of_step(step, attempt)),
            Item::Completed(step, attempt) => step_completed(step, of_step(step, attempt), "1"),
            Item::Undoable(step, attempt) => undoable_completed(step, of_step(step, attempt), "1"),
            Item::Failed(step, attempt) => step_failed(step, of_step(step, attempt), timeout()),
            Item::Poisoned(step, attempt) => step_failed(step, of_step(step, attempt), poison()),
            Item::Undone(step, attempt) => undo_completed(self.to_undo(step), of_undo(self.to_undo(step), attempt)),
            Item::UndoFailed(step, attempt) => undo_failed(self.to_undo(step), of_undo(self.to_undo(step), attempt), timeout()),
            Item::Set(sleep, for_long) => Event::TimerSet { sleep: id(sleep), due_at: self.now.saturating_add(*for_long) },
            Item::Fired(sleep) => timer_fired(sleep),
            Item::Awaited(wait, name, within) => {
                let until = within.map(|within| self.now.saturating_add(within));
                Event::SignalAwaited { wait: id(wait), name: (*name).into(), until, approval: None }
            }
            Item::TakenEarly(wait, signal) => return self.taken_early(wait, signal),
            Item::TakenRight(wait, signal) => return self.taken_right(wait, signal).into_iter().collect(),
            Item::TakenAny(wait, signal) => signal_taken(wait, *signal),
            Item::Noted(note) => noted(note, "half of it"),
            Item::ChildStarted(child, false) => child_started(CHILDREN[*child].0, CHILDREN[*child].1),
            Item::ChildStarted(child, true) => detached_started(CHILDREN[*child].0, CHILDREN[*child].1),
            Item::ChildTaken(which) => return self.child_taken(which).into_iter().collect(),
            Item::ChildTakenAny(child) => child_taken(CHILDREN[*child].0),
            Item::Retry(step) => retry_scheduled(step, self.attempt_to_come(&id(step)) + 1, 9, 1),
            Item::Arrived(name) => signal_received(name, None),
            Item::CancelRequested => cancel_requested(),
            Item::Started => run_started(),
        }]
    }

    /// A step that can be undone, if there is one.
    fn to_undo<'a>(&'a self, step: &'a str) -> &'a str {
        let undoable = self.open().and_then(|open| open.undoable.iter().next());
        undoable.map_or(step, StepId::as_str)
    }

    /// A wait that finds its signal there.
    fn taken_early(&self, wait: &str, which: &Index) -> Vec<Event> {
        let signals: Vec<_> = self.open().iter().flat_map(|open| &open.signals).collect();
        if signals.is_empty() {
            return vec![];
        }
        let (signal, name) = which.get(&signals);
        vec![signal_awaited(wait, name), signal_taken(wait, **signal)]
    }

    /// A wait on record and a signal of its name, if there are such.
    fn taken_right(&self, wait: &Index, signal: &Index) -> Option<Event> {
        let open = self.open()?;
        let fits = |name: &str| open.signals.iter().filter(|(_, other)| *other == name).map(|(seq, _)| *seq).collect::<Vec<_>>();
        let waits: Vec<_> = open.open_awaits().filter(|(_, awaited)| !fits(&awaited.name).is_empty()).collect();
        if waits.is_empty() {
            return None;
        }
        let (wait, awaited) = wait.get(&waits);
        Some(signal_taken(wait.as_str(), *signal.get(&fits(&awaited.name))))
    }

    /// The outcome of a child that has ended and was not told yet, if there is one.
    fn child_taken(&self, which: &Index) -> Option<Event> {
        let ended: Vec<_> = self.open()?.children.iter().filter(|(_, child)| child.ended && child.taken.is_none()).collect();
        (!ended.is_empty()).then(|| child_taken(which.get(&ended).0.as_str()))
    }

    /// Gives a command and does what a shard would: commits the entries, folds them, arms and disarms, keeps what is said.
    pub(crate) fn tell(&mut self, command: &Command) -> Result<Result<Decision, Refusal>, TestCaseError> {
        let decided = decide(&run_id(), self.state.as_ref(), command.clone(), self.now);
        let again = decide(&run_id(), self.state.as_ref(), command.clone(), self.now);
        prop_assert_eq!(&decided, &again, "the same question has the same answer");
        if self.state.as_ref().is_some_and(|run| run.ended().is_some()) {
            let unmoved = match (command, &decided) {
                (Command::RetryRun(_), Ok(Decision { entries, .. })) => entries.len() < 2,
                (Command::FireTimer(_), decided) => *decided == Ok(decision([], [answer(Answer::Superseded)])),
                (_, Ok(Decision { entries, .. })) => entries.is_empty(),
                (_, Err(_)) => true,
            };
            prop_assert!(unmoved, "something follows the end: {:?}", decided);
        }
        if let Ok(Decision { entries, effects }) = &decided {
            a_report_is_closed_by_its_last_entry(entries)?;
            self.nothing_is_early(command, effects)?;
            self.retries_are_in_time(entries)?;
            self.a_preview_is_what_happens(command, entries)?;
            entries.iter().try_for_each(|entry| self.commit(entry))?;
            self.follow(entries, effects)?;
        }
        Ok(decided)
    }

    fn commit(&mut self, entry: &Entry) -> TestCaseResult {
        let before = self.state.clone();
        let (run, said) = advanced(self.state.take(), entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
        self.journal.push(entry.clone());
        self.frozen = Frozen::next(self.frozen.take(), before.as_ref(), &run, entry, &self.journal)?;
        for envelope in said {
            prop_assert_eq!(envelope.seq, run.numbered_from() + self.said.len() as u64 + 1, "what is said is counted");
            prop_assert_eq!(&envelope.from, &run_id().into());
            self.said.push(envelope);
        }
        prop_assert_eq!(run.sent, self.said.len() as u64);
        self.state = Some(run);
        Ok(())
    }

    /// Arms and disarms. Only what may have been settled before is disarmed without having been armed: a wait that has no end, an attempt
    /// that started on record, and what the host calls abandoned.
    fn follow(&mut self, entries: &[Entry], effects: &[Effect]) -> TestCaseResult {
        let settled = |entry: &Entry, name: &TimerName| match (&entry.event, name) {
            _ if entry.abandoned.contains(name) => true,
            (Event::SignalTaken { wait, .. }, TimerName::Sleep(sleep)) => wait == sleep,
            (Event::StepStarted { step, .. }, TimerName::Retry(retried)) => step == retried,
            _ => false,
        };
        for effect in effects {
            match effect {
                Effect::Arm(timer) => {
                    self.armed.insert(timer.name.clone(), timer.clone());
                }
                Effect::Disarm(name) if self.armed.remove(name).is_none() => {
                    let begun = self.journal.iter().filter(|entry| matches!(entry.event, Event::StepStarted { .. }));
                    let known = entries.iter().chain(begun).any(|entry| settled(entry, name));
                    prop_assert!(known, "{} is disarmed and was not armed", name);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What a timer leads to comes from one that was armed and is due.
    fn nothing_is_early(&self, command: &Command, effects: &[Effect]) -> TestCaseResult {
        for effect in effects {
            let name = match (command, effect) {
                (_, Effect::StartAttempt { step, .. }) => TimerName::Retry(step.clone()),
                (_, Effect::Deliver(Completion::TimerFired { sleep })) => TimerName::Sleep(sleep.clone()),
                (_, Effect::Deliver(Completion::Stopped { failure: Some(_), .. })) => TimerName::Deadline,
                (Command::FireTimer(_), Effect::Close) => TimerName::Deadline,
                _ => continue,
            };
            let due = self.armed.get(&name).map(|timer| timer.due);
            prop_assert!(due.is_some_and(|due| due <= self.now), "{} fires at {} and is due at {:?}", name, self.now, due);
        }
        Ok(())
    }

    /// The run's deadline bounds every attempt, but not those of undos. While the run is paused it moves on with the world.
    fn retries_are_in_time(&self, entries: &[Entry]) -> TestCaseResult {
        let Some(run) = &self.state else { return Ok(()) };
        let Some(deadline) = run.deadline else { return Ok(()) };
        let still = run.open().and_then(|open| open.paused.as_ref()).map(|paused| self.now.saturating_since(paused.at));
        let deadline = deadline.at.saturating_add(still.unwrap_or_default());
        for entry in entries {
            if let Event::RetryScheduled { step, due_at, .. } = &entry.event {
                prop_assert!(step.undone().is_some() || *due_at < deadline, "an attempt after the deadline");
            }
        }
        Ok(())
    }

    /// What a retry would do is what it does; a run that cannot be retried has no preview.
    fn a_preview_is_what_happens(&self, command: &Command, entries: &[Entry]) -> TestCaseResult {
        let (Command::RetryRun(command), Some(run)) = (command, &self.state) else { return Ok(()) };
        let [entry] = entries else { return Ok(()) }; // the same command again
        let Ok(preview) = preview(run, command.clone()) else { return Err(TestCaseError::fail("a retry without a preview")) };
        let (next, said) = advanced(Some(run.clone()), entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
        let open = next.open().expect("a run that goes on");
        let of_the_user = |step: &&StepId| !step.is_version();
        prop_assert_eq!(preview.kept, open.steps.keys().filter(of_the_user).cloned().collect::<Vec<_>>());
        let raised = |step: &&StepId| next.generations.get(step) > run.generations.get(step);
        let key = |step: &StepId| next.generations.key(&next.id, step);
        let (new, repeated): (Vec<_>, Vec<_>) = preview.runs_again.iter().partition(raised);
        prop_assert_eq!(preview.new_keys, new.into_iter().map(key).collect::<Vec<_>>());
        prop_assert_eq!(preview.repeated_keys, repeated.into_iter().map(key).collect::<Vec<_>>());
        let to = |envelope: &Envelope| envelope.to.run().cloned();
        let told = said
            .iter()
            .filter(|envelope| matches!(envelope.message, Message::CancelChild { .. }))
            .filter_map(to);
        prop_assert_eq!(preview.cancelled_children, told.collect::<Vec<_>>());
        let asks = said.iter().any(|envelope| matches!(envelope.message, Message::RequestSlot { .. }));
        prop_assert_eq!(!preview.slots.is_empty(), asks);
        prop_assert_eq!(next.is_ready(), asks, "slots are asked for again only if the run had ended");
        Ok(())
    }
}

impl Scenario {
    fn options(&self) -> RunOptions {
        let limits = limited(&["a", "b"][..self.limits]).limits;
        let parent = self
            .child
            .then(|| child_of(&other_run("parent-1"), "child:checkout#1", false))
            .and_then(|options| options.parent);
        let recovery = if self.manual { manual().recovery } else { RunOptions::default().recovery };
        RunOptions { tenant: Some("acme".into()), recovery, limits, parent, ..RunOptions::default() }
    }
}

fn origin(command: Option<u32>) -> Origin {
    command.map_or_else(ada, |id| ada_with(&format!("c-{id}")))
}

/// Only the last entry of a commit says how many attempts are in flight and what is abandoned. Of what the host says it always does; of
/// what comes from outside it never does.
fn a_report_is_closed_by_its_last_entry(entries: &[Entry]) -> TestCaseResult {
    let Some((last, before)) = entries.split_last() else { return Ok(()) };
    prop_assert!(before.iter().all(|entry| entry.in_flight.is_none() && entry.abandoned.is_empty()));
    let from_outside = matches!(
        last.event,
        Event::RunStarted { .. }
            | Event::SignalReceived { .. }
            | Event::RunCancelRequested { .. }
            | Event::RunPaused { .. }
            | Event::RunResumed { .. }
            | Event::RunRetried(_)
            | Event::SlotAcquired { .. }
            | Event::ChildEnded { .. }
            | Event::StepHeartbeat { .. }
    );
    prop_assert_eq!(last.in_flight.is_none(), from_outside, "{}", last.event.kind());
    prop_assert!(!from_outside || last.abandoned.is_empty());
    Ok(())
}
