//! What the tests share: short constructors, so that expected lists can be written out, and the fold of a journal.

pub(crate) mod keys;
pub(crate) mod plans;
pub(crate) mod routes;

use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::{self, evolve};
use steadfast_kernel::{
    Answer, Attempt, CancelRun, Code, Command, Completion, Decision, Effect, EntityId, Entry, Envelope, Epoch, Event, Failure, FireTimer,
    Heard, IllegalTransition, LimitKey, Limiting, Message, Origin, Parent, Payload, Policy, Proposal, Record, Recovery, ReportFailure,
    Retried, RetryFrom, RetryRun, Run, RunId, RunOptions, SendSignal, Seq, StartRun, StepId, TakeTurn, Timer, TimerName, Timestamp,
    WorkflowName,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const SEED: Seed = Seed([7; 32]);

pub(crate) fn run_id() -> RunId {
    RunId::new("order-17").expect("a run id")
}

pub(crate) fn other_run(name: &str) -> RunId {
    RunId::new(name).expect("a run id")
}

pub(crate) fn workflow(name: &str) -> WorkflowName {
    WorkflowName::new(name).expect("a workflow name")
}

pub(crate) fn id(text: &str) -> StepId {
    StepId::from_stored(text)
}

/// That many milliseconds after the beginning of time.
pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_micros(ms * 1000)
}

pub(crate) fn timeout() -> Failure {
    Failure::transient("connection timeout")
}

pub(crate) fn card_refused() -> Failure {
    Failure::permanent("card refused").code(Code::PermissionDenied)
}

/// The failure as the code is told it after that many attempts.
pub(crate) fn after(attempts: Attempt, mut failure: Failure) -> Failure {
    failure.attempts = attempts;
    failure
}

/// What needs a person: a dead letter.
pub(crate) fn poison() -> Failure {
    Failure::poison("not a receipt")
}

/// What the code is told when a step that kept timing out has used up all its attempts.
pub(crate) fn gave_up(max: u32) -> Failure {
    let message = format!("gave up after {max} of {max} attempts: connection timeout");
    let mut failure = Failure::permanent(message).code(Code::Unavailable).cause("connection timeout");
    (failure.attempts, failure.max_attempts) = (max, Some(max));
    failure
}

/// What the code is told when a step that timed out has no time for another attempt.
pub(crate) fn out_of_time(attempts: Attempt) -> Failure {
    let failure = Failure::permanent("no time left for another attempt: connection timeout").code(Code::DeadlineExceeded);
    after(attempts, failure.cause("connection timeout"))
}

/// What a run is ended with at its deadline.
pub(crate) fn deadline_exceeded() -> Failure {
    Failure::permanent("the run did not end before its deadline").code(Code::DeadlineExceeded)
}

/// Who wants something of a run in the tests, and why.
pub(crate) fn ada() -> Origin {
    Origin { by: Some("ada".into()), why: Some("ordered twice".into()), command: None }
}

/// The same request under an id.
pub(crate) fn ada_with(command: &str) -> Origin {
    Origin { command: Some(command.into()), ..ada() }
}

/// A run that does not go on by itself after its process died.
pub(crate) fn manual() -> RunOptions {
    RunOptions { recovery: Recovery::Manual, ..RunOptions::default() }
}

pub(crate) fn limit_key(key: &str) -> LimitKey {
    LimitKey::of_key(key).expect("a key")
}

pub(crate) fn limit_id(key: &str) -> EntityId {
    EntityId::Limit(limit_key(key))
}

/// A run that needs one slot of each of those limits, which have two.
pub(crate) fn limited(keys: &[&str]) -> RunOptions {
    let limits = keys.iter().map(|key| Limiting { key: limit_key(key), slots: 2 }).collect();
    RunOptions { limits, ..RunOptions::default() }
}

/// A child of that run, which knows it by that name.
pub(crate) fn child_of(run: &RunId, child: &str, detached: bool) -> RunOptions {
    RunOptions { parent: Some(Parent { run: run.clone(), child: id(child), detached }), ..RunOptions::default() }
}

// Events.

pub(crate) fn run_started() -> Event {
    run_started_with(None, RunOptions::default())
}

pub(crate) fn run_started_until(deadline_ms: i64) -> Event {
    run_started_with(Some(deadline_ms), RunOptions::default())
}

pub(crate) fn run_started_with(deadline_ms: Option<i64>, options: RunOptions) -> Event {
    Event::RunStarted { workflow: workflow("checkout"), input: Payload::json("17"), seed: SEED, deadline_at: deadline_ms.map(at), options }
}

pub(crate) fn step_completed(step: &str, attempt: Attempt, output: &'static str) -> Event {
    Event::StepCompleted { step: id(step), attempt, output: Payload::json(output), undoable: false }
}

