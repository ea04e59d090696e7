//! The keeper of this instance's leases: it says that the instance lives, takes its fair share of the shards, opens what it has taken, gives away what is too much, and
//! stops at once what it has lost.
//!
//! What an instance may do is counted from before it asked: a shard is stopped here before anybody else may have it, unless the process does not get to run at all.
//! Then the next commit is refused, because whoever has taken the shard has raised its term.

use super::Others;
use crate::clock::Clock;
use crate::engine::{Opened, Opener, Ways};
use crate::error::Error;
use crate::feed::Followers;
use crate::health::Health;
use crate::metrics;
use crate::shard::Control;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_store::{Beat, Claimed, Heard, Held, ShardId};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// A lease is renewed so often while it lasts.
const BEATS: u32 = 3;

/// Between two rounds at least, however much is heard.
const ROUND_GAP: Duration = Duration::from_millis(50);

/// After a round that has failed.
const UNSURE_GAP: Duration = Duration::from_millis(300);

/// Followers are woken so often at most by what others write.
const STIR_GAP: Duration = Duration::from_millis(100);

/// A shard that cannot be read is tried again after this.
const OPEN_AGAIN: Duration = Duration::from_millis(200);

/// So often it is tried to give a shard away in good order; after that its lease runs out.
const RELEASES: u32 = 5;

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
    others: Arc<Others>,
    opener: Arc<Opener>,
    ways: Weak<Ways>,
    followers: Arc<Followers>,
    clock: Arc<dyn Clock>,
    grace: Duration,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Ends when nobody has the engine any more.
    gone: watch::Receiver<()>,
    tell: mpsc::UnboundedSender<News>,
    news: mpsc::UnboundedReceiver<News>,
    /// The shards that are open here.
    open: BTreeMap<ShardId, Open>,
    opening: BTreeMap<ShardId, Opening>,
    /// Shards that are being given away.
    leaving: BTreeSet<ShardId>,
    /// Those that were given away since the round began that is under way: it may have seen them still.
    left: BTreeSet<ShardId>,
    /// Until when what is here is this instance's for sure.
    sure_until: Instant,
    /// Everything is given away.
    ends: bool,
}

struct Open {
    held: Held,
    over: JoinHandle<()>,
}

struct Opening {
    claimed: Claimed,
    task: AbortHandle,
}

/// What came of work beside the keeper.
enum News {
    Opened { claimed: Claimed, opened: Result<Opened, Error> },
    Left(ShardId),
}

/// What came of a round.
struct Round {
    /// When it began.
    asked_at: Instant,
    beat: Option<Beat>,
    claimed: Vec<Claimed>,
}

/// What a keeper is made with.
pub(crate) struct Parts {
    pub(crate) others: Arc<Others>,
    pub(crate) opener: Opener,
    pub(crate) ways: Arc<Ways>,
    pub(crate) followers: Arc<Followers>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) grace: Duration,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
}

