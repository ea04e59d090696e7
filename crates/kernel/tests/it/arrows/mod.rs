//! `docs/machines.md` lists every arrow of every machine, and no other: each is taken here, and none is missing there.
//!
//! Arrows are taken by the journals of random scenarios, and by asking everything that can be asked of a sample of the states on their way. Then every
//! event that can be built is tried on those states: what the fold follows must be an arrow too.

mod tried;

use crate::facts::scenario::scenario;
use crate::facts::{keys, plans, play, society};
use crate::support::keys::session;
use crate::support::plans::{plan_named, tenant};
use crate::support::routes::mail;
use crate::support::*;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use steadfast_kernel::machine::advance;
use steadfast_kernel::run::{Stage, Step, Task};
use steadfast_kernel::{Entity, EntityId, Entry, Event, Key, Plan, Recovery, Run, TaskStatus, plan};

const SEED: [u8; 32] = *b"all arrows are taken, none other";
/// How many scenarios and plots are played.
const SCENARIOS: usize = 120;
const PLOTS: usize = 40;
const PLOTS_OF_KEYS: usize = 20;
const PLOTS_OF_PLANS: usize = 40;
/// How often everything is asked of runs that came of asking before; of limits, letter boxes and keys, until no other kind of state comes of it.
const ROUNDS: usize = 2;
/// One in so many of the states has every event tried on it.
const TRIED: usize = 4;

/// From where, by which event, to where; the first is the machine.
type Arrow = (&'static str, &'static str, &'static str, &'static str);

/// What is only in journals of earlier versions: the fold follows it, and nothing leads to it any more.
const WRITTEN_BEFORE: [Arrow; 1] = [("run", "PAUSED", "STEP_STARTED", "PAUSED")];

fn machine(id: &EntityId, entity: Option<&Entity>) -> &'static str {
    match id {
        EntityId::Run(_) if entity.and_then(Entity::run).is_some_and(|run| run.task().is_some()) => "task",
        EntityId::Run(_) => "run",
        EntityId::Limit(_) => "limit",
        EntityId::Letters(_) => "letter box",
        EntityId::Key(_) => "key",
        EntityId::Plan(_) => "plan",
        EntityId::Lock(_) => "lock",
        EntityId::Route(_) => "letters of a route",
    }
}

/// The states of the page.
fn state(entity: Option<&Entity>) -> &'static str {
    match entity {
        None => "–",
        Some(Entity::Run(run)) => run.task_status().map_or_else(|| run.status().as_str(), TaskStatus::as_str),
        Some(Entity::Limit(limit)) if limit.members.is_empty() => "IDLE",
        Some(Entity::Limit(limit)) if !limit.line.is_empty() => "LINE",
        Some(Entity::Limit(limit)) if limit.held() < limit.slots as usize => "ROOM",
        Some(Entity::Limit(_)) => "FULL",
        Some(Entity::Letters(letters)) if letters.letters.is_empty() => "EMPTY",
        Some(Entity::Letters(_)) => "HOLDING",
        Some(Entity::Route(letters)) if letters.letters.is_empty() => "EMPTY",
        Some(Entity::Route(_)) => "HOLDING",
        Some(Entity::Key(key)) => match (key.held.is_some(), key.callbacks.is_empty() && key.letters.is_empty()) {
            (true, true) => "HELD",
            (true, false) => "HELD_OWING",
            (false, false) => "OWING",
            (false, true) => "SPENT",
        },
        Some(Entity::Plan(plan)) => plan.status().as_str(),
        Some(Entity::Lock(lock)) => match (lock.holder.is_some(), lock.line.is_empty()) {
            (true, true) => "HELD",
            (true, false) => "LINE",
            (false, true) => "FREE",
            (false, false) => "GIVEN",
        },
    }
}

/// The arrow of an entry. Of tasks those are listed that are theirs: what comes of their code is as for every run.
fn arrow(id: &EntityId, from: &'static str, entry: &Entry, next: &Entity) -> Option<Arrow> {
    let machine = machine(id, Some(next));
    let kind = entry.event.kind();
    let is_of_tasks = matches!(entry.event, Event::Task(_)) || (kind.starts_with("RUN_") && kind != "RUN_CONTINUED");
    (machine != "task" || is_of_tasks).then(|| (machine, from, kind, state(Some(next))))
}

