//! The keeper of this instance's leases: it says that the instance lives, takes its fair share of the shards, opens what it has taken, gives away what is too much, and
//! stops at once what it has lost.
//!
//! What an instance may do is counted from before it asked: a shard is stopped here before anybody else may have it, unless the process does not get to run at all.
//! Then the next commit is refused, because whoever has taken the shard has raised its term.
//!
//! Here is what it hears and what follows from it; `opening.rs` and `leaving.rs` are how a shard comes and goes.
//!
//! Tested by `crates/sdk/tests/it/cluster/leases.rs`.
//! Tested by `crates/cli/tests/it/cluster/killed.rs`.

mod leaving;
mod opening;

use leaving::{Busy, Pace};

use super::Others;
use super::round::{Beaten, Looked, Wants, beat, look, share};
use crate::clock::Clock;
use crate::engine::{Opened, Opener, Ways};
use crate::error::Error;
use crate::feed::Followers;
use crate::health::Health;
use crate::metrics;
use crate::shard::Control;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_store::{Heard, Held, ShardId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// A lease is renewed so often while it lasts.
const BEATS: u32 = 3;

/// Between two rounds at least, however much is heard.
const ROUND_GAP: Duration = Duration::from_millis(50);

/// After a round that has failed.
const UNSURE_GAP: Duration = Duration::from_millis(300);

/// So often it is looked at most because what was known has turned out to be wrong: who changes something tells.
const DOUBT_GAP: Duration = Duration::from_secs(1);

/// Followers are woken so often at most by what others write.
const STIR_GAP: Duration = Duration::from_millis(200);

/// The part of a lease that is left over for stopping, when it cannot be renewed.
const MARGIN: u32 = 10;

/// What the engine's owner wants of the keeper.
pub(crate) enum Order {
    /// Give everything away in good order, and leave.
    Leave,
    /// End at once, as a crash would.
    Abort,
}

pub(crate) struct LeaseKeeper {
    parts: Parts,
    opener: Arc<Opener>,
    ways: Weak<Ways>,
    /// Ends when nobody has the engine any more.
    gone: watch::Receiver<()>,
    tell: mpsc::UnboundedSender<News>,
    news: mpsc::UnboundedReceiver<News>,
    /// The shards that are open here.
    open: BTreeMap<ShardId, Open>,
    opening: BTreeMap<ShardId, Opening>,
    /// How many were ever opened here: what came of an older opening is not taken for that of the next.
    openings: u64,
    /// Shards that are being given away, and how they are stopped if they are lost before.
    leaving: BTreeMap<ShardId, Option<mpsc::UnboundedSender<Control>>>,
    /// Those that were given away, and those that were taken, since the beat began that is under way: it may have seen neither.
    left: BTreeSet<ShardId>,
    taken: BTreeSet<ShardId>,
    /// The epoch in which a shard was last set to work here, unless it came to rest after that. Opened again in that epoch, what was under way there has been cut off.
    worked: BTreeMap<ShardId, u64>,
    /// The epoch in which a shard came to rest here: opened again in that epoch, nothing of it has been cut off, whatever it came here by.
    rested: BTreeMap<ShardId, u64>,
    /// Until when what is here is this instance's for sure.
    sure_until: Option<Instant>,
    /// When the next beat is, and whether it is looked after it who has what; when that was last done, and by when it has to be done again.
    next: Instant,
    look: bool,
    looked: Instant,
    look_at: Instant,
    /// It was looked at least once, or tried.
    has_looked: bool,
    /// Nobody else lives, as the last beat has it.
    is_alone: bool,
    /// Shards that could not be opened here, and until when they are left to others, who may be able to.
    left_to_others: BTreeMap<ShardId, Instant>,
    /// Shards that nobody has, or that somebody had for a moment lately.
    free: BTreeMap<ShardId, Free>,
    looked_free: Instant,
    /// Those that were taken for that reason: they stay.
    rescued: BTreeSet<ShardId>,
    /// Shards that did not come to rest when they were to be given away.
    busy: BTreeMap<ShardId, Busy>,
    /// Why shards are given away now.
    pace: watch::Sender<Pace>,
    /// Everything is given away.
    ends: bool,
    /// Told when the first shards are open.
    ready: Option<oneshot::Sender<Result<(), Error>>>,
}

struct Open {
    held: Held,
    over: JoinHandle<()>,
}

/// When a shard that nobody has was seen to be free first and last.
struct Free {
    since: Instant,
    seen: Instant,
}

struct Opening {
    number: u64,
    held: Held,
    task: AbortHandle,
}

/// What came of work beside the keeper.
enum News {
    Opened {
        number: u64,
        held: Held,
        opened: Result<Opened, Error>,
    },
    /// It goes on here: it did not come to rest in that time, or need not.
    Stays {
        held: Held,
        over: JoinHandle<()>,
        waited: Option<Duration>,
    },
    /// It has come to rest, or was stopped; and it was given away, or that did not work and it is still here.
    Left {
        held: Held,
        in_good_order: bool,
        released: bool,
    },
}

/// What a keeper is made with.
pub(crate) struct Parts {
    pub(crate) others: Arc<Others>,
    pub(crate) followers: Arc<Followers>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) grace: Duration,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
}

