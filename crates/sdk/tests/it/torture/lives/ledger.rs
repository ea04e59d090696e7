//! What outlives the processes of a case: the data, what steps did, and what was acknowledged.

use super::entities::{self, Life};
use futures_util::FutureExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Ctx, Entry, Event, RunId, StepId};
use steadfast_kernel::{EntityId, Epoch, Seq, Timestamp};
use steadfast_store::{RunFilter, RunRow, Store};
use tokio::time::Instant;

type Inner = Arc<Mutex<State>>;

/// A run and when it began: another run may have had its id before.
pub(super) type Began = (String, Timestamp);

/// The key of an attempt, and when its run began.
pub(super) type Work = (String, Timestamp);

/// Steps find the ledger by the id of the run at the top of their family.
static LEDGERS: LazyLock<Mutex<BTreeMap<String, Inner>>> = LazyLock::new(Mutex::default);

pub(super) struct Ledger {
    inner: Inner,
    tops: Vec<String>,
}

struct State {
    store: Memory,
    /// How long after an acknowledgement something that was on its way may still begin.
    slack: Duration,
    /// How often a step or undo was called, by run and step.
    calls: BTreeMap<String, u32>,
    /// How often a step that is not repeatable has happened, by its work and the life of its run: to retry a run is to say that it may happen again.
    happened: BTreeMap<(Work, Epoch), u32>,
    /// What attempts have said, by their work.
    beats: BTreeMap<Work, BTreeSet<u64>>,
    /// What was sent, by its tag.
    orders: BTreeMap<String, Sent>,
    /// Since when what is on record there is acknowledged. The same order may be given again, and then it is another entry, perhaps of another run.
    known: BTreeMap<(Began, Seq), Known>,
    acknowledged_starts: BTreeSet<Began>,
    /// Runs whose time was over, and that may have been removed.
    swept: BTreeSet<Began>,
    /// What must not have happened. Steps cannot panic about it: that would be a failed attempt.
    wrong: Vec<String>,
}

/// What became of something that was asked of a run.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) run: String,
    /// It is not acknowledged without being on record.
    pub(super) leaves_a_trace: bool,
    pub(super) times: u32,
    pub(super) refused: bool,
    pub(super) acknowledged: bool,
    /// When the run began that was there when that was said.
    pub(super) of: Option<Timestamp>,
}

enum Known {
    Since(Instant),
    /// Since an earlier process.
    Always,
}

impl State {
    fn has_happened(&self, work: &Work) -> bool {
        self.happened.keys().any(|(other, _)| other == work)
    }

    fn work(&self, run: &RunId, key: String) -> Work {
        (key, self.began(run.as_str()).unwrap_or(Timestamp::EPOCH))
    }

    /// When the run of that id began, if there is one.
    fn began(&self, run: &str) -> Option<Timestamp> {
        let row = self.store.run(&RunId::new(run).ok()?).now_or_never().expect("memory does not wait");
        row.ok().flatten().map(|row| row.started_at)
    }
}

