//! The facts, checked after every kill on a copy of what the process left behind, so that the next process finds it untouched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use steadfast_crash_test::log::{self, Line};
use steadfast_crash_test::shapes;
use steadfast_kernel::{Entry, Event, Run, RunId, run};
use steadfast_store::{RunRow, ShardId, Store, TimerKey};
use steadfast_store_embedded::Embedded;

/// The one shard of an embedded store.
const SHARD: ShardId = 0;

type Journals = BTreeMap<String, Vec<Entry>>;

pub(crate) struct Facts {
    folder: PathBuf,
    runs: Vec<(String, shapes::Expected)>,
    /// The journals as the last kill left them.
    journals: Journals,
    /// Steps on record, and the process that was killed when they were first seen.
    recorded: BTreeMap<(String, String), u32>,
    acknowledged: BTreeSet<String>,
}

impl Facts {
    pub(crate) fn new(folder: &Path, runs: u32) -> Self {
        let run = |n: u32| {
            let shape = &shapes::ALL[n as usize % shapes::ALL.len()];
            (format!("{}-{n}", shape.workflow), (shape.expected)(n))
        };
        Facts {
            folder: folder.into(),
            runs: (0..runs).map(run).collect(),
            journals: Journals::new(),
            recorded: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
        }
    }

    /// Looks at what process number `process` left behind.
    pub(crate) fn check(&mut self, process: u32, acknowledged: &[String]) {
        self.acknowledged.extend(acknowledged.iter().cloned());
        let journals = self.read();
        let log = log::read(&std::fs::read_to_string(self.folder.join("log")).unwrap_or_default());
        self.nothing_recorded_is_lost_or_changed(&journals);
        self.nothing_acknowledged_is_lost(&journals);
        nothing_recorded_is_run_again(&self.recorded, &log);
        nothing_begins_before_what_comes_before_it_is_recorded(&journals, &log);
        for (id, journal) in &journals {
            attempts_are_consecutive_and_bounded(id, journal);
        }
        for (id, journal) in &journals {
            for step in completed(journal) {
                self.recorded.entry((id.clone(), step)).or_insert(process);
            }
        }
        self.journals = journals;
    }

    /// Every run has ended as it must.
    pub(crate) fn check_the_end(&self) {
        for (id, expected) in &self.runs {
            let journal = &self.journals[id];
            let end = match &journal.last().expect("a journal has entries").event {
                Event::RunCompleted { output } => Ok(String::from_utf8_lossy(&output.bytes).into_owned()),
                Event::RunFailed { failure } => Err(failure.code.as_str()),
                other => panic!("{id} has not ended: {other:?}"),
            };
            assert_eq!(&end, expected, "{id}");
        }
    }

    fn nothing_recorded_is_lost_or_changed(&self, now: &Journals) {
        for (id, before) in &self.journals {
            let now = now.get(id).unwrap_or_else(|| panic!("run {id} is gone"));
            assert!(now.starts_with(before), "the journal of {id} does not go on from where it was:\n{before:#?}\n{now:#?}");
        }
    }

    fn nothing_acknowledged_is_lost(&self, now: &Journals) {
        for line in &self.acknowledged {
            let (what, id) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} is no acknowledgement"));
            let journal = now.get(id).unwrap_or_else(|| panic!("{what} was acknowledged, but run {id} is gone"));
            let told = || journal.iter().any(|entry| matches!(entry.event, Event::SignalReceived { .. }));
            assert!(what != "signalled" || told(), "the signal of {id} is gone");
            assert!(what != "ended" || journal.last().is_some_and(|entry| entry.event.is_end()), "the end of {id} is gone");
        }
    }

    /// Opens a copy, as the next process would open the original.
    fn read(&self) -> Journals {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.join("data")).into_iter().flatten() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let store = Embedded::open(copy.path()).expect("what a kill left behind can be opened");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut journals = Journals::new();
            for (id, _) in &self.runs {
                let records = store.journal(&RunId::new(id).unwrap().into(), 0, 1000).await.unwrap();
                let journal: Vec<Entry> = records.iter().map(|record| Entry::try_from(record).unwrap()).collect();
                if !journal.is_empty() {
                    journals.insert(id.clone(), journal);
                }
            }
            rows_and_timers_are_folds(&store, &journals).await;
            journals
        })
    }
}