impl LeaseKeeper {
    /// Joins the other instances. What comes with it ends when the keeper, which has to be run, has opened the shards that were free, up to a fair share.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub(crate) async fn join(
        parts: Parts,
        opener: Opener,
        ways: &Arc<Ways>,
    ) -> Result<(Self, oneshot::Receiver<Result<(), Error>>), Error> {
        let ((tell, news), (ready, opened), now) = (mpsc::unbounded_channel(), oneshot::channel(), Instant::now());
        parts.others.leases.join(&parts.others.member).await.map_err(Error::from_store)?;
        let keeper = LeaseKeeper {
            parts,
            opener: Arc::new(opener),
            ways: Arc::downgrade(ways),
            gone: ways.gone(),
            tell,
            news,
            open: BTreeMap::new(),
            opening: BTreeMap::new(),
            openings: 0,
            leaving: BTreeMap::new(),
            left: BTreeSet::new(),
            taken: BTreeSet::new(),
            worked: BTreeMap::new(),
            rested: BTreeMap::new(),
            sure_until: None,
            next: now,
            look: true,
            looked: now,
            look_at: now,
            has_looked: false,
            is_alone: false,
            left_to_others: BTreeMap::new(),
            free: BTreeMap::new(),
            looked_free: now,
            rescued: BTreeSet::new(),
            busy: BTreeMap::new(),
            pace: watch::channel(Pace::Share).0,
            ends: false,
            ready: Some(ready),
        };
        Ok((keeper, opened))
    }

    /// Runs until the engine ends.
    pub(crate) async fn run(mut self) {
        let (others, clock) = (Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock));
        let lease = others.leases.lease();
        let until = |at: Instant| clock.sleep(at.saturating_duration_since(Instant::now()));
        // Apart, so that nothing that takes long keeps leases from being renewed.
        let mut beating: Option<BoxFuture<'static, Result<Beaten, steadfast_store::Error>>> = None;
        let mut looking: Option<BoxFuture<'static, Looked>> = None;
        let (mut stir_at, mut stirred) = (None::<Instant>, Instant::now());
        while !self.ends || !self.has_nothing() || looking.is_some() {
            let (has_some, now) = (!self.has_nothing(), Instant::now());
            tokio::select! {
                biased;
                order = self.parts.orders.recv() => match order {
                    Some(Order::Leave) => self.end(),
                    Some(Order::Abort) | None => return,
                },
                _ = self.gone.changed() => break, // the shards end by themselves
                () = until(self.sure_until.map_or(now, |sure| sure - lease / MARGIN)), if has_some && self.sure_until.is_some() => self.lose_all(),
                Some(news) = self.news.recv() => self.hear(news),
                Some(beaten) = async { Some(beating.as_mut()?.await) } => {
                    beating = None;
                    match beaten {
                        Ok(beaten) => {
                            self.compare(&beaten);
                            looking = looking.or_else(|| self.look(&beaten));
                        }
                        Err(error) => self.unsure(error),
                    }
                }
                Some(looked) = async { Some(looking.as_mut()?.await) } => {
                    looking = None;
                    self.take(looked);
                }
                () = until(self.next), if beating.is_none() => beating = Some(self.beat()),
                heard = others.leases.heard() => match heard {
                    Heard::Leases => self.look_within(ROUND_GAP),
                    Heard::Commits => stir_at = stir_at.or(Some(stirred + STIR_GAP)),
                },
                () = others.out_of_date.notified() => {
                    let gap = (self.looked + DOUBT_GAP).saturating_duration_since(Instant::now());
                    self.look_within(gap.max(ROUND_GAP));
                }
                () = until(stir_at.unwrap_or(stirred)), if stir_at.is_some() => {
                    (stir_at, stirred) = (None, Instant::now());
                    self.parts.followers.stirred();
                }
            }
        }
        drop(beating);
        if let Err(error) = others.leases.leave(&others.member.id).await {
            tracing::warn!(%error, "the other instances could not be told that this one ends; they will see it when its time is over");
        }
    }

    fn has_nothing(&self) -> bool {
        self.open.is_empty() && self.opening.is_empty() && self.leaving.is_empty()
    }

    fn look_within(&mut self, time: Duration) {
        (self.look, self.next) = (true, self.next.min(Instant::now() + time));
    }

    /// Says that this instance lives, beside the keeper's other work.
    fn beat(&mut self) -> BoxFuture<'static, Result<Beaten, steadfast_store::Error>> {
        self.left.clear();
        self.taken.clear();
        let (now, lease) = (Instant::now(), self.parts.others.leases.lease());
        self.next = now + lease / BEATS;
        if !self.is_to_look(now) {
            self.next = self.next.min(self.look_at);
        }
        beat(Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock)).boxed()
    }

    /// Whether a beat at that time is to be followed by a look: one that would be due a moment later needs no beat of its own.
    fn is_to_look(&self, now: Instant) -> bool {
        self.look || self.look_at <= now + ROUND_GAP
    }

    /// Looks who has what, and takes what is missing here, beside the keeper's other work; nothing if there is no reason to.
    fn look(&mut self, beaten: &Beaten) -> Option<BoxFuture<'static, Looked>> {
        let now = Instant::now();
        let beat = beaten.beat.clone()?;
        let drain = self.ends && !beat.draining;
        if !self.is_to_look(now) && !drain {
            return None;
        }
        (self.look, self.looked, self.look_at) = (false, now, now + self.parts.others.leases.lease());
        let missing = share(self.opener.shards(), &beat).saturating_sub(beat.held.len());
        self.left_to_others.retain(|_, until| *until > now);
        let wants = match missing {
            _ if self.ends || beat.draining => Wants::Nothing,
            0 => self.left_over(now).map_or(Wants::Nothing, Wants::Rescue),
            missing => Wants::Share(missing),
        };
        let except = match wants {
            Wants::Rescue(left_over) => (0..self.opener.shards()).filter(|shard| *shard != left_over).collect(),
            Wants::Share(_) | Wants::Nothing => self.left_to_others.keys().copied().collect(),
        };
        Some(look(Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock), drain, wants, except).boxed())
    }

    /// The shard that was free for longest, if that is so long that somebody cannot open it who should have it. What has just been given away is on its way to another instance.
    fn left_over(&self, now: Instant) -> Option<ShardId> {
        let since = now.checked_sub(self.left_alone_for())?;
        let may_be = self
            .free
            .iter()
            .filter(|(shard, free)| free.since <= since && free.seen == self.looked_free && !self.left_to_others.contains_key(shard));
        may_be.min_by_key(|(_, free)| free.since).map(|(shard, _)| *shard)
    }

    fn left_alone_for(&self) -> Duration {
        self.parts.others.leases.lease() / 2
    }

    /// Those shards are free now. One that somebody has for a moment, and cannot open, is as if it had been free all the while.
    fn are_free(&mut self, free: BTreeSet<ShardId>) {
        let (now, moment) = (Instant::now(), self.left_alone_for());
        let mine = |shard: &ShardId| self.open.contains_key(shard) || self.opening.contains_key(shard) || self.leaving.contains_key(shard);
        self.looked_free = now;
        self.free.retain(|shard, free| free.seen + moment > now && !mine(shard));
        for shard in free.into_iter().filter(|shard| !mine(shard)) {
            self.free.entry(shard).or_insert(Free { since: now, seen: now }).seen = now;
        }
    }

    /// What was looked for is known, and what was free is taken.
    fn take(&mut self, Looked { wants, free, taken, look_at, failed }: Looked) {
        self.has_looked = true;
        self.are_free(&free - &taken.iter().map(|held| held.shard).collect());
        if let Wants::Rescue(_) = wants {
            self.rescued.extend(taken.iter().map(|held| held.shard));
        }
        for held in taken {
            self.taken.insert(held.shard);
            self.begin(held);
        }
        if failed {
            self.look_within(UNSURE_GAP);
        }
        if let Some(look_at) = look_at {
            self.look_at = self.look_at.min(look_at);
            self.next = self.next.min(self.look_at);
        }
        if self.look {
            self.look_within(ROUND_GAP); // something was heard meanwhile
        }
        self.is_ready();
    }

    /// Makes what is here what it should be.
    fn compare(&mut self, Beaten { asked_at, beat }: &Beaten) {
        let Some(ways) = self.ways.upgrade() else { return };
        let finished: Vec<_> = self
            .opening
            .values()
            .filter(|opening| opening.task.is_finished())
            .map(|opening| opening.held.shard)
            .collect();
        while let Ok(news) = self.news.try_recv() {
            self.hear(news);
        }
        finished.into_iter().for_each(|shard| self.forget_opening(shard)); // one that is still there has panicked: it has not said that it is done
        let sure_until = *asked_at + self.parts.others.leases.lease();
        self.sure_until = Some(sure_until);
        self.parts.others.is_sure_until(sure_until);
        ways.is_sure(None);
        if beat.is_none() {
            self.look_within(UNSURE_GAP); // it has joined again
        }
        let held: BTreeMap<ShardId, Held> = beat.iter().flat_map(|beat| &beat.held).map(|held| (held.shard, *held)).collect();
        self.let_go_of_lost(&ways, &held);
        self.let_go_of_broken(&ways);
        for held in held.into_values().filter(|held| !self.left.contains(&held.shard)).collect::<Vec<_>>() {
            self.begin(held);
        }
        self.is_alone = beat.as_ref().is_some_and(|beat| beat.others == 0);
        let share = beat.as_ref().map_or(0, |beat| share(self.opener.shards(), beat));
        let due = if self.ends || share == 0 { 0 } else { share + self.rescued.len() };
        let mine = self.open.len() + self.opening.len();
        self.set_pace(beat.as_ref().is_some_and(|beat| beat.draining), mine + self.leaving.len() > due);
        self.give_away(&ways, mine.saturating_sub(due));
        self.is_ready();
        metrics::shards(self.open.len());
    }

    /// Stops what others have, or may have.
    fn let_go_of_lost(&mut self, ways: &Ways, held: &BTreeMap<ShardId, Held>) {
        let taken = self.taken.clone();
        let is_held = |mine: &Held| held.get(&mine.shard) == Some(mine) || taken.contains(&mine.shard);
        for Held { shard, .. } in self.opening.values().map(|opening| opening.held).filter(|mine| !is_held(mine)).collect::<Vec<_>>() {
            self.forget_opening(shard);
        }
        for Held { shard, .. } in self.open.values().map(|open| open.held).filter(|mine| !is_held(mine)).collect::<Vec<_>>() {
            tracing::warn!(shard, "another instance has the shard, or may have it: it is stopped here");
            self.stop(ways, shard);
        }
        for (_, control) in self.leaving.iter().filter(|(shard, _)| !held.contains_key(shard) && !taken.contains(shard)) {
            let _it_has_stopped = control.as_ref().map(|control| control.send(Control::Stop));
        }
    }

    /// Gives away what has come to an end by itself. If that is because this program must not write the store any more, everything.
    fn let_go_of_broken(&mut self, ways: &Arc<Ways>) {
        let is_over = |(shard, open): &(&ShardId, &Open)| open.over.is_finished() || ways.is_over(**shard).is_some();
        for held in self.open.iter().filter(is_over).map(|(_, open)| open.held).collect::<Vec<_>>() {
            let Held { shard, .. } = held;
            let error = ways.is_over(shard);
            self.stop(ways, shard);
            self.give_back(held, false);
            if let Some(error) = error.filter(|error| !matches!(**error, steadfast_store::Error::Fenced { .. })) {
                tracing::error!(shard, %error, code = error.code(), "this program cannot write the store any more: it gives everything away");
                ways.is_sure(Some(Health::Over { error }));
                self.end();
            }
        }
    }

    /// The leases could not be renewed.
    fn unsure(&mut self, error: steadfast_store::Error) {
        tracing::warn!(%error, code = error.code(), "the leases could not be renewed; trying again");
        if let Some(ways) = self.ways.upgrade() {
            ways.is_sure(Some(Health::Healing { since: self.parts.clock.now(), error: Arc::new(error) }));
        }
        self.look_within(UNSURE_GAP);
    }

    fn has(&self, shard: ShardId) -> bool {
        self.open.contains_key(&shard) || self.opening.contains_key(&shard) || self.leaving.contains_key(&shard)
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Left { held, in_good_order, released } => self.has_left(held, in_good_order, released),
            News::Stays { held, over, waited } => self.stays(held, over, waited),
            News::Opened { number, held, opened } => {
                if self.opening.get(&held.shard).is_none_or(|opening| opening.number != number) {
                    return; // it was lost meanwhile, and is dropped before it begins to work
                }
                self.opening.remove(&held.shard);
                match opened {
                    Ok(opened) => self.has_opened(held, opened),
                    Err(error) => self.has_not_opened(held, error),
                }
                self.is_ready();
            }
        }
    }
}
