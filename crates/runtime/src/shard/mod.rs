//! The shard: the single writer of its entities: runs, keys, limits, letter boxes.
//!
//! Everything that happens to an entity comes in here as a command, is decided on its cached state by the pure kernel, and is submitted to the
//! committer. The state moves on at once, so that the next command sees it; everybody else hears of it only after the commit:
//!
//! ```text
//!   command --decide--> entries --submit--> committer --outcome--> effects, answers
//!                 \--(no entries)--> answered at once, or after the commit of what it was decided on
//! ```
//!
//! The loop is here; `decide.rs` takes commands through the kernel, `perform.rs` does what follows a commit, `load.rs` brings them into
//! memory by `read.rs`, `keys.rs` has the ends of keys told, `save.rs` keeps that short for long journals, `evict.rs` lets them go, `relay.rs` carries what entities tell each other, `heal.rs` is what
//! happens when the store fails, `rest.rs` how it comes to rest before it moves, `aside.rs` answers who only looks meanwhile, and `sweep.rs` removes what has ended and whose time is over.
//!
//! Tested by `crates/sdk/tests/it/torture.rs`.

mod aside;
mod crowd;
mod decide;
mod done;
mod evict;
mod from;
mod heal;
mod keys;
mod load;
mod lost;
mod perform;
mod read;
mod relay;
mod request;
mod resident_entities;
mod rest;
mod save;
mod sweep;
mod take_in;
mod view;
mod waiter;

pub(crate) use aside::look_afar;
pub(crate) use crowd::Crowd;
use crowd::{Live, Place};
use done::Done;
use from::From;
pub(crate) use load::under_way;
use read::Found;
pub(crate) use relay::unsettled;
pub(crate) use request::{Control, Reply, Request, Said};
use resident_entities::ResidentEntities;
use save::Saved;
use view::Look;
pub use view::{RunView, TaskView};
pub(crate) use waiter::Waiter;

use crate::callbacks::{Courier, Errand, Lane, Lanes};
use crate::clock::Clock;
use crate::cluster::Others;
use crate::committer::Outcome;
use crate::commons::Notes;
use crate::config::Config;
use crate::engine::Ways;
use crate::error::Error;
use crate::feed::Followers;
use crate::health;
use crate::host::{Host, Line, Report, Says, SessionId, ToHost};
use crate::metrics::OfShard;
use crate::outbox::Outbox;
use crate::timers::{Fired, Leadership, Order};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{
    Answer, Attempt, Command, Effect, Entity, EntityId, Entry, Envelope, Epoch, Refusal, RetryRun, Revision, Run, Seq, StartRun, StepId,
    Timestamp, Wait, WorkflowName,
};
use steadfast_store::{Batch, Head, ShardId, Store};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) host: Host,
    pub(crate) courier: Courier,
    pub(crate) ports: Ports,
    /// The way to those who tell other instances.
    pub(crate) notes: Option<Notes>,
    /// The ways to all shards of this instance, this one among them.
    pub(crate) ways: Weak<Ways>,
    /// Those who have other shards, if it is shared.
    pub(crate) others: Option<Arc<Others>>,
    /// Where the store stands, as far as is known for sure.
    pub(crate) committed: Head,
    pub(crate) metrics: OfShard,
    pub(crate) state: State,
}

/// The shard's channels. Those that are not bounded are bounded by what is in flight: a session has at most one turn and one report per
/// attempt under way, a timer fires once until it is armed again.
pub(crate) struct Ports {
    pub(crate) control: mpsc::UnboundedReceiver<Control>,
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) reports: mpsc::UnboundedReceiver<Report>,
    pub(crate) said: mpsc::UnboundedReceiver<Said>,
    pub(crate) fired: mpsc::UnboundedReceiver<Fired>,
    pub(crate) outcomes: mpsc::UnboundedReceiver<Outcome>,
    pub(crate) batches: mpsc::UnboundedSender<Batch>,
    pub(crate) timers: mpsc::UnboundedSender<Order>,
    pub(crate) health: watch::Sender<health::Health>,
    pub(crate) followers: Arc<Followers>,
    pub(crate) role: Leadership,
}