pub(crate) fn step_failed(step: &str, attempt: Attempt, failure: Failure) -> Event {
    Event::StepFailed { step: id(step), attempt, failure }
}

/// A retry that is due at `due_ms`, after a delay of one second.
pub(crate) fn retry_scheduled(step: &str, attempt: Attempt, of: Attempt, due_ms: i64) -> Event {
    Event::RetryScheduled { step: id(step), attempt, of, delay: SECOND, due_at: at(due_ms), failure: timeout(), details: None }
}

pub(crate) fn timer_set(sleep: &str, due_ms: i64) -> Event {
    Event::TimerSet { sleep: id(sleep), due_at: at(due_ms) }
}

pub(crate) fn timer_fired(sleep: &str) -> Event {
    Event::TimerFired { sleep: id(sleep) }
}

pub(crate) fn step_started(step: &str, attempt: Attempt) -> Event {
    Event::StepStarted { step: id(step), attempt }
}

/// A step has its result, and an undo.
pub(crate) fn undoable_completed(step: &str, attempt: Attempt, output: &'static str) -> Event {
    Event::StepCompleted { step: id(step), attempt, output: Payload::json(output), undoable: true }
}

/// The code waits for a signal, however long.
pub(crate) fn signal_awaited(wait: &str, name: &str) -> Event {
    Event::SignalAwaited { wait: id(wait), name: name.into(), until: None, approval: None }
}

pub(crate) fn signal_awaited_until(wait: &str, name: &str, until_ms: i64) -> Event {
    Event::SignalAwaited { wait: id(wait), name: name.into(), until: Some(at(until_ms)), approval: None }
}

/// A signal that says `true`.
pub(crate) fn signal_received(name: &str, id: Option<&str>) -> Event {
    Event::SignalReceived { name: name.into(), id: id.map(Into::into), payload: Payload::json("true"), by: None, why: None }
}

pub(crate) fn signal_taken(wait: &str, signal: Seq) -> Event {
    Event::SignalTaken { wait: id(wait), signal }
}

pub(crate) fn cancel_requested() -> Event {
    Event::RunCancelRequested { origin: ada(), terminate: false, undo: false }
}

/// Nothing as the reason means that the run was called off.
pub(crate) fn run_compensating(failure: Option<Failure>) -> Event {
    Event::RunCompensating { failure }
}

pub(crate) fn undo_completed(step: &str, attempt: Attempt) -> Event {
    Event::UndoCompleted { step: id(step), attempt }
}

pub(crate) fn undo_failed(step: &str, attempt: Attempt, failure: Failure) -> Event {
    Event::UndoFailed { step: id(step), attempt, failure }
}

pub(crate) fn run_paused() -> Event {
    Event::RunPaused { origin: ada() }
}

pub(crate) fn run_resumed() -> Event {
    Event::RunResumed { origin: ada() }
}

pub(crate) fn slot_acquired(key: &str) -> Event {
    Event::SlotAcquired { key: limit_key(key) }
}

/// A child that the code waits for; it is the run of that id.
pub(crate) fn child_started(child: &str, run: &str) -> Event {
    started_child(child, run, false)
}

/// A child that nobody waits for.
pub(crate) fn detached_started(child: &str, run: &str) -> Event {
    started_child(child, run, true)
}

fn started_child(child: &str, run: &str, detached: bool) -> Event {
    let (run, workflow, input) = (other_run(run), workflow("parcel"), Payload::json("1"));
    let options = child_of(&run_id(), child, detached);
    Event::ChildStarted { child: id(child), run, workflow, input, deadline: None, options }
}

pub(crate) fn child_ended(child: &str, outcome: Result<&'static str, Failure>) -> Event {
    Event::ChildEnded { child: id(child), outcome: outcome.map(Payload::json) }
}

pub(crate) fn child_taken(child: &str) -> Event {
    Event::ChildTaken { child: id(child) }
}

pub(crate) fn noted(note: &str, text: &str) -> Event {
    Event::ProgressNoted { note: id(note), text: text.into() }
}

/// Another life, from that step, that discards everything from the cut on and what is on record of those.
pub(crate) fn retried(from: Option<&str>, cut: Seq, reset: &[&str]) -> Retried {
    let reset = reset.iter().map(|step| id(step)).collect();
    Retried { origin: ada(), from: from.map(id).into_iter().collect(), cut, cuts: Vec::new(), reset, supplied: Vec::new(), input: None }
}

pub(crate) fn run_retried(from: Option<&str>, cut: Seq, reset: &[&str]) -> Event {
    Event::RunRetried(Box::new(retried(from, cut, reset)))
}

