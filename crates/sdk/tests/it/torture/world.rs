//! What outlives the processes of a case: the data, the calls of every step, and what was acknowledged.

use super::script::{Act, Script};
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Engine, Entry, Event, RunId, Store};
use steadfast_kernel::EntityId;

type Inner = Arc<Mutex<State>>;

/// Steps find the world by the id of their run.
static WORLDS: LazyLock<Mutex<BTreeMap<String, Inner>>> = LazyLock::new(Mutex::default);

pub(super) struct World(Inner);

#[derive(Default)]
struct State {
    store: Memory,
    restarts: u32,
    scripts: BTreeMap<String, Script>,
    /// How often a step was called, by run and place.
    calls: BTreeMap<(String, usize), u32>,
    acknowledged: BTreeMap<String, Option<Result<u64, Code>>>,
    /// What must not have happened. Steps cannot panic about it: that would be a failed attempt.
    wrong: Vec<String>,
}

impl World {
    pub(super) fn of(runs: &[(String, Script)], store: Memory) -> Self {
        let state = State { store, scripts: runs.iter().cloned().collect(), ..State::default() };
        let inner = Arc::new(Mutex::new(state));
        WORLDS.lock().unwrap().extend(runs.iter().map(|(id, _)| (id.clone(), Arc::clone(&inner))));
        World(inner)
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn store(&self) -> Memory {
        self.state(|state| state.store.clone())
    }

    pub(super) fn restart(&self) {
        self.state(|state| {
            state.store = state.store.reopen();
            state.restarts += 1;
            for id in state.acknowledged.keys() {
                assert!(!journal(&state.store, id).is_empty(), "the start of {id} was acknowledged and is gone");
            }
        });
    }

    pub(super) fn acknowledge(&self, id: &str, is_new: bool) {
        self.state(|state| {
            assert!(!(is_new && state.acknowledged.contains_key(id)), "{id} was made twice");
            state.acknowledged.entry(id.into()).or_default();
        });
    }

    pub(super) fn ended(&self, id: &str, end: Result<u64, Code>) {
        self.state(|state| {
            let before = state.acknowledged.insert(id.into(), Some(end));
            assert!(before.flatten().is_none_or(|before| before == end), "{id} has ended twice, and differently");
        });
    }

    pub(super) fn end(&self, id: &str) -> Result<u64, Code> {
        self.state(|state| state.acknowledged[id].expect("it was waited for"))
    }

    pub(super) fn restarts(&self) -> u32 {
        self.state(|state| state.restarts)
    }

    pub(super) fn calls(&self, id: &str, place: usize) -> u32 {
        self.state(|state| state.calls.get(&(id.to_string(), place)).copied().unwrap_or_default())
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        self.state(|state| state.wrong.clone())
    }

    pub(super) fn journal(&self, id: &str) -> Vec<Entry> {
        self.state(|state| journal(&state.store, id))
    }

    /// Where the runs stand, for a case that fails.
    pub(super) async fn waits(&self, engine: &Engine, runs: &[(String, Script)]) -> Vec<String> {
        let mut waits = Vec::new();
        for (id, script) in runs {
            let view = engine.run(id).unwrap().view().await;
            waits.push(format!(
                "{view:?} {script:?}\n{:?}",
                self.journal(id).iter().map(steadfast::testing::Journal::line).collect::<Vec<_>>()
            ));
        }
        waits
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let ids = self.state(|state| state.scripts.keys().cloned().collect::<Vec<_>>());
        let mut worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().for_each(|id| drop(worlds.remove(id)));
    }
}

/// Notes a call of a step, tells which it is, from 1, and looks whether it may happen.
pub(super) fn call(ctx: &Ctx, place: usize) -> u32 {
    let id = ctx.run_id().as_str();
    let world = WORLDS.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
    let world = world.expect("the processes of a case are gone before its world");
    let mut state = world.lock().unwrap_or_else(PoisonError::into_inner);
    if state.store.is_dead() {
        return 0; // a real process would be dead too
    }
    let journal = journal(&state.store, id);
    if let Err(why) = may_begin(&state.scripts[id], &journal, place) {
        state.wrong.push(format!("act-{place} of {id} was begun, though {why}"));
    }
    let calls = state.calls.entry((id.into(), place)).or_default();
    *calls += 1;
    *calls
}

/// The acts come one after the other, so when a step begins, everything before it is on record, and nothing of it is.
fn may_begin(script: &Script, journal: &[Entry], place: usize) -> Result<(), String> {
    if journal.is_empty() {
        return Err("its run is not on record".into());
    }
    let done = journal.iter().filter(|entry| is_outcome(&entry.event)).count();
    if done != place {
        return Err(format!("{done} outcomes are on record, not {place}"));
    }
    let Act::Step { max_attempts, .. } = &script.acts[place] else { return Err("it is no step".into()) };
    let step = format!("act-{place}#1");
    let retries = journal
        .iter()
        .filter(|entry| matches!(&entry.event, Event::RetryScheduled { step: of, .. } if of.as_str() == step));
    let attempt = retries.count() + 1;
    if attempt > *max_attempts as usize { Err(format!("attempt {attempt} is not allowed")) } else { Ok(()) }
}

pub(super) fn is_outcome(event: &Event) -> bool {
    matches!(event, Event::StepCompleted { .. } | Event::StepFailed { .. } | Event::TimerFired { .. })
}

/// The journal as it is in the store, also after a crash.
fn journal(store: &Memory, id: &str) -> Vec<Entry> {
    let records = store
        .journal(&EntityId::Run(RunId::new(id).unwrap()), 0, 1000)
        .now_or_never()
        .expect("memory does not wait");
    records.unwrap_or_default().iter().map(|record| Entry::try_from(record).unwrap()).collect()
}