/// What the shard knows beyond its settings.
#[derive(Default)]
pub(crate) struct State {
    seats: ResidentEntities,
    /// The number of the last batch that was submitted.
    submitted: u64,
    /// What waits for a commit, in order.
    pending: VecDeque<Pending>,
    live: Live,
    health: Health,
    /// It is being asked whether the store can be written again.
    heals: bool,
    /// How long the store was given to itself the last time, and when it wrote again.
    pause: Option<(Duration, Timestamp)>,
    /// Those who wait for the drain to be over, if it has begun.
    draining: Option<Vec<oneshot::Sender<()>>>,
    /// Runs that were not opened for that.
    unopened: BTreeSet<EntityId>,
    /// It goes on: what is under way is read when the fate of that batch is known.
    reads_after: Option<u64>,
    tasks: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Entities that a failed commit was about: whether the store has it is not known.
    in_doubt: BTreeSet<EntityId>,
    /// What those commits would have put on record: if it is there when the entity is read again, others hear of it then.
    doubted: BTreeMap<EntityId, Vec<Entry>>,
    /// Runs that have left memory in good order while a step of theirs could begin, and what was not known of them before: see [`Seat::unsure_until`].
    left: BTreeMap<EntityId, Seq>,
    /// Runs that do not go on by themselves and of which that is not on record yet: nobody hosts them before it is.
    to_interrupt: BTreeSet<EntityId>,
    /// What entities have told each other and is not settled.
    outbox: Outbox,
    /// Hosted runs that only wait, the one that was not touched for longest in front.
    idle: BTreeMap<u64, (EntityId, Timestamp)>,
    touches: u64,
    /// There were too many of them, and they are looked at again soon.
    makes_room_later: bool,
    /// A worker may still have a run that an earlier process has given to it.
    takes_over: bool,
    /// What is being told entities of other shards: by whom, and which of all that it has said.
    saying: BTreeSet<(EntityId, u64)>,
    /// Workflows of runs that found no room.
    without_room: BTreeSet<WorkflowName>,
    /// Runs wait for room at a worker, and it is looked for again soon.
    looks_for_room: bool,
    /// Ends of keys that are being told, or wait for their turn.
    lanes: Lanes,
    /// Those that have their turn now.
    turns: VecDeque<(Lane, Errand)>,
    /// Nothing is begun here any more; those who wait for a commit hear of it.
    has_ended: bool,
}

/// Whether the store can be written.
#[derive(Default)]
enum Health {
    #[default]
    Well,
    /// The store failed; it is being asked until it writes again.
    Healing(Arc<steadfast_store::Error>),
    /// Another instance has the shard.
    Over(Arc<steadfast_store::Error>),
}

/// An entity in memory. What is there of hosting concerns runs only.
#[derive(Default)]
struct Seat {
    memory: Memory,
    session: Option<Session>,
    waiters: Vec<Waiter>,
    /// Why its code cannot go on.
    blocked: Option<Wait>,
    /// The row in the store says so, too.
    row_says_blocked: bool,
    /// It is not known whether it does: it is written again once the run has been read.
    row_in_doubt: bool,
    /// Steps whose next attempt the host was told to begin and has not spoken of since: that an attempt begins after its delay is no event.
    begun: BTreeSet<StepId>,
    /// How often in a row the host was out of date.
    stale: u32,
    /// The number of the last batch that changes it.
    changed: u64,
    /// The last entry that its session has heard of, or was opened with.
    told: Seq,
    /// What of it is saved beside its journal.
    saved: Saved,
    /// Its place among those that only wait.
    idle: Option<u64>,
    /// Its session was asked to go if it has nothing to do; true if it was told something after that.
    leaving: Option<bool>,
    /// Its session was told to end, and has not said that it has. Nothing that it says counts, and nobody else hosts the run meanwhile.
    closing: Option<Closing>,
    /// This process has had it hosted: whoever may have it is known.
    hosted: bool,
    /// Nobody hosts it before the time of those is over who may have it from before the start.
    held_back: bool,
    /// Nobody hosts it, and who did last has left nothing unsaid: what could begin by an entry after this one has not begun. Nothing if that is not known.
    unsure_until: Option<Seq>,
}

#[derive(Default)]
enum Memory {
    #[default]
    Absent,
    /// Being read; what comes meanwhile waits.
    Loading(Vec<Ask>),
    /// The fold of everything submitted so far; `None` if there is no such entity.
    Ready(Option<Entity>),
}

