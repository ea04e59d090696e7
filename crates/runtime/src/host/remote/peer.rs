//! One worker, as the server knows it.

use super::{Gone, Pool, WorkerView};
use crate::clock::Clock;
use crate::host::wire::{Down, Hello, Offer, weigh_down};
use crate::host::{Report, Says, SessionId, ToHost};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use steadfast_kernel::{Attempt, RunId, StepId, Timestamp, WorkflowName};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

/// Who looks at a run is not kept waiting by its worker for longer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// One worker.
pub(crate) struct Peer {
    line: u64,
    name: String,
    process: u64,
    version: u32,
    offers: BTreeMap<WorkflowName, Offer>,
    pub(super) heartbeat: Duration,
    /// How many runs it hosts, for all servers together.
    sessions_max: usize,
    /// How many of them may be of this one.
    may_have: AtomicUsize,
    queued_max: usize,
    since: Timestamp,
    clock: Arc<dyn Clock>,
    began: Instant,
    /// When something of it came last, in microseconds since it began.
    heard: AtomicU64,
    ready: AtomicBool,
    draining: AtomicBool,
    /// What waits to be sent, in bytes, about.
    queued: AtomicUsize,
    /// That of it which is not part of an opening: a journal may be long, but only few of them wait.
    told: AtomicUsize,
    queue: mpsc::UnboundedSender<Waiting>,
    /// The last beat that was heard and not answered; 0 if there is none.
    beat: AtomicU64,
    has_beaten: Notify,
    state: Mutex<State>,
}

/// Something that waits to be sent.
pub(crate) struct Waiting {
    pub(super) down: Down,
    pub(super) weight: usize,
}

#[derive(Default)]
struct State {
    /// What it hosts. What it says of others is dropped.
    sessions: BTreeMap<SessionId, RunId>,
    /// Who wants to know which attempts are being made.
    questions: BTreeMap<u64, oneshot::Sender<Vec<(StepId, Attempt)>>>,
    asked: u64,
    gone: Option<Gone>,
    /// Ends the line.
    end: Option<oneshot::Sender<Gone>>,
}