fn completed(journal: &[Entry]) -> impl Iterator<Item = String> {
    journal.iter().filter_map(|entry| match &entry.event {
        Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => Some(step.to_string()),
        Event::UndoCompleted { step, .. } => Some(step.undo().to_string()),
        _ => None,
    })
}

fn nothing_recorded_is_run_again(recorded: &BTreeMap<(String, String), u32>, log: &[Line]) {
    for Line { process, run, step } in log {
        if let Some(killed) = recorded.get(&(run.clone(), step.clone())) {
            assert!(
                process <= killed,
                "process {process} ran {step} of {run}, though its outcome was on record when process {killed} died"
            );
        }
    }
}

/// When a step has begun, what its code did before it must be on record.
fn nothing_begins_before_what_comes_before_it_is_recorded(journals: &Journals, log: &[Line]) {
    let begun: BTreeSet<(&str, &str)> = log.iter().map(|line| (line.run.as_str(), line.step.as_str())).collect();
    for (run, step) in begun {
        let journal = journals
            .get(run)
            .unwrap_or_else(|| panic!("{step} of {run} has begun, but the start is not on record"));
        if let Some(before) = comes_after(step) {
            assert!(completed(journal).any(|done| done == before), "{step} of {run} has begun before {before} was on record");
        }
    }
}

/// What the code of the shapes does right before that step, if it is a step.
fn comes_after(step: &str) -> Option<String> {
    let before = match step {
        "after#1" => "before#1",
        "apologise#1" => "hang#1",
        "charge#1" => "reserve#1",
        "charge#1/undo" => "charge#1",
        "reserve#1/undo" => "charge#1/undo",
        _ => {
            let (name, occurrence) = step.rsplit_once('#')?;
            return match (name, occurrence.parse::<u32>().ok()?) {
                ("shaky", n) => Some(format!("steady#{n}")),
                ("steady", n @ 2..) => Some(format!("shaky#{}", n - 1)),
                ("add" | "join#1.0/walk" | "join#1.1/walk", n @ 2..) => Some(format!("{name}#{}", n - 1)),
                _ => None,
            };
        }
    };
    Some(before.into())
}

/// What a commit writes beside the events is there with them, or not at all.
async fn rows_and_timers_are_folds(store: &Embedded, journals: &Journals) {
    let mut timers = Vec::new();
    for (id, journal) in journals {
        let state = fold(id, journal);
        assert_eq!(store.run(&state.id).await.unwrap(), Some(RunRow::of(SHARD, &state)), "the row of {id} is not the fold of its journal");
        timers.extend(state.timers());
    }
    timers.sort_by_key(|timer| TimerKey::from(timer));
    assert_eq!(store.timers(SHARD, None, 10_000).await.unwrap(), timers, "the timers are not the fold of the journals");
}

fn fold(id: &str, journal: &[Entry]) -> Run {
    let id = RunId::new(id).unwrap();
    let mut state = None;
    for entry in journal {
        state = Some(run::evolve(&id, state, entry).unwrap_or_else(|error| panic!("{error}")));
    }
    state.expect("a journal has entries")
}

fn attempts_are_consecutive_and_bounded(id: &str, journal: &[Entry]) {
    let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
    for entry in journal {
        if let Event::RetryScheduled { step, attempt, of, .. } = &entry.event {
            let last = attempts.entry(step.to_string()).or_insert(1);
            assert_eq!(*attempt, *last + 1, "attempts of {step} of {id} are consecutive");
            assert!(attempt <= of, "{step} of {id} is at attempt {attempt} of {of}");
            *last = *attempt;
        }
    }
}