/// What follows when a session that was told to end has ended.
struct Closing {
    /// The run is replayed for this reason; else it is hosted anew if there is something to do.
    stale: Option<String>,
}

struct Session {
    id: SessionId,
    /// The life of the run that it knows.
    epoch: Epoch,
    line: Line,
    /// What could begin by an entry up to this one may have begun before.
    unsure_until: Seq,
}

/// Something asked of one entity.
enum Ask {
    Command(Box<Command>, From),
    Await(Waiter),
    Look(Look),
    /// It was under way when the process ended: host it.
    Resume,
    /// Its turn has come: tell of that end of it.
    Tell(Lane, Errand),
    /// An attempt to tell of that end of it is to be made.
    CallBack(Revision, Attempt),
}

/// What is to be done once batch `seq` is committed.
struct Pending {
    seq: u64,
    id: EntityId,
    then: Then,
}

/// What is to be done once a batch is committed.
enum Then {
    /// Do what follows a decision.
    Follow(From, Result<Follow, Refusal>),
    /// Take up something that has to see it.
    Ask(Ask),
    /// The message of this entity to that one is settled.
    Settled { to: EntityId, seq: u64 },
    /// Only the row of a run was written.
    Nothing,
}

/// What follows a decision.
#[derive(Default)]
struct Follow {
    effects: Vec<Effect>,
    /// The entries, for a host that is to open the run.
    entries: Vec<Entry>,
    /// What it says to other entities.
    said: Vec<Envelope>,
}

impl Shard {
    /// Runs until nobody can ask for anything any more, or until it is drained.
    pub(crate) async fn run(mut self) {
        while self.step().await {}
        self.state.has_ended = true;
        for seat in self.state.seats.values_mut() {
            seat.tell(ToHost::Close);
        }
        while !self.state.pending.is_empty() && self.committed_next().await {}
        for seat in self.state.seats.values_mut() {
            if let Memory::Loading(waiting) = std::mem::take(&mut seat.memory) {
                waiting.into_iter().for_each(|ask| ask.fail(&Error::Stopped)); // nothing was done of it, so it may be asked elsewhere
            }
        }
        self.ports.requests.close();
        while let Ok(request) = self.ports.requests.try_recv() {
            request.refuse();
        }
    }

    /// Takes in one thing, and begins what may begin after it. False when it is over.
    async fn step(&mut self) -> bool {
        let more = self.take_in().await;
        self.take_turns();
        more
    }

    async fn committed_next(&mut self) -> bool {
        match self.ports.outcomes.recv().await {
            Some(outcome) => {
                self.settle(outcome);
                true
            }
            None => false,
        }
    }

    /// Takes up a request. False when it is over.
    fn request(&mut self, request: Option<Request>) -> bool {
        match request {
            None => return false,
            Some(request) if self.is_closing(&request) => request.refuse(),
            Some(Request::Start { command, fresh, reply }) => self.start(*command, fresh, reply),
            Some(Request::Tell { entity, command, reply }) => {
                self.ask(entity, Ask::Command(command, From::Caller(reply, Place::default())))
            }
            Some(Request::Await { run, waiter }) => self.ask(run.into(), Ask::Await(waiter)),
            Some(Request::Sweep { ended, reply }) => self.sweep(ended, reply),
            Some(request) => drop(request.look().map(|(entity, look)| self.ask(entity, Ask::Look(look)))),
        }
        !self.is_drained()
    }

    fn start(&mut self, command: StartRun, fresh: bool, reply: Reply<Answer>) {
        let Some(place) = self.state.live.start(self.config.requests_max) else {
            return drop(reply.send(Err(Error::busy("requests_max"))));
        };
        let run = EntityId::from(&command.run);
        if fresh && matches!(self.seat(&run).memory, Memory::Absent) {
            self.seat(&run).memory = Memory::Ready(None);
        }
        self.ask(run, Ask::Command(Box::new(Command::StartRun(command)), From::Caller(reply, place)));
    }

    /// True if one more run would be one too many. The one that asks holds a place already.
    fn is_full(&self) -> bool {
        self.state.live.is_over(self.config.runs_live_max.saturating_sub(self.state.unopened.len()))
    }