impl Peer {
    pub(super) fn new(pool: &Pool, line: u64, hello: Hello, queue: mpsc::UnboundedSender<Waiting>) -> Self {
        let now = pool.clock.now();
        let sessions_max = (hello.sessions_max as usize).min(pool.settings.sessions_max);
        Peer {
            line,
            name: hello.name,
            process: hello.process,
            version: hello.version,
            offers: hello.offers.into_iter().map(|offer| (offer.workflow.clone(), offer)).collect(),
            heartbeat: hello.heartbeat,
            sessions_max,
            may_have: AtomicUsize::new(sessions_max),
            queued_max: pool.settings.queued_bytes_max,
            since: now,
            clock: Arc::clone(&pool.clock),
            began: Instant::now(),
            heard: AtomicU64::new(0),
            ready: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
            told: AtomicUsize::new(0),
            queue,
            beat: AtomicU64::new(0),
            has_beaten: Notify::new(),
            state: Mutex::default(),
        }
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The version of the protocol that it speaks.
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is that process.
    pub(super) fn is_process(&self, name: &str, process: u64) -> bool {
        self.name == name && self.process == process && process != 0
    }

    pub(super) fn view(&self) -> WorkerView {
        WorkerView {
            name: self.name.clone(),
            workflows: self.offers.keys().cloned().collect(),
            sessions: self.sessions(),
            sessions_max: self.sessions_max,
            since: self.since,
            heard_at: self.since.saturating_add(self.heard()),
            draining: self.draining.load(Ordering::Acquire),
        }
    }

    /// Whether it may be given runs of that workflow.
    pub(super) fn offers(&self, workflow: &WorkflowName) -> bool {
        self.offers.contains_key(workflow) && self.may_have_more()
    }

    /// Whether it may be given a run that began with that version.
    pub(super) fn takes(&self, workflow: &WorkflowName, definition: Option<&str>) -> bool {
        self.offers.get(workflow).is_some_and(|offer| offer.knows(definition)) && self.may_have_more()
    }

    fn may_have_more(&self) -> bool {
        self.ready.load(Ordering::Acquire) && !self.draining.load(Ordering::Acquire) && !self.is_gone()
    }

    pub(super) fn workflows(&self) -> impl Iterator<Item = &WorkflowName> {
        self.offers.keys()
    }

    /// How many more runs it may be given. One that is behind with reading is given none, so that journals do not pile up for it.
    pub(super) fn room(&self) -> usize {
        let behind = self.queued.load(Ordering::Acquire) > self.queued_max / 2;
        if behind { 0 } else { self.may_have().saturating_sub(self.sessions()) }
    }

    fn may_have(&self) -> usize {
        self.may_have.load(Ordering::Acquire)
    }

    /// It has said that it may have so many runs of this server. True if that is more than before.
    pub(super) fn let_have(&self, runs: usize) -> bool {
        let runs = runs.min(self.sessions_max);
        runs > self.may_have.swap(runs, Ordering::AcqRel)
    }

    /// How many runs it has beyond those that it may have.
    pub(super) fn too_many(&self) -> usize {
        self.sessions().saturating_sub(self.may_have())
    }

    /// For how much room it is worth to look for runs that wait for it: not for each place of many.
    pub(super) fn worth_telling(&self) -> usize {
        self.may_have() / 16 + 1
    }

    pub(super) fn sessions(&self) -> usize {
        self.state.lock().sessions.len()
    }

    /// It was heard for the first time.
    pub(super) fn ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Something of it has come.
    pub(super) fn hear(&self) {
        let since = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.heard.store(since, Ordering::Release);
    }

    fn heard(&self) -> Duration {
        Duration::from_micros(self.heard.load(Ordering::Acquire))
    }

    /// For how long nothing of it has come, whatever the clock of the machine was set to meanwhile.
    pub(super) fn quiet(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.heard())
    }

    /// Says something to it, after all that was said before. One that does not read is given up.
    pub(super) fn send(&self, down: Down) {
        let weight = weigh_down(&down);
        let queued = self.queued.fetch_add(weight, Ordering::AcqRel);
        if !matches!(down, Down::Open { .. }) && self.told.fetch_add(weight, Ordering::AcqRel) > self.queued_max {
            return self.end(Gone::Slow(queued));
        }
        let _it_is_gone = self.queue.send(Waiting { down, weight });
    }

    /// It said that it is there. Only the last word counts, so nothing piles up.
    pub(super) fn beat(&self, number: u64) {
        self.beat.store(number, Ordering::Release);
        self.has_beaten.notify_one();
    }

    /// Waits for its next beat.
    pub(super) async fn has_beaten(&self) {
        self.has_beaten.notified().await;
    }

    /// The beat that is to be answered.
    pub(super) fn take_beat(&self) -> Option<u64> {
        match self.beat.swap(0, Ordering::AcqRel) {
            0 => None,
            number => Some(number),
        }
    }