pub(crate) fn run_continued(input: &'static str) -> Event {
    Event::RunContinued { input: Payload::json(input) }
}

pub(crate) fn run_completed(output: &'static str) -> Event {
    Event::RunCompleted { output: Payload::json(output) }
}

pub(crate) fn run_failed(failure: Failure) -> Event {
    Event::RunFailed { failure }
}

// Entries.

/// An entry of the first epoch that says nothing about attempts in flight.
pub(crate) fn entry(seq: Seq, at_ms: i64, event: Event) -> Entry {
    Entry::new(seq, 1, at(at_ms), event)
}

pub(crate) trait Leaving {
    /// The same entry, saying how many attempts are in flight after it.
    fn leaving(self, in_flight: u32) -> Self;

    /// The same entry, saying what the code no longer waits for.
    fn abandoning(self, abandoned: impl Into<Vec<TimerName>>) -> Self;

    /// The same entry in another life.
    fn in_epoch(self, epoch: Epoch) -> Self;

    /// The same entry, saying which message it came of.
    fn heard(self, from: impl Into<EntityId>, seq: u64) -> Self;
}

impl Leaving for Entry {
    fn leaving(mut self, in_flight: u32) -> Self {
        self.in_flight = Some(in_flight);
        self
    }

    fn abandoning(mut self, abandoned: impl Into<Vec<TimerName>>) -> Self {
        self.abandoned = abandoned.into();
        self
    }

    fn in_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    fn heard(mut self, from: impl Into<EntityId>, seq: u64) -> Self {
        self.heard = Some(Heard { from: from.into(), seq });
        self
    }
}

/// Entries from 1 on, all at the beginning of time, each in its epoch.
pub(crate) fn history(events: impl IntoIterator<Item = Event>) -> Vec<Entry> {
    let in_order = (1..).zip(events).scan(1, |epoch, (seq, event)| {
        *epoch += Epoch::from(matches!(event, Event::RunRetried(_) | Event::RunContinued { .. }));
        Some(entry(seq, 0, event).in_epoch(*epoch))
    });
    in_order.collect()
}

// Commands.

pub(crate) fn start_run() -> StartRun {
    StartRun {
        run: run_id(),
        workflow: workflow("checkout"),
        input: Payload::json("17"),
        seed: SEED,
        deadline: None,
        options: RunOptions::default(),
    }
}

pub(crate) fn start() -> Command {
    Command::StartRun(start_run())
}

/// A turn whose deliveries all happened at that time.
pub(crate) fn turn(at_ms: i64, events: impl IntoIterator<Item = Event>, in_flight: u32) -> Command {
    let proposals = events.into_iter().map(|event| Proposal { at: at(at_ms), event }).collect();
    Command::TakeTurn(TakeTurn {
        epoch: 1,
        proposals,
        in_flight,
        asked: 0,
        unanswered: Vec::new(),
        abandoned: Vec::new(),
        asks_again: true,
    })
}

/// As [`turn`], after which the code no longer waits for those.
pub(crate) fn turn_abandoning(
    at_ms: i64,
    events: impl IntoIterator<Item = Event>,
    in_flight: u32,
    abandoned: impl Into<Vec<TimerName>>,
) -> Command {
    match turn(at_ms, events, in_flight) {
        Command::TakeTurn(turn) => Command::TakeTurn(TakeTurn { abandoned: abandoned.into(), ..turn }),
        other => other,
    }
}

/// A signal that says `true`.
pub(crate) fn send_signal(name: &str, id: Option<&str>) -> Command {
    Command::SendSignal(SendSignal { name: name.into(), payload: Payload::json("true"), id: id.map(Into::into), by: None, why: None })
}

/// The same, where the code cannot go on or can.
pub(crate) fn cancel_where(blocked: bool) -> Command {
    Command::CancelRun(CancelRun { origin: ada(), blocked })
}

pub(crate) fn cancel() -> Command {
    Command::CancelRun(CancelRun { origin: ada(), blocked: false })
}

pub(crate) fn pause() -> Command {
    Command::PauseRun(ada())
}

pub(crate) fn resume() -> Command {
    Command::ResumeRun(ada())
}

pub(crate) fn terminate() -> Command {
    Command::TerminateRun(ada())
}

pub(crate) fn retry_from(from: RetryFrom) -> RetryRun {
    RetryRun { origin: ada(), from, ..RetryRun::default() }
}

/// At the step that it failed at, or where it stopped.
pub(crate) fn retry_run() -> Command {
    Command::RetryRun(retry_from(RetryFrom::Failed))
}

/// What another entity says to the run of the tests.
pub(crate) fn hear(from: impl Into<EntityId>, seq: u64, message: Message) -> Command {
    Command::Hear(Box::new(Envelope { from: from.into(), seq, to: run_id().into(), message }))
}

