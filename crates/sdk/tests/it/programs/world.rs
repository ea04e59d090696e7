//! One run of one program: its store, its time, who sends it signals, and its engines one after another.

use super::code::{execute, within};
use super::program::{Dice, Program, run_seed, signals};
use super::trail::{forget, next_life};
use std::collections::BTreeSet;
use std::future::pending;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Clock, Engine, Event, HOUR, Run, Store, Timestamp, VirtualClock};
use steadfast_kernel::{EntityId, Entry, Payload, Record, RunId, RunOptions, WorkflowName, run};
use steadfast_store::{Append, Batch, Fence, RunRow};

/// The longest journal that is read.
const JOURNAL_MAX: usize = 10_000;

/// A signal that is sent at some time; its payload is its place in the list.
struct Send {
    name: &'static str,
    after: u64,
    twice: bool,
}

/// What is done to a run while it is under way.
#[derive(Clone, Default)]
pub(super) struct Trouble {
    /// What the commits of each engine do, one engine after another; those that are not listed just succeed.
    pub(super) commits: Vec<Vec<Mishap>>,
    /// When it is called off, in milliseconds from the start of each engine.
    pub(super) cancel: Option<u64>,
}

/// What a commit does.
#[derive(Clone, Copy)]
pub(super) enum Mishap {
    Nothing,
    Fail,
    /// Its outcome is kept back until so many milliseconds after the start of the engine.
    Slow(u64),
    CrashBefore,
    CrashAfter,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) program: Program,
    pub(super) store: Memory,
    pub(super) run: RunId,
    /// What was on record when each engine began.
    pub(super) on_record: Vec<BTreeSet<String>>,
    /// Signals that were acknowledged.
    pub(super) acknowledged: BTreeSet<u64>,
    clock: VirtualClock,
    sends: Vec<Send>,
}

impl World {
    /// A run that has only just begun. Its start is written here and not by an engine, so that its seed is known.
    pub(super) async fn new(seed: u64, program: &Program) -> Self {
        let store = Memory::new();
        let run = RunId::new("program").expect("allowed");
        let input = Payload::json(serde_json::to_vec(program).expect("a program can be written"));
        let workflow = WorkflowName::new("execute").expect("allowed");
        let event = Event::RunStarted { workflow, input, seed: run_seed(seed), deadline_at: None, options: RunOptions::default() };
        let now = VirtualClock::start().now();
        let entry = Entry::new(1, 1, now, event);
        let started = run::evolve(&run, None, &entry).expect("a run begins like this");
        let head = store.claim(0).await.expect("nobody else has it");
        let batch = Batch {
            fences: vec![Fence { shard: 0, term: head.term, after: head.seq, upto: head.seq + 1 }],
            events: vec![Append { shard: 0, entity: EntityId::from(&run), record: Record::from(&entry) }],
            runs: vec![RunRow::of(0, &started)],
            ..Batch::default()
        };
        store.commit(batch).await.expect("the store writes");
        World::on(seed, program, store, now)
    }

    /// The same run on another store, from that time on.
    pub(super) fn on(seed: u64, program: &Program, store: Memory, now: Timestamp) -> Self {
        forget();
        let run = RunId::new("program").expect("allowed");
        let sends = sends(program, &mut Dice::new(seed, "signals"));
        let (on_record, acknowledged) = (Vec::new(), BTreeSet::new());
        World { seed, program: program.clone(), store, run, on_record, acknowledged, clock: VirtualClock::start_at(now), sends }
    }

    /// The name of the signal that says this.
    pub(super) fn sent(&self, said: u64) -> Option<String> {
        self.sends.get(said as usize).map(|send| send.name.to_string())
    }

    pub(super) async fn records(&self) -> Vec<Record> {
        self.store.journal(&EntityId::from(&self.run), 0, JOURNAL_MAX).await.expect("the store can be read")
    }

    pub(super) async fn journal(&self) -> Vec<Entry> {
        self.records().await.iter().map(|record| Entry::try_from(record).expect("it can be read")).collect()
    }