/// A machine, and what states of a kind have in common.
type Kind = (&'static str, String);
type Sample = (EntityId, Option<Entity>);

/// Arrows, and a few states of each kind on their way.
#[derive(Default)]
struct Seen {
    arrows: BTreeSet<Arrow>,
    samples: BTreeMap<Kind, Sample>,
}

impl Seen {
    /// Follows entries from a state; where they end.
    #[track_caller]
    fn follow(&mut self, id: &EntityId, mut entity: Option<Entity>, entries: &[Entry]) -> Option<Entity> {
        for entry in entries {
            let from = state(entity.as_ref());
            let (next, _) = advance(id, entity, entry).unwrap_or_else(|illegal| panic!("{illegal}"));
            self.arrows.extend(arrow(id, from, entry, &next));
            entity = Some(next);
        }
        entity
    }

    /// Keeps a state if none of its kind is kept, and if it is not in the middle of a commit.
    fn keep(&mut self, id: &EntityId, entity: Option<Entity>) {
        if entity.as_ref().is_some_and(is_in_between) {
            return;
        }
        self.samples
            .entry((machine(id, entity.as_ref()), kind(entity.as_ref())))
            .or_insert_with(|| (id.clone(), entity));
    }

    /// Asks everything of the states that are kept, and of those that came of it; all that was asked.
    fn ask_everything(&mut self) -> Vec<Sample> {
        let others = [EntityId::Plan(plan_named("p-9")), EntityId::Lock(tenant("acme")), EntityId::Route(mail())];
        [run_id().into(), limit_id("a"), EntityId::Letters(workflow("checkout")), EntityId::Key(session())]
            .iter()
            .chain(&others)
            .for_each(|id| self.keep(id, None));
        let mut asked = BTreeMap::new();
        for round in 0.. {
            let is_new =
                |(kind, (id, _)): &(&Kind, &Sample)| !asked.contains_key(*kind) && (round < ROUNDS || !matches!(id, EntityId::Run(_)));
            let new: Vec<_> = self.samples.iter().filter(is_new).map(|(kind, sample)| (kind.clone(), sample.clone())).collect();
            if new.is_empty() {
                break;
            }
            for (_, (id, entity)) in &new {
                for decision in tried::decided(id, entity.as_ref()) {
                    let next = self.follow(id, entity.clone(), &decision.entries);
                    self.keep(id, next);
                }
            }
            asked.extend(new);
        }
        asked.into_values().collect()
    }

    /// As [`Seen::follow`], from the beginning; a state of each kind is kept.
    #[track_caller]
    fn read(&mut self, id: &EntityId, journal: &[Entry]) {
        let mut entity = None;
        for entry in journal {
            entity = self.follow(id, entity, std::slice::from_ref(entry));
            self.keep(id, entity.clone());
        }
    }
}

/// A limit that has a slot for who waits, a task that is called off, handed over or being adopted and has not ended or stopped: what follows is in the same
/// commit.
fn is_in_between(entity: &Entity) -> bool {
    match entity {
        Entity::Limit(limit) => !limit.line.is_empty() && limit.held() < limit.slots as usize,
        Entity::Run(run) => {
            let between = |task: &Task| (run.is_called_off() && !task.rolls_back) || task.adopting || task.handed_over.is_some();
            run.open().is_some() && run.task().is_some_and(between)
        }
        _ => false,
    }
}

/// What two states have in common for which the same may happen.
fn kind(entity: Option<&Entity>) -> String {
    let status = state(entity);
    match entity {
        Some(Entity::Run(run)) => format!("{status} {}", kind_of_run(run)),
        Some(Entity::Limit(limit)) => format!("{status} {} {} {}", limit.held().min(4), limit.line.len().min(3), limit.slots.min(4)),
        Some(Entity::Letters(letters)) => format!("{status} {}", letters.letters.len().min(3)),
        Some(Entity::Route(letters)) => format!("{status} {}", letters.letters.len().min(3)),
        Some(Entity::Key(key)) => format!("{status} {} {} {}", told_of(key), key.callbacks.len().min(2), key.letters.len().min(2)),
        Some(Entity::Plan(plan)) => format!("{status} {}", kind_of_plan(plan)),
        Some(Entity::Lock(lock)) => {
            let lasts = lock.held().is_some_and(|lease| lease.expires_at > tried::now());
            let waits = lock.line.iter().all(|waiter| waiter.waits);
            format!("{status} {} {lasts} {waits}", lock.line.len().min(2))
        }
        None => status.into(),
    }
}

/// Whether something comes of its end.
fn told_of(key: &Key) -> bool {
    key.held.as_ref().is_some_and(|held| held.directory || held.on_expire.is_some())
}

fn kind_of_plan(plan: &Plan) -> String {
    let cause = if let plan::Phase::Paused { cause, .. } = plan.phase { cause.as_str() } else { "" };
    let has = [&plan.silent, &plan.waiting, &plan.asked, &plan.admitted].map(|places| places.len().min(1));
    format!("{cause} {has:?} {:?} {} {}", plan.counts.keys().next(), plan.counts.len().min(2), plan.degraded)
}

fn kind_of_run(run: &Run) -> String {
    let task = run
        .task()
        .map(|task| (task.admitted, task.started, task.started_at.is_some(), task.lock.is_some(), task.completed.len().min(2), task.alone));
    let Some(open) = run.open() else { return format!("{} {task:?}", run.options.limits.is_empty()) };
    let any = |which: fn(&Step) -> bool| open.steps.values().any(which);
    let has = [
        run.options.recovery == Recovery::Manual,
        open.in_flight > 0,
        open.cancel_requested,
        open.paused.is_some(),
        run.is_ready(),
        run.deadline.is_some(),
        open.stage == Stage::Running,
        open.undoable.is_empty(),
        any(|step| matches!(step, Step::Backoff { .. })),
        any(|step| matches!(step, Step::Started { .. })),
        open.sleeps.values().any(|sleep| sleep.fired.is_none()),
        open.open_awaits().next().is_some(),
        open.signals.is_empty(),
        open.children.values().any(|child| !child.ended && !child.detached),
        open.children.values().any(|child| child.ended && child.taken.is_none()),
    ];
    let has: String = has.map(|has| if has { '1' } else { '0' }).iter().collect();
    format!("{has} {task:?}")
}

/// The arrows of the page: the rows of three cells below the heading of each machine.
fn listed() -> BTreeSet<(String, String, String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines.md");
    let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (mut arrows, mut machine) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## The ") {
            machine = heading.to_string();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", from, event, to, ""] = cells[..]
            && event.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        {
            let arrow = (machine.clone(), from.to_string(), event.to_string(), to.to_string());
            assert!(arrows.insert(arrow), "{line} is listed twice");
        }
    }
    arrows
}