    fn report(&mut self, Report { run, session, says, weight: _until_it_is_looked_at }: Report) {
        let run = EntityId::Run(run);
        if !self.is_current(&run, session) {
            return;
        }
        let ends = matches!(says, Says::Closed | Says::Lost | Says::GivenBack);
        match &self.seat(&run).closing {
            Some(_) if ends || matches!(says, Says::Blocked(_)) => return self.has_closed(&run, says == Says::Lost),
            Some(_) => return,
            None if !ends => self.seat(&run).leaving = None, // it has something to do
            None => {}
        }
        match &says {
            Says::Turn(turn) => {
                let settled: Vec<_> = turn.proposals.iter().filter_map(|proposal| proposal.event.subject()).collect();
                self.seat(&run).begun.retain(|step| !settled.contains(&step));
            }
            Says::Failed(report) => drop(self.seat(&run).begun.remove(&report.step)),
            _ => {}
        }
        match says {
            Says::Turn(turn) => self.ask(run, Ask::Command(Box::new(Command::TakeTurn(turn)), From::Turn(session))),
            Says::Failed(report) => {
                let from = From::Failure(session, report.step.clone());
                self.ask(run, Ask::Command(Box::new(Command::ReportFailure(report)), from));
            }
            Says::Heartbeat(beat) => self.ask(run, Ask::Command(Box::new(Command::RecordHeartbeat(beat)), From::Nobody)),
            Says::Blocked(wait) => self.block(&run, wait),
            Says::Closed => self.closed(&run),
            Says::Lost => self.lost(&run),
            Says::GivenBack => self.given_back(&run),
        }
    }

    /// Whether that is the session that hosts the run now; what others say is out of date.
    fn is_current(&self, id: &EntityId, session: SessionId) -> bool {
        self.state
            .seats
            .get(id)
            .and_then(|seat| seat.session.as_ref())
            .is_some_and(|mine| mine.id == session)
    }

    fn seat(&mut self, id: &EntityId) -> &mut Seat {
        self.state.seats.get_or_add(id)
    }

    /// Forgets an entity that nobody needs in memory. One that is in doubt is read again soon, and what is known of it beside its journal still counts then.
    fn tidy(&mut self, id: &EntityId) {
        self.touch(id);
        let Some(seat) = self.state.seats.get(id) else { return };
        if !seat.is_idle(self.committed.seq) {
            return;
        }
        if let Some(unsure_until) = self.left_unsaid(seat) {
            self.state.left.insert(id.clone(), unsure_until);
        }
        if !self.state.in_doubt.contains(id) {
            self.state.seats.remove(id);
        }
    }
}

impl State {
    pub(crate) fn new(config: &Config, crowd: Arc<Crowd>) -> Self {
        State { lanes: Lanes::new(config.callbacks.in_flight_max), live: Live::of(crowd), ..State::default() }
    }

    fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// How many runs are in memory with their code, for whoever looks how busy the shard is.
    pub(crate) fn load(&self) -> Arc<AtomicUsize> {
        self.live.counted()
    }
}

impl Seat {
    fn is_idle(&self, committed: u64) -> bool {
        let loading = matches!(self.memory, Memory::Loading(_));
        let awaited = self.waiters.iter().any(|waiter| !waiter.is_closed());
        !loading && !awaited && self.session.is_none() && self.blocked.is_none() && self.changed <= committed
    }

    /// The run, if it is one and in memory.
    fn run(&self) -> Option<&Run> {
        match &self.memory {
            Memory::Ready(Some(Entity::Run(run))) => Some(run),
            _ => None,
        }
    }

    /// Says what a retry has to know and is not in the journal.
    fn complete(&self, retry: &mut RetryRun) {
        (retry.blocked, retry.in_flight) = (self.blocked.is_some(), !self.begun.is_empty());
    }

    fn has_ended(&self) -> bool {
        self.run().is_some_and(|run| run.ended().is_some())
    }

    /// Tells that session, if it is still the one.
    fn tell_only(&mut self, session: SessionId, message: ToHost) {
        if self.session.as_ref().is_some_and(|mine| mine.id == session) {
            self.tell(message);
        }
    }

    fn tell(&mut self, message: ToHost) {
        if self.closing.is_some() {
            return; // the next one is told
        }
        if let Some(told) = &mut self.leaving {
            *told = true;
        }
        if let Some(session) = &self.session {
            session.line.tell(message);
        }
    }
}