/// A report that a step, asked for at the beginning of time, has timed out; nothing else is in flight.
pub(crate) fn report_timeout(step: &str, attempt: Attempt, policy: &Policy) -> ReportFailure {
    ReportFailure {
        epoch: 1,
        step: id(step),
        attempt,
        failure: timeout(),
        policy: policy.clone(),
        asked_at: at(0),
        in_flight: 0,
        asked: 0,
        unanswered: Vec::new(),
        details: None,
    }
}

pub(crate) fn timed_out(step: &str, attempt: Attempt, policy: &Policy) -> Command {
    Command::ReportFailure(report_timeout(step, attempt, policy))
}

pub(crate) fn failed_with(failure: Failure, step: &str, attempt: Attempt, policy: &Policy) -> Command {
    Command::ReportFailure(ReportFailure { failure, ..report_timeout(step, attempt, policy) })
}

pub(crate) fn fire(name: TimerName, revision: Seq) -> Command {
    Command::FireTimer(FireTimer { name, revision })
}

// Effects.

pub(crate) fn retry(step: &str) -> TimerName {
    TimerName::Retry(id(step))
}

pub(crate) fn sleep(sleep: &str) -> TimerName {
    TimerName::Sleep(id(sleep))
}

pub(crate) fn timer(name: TimerName, due: Timestamp, revision: Seq) -> Timer {
    Timer { entity: run_id().into(), name, due, revision }
}

pub(crate) fn arm(name: TimerName, due_ms: i64, revision: Seq) -> Effect {
    Effect::Arm(timer(name, at(due_ms), revision))
}

pub(crate) fn disarm(name: TimerName) -> Effect {
    Effect::Disarm(name)
}

pub(crate) fn answer(answer: Answer) -> Effect {
    Effect::Answer(answer)
}

pub(crate) fn start_attempt(step: &str, attempt: Attempt) -> Effect {
    Effect::StartAttempt { step: id(step), attempt }
}

pub(crate) fn deliver_failure(step: &str, attempt: Attempt, failure: Failure) -> Effect {
    Effect::Deliver(Completion::StepFailed { step: id(step), attempt, failure })
}

pub(crate) fn deliver_timer(sleep: &str) -> Effect {
    Effect::Deliver(Completion::TimerFired { sleep: id(sleep) })
}

/// A signal that says `true` has arrived.
pub(crate) fn deliver_signal(signal: Seq, name: &str) -> Effect {
    Effect::Deliver(Completion::SignalReceived { signal, name: name.into(), payload: Payload::json("true") })
}

/// The code is to end; nothing as the reason means that the run was called off.
pub(crate) fn deliver_stop(failure: Option<Failure>) -> Effect {
    Effect::Deliver(Completion::Stopped { failure, undo: false })
}

pub(crate) fn decision(entries: impl Into<Vec<Entry>>, effects: impl Into<Vec<Effect>>) -> Decision {
    Decision { entries: entries.into(), effects: effects.into() }
}

// Folding.

/// The state after those entries, from scratch; nothing where there are none.
pub(crate) fn fold(entries: &[Entry]) -> Result<Option<Run>, IllegalTransition> {
    entries.iter().try_fold(None, |state, entry| evolve(&run_id(), state, entry).map(Some))
}

/// What the last of those entries says to others, with its place in the outbox.
#[track_caller]
pub(crate) fn said(entries: &[Entry]) -> Vec<(u64, EntityId, Message)> {
    let (last, before) = entries.split_last().expect("an entry");
    let (_, said) = advanced(folded(before), last).unwrap_or_else(|illegal| panic!("{illegal}"));
    said.into_iter().map(|Envelope { seq, to, message, .. }| (seq, to, message)).collect()
}

/// The state after a journal that is known to be good.
#[track_caller]
pub(crate) fn folded(entries: &[Entry]) -> Option<Run> {
    fold(entries).unwrap_or_else(|illegal| panic!("{illegal}"))
}

/// The entries as they come back from a store.
#[track_caller]
pub(crate) fn stored(entries: &[Entry]) -> Vec<Entry> {
    let there_and_back = |entry| Entry::try_from(&Record::from(entry)).unwrap_or_else(|unreadable| panic!("{unreadable}"));
    entries.iter().map(there_and_back).collect()
}

/// The state after one more entry, and what it tells others.
pub(crate) fn advanced(state: Option<Run>, entry: &Entry) -> Result<(Run, Vec<Envelope>), IllegalTransition> {
    match state {
        None => run::begin_with(&run_id(), entry),
        Some(mut run) => run::advance(&mut run, entry).map(|said| (run, said)),
    }
}