impl Ledger {
    pub(super) fn of(store: Memory, tops: Vec<String>, slack: Duration) -> Self {
        let state = State {
            store,
            slack,
            calls: BTreeMap::new(),
            happened: BTreeMap::new(),
            beats: BTreeMap::new(),
            orders: BTreeMap::new(),
            known: BTreeMap::new(),
            acknowledged_starts: BTreeSet::new(),
            swept: BTreeSet::new(),
            wrong: Vec::new(),
        };
        let inner = Arc::new(Mutex::new(state));
        LEDGERS.lock().unwrap().extend(tops.iter().map(|id| (id.clone(), Arc::clone(&inner))));
        Ledger { inner, tops }
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn store(&self) -> Memory {
        self.state(|state| state.store.clone())
    }

    /// The process is gone: what is on record now is what the next one knows.
    pub(super) fn restart(&self) {
        self.state(|state| {
            state.store = state.store.reopen();
            state.known.values_mut().for_each(|known| *known = Known::Always);
        });
    }

    pub(super) fn started(&self, id: &str, is_new: bool) {
        self.state(|state| {
            let Some(at) = state.began(id) else {
                let found_at_its_end = !is_new && state.swept.iter().any(|(run, _)| run == id); // it was found, and removed right after that
                if !state.store.is_dead() && !found_at_its_end {
                    state.wrong.push(format!("the start of {id} was acknowledged and it is not there"));
                }
                return;
            };
            let others = state.acknowledged_starts.iter().filter(|(other, began)| other == id && *began != at);
            let replaced: Vec<_> = others.filter(|other| !state.swept.contains(other)).cloned().collect();
            if !replaced.is_empty() || (is_new && state.acknowledged_starts.contains(&(id.into(), at))) {
                state.wrong.push(format!("{id} was begun at {at:?} (new: {is_new}) in the place of {replaced:?}"));
            }
            state.acknowledged_starts.insert((id.into(), at));
        });
    }

    /// Those that are to be there: their starts were acknowledged, and their time was not over.
    pub(super) fn starts(&self) -> BTreeSet<Began> {
        self.state(|state| state.acknowledged_starts.difference(&state.swept).cloned().collect())
    }

    /// A run may be removed from here on.
    pub(super) fn may_go(&self, run: Began) {
        self.state(|state| state.swept.insert(run));
    }

    pub(super) fn may_be_gone(&self, run: &Began) -> bool {
        self.state(|state| state.swept.contains(run))
    }

    /// How many were removed.
    pub(super) fn count_swept(&self) -> usize {
        self.state(|state| state.swept.iter().filter(|(run, began)| state.began(run) != Some(*began)).count())
    }

    pub(super) fn share(&self) -> Self {
        Ledger { inner: Arc::clone(&self.inner), tops: Vec::new() }
    }

    pub(super) fn sends(&self, tag: &str, run: &str, leaves_a_trace: bool) {
        self.state(|state| {
            let sent = Sent { run: run.into(), leaves_a_trace, times: 0, refused: false, acknowledged: false, of: None };
            state.orders.entry(tag.into()).or_insert(sent).times += 1;
        });
    }

    pub(super) fn acknowledged(&self, tag: &str) {
        self.state(|state| {
            let began = state.orders.get(tag).and_then(|sent| state.began(&sent.run));
            let sent = state.orders.get_mut(tag).expect("it was sent");
            (sent.acknowledged, sent.of) = (true, began);
            let Some(run) = began.map(|began| (sent.run.clone(), began)) else { return };
            if sent.leaves_a_trace {
                state.swept.remove(&run); // it has begun another life
            }
            if let Some(seq) = entities::life(&state.store, &EntityId::Run(RunId::new(&*run.0).unwrap())).ordered(tag) {
                state.known.entry((run, seq)).or_insert_with(|| Known::Since(Instant::now()));
            }
        });
    }

    pub(super) fn refused(&self, tag: &str) {
        self.state(|state| state.orders.get_mut(tag).expect("it was sent").refused = true);
    }

    pub(super) fn orders(&self) -> BTreeMap<String, Sent> {
        self.state(|state| state.orders.clone())
    }

    pub(super) fn happened(&self) -> BTreeMap<(Work, Epoch), u32> {
        self.state(|state| state.happened.clone())
    }

    /// What a person finds who looks whether a step that is in doubt has happened.
    pub(super) fn has_happened(&self, run: &RunId, step: &StepId) -> bool {
        let life = entities::life(&self.store(), &EntityId::Run(run.clone()));
        let work = life.run().map(|run| (run.generations.key(&run.id, step), run.started_at));
        work.is_some_and(|work| self.state(|state| state.has_happened(&work)))
    }

    pub(super) fn is_wrong(&self, why: String) {
        self.state(|state| state.wrong.push(why));
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        self.state(|state| state.wrong.clone())
    }

    /// The runs that are there, in the order of their ids.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.runs_that(|_| true)
    }

    /// Those that have not ended.
    pub(super) fn open_runs(&self) -> Vec<RunId> {
        self.runs_that(|row| !row.status.is_final())
    }

