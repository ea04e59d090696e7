//! Everything that can be asked of a state, and every event that can be built for it.

mod keys;
mod plans;

use crate::support::{routes, *};
use keys::of_key;
use std::collections::BTreeSet;
use steadfast_kernel::machine::decide;
use steadfast_kernel::run::{Open, Stage, Step};
use steadfast_kernel::{
    Command, Decision, DropLetter, Entity, EntityId, Entry, Envelope, Event, Letter, LetterAbout, Message, Origin, Payload, Policy,
    Proposal, RecordHeartbeat, ReportFailure, RetryFrom, RetryRun, Run, RunId, StartRun, StepId, TakeTurn, TimerName, Timestamp,
};

/// Later than everything that the scenarios wait for, but for what is for ever.
pub(super) fn now() -> Timestamp {
    at(500_000_000)
}

/// What follows from everything that can be asked, as far as something does.
pub(super) fn decided(id: &EntityId, entity: Option<&Entity>) -> Vec<Decision> {
    let asked = match (id, entity.and_then(Entity::run)) {
        (EntityId::Run(_), Some(run)) if run.task().is_some() => plans::of_task(run),
        (EntityId::Run(_), Some(run)) => of_run(run),
        (EntityId::Run(_), None) => of_nothing(),
        (EntityId::Limit(_), _) => of_limit(entity),
        (EntityId::Letters(_), _) => of_letters(entity),
        (EntityId::Route(_), _) => of_route(entity),
        (EntityId::Key(_), _) => of_key(entity.and_then(Entity::key)),
        (EntityId::Plan(_), _) => plans::of_plan(id, entity.and_then(Entity::plan)),
        (EntityId::Lock(_), _) => plans::of_lock(id, entity.and_then(Entity::lock)),
    };
    asked.into_iter().filter_map(|command| decide(id, entity, command, now()).ok()).collect()
}

fn of_nothing() -> Vec<Command> {
    let with = |options| Command::StartRun(StartRun { options, ..start_run() });
    [start(), with(limited(&["a"])), with(manual())].into_iter().chain(plans::of_nothing()).collect()
}

fn of_run(run: &Run) -> Vec<Command> {
    let mut asked = vec![pause(), resume(), terminate(), cancel_where(false), cancel_where(true), Command::InterruptRun];
    let steps = run.open().into_iter().flat_map(|open| open.steps.keys()).cloned().map(RetryFrom::Step);
    let retries = [RetryFrom::Failed, RetryFrom::Start].into_iter().chain(steps);
    asked.extend(retries.map(|from| Command::RetryRun(RetryRun { blocked: true, ..retry_from(from) })));
    let Some(open) = run.open() else { return asked };
    asked.extend(names(open).iter().map(|name| send_signal(name, None)));
    asked.extend(run.timers().into_iter().map(|timer| fire(timer.name, timer.revision)));
    for (step, attempt) in attempts(open) {
        let details = Payload::json("7");
        let report = ReportFailure {
            epoch: run.epoch,
            asked_at: now(),
            ..report_timeout(step.as_str(), attempt, &Policy::constant(SECOND).max_attempts(99))
        };
        asked.extend([0, 1].map(|in_flight| Command::ReportFailure(ReportFailure { in_flight, ..report.clone() })));
        asked.push(Command::RecordHeartbeat(RecordHeartbeat { epoch: run.epoch, step, attempt, details }));
    }
    let to_run = |from: EntityId, message| Command::Hear(Box::new(Envelope { from, seq: u64::MAX, to: EntityId::from(&run.id), message }));
    asked.extend(
        run.wanted()
            .map(|key| to_run(EntityId::Limit(key.clone()), Message::GrantSlot { epoch: run.slots.epoch })),
    );
    asked.extend(
        run.options
            .parent
            .iter()
            .map(|parent| to_run(EntityId::from(&parent.run), Message::CancelChild { origin: ada() })),
    );
    asked.extend(open.children.iter().map(|(child, state)| {
        to_run(EntityId::from(&state.run), Message::ChildEnded { child: child.clone(), outcome: Ok(Payload::json("2")) })
    }));
    for event in of_the_host(open) {
        for (in_flight, abandoned) in [(0, vec![]), (1, vec![]), (0, pending(open)), (1, pending(open))] {
            for events in [vec![event.clone()], vec![event.clone(), last(open)]] {
                let proposals = events.into_iter().map(|event| Proposal { at: now(), event }).collect();
                let unanswered = Vec::new();
                asked.push(Command::TakeTurn(TakeTurn {
                    epoch: run.epoch,
                    proposals,
                    in_flight,
                    unanswered,
                    asked: 0,
                    abandoned: abandoned.clone(),
                    asks_again: true,
                }));
            }
        }
    }
    asked
}

/// Something that can always be said at the end of a turn.
fn last(open: &Open) -> Event {
    match open.stage {
        Stage::Running => noted("note:#99", "the last of it"),
        Stage::Compensating { .. } => signal_awaited("last#99", "last"),
    }
}