    /// Goes on to the end, with as many engines as it takes. The last one is given back.
    pub(super) async fn go_on(&mut self, trouble: Trouble) -> Result<Engine, String> {
        let mut commits = trouble.commits.into_iter();
        loop {
            plan(&self.store, &commits.next().unwrap_or_default());
            let engine = self.start().await?;
            let run = engine.run(self.run.as_str()).map_err(|error| error.to_string())?;
            let store = self.store.clone();
            let ended = tokio::select! {
                biased;
                _ = run.result::<serde_json::Value>() => true,
                () = died(&store) => false,
                () = self.disturb(&run, trouble.cancel) => unreachable!("it does not end"),
                () = tokio::time::sleep(HOUR) => return Err(format!("the run hangs: {:?}", run.view().await)),
            };
            self.store.faults().clear();
            if ended && !self.store.is_dead() {
                return Ok(engine);
            }
            drop((run, engine));
            self.store = self.store.reopen();
        }
    }

    async fn start(&mut self) -> Result<Engine, String> {
        let has_outcome = |entry: Entry| match entry.event {
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => Some(step.to_string()),
            Event::UndoCompleted { step, .. } => Some(step.undo().to_string()),
            _ => None,
        };
        self.on_record.push(self.journal().await.into_iter().filter_map(has_outcome).collect());
        next_life();
        let builder = Engine::on(self.store.clone()).clock(self.clock).register(execute);
        builder.start().await.map_err(|error| error.to_string())
    }

    /// Sends the signals and calls the run off, each in its time.
    async fn disturb(&mut self, run: &Run, cancel: Option<u64>) {
        let cancel = async {
            let Some(after) = cancel else { return };
            tokio::time::sleep(within(after)).await;
            insist(async || run.cancel().by("test").await.map(drop)).await;
        };
        let acknowledged = std::sync::Mutex::new(&mut self.acknowledged);
        let signals = async {
            let begun = tokio::time::Instant::now();
            for (said, send) in (0u64..).zip(&self.sends) {
                tokio::time::sleep_until(begun + within(send.after)).await;
                for _ in 0..1 + u32::from(send.twice) {
                    insist(async || {
                        let is_new = run.signal(send.name, &said).id(said.to_string()).await?;
                        let known = !acknowledged.lock().expect("not poisoned").insert(said);
                        assert!(!(known && is_new), "the signal {said} was acknowledged and is taken as new");
                        Ok(())
                    })
                    .await;
                }
            }
        };
        tokio::join!(cancel, signals);
        pending().await
    }
}

fn plan(store: &Memory, commits: &[Mishap]) {
    let mut uneventful = 0;
    for mishap in commits {
        let fault = match mishap {
            Mishap::Nothing => {
                uneventful += 1;
                continue;
            }
            Mishap::Fail => Fault::Fail,
            Mishap::Slow(until) => Fault::Hold(opened_after(*until)),
            Mishap::CrashBefore => Fault::CrashBefore,
            Mishap::CrashAfter => Fault::CrashAfter,
        };
        store.faults().after(std::mem::take(&mut uneventful), fault);
    }
}

fn opened_after(millis: u64) -> Gate {
    let gate = Gate::default();
    let opened = gate.clone();
    tokio::spawn(async move {
        tokio::time::sleep(within(millis)).await;
        opened.open();
    });
    gate
}

/// Does it until it is done, or cannot be.
async fn insist(mut what: impl AsyncFnMut() -> Result<(), steadfast::Error>) {
    while let Err(error) = what().await
        && error.is_retryable()
    {
        tokio::time::sleep(within(7)).await;
    }
}

async fn died(store: &Memory) {
    while !store.is_dead() {
        tokio::time::sleep(within(50)).await;
    }
}

/// As many signals as are waited for at the most, so that nobody waits for ever, and now and then one more.
fn sends(program: &Program, dice: &mut Dice) -> Vec<Send> {
    let mut sends = Vec::new();
    for name in signals() {
        let waits = program.waits_for(name) as u64;
        let more = if waits > 0 { dice.below(2) } else { 0 };
        sends.extend((0..waits + more).map(|_| Send { name, after: dice.below(150), twice: dice.percent(20) }));
    }
    sends.sort_by_key(|send| send.after);
    sends
}