    fn runs_that(&self, are: impl Fn(&RunRow) -> bool) -> Vec<RunId> {
        let rows = self.store().runs(&RunFilter::default(), None, 10_000).now_or_never().expect("memory does not wait");
        let mut runs: Vec<_> = rows.unwrap_or_default().into_iter().filter(are).map(|row| row.run).collect();
        runs.sort();
        runs
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let mut ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
        self.tops.iter().for_each(|id| drop(ledgers.remove(id)));
    }
}

fn with<T>(ctx: &Ctx, look: impl FnOnce(&mut State, &RunId, String) -> T) -> Option<T> {
    let top = ctx.run_id().as_str().split('/').next().unwrap_or_default();
    let ledger = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner).get(top).cloned();
    let ledger = ledger.expect("the processes of a case are gone before its ledger");
    let mut state = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    if state.store.is_dead() {
        return None; // a real process would be dead too
    }
    let Some(key) = ctx.idempotency_key() else {
        state.wrong.push(format!("an attempt of {} has no key", ctx.run_id()));
        return None;
    };
    Some(look(&mut state, ctx.run_id(), key))
}

/// An attempt begins: notes it, tells which call it is, from 1, and looks whether it may.
pub(super) fn begun(ctx: &Ctx) -> u32 {
    let call = with(ctx, |state, run, key| {
        let life = entities::life(&state.store, &EntityId::Run(run.clone()));
        if let Err(why) = may_begin(state, &life, &key) {
            state.wrong.push(format!("an attempt of {key} was begun, though {why}: {:#?}", life.lines()));
        }
        let step = key.rsplit_once('/').map_or(key.as_str(), |(step, _)| step).to_string();
        let calls = state.calls.entry(step).or_default();
        *calls += 1;
        *calls
    });
    call.unwrap_or_default()
}

fn may_begin(state: &State, life: &Life, key: &str) -> Result<(), String> {
    let run = life.run().ok_or("its run is not on record")?;
    if life.succeeded.contains_key(key) {
        return Err("its success is on record".into());
    }
    let is_known = |seq: Seq| match state.known.get(&((run.id.to_string(), run.started_at), seq)) {
        Some(Known::Since(at)) => at.elapsed() > state.slack,
        Some(Known::Always) => true,
        None => false,
    };
    if let Some(open) = run.open() {
        if open.interrupted.is_some() {
            return Err("its run is interrupted".into());
        }
        let paused = |entry: &&Entry| matches!(entry.event, Event::RunPaused { .. });
        if open.paused.is_some() && life.entries.iter().rfind(paused).is_some_and(|paused| is_known(paused.seq)) {
            return Err("its run is paused".into());
        }
        if run.is_ready() {
            return Err("its run has no slot".into());
        }
    } else if let [.., asked, _] = &life.entries[..]
        && let Event::RunCancelRequested { terminate: true, .. } = &asked.event
        && is_known(asked.seq)
    {
        return Err("its run was terminated".into());
    }
    Ok(())
}

/// Something that must not be repeated is done.
pub(super) fn happens(ctx: &Ctx) {
    with(ctx, |state, run, key| {
        let life = entities::life(&state.store, &EntityId::Run(run.clone()));
        let (began, epoch) = life.run().map_or((Timestamp::EPOCH, 0), |run| (run.started_at, run.epoch));
        *state.happened.entry(((key, began), epoch)).or_default() += 1;
    });
}

/// Whether it was done: what a probe finds.
pub(super) fn happened(ctx: &Ctx) -> bool {
    with(ctx, |state, run, key| state.has_happened(&state.work(run, key))).unwrap_or_default()
}

pub(super) fn beats(ctx: &Ctx, said: u64) {
    with(ctx, |state, run, key| {
        let work = state.work(run, key);
        state.beats.entry(work).or_default().insert(said)
    });
}

/// What an attempt finds of the one before it must have been said.
pub(super) fn recalled(ctx: &Ctx, found: Option<u64>) {
    with(ctx, |state, run, key| {
        let work = state.work(run, key.clone());
        if let Some(found) = found
            && !state.beats.get(&work).is_some_and(|said| said.contains(&found))
        {
            state.wrong.push(format!("{key} finds the heartbeat {found}, which nobody has said"));
        }
    });
}