/// The names of signals that somebody waits for, and one that nobody does.
fn names(open: &Open) -> BTreeSet<String> {
    let asked = open.open_awaits().map(|(_, awaited)| awaited.name.clone());
    asked.chain(["approve".into(), "another".into()]).collect()
}

/// What the code waits for.
fn pending(open: &Open) -> Vec<TimerName> {
    let retries = open
        .steps
        .iter()
        .filter(|(_, step)| matches!(step, Step::Backoff { .. }))
        .map(|(step, _)| TimerName::Retry(step.clone()));
    let sleeps = open.sleeps.iter().filter(|(_, sleep)| sleep.fired.is_none()).map(|(id, _)| id);
    let waits = open.open_awaits().map(|(wait, _)| wait).chain(sleeps).chain(open.children.keys());
    retries.chain(waits.cloned().map(TimerName::Sleep)).collect()
}

/// The attempts to come, of steps and undos on record and of others.
fn attempts(open: &Open) -> Vec<(StepId, u32)> {
    let undos = open.undoable.iter().map(StepId::undo);
    let steps: BTreeSet<_> = open.steps.keys().cloned().chain(undos).chain([id("fresh#99")]).collect();
    let attempt = |step: StepId| match open.steps.get(&step) {
        Some(Step::Backoff { attempt, .. } | Step::Started { attempt }) => (step, *attempt),
        _ => (step, 1),
    };
    steps.into_iter().map(attempt).collect()
}

/// Every event that a host may propose, about everything on record and something that is not.
fn of_the_host(open: &Open) -> Vec<Event> {
    let mut events = vec![
        timer_set("sleep#99", 999_000_000),
        signal_awaited("signal:approve#99", "approve"),
        signal_awaited_until("signal:approve#98", "approve", 999_000_000),
        noted("note:#98", "half of it"),
        child_started("child:parcel#99", "parcel-99"),
        detached_started("child:parcel#98", "parcel-98"),
        run_compensating(None),
        run_compensating(Some(timeout())),
        run_continued("18"),
        run_completed("18"),
        run_failed(timeout()),
        Event::RunCancelled,
    ];
    for (step, attempt) in attempts(open) {
        let step = step.as_str();
        let outcomes = [step_started(step, attempt), step_failed(step, attempt, timeout()), step_failed(step, attempt, poison())];
        events.extend(
            outcomes
                .into_iter()
                .chain([step_completed(step, attempt, "1"), undoable_completed(step, attempt, "1")]),
        );
    }
    for step in &open.undoable {
        let attempt = attempts(open).into_iter().find(|(undo, _)| *undo == step.undo()).map_or(1, |(_, attempt)| attempt);
        events.extend([undo_completed(step.as_str(), attempt), undo_failed(step.as_str(), attempt, timeout())]);
    }
    events.extend(open.sleeps.keys().chain(open.awaits.keys()).map(|sleep| timer_fired(sleep.as_str())));
    let takes = |signal: u64| open.awaits.keys().map(move |wait| signal_taken(wait.as_str(), signal));
    events.extend(open.signals.keys().take(3).flat_map(|signal| takes(*signal)));
    events.extend(open.children.keys().map(|child| child_taken(child.as_str())));
    events
}

fn of_limit(entity: Option<&Entity>) -> Vec<Command> {
    let members: Vec<_> = match entity {
        Some(Entity::Limit(limit)) => limit.members.iter().map(|(run, member)| (run.clone(), member.epoch)).collect(),
        _ => Vec::new(),
    };
    let told = |run: &RunId, seq, message| Command::Hear(Box::new(Envelope { from: run.into(), seq, to: limit_id("a"), message }));
    let releases = members.iter().map(|(run, epoch)| told(run, u64::MAX, Message::ReleaseSlot { epoch: *epoch }));
    let asks = |slots| ["r-97", "r-98", "r-99"].map(|run| told(&other_run(run), 99_999, Message::RequestSlot { epoch: 1, slots }));
    releases.chain([1, 2, 9].into_iter().flat_map(asks)).collect()
}

fn of_letters(entity: Option<&Entity>) -> Vec<Command> {
    let letters: Vec<_> = match entity {
        Some(Entity::Letters(letters)) => letters.letters.clone().into_iter().collect(),
        _ => Vec::new(),
    };
    let told = |run: &RunId, message| {
        Command::Hear(Box::new(Envelope { from: run.into(), seq: u64::MAX, to: EntityId::Letters(workflow("checkout")), message }))
    };
    let settled = letters
        .iter()
        .map(|(_, (run, step, _))| told(run, Message::SettleLetter { step: step.clone(), after: 0 }));
    let dropped = letters.iter().map(|(letter, _)| Command::DropLetter(DropLetter { letter: *letter, origin: ada() }));
    let posted = told(&other_run("r-99"), Message::PostLetter(a_letter()));
    settled.chain(dropped).chain([posted]).collect()
}