    /// So much of what waited was sent.
    pub(super) fn sent(&self, (queued, told): (usize, usize)) {
        self.queued.fetch_sub(queued, Ordering::AcqRel);
        self.told.fetch_sub(told, Ordering::AcqRel);
    }

    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    /// Ends the line; the first reason counts.
    pub(super) fn end(&self, gone: Gone) {
        let mut state = self.state.lock();
        let gone = state.gone.get_or_insert(gone).clone();
        state.questions.clear();
        if let Some(end) = state.end.take() {
            let _it_has_ended = end.send(gone);
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state.lock().gone.is_some()
    }

    /// Ends when somebody else ends the line.
    pub(super) fn ended(&self) -> oneshot::Receiver<Gone> {
        let (end, ended) = oneshot::channel();
        let mut state = self.state.lock();
        match &state.gone {
            Some(gone) => drop(end.send(gone.clone())),
            None => state.end = Some(end),
        }
        ended
    }

    /// It is going to host a run.
    pub(super) fn add(&self, session: SessionId, run: RunId) {
        self.state.lock().sessions.insert(session, run);
    }

    /// A session is over. False if it was already.
    fn remove(&self, session: SessionId) -> bool {
        self.state.lock().sessions.remove(&session).is_some()
    }

    /// Everything that it hosts, and nothing any more.
    pub(super) fn lose(&self) -> BTreeMap<SessionId, RunId> {
        let mut state = self.state.lock();
        state.gone.get_or_insert(Gone::Ended);
        state.questions.clear();
        std::mem::take(&mut state.sessions)
    }

    /// Tells one of its sessions something.
    fn tell(&self, session: SessionId, message: ToHost) {
        self.send(Down::Tell { session, message, now: self.clock.now() });
    }

    /// What one of its sessions says, for the shard. What is not, or no longer, its session is dropped.
    pub(super) fn report(&self, pool: &Pool, session: SessionId, says: Says, weight: Option<OwnedSemaphorePermit>) {
        let over = says.is_last();
        let mut state = self.state.lock();
        let run = if over { state.sessions.remove(&session) } else { state.sessions.get(&session).cloned() };
        drop(state);
        let Some(run) = run else { return };
        pool.report(Report { run, session, says, weight });
        if over {
            pool.metrics.sessions.decrement(1.0);
            pool.made_room(self);
        }
    }

    /// Asks which attempts are being made.
    fn ask(&self, session: SessionId) -> BoxFuture<'static, Vec<(StepId, Attempt)>> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.state.lock();
        if state.gone.is_some() {
            return std::future::ready(Vec::new()).boxed();
        }
        state.asked += 1;
        let question = state.asked;
        state.questions.retain(|_, reply| !reply.is_closed()); // those who gave up do not add up
        state.questions.insert(question, reply);
        drop(state);
        self.send(Down::Ask { session, question });
        let too_late = self.clock.sleep(ANSWERS_WITHIN);
        async move {
            tokio::select! {
                biased;
                answer = answer => answer.unwrap_or_default(),
                () = too_late => Vec::new(),
            }
        }
        .boxed()
    }

    /// It has answered.
    pub(super) fn answer(&self, question: u64, attempts: Vec<(StepId, Attempt)>) {
        if let Some(reply) = self.state.lock().questions.remove(&question) {
            let _nobody_waits = reply.send(attempts);
        }
    }
}

/// The way to a session at a worker. It is over there when this is dropped.
pub(crate) struct There {
    pool: Arc<Pool>,
    peer: Arc<Peer>,
    session: SessionId,
}

impl There {
    pub(super) fn new(pool: Arc<Pool>, peer: Arc<Peer>, session: SessionId) -> Self {
        pool.metrics.sessions.increment(1.0);
        There { pool, peer, session }
    }

    /// Has it end, and waits for its word.
    pub(crate) fn ask_to_close(&self) {
        self.peer.tell(self.session, ToHost::Close);
    }

    pub(crate) fn tell(&self, message: ToHost) {
        match message {
            ToHost::Close => self.close(),
            message => self.peer.tell(self.session, message),
        }
    }

    /// The attempts that are being made.
    pub(crate) fn attempts(&self) -> BoxFuture<'static, Vec<(StepId, Attempt)>> {
        self.peer.ask(self.session)
    }

    /// Whether its worker has no room for runs of that workflow, and would have if this session were over.
    pub(crate) fn takes_room_of(&self, workflow: &WorkflowName) -> bool {
        self.peer.offers(workflow) && self.peer.room() == 0
    }

    fn close(&self) {
        if self.peer.remove(self.session) {
            self.pool.metrics.sessions.decrement(1.0);
            self.peer.tell(self.session, ToHost::Close);
            self.pool.made_room(&self.peer);
        }
    }
}

impl Drop for There {
    fn drop(&mut self) {
        self.close();
    }
}