fn rows<'a>(arrows: impl IntoIterator<Item = &'a (String, String, String, String)>) -> String {
    arrows
        .into_iter()
        .map(|(machine, from, event, to)| format!("{machine}: | {from} | {event} | {to} |\n"))
        .collect()
}

fn owned((machine, from, event, to): &Arrow) -> (String, String, String, String) {
    ((*machine).into(), (*from).into(), (*event).into(), (*to).into())
}

fn generated() -> Seen {
    eprintln!("the seed is {:?}", std::str::from_utf8(&SEED));
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &SEED));
    let mut seen = Seen::default();
    for _ in 0..SCENARIOS {
        let scenario = scenario().new_tree(&mut runner).expect("a scenario").current();
        let (world, _) = play(&scenario, |_, _| {}).expect("every fact holds");
        seen.read(&run_id().into(), &world.journal);
    }
    for _ in 0..PLOTS {
        let plot = society::plot().new_tree(&mut runner).expect("a plot").current();
        let society = society::play(&plot, |_, _, _| {}).expect("every fact holds");
        for (id, journal) in &society.journals {
            seen.read(id, journal);
        }
    }
    for _ in 0..PLOTS_OF_KEYS {
        let plot = keys::plot().new_tree(&mut runner).expect("a plot").current();
        let world = keys::play(&plot, |_| {}).expect("every fact holds");
        world
            .lives
            .iter()
            .chain([&world.left])
            .for_each(|journal| seen.read(&EntityId::Key(session()), journal));
    }
    for _ in 0..PLOTS_OF_PLANS {
        let plot = plans::plot().new_tree(&mut runner).expect("a plot").current();
        let rollouts = plans::play(&plot, |_, _, _| {}).expect("every fact holds");
        for (id, journal) in &rollouts.journals {
            seen.read(id, journal);
        }
    }
    seen
}

#[test]
fn the_page_lists_every_arrow_and_no_other() {
    let mut seen = generated();
    let states = seen.ask_everything();
    let (taken, listed): (BTreeSet<_>, _) = (seen.arrows.iter().map(owned).collect(), listed());
    assert!(taken.is_subset(&listed), "taken, and not in docs/machines.md:\n{}", rows(taken.difference(&listed)));
    let written_before = BTreeSet::from_iter(WRITTEN_BEFORE.iter().map(owned));
    let never_taken: BTreeSet<_> = listed.difference(&taken).cloned().collect();
    assert!(never_taken == written_before, "in docs/machines.md, and never taken:\n{}", rows(&never_taken));
    let mut followed = BTreeMap::new();
    for (id, entity) in states.iter().step_by(TRIED) {
        for entry in tried::entries(entity.as_ref()) {
            let Ok((next, _)) = advance(id, entity.clone(), &entry) else { continue };
            let Some(arrow) = arrow(id, state(entity.as_ref()), &entry, &next) else { continue };
            if !listed.contains(&owned(&arrow)) {
                followed.entry(arrow).or_insert_with(|| format!("{entry:?} after {entity:?}"));
            }
        }
    }
    let arrows: Vec<_> = followed.keys().collect();
    assert!(
        arrows.is_empty(),
        "the fold follows what is not in docs/machines.md: {arrows:#?}, the first by {:?}",
        followed.values().next()
    );
}