fn of_route(entity: Option<&Entity>) -> Vec<Command> {
    let letters: Vec<u64> = match entity {
        Some(Entity::Route(letters)) => letters.letters.keys().copied().collect(),
        _ => Vec::new(),
    };
    let settled = |letter: u64| [routes::fail(letter, timeout()), routes::redriven(letter, ada()), routes::dropped(letter, ada())];
    letters.into_iter().flat_map(settled).chain(["r-1", "r-2", "r-3"].map(routes::add)).collect()
}

fn a_letter() -> Letter {
    let (run, step, payload) = (other_run("r-99"), id("charge#1"), Payload::json("17"));
    Letter { about: LetterAbout::Step { run, step }, attempt: 1, tenant: None, failure: poison(), payload }
}

/// Every entry that could come next by its place, whether it can or not.
pub(super) fn entries(entity: Option<&Entity>) -> Vec<Entry> {
    let run = entity.and_then(Entity::run);
    let seq = entity.map_or(0, Entity::seq) + 1;
    let epoch = run.map_or(1, |run| run.epoch);
    let entry = |event: Event| {
        let opens = matches!(event, Event::RunRetried(_) | Event::RunContinued { .. });
        Entry::new(seq, epoch + u32::from(opens), now(), event)
    };
    let nobody = Open::default();
    let open = run.and_then(Run::open).unwrap_or(&nobody);
    let told = run.map(|_| of_the_host(open)).unwrap_or_default().into_iter().map(entry);
    let closing = |entry: Entry| {
        let ways = [(None, vec![]), (Some(0), vec![]), (Some(1), vec![]), (Some(0), pending(open)), (Some(1), pending(open))];
        ways.map(|(in_flight, abandoned)| Entry { in_flight, abandoned, ..entry.clone() })
    };
    let reports = attempts(open).into_iter().flat_map(|(step, attempt)| {
        let scheduled = entry(retry_scheduled(step.as_str(), attempt + 1, 99, 999_000_000));
        [0, 1].map(|in_flight| scheduled.clone().leaving(in_flight))
    });
    let interrupted = entry(Event::RunInterrupted).leaving(0);
    let of_task = run.into_iter().flat_map(plans::events_of_task);
    let of_plan = plans::events_of_plan(entity.and_then(Entity::plan));
    let of_lock = plans::events_of_lock(entity.and_then(Entity::lock));
    let of_plans = of_task.chain(of_plan).chain(of_lock);
    let arrivals = arrivals(run, open).into_iter().chain(of_others(entity)).chain(of_plans).map(entry);
    told.flat_map(closing).chain(reports).chain([interrupted]).chain(arrivals).collect()
}

/// What comes from outside, and is recorded at once.
fn arrivals(run: Option<&Run>, open: &Open) -> Vec<Event> {
    let key = run.and_then(Run::wanted).cloned().unwrap_or_else(|| limit_key("a"));
    let seq = run.map_or(0, |run| run.seq);
    let mut events = vec![
        run_started(),
        run_started_with(None, limited(&["a"])),
        run_paused(),
        run_resumed(),
        cancel_requested(),
        Event::RunCancelRequested { origin: ada(), terminate: true, undo: false },
        run_retried(None, seq + 1, &[]),
        run_retried(None, 2, &[]),
        Event::SlotAcquired { key },
        slot_acquired("b"),
    ];
    events.extend(names(open).iter().map(|name| signal_received(name, None)));
    for (step, attempt) in attempts(open) {
        events.push(Event::StepHeartbeat { step, attempt, details: Payload::json("7") });
    }
    for child in open.children.keys() {
        events.extend([child_ended(child.as_str(), Ok("2")), child_ended(child.as_str(), Err(timeout()))]);
    }
    events
}

/// What happens to limits, letter boxes and keys.
fn of_others(entity: Option<&Entity>) -> Vec<Event> {
    let mut runs = vec![other_run("r-99")];
    let mut letters = vec![99];
    match entity {
        Some(Entity::Limit(limit)) => runs.extend(limit.members.keys().cloned()),
        Some(Entity::Letters(held)) => letters.extend(held.letters.keys()),
        Some(Entity::Key(key)) => letters.extend(key.letters.keys()),
        Some(Entity::Route(held)) => letters.extend(held.letters.keys()),
        _ => {}
    }
    let requested = |slots| runs.iter().map(move |run| Event::SlotRequested { run: run.clone(), epoch: 1, slots });
    let mut events: Vec<Event> = [1, 2, 9].into_iter().flat_map(requested).collect();
    events.extend(runs.iter().map(|run| Event::SlotGranted { run: run.clone() }));
    events.extend(runs.iter().map(|run| Event::SlotReleased { run: run.clone() }));
    events.push(Event::LetterAdded(Box::new(a_letter())));
    events.push(Event::LetterAdded(Box::new(routes::letter_of("r-9"))));
    events.extend(letters.iter().map(|letter| Event::LetterFailed { letter: *letter, attempt: 2, failure: timeout() }));
    events.extend(keys::events(entity.and_then(Entity::key)));
    events.extend(letters.iter().map(|letter| Event::LetterRedriven { letter: *letter, origin: Origin::default() }));
    events.extend(letters.iter().map(|letter| Event::LetterDropped { letter: *letter, origin: Origin::default() }));
    events
}