impl LeaseKeeper {
    /// Joins the other instances, and opens the shards that are free, up to a fair share.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub(crate) async fn start(parts: Parts) -> Result<Self, Error> {
        let Parts { others, opener, ways, followers, clock, grace, orders } = parts;
        let (tell, news) = mpsc::unbounded_channel();
        let mut keeper = LeaseKeeper {
            others,
            opener: Arc::new(opener),
            gone: ways.gone(),
            ways: Arc::downgrade(&ways),
            followers,
            clock,
            grace,
            orders,
            tell,
            news,
            open: BTreeMap::new(),
            opening: BTreeMap::new(),
            leaving: BTreeSet::new(),
            left: BTreeSet::new(),
            sure_until: Instant::now(),
            ends: false,
        };
        keeper.others.leases.join(&keeper.others.member).await.map_err(Error::from_store)?;
        let Round { asked_at, claimed, .. } = keeper.round(true, true).await.map_err(Error::from_store)?;
        keeper.sure_until = asked_at + keeper.others.leases.lease();
        let opened = join_all(claimed.iter().map(|claimed| keeper.opener.open(claimed.held.shard, claimed.was_lost))).await;
        for (claimed, opened) in claimed.into_iter().zip(opened) {
            match opened {
                Ok(opened) => keeper.add(claimed.held, opened, &ways),
                Err(error) => {
                    let _it_ends_by_itself = keeper.others.leases.leave(&keeper.others.member.id).await;
                    return Err(error);
                }
            }
        }
        let (instance, shards) = (&keeper.others.member.id, keeper.open.len());
        tracing::info!(instance, shards, "taking part in the work on the database");
        Ok(keeper)
    }

    /// Runs until the engine ends.
    pub(crate) async fn run(mut self) {
        let every = self.others.leases.lease() / BEATS;
        let (mut next, mut stir_at, mut stirred) = (Instant::now() + every, None::<Instant>, Instant::now());
        let mut round: Option<BoxFuture<'static, Result<Round, steadfast_store::Error>>> = None;
        let (mut look, others, clock) = (false, Arc::clone(&self.others), Arc::clone(&self.clock));
        let until = |at: Instant| clock.sleep(at.saturating_duration_since(Instant::now()));
        loop {
            if self.ends && self.open.is_empty() && self.opening.is_empty() && self.leaving.is_empty() {
                break;
            }
            let margin = self.others.leases.lease() / MARGIN;
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Leave) => {
                        self.end();
                        next = Instant::now();
                    }
                    Some(Order::Abort) | None => return,
                },
                _ = self.gone.changed() => {
                    self.open.clear(); // they end by themselves
                    break;
                }
                () = until(self.sure_until - margin), if !self.open.is_empty() => self.lose_all(),
                Some(news) = self.news.recv() => self.hear(news),
                Some(done) = async { Some(round.as_mut()?.await) } => {
                    round = None;
                    match done {
                        Ok(done) => self.compare(done),
                        Err(error) => {
                            self.unsure(error);
                            next = next.min(Instant::now() + UNSURE_GAP);
                        }
                    }
                }
                () = until(next), if round.is_none() => {
                    next = Instant::now() + every;
                    self.left.clear();
                    round = Some(self.round(std::mem::take(&mut look), !self.ends).boxed());
                }
                heard = others.leases.heard() => match heard {
                    Heard::Leases => (look, next) = (true, next.min(Instant::now() + ROUND_GAP)),
                    Heard::Commits => stir_at = stir_at.or(Some(stirred + STIR_GAP)),
                },
                () = others.out_of_date.notified() => (look, next) = (true, next.min(Instant::now() + ROUND_GAP)),
                () = until(stir_at.unwrap_or(stirred)), if stir_at.is_some() => {
                    (stir_at, stirred) = (None, Instant::now());
                    self.followers.stirred();
                }
            }
        }
        if let Err(error) = self.others.leases.leave(&self.others.member.id).await {
            tracing::warn!(%error, "the other instances could not be told that this one ends; they will see it when its time is over");
        }
    }

    /// One look at how things stand, beside the keeper's other work.
    fn round(&self, look: bool, claims: bool) -> impl Future<Output = Result<Round, steadfast_store::Error>> + Send + use<> {
        let (others, shards) = (Arc::clone(&self.others), self.opener.shards());
        async move {
            let (leases, id) = (&others.leases, others.member.id.as_str());
            let asked_at = Instant::now();
            let Some(beat) = leases.beat(id).await? else {
                tracing::warn!(instance = id, "this instance was taken for gone; it joins again");
                leases.join(&others.member).await?;
                return Ok(Round { asked_at, beat: None, claimed: Vec::new() });
            };
            if !claims && !beat.draining {
                leases.drain(id, true).await?; // the others count it no more: what it gives away is taken while the rest is still under way here
            }
            let missing = share(shards, &beat).saturating_sub(beat.held.len());
            let claimed = if claims && missing > 0 { leases.claim(id, missing).await? } else { Vec::new() };
            if look || !claimed.is_empty() {
                others.look().await?;
            }
            Ok(Round { asked_at, beat: Some(beat), claimed })
        }
    }

    /// Makes what is here what it should be.
    fn compare(&mut self, Round { asked_at, beat, claimed }: Round) {
        let Some(ways) = self.ways.upgrade() else { return };
        let held: BTreeMap<ShardId, Held> = beat.iter().flat_map(|beat| &beat.held).map(|held| (held.shard, *held)).collect();
        self.sure_until = asked_at + self.others.leases.lease();
        ways.is_sure(None);
        let is_held = |mine: &Held| held.get(&mine.shard) == Some(mine);
        self.opening.retain(|_, opening| {
            let keeps = is_held(&opening.claimed.held);
            if !keeps {
                opening.task.abort();
            }
            keeps
        });
        let lost: Vec<_> = self.open.values().map(|open| open.held).filter(|mine| !is_held(mine)).collect();
        for Held { shard, .. } in lost {
            tracing::warn!(shard, "another instance has the shard, or may have it: it is stopped here");
            self.stop(&ways, shard);
        }
        let over: Vec<_> = self.open.keys().copied().filter(|shard| ways.is_over(*shard)).collect();
        for shard in over {
            self.stop(&ways, shard);
            self.give_back(shard, false);
        }
        let unopened = held.values().filter(|held| !self.has(held.shard) && !self.left.contains(&held.shard));
        let unopened: Vec<_> = unopened.map(|held| Claimed { held: *held, was_lost: true }).collect();
        for claimed in unopened.into_iter().chain(claimed) {
            self.begin(claimed);
        }
        let share = beat.as_ref().map_or(0, |beat| share(self.opener.shards(), beat));
        let surplus = (self.open.len() + self.opening.len()).saturating_sub(if self.ends { 0 } else { share });
        let last: Vec<_> = self.open.keys().rev().copied().take(surplus).collect();
        for shard in last {
            self.leave(&ways, shard);
        }
        metrics::shards(self.open.len());
    }

    /// The leases could not be renewed.
    fn unsure(&self, error: steadfast_store::Error) {
        tracing::warn!(%error, code = error.code(), "the leases could not be renewed; trying again");
        if let Some(ways) = self.ways.upgrade() {
            ways.is_sure(Some(Health::Healing { since: self.clock.now(), error: Arc::new(error) }));
        }
    }

    fn has(&self, shard: ShardId) -> bool {
        self.open.contains_key(&shard) || self.opening.contains_key(&shard) || self.leaving.contains(&shard)
    }

    /// Opens a shard, beside the keeper's other work.
    fn begin(&mut self, claimed: Claimed) {
        let Held { shard, .. } = claimed.held;
        if self.has(shard) {
            return;
        }
        if self.ends {
            return self.give_back(shard, !claimed.was_lost);
        }
        let (opener, clock, tell) = (Arc::clone(&self.opener), Arc::clone(&self.clock), self.tell.clone());
        let open = async move {
            let opened = loop {
                match opener.open(shard, claimed.was_lost).await {
                    Err(error) if error.is_retryable() => clock.sleep(OPEN_AGAIN).await,
                    opened => break opened,
                }
            };
            let _the_keeper_has_ended = tell.send(News::Opened { claimed, opened });
        };
        self.opening.insert(shard, Opening { claimed, task: tokio::spawn(open).abort_handle() });
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Left(shard) => {
                self.leaving.remove(&shard);
                self.left.insert(shard);
                if let Some(ways) = self.ways.upgrade() {
                    ways.remove(shard);
                }
                self.others.has_changed();
            }
            News::Opened { claimed, opened } => {
                let Held { shard, epoch } = claimed.held;
                let is_wanted =
                    self.opening.get(&shard).is_some_and(|opening| opening.claimed.held.epoch == epoch) && Instant::now() < self.sure_until;
                match (opened, self.ways.upgrade()) {
                    (Ok(opened), Some(ways)) if is_wanted => {
                        self.opening.remove(&shard);
                        self.add(claimed.held, opened, &ways);
                        if self.ends {
                            self.leave(&ways, shard);
                        }
                    }
                    (Ok(_), _) => {} // it was lost meanwhile; without a way to it, it ends
                    (Err(error), _) => {
                        tracing::warn!(shard, %error, code = error.code(), "a shard could not be opened");
                        if is_wanted {
                            self.opening.remove(&shard);
                        }
                    }
                }
            }
        }
    }

    fn add(&mut self, held: Held, Opened { way, over, term }: Opened, ways: &Ways) {
        self.others.has_term(held.shard, term);
        ways.add(held.shard, way);
        self.open.insert(held.shard, Open { held, over });
        self.others.has_changed();
        metrics::shards(self.open.len());
    }

    /// Stops a shard, whatever is in flight.
    fn stop(&mut self, ways: &Ways, shard: ShardId) {
        if let Some(way) = ways.remove(shard) {
            let _it_has_stopped = way.control.send(Control::Stop);
        }
        self.open.remove(&shard);
        self.others.has_changed();
    }

    /// Nobody knows who has them: the leases could not be renewed in time.
    fn lose_all(&mut self) {
        tracing::error!(shards = self.open.len(), "the leases could not be renewed in time: everything is stopped here until they can be");
        let Some(ways) = self.ways.upgrade() else { return };
        self.opening.values().for_each(|opening| opening.task.abort());
        self.opening.clear();
        while let Some(shard) = self.open.keys().next().copied() {
            self.stop(&ways, shard);
        }
        metrics::shards(0);
    }

    /// Lets a shard come to rest, and gives it away.
    fn leave(&mut self, ways: &Ways, shard: ShardId) {
        let Some(Open { over, .. }) = self.open.remove(&shard) else { return };
        self.leaving.insert(shard);
        let (drained, control) = (ways.drain_one(shard), ways.control_of(shard));
        let (clock, grace, release) = (Arc::clone(&self.clock), self.grace, self.release(shard));
        let tell = self.tell.clone();
        drop(tokio::spawn(async move {
            let in_good_order = tokio::select! {
                biased;
                () = drained => true,
                () = clock.sleep(grace) => false,
            };
            if let Some(control) = control.filter(|_| !in_good_order) {
                tracing::warn!(shard, "attempts were still in flight at the end of the grace period; they are made again elsewhere");
                let _it_has_stopped = control.send(Control::Stop);
            }
            let _ended = over.await;
            release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left(shard));
        }));
    }

    /// Gives a shard away that is not open here.
    fn give_back(&mut self, shard: ShardId, in_good_order: bool) {
        self.leaving.insert(shard);
        let (release, tell) = (self.release(shard), self.tell.clone());
        drop(tokio::spawn(async move {
            release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left(shard));
        }));
    }

    /// How a shard is given away.
    fn release(&self, shard: ShardId) -> impl FnOnce(bool) -> BoxFuture<'static, ()> + Send + use<> {
        let (others, clock) = (Arc::clone(&self.others), Arc::clone(&self.clock));
        move |in_good_order| {
            let release = async move {
                for _ in 0..RELEASES {
                    match others.leases.release(&others.member.id, &[shard], in_good_order).await {
                        Ok(()) => return,
                        Err(error) => tracing::warn!(shard, %error, "a shard could not be given away; trying again"),
                    }
                    clock.sleep(OPEN_AGAIN).await;
                }
            };
            release.boxed()
        }
    }

    /// Gives everything away.
    fn end(&mut self) {
        self.ends = true;
        let Some(ways) = self.ways.upgrade() else { return };
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().for_each(|shard| self.leave(&ways, shard));
        for (shard, Opening { claimed, task }) in std::mem::take(&mut self.opening) {
            task.abort();
            self.give_back(shard, !claimed.was_lost);
        }
    }
}

/// How many shards an instance should have.
fn share(shards: u32, beat: &Beat) -> usize {
    if beat.draining { 0 } else { (shards as usize).div_ceil(beat.instances.max(1)) }
}
