//! The keeper of this instance's leases: it says that the instance lives, takes its fair share of the shards, opens what it has taken, gives away what is too much, and
//! stops at once what it has lost.
//!
//! What an instance may do is counted from before it asked: a shard is stopped here before anybody else may have it, unless the process does not get to run at all.
//! Then the next commit is refused, because whoever has taken the shard has raised its term.

use super::Others;
use super::round::{Round, Wanted, round, share};
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
use steadfast_store::{Claimed, Heard, Held, ShardId};
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

/// A shard that cannot be read is tried again after this.
const OPEN_AGAIN: Duration = Duration::from_millis(200);

/// So often it is tried to give a shard away; after that it is opened again.
const RELEASES: u32 = 5;

/// A shard that moves though its instance does not end has so many times the grace period to come to rest: nobody is in a hurry, but others wait for what is in it.
const MOVES: u32 = 6;

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
    /// Shards that are being given away, and how they are stopped if they are lost before.
    leaving: BTreeMap<ShardId, Option<mpsc::UnboundedSender<Control>>>,
    /// Those that were given away since the round began that is under way: it may have seen them still.
    left: BTreeSet<ShardId>,
    /// How leases came here that were not opened yet.
    unopened: BTreeMap<ShardId, Claimed>,
    /// Until when what is here is this instance's for sure.
    sure_until: Option<Instant>,
    /// When the next round is, and whether it looks who has what; when that was last done, and by when it has to be done again.
    next: Instant,
    look: bool,
    looked: Instant,
    look_at: Instant,
    /// Everything is given away.
    ends: bool,
    /// Told when the first shards are open.
    ready: Option<oneshot::Sender<Result<(), Error>>>,
}

struct Open {
    held: Held,
    over: JoinHandle<()>,
}

struct Opening {
    held: Held,
    task: AbortHandle,
}

/// What came of work beside the keeper.
enum News {
    Opened {
        claimed: Claimed,
        opened: Result<Opened, Error>,
    },
    /// It was given away, or that did not work and it is as it was.
    Left {
        shard: ShardId,
        kept: Option<Claimed>,
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
            leaving: BTreeMap::new(),
            left: BTreeSet::new(),
            unopened: BTreeMap::new(),
            sure_until: None,
            next: now,
            look: true,
            looked: now,
            look_at: now,
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
        let mut making: Option<BoxFuture<'static, Result<Round, steadfast_store::Error>>> = None;
        let (mut stir_at, mut stirred) = (None::<Instant>, Instant::now());
        while !self.ends || !self.has_nothing() {
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
                Some(made) = async { Some(making.as_mut()?.await) } => {
                    making = None;
                    match made {
                        Ok(made) => self.compare(made),
                        Err(error) => self.unsure(error),
                    }
                }
                () = until(self.next), if making.is_none() => making = Some(self.round()),
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

    /// Begins a round, which is made beside the keeper's other work.
    fn round(&mut self) -> BoxFuture<'static, Result<Round, steadfast_store::Error>> {
        let (now, lease) = (Instant::now(), self.parts.others.leases.lease());
        self.left.clear();
        let look = std::mem::take(&mut self.look) || self.look_at <= now;
        if look {
            (self.looked, self.look_at) = (now, now + lease);
        }
        self.next = (now + lease / BEATS).min(self.look_at);
        let (others, clock) = (Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock));
        round(others, clock, self.opener.shards(), Wanted { look, ends: self.ends }).boxed()
    }

    /// Makes what is here what it should be.
    fn compare(&mut self, Round { asked_at, beat, claimed, look, look_at }: Round) {
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
        let sure_until = asked_at + self.parts.others.leases.lease();
        self.sure_until = Some(sure_until);
        self.parts.others.is_sure_until(sure_until);
        ways.is_sure(None);
        if look {
            self.look_within(UNSURE_GAP);
        }
        if let Some(look_at) = look_at {
            self.look_at = self.look_at.min(look_at);
            self.next = self.next.min(self.look_at);
        }
        let held: BTreeMap<ShardId, Held> = beat.iter().flat_map(|beat| &beat.held).map(|held| (held.shard, *held)).collect();
        self.let_go_of_lost(&ways, &held);
        self.let_go_of_broken(&ways);
        self.unopened.extend(claimed.into_iter().map(|claimed| (claimed.held.shard, claimed)));
        let not_open: Vec<_> = held
            .values()
            .filter(|held| !self.has(held.shard) && !self.left.contains(&held.shard))
            .copied()
            .collect();
        for held in not_open {
            self.unopened.entry(held.shard).or_insert(Claimed { held, was_lost: true }); // how it came here is not known
        }
        for claimed in self.unopened.values().copied().collect::<Vec<_>>() {
            self.begin(claimed);
        }
        let share = beat.as_ref().map_or(0, |beat| share(self.opener.shards(), beat));
        let surplus = (self.open.len() + self.opening.len()).saturating_sub(if self.ends { 0 } else { share });
        for shard in self.open.keys().rev().copied().take(surplus).collect::<Vec<_>>() {
            self.leave(&ways, shard);
        }
        self.is_ready();
        metrics::shards(self.open.len());
    }

    /// Stops what others have, or may have.
    fn let_go_of_lost(&mut self, ways: &Ways, held: &BTreeMap<ShardId, Held>) {
        let is_held = |mine: &Held| held.get(&mine.shard) == Some(mine);
        self.unopened.retain(|_, claimed| is_held(&claimed.held));
        for shard in self.opening.values().map(|opening| opening.held).filter(|mine| !is_held(mine)).collect::<Vec<_>>() {
            self.forget_opening(shard.shard);
        }
        for Held { shard, .. } in self.open.values().map(|open| open.held).filter(|mine| !is_held(mine)).collect::<Vec<_>>() {
            tracing::warn!(shard, "another instance has the shard, or may have it: it is stopped here");
            self.stop(ways, shard);
        }
        for (_, control) in self.leaving.iter().filter(|(shard, _)| !held.contains_key(shard)) {
            let _it_has_stopped = control.as_ref().map(|control| control.send(Control::Stop));
        }
    }

    /// Gives away what has come to an end by itself. If that is because this program must not write the store any more, everything.
    fn let_go_of_broken(&mut self, ways: &Arc<Ways>) {
        let is_over = |(shard, open): &(&ShardId, &Open)| open.over.is_finished() || ways.is_over(**shard).is_some();
        for shard in self.open.iter().filter(is_over).map(|(shard, _)| *shard).collect::<Vec<_>>() {
            let error = ways.is_over(shard);
            self.stop(ways, shard);
            self.give_back(shard, false);
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

    /// Opens a shard, beside the keeper's other work.
    fn begin(&mut self, claimed: Claimed) {
        let Held { shard, .. } = claimed.held;
        if self.has(shard) {
            return;
        }
        if self.ends {
            self.unopened.remove(&shard);
            return self.give_back(shard, !claimed.was_lost);
        }
        let (opener, clock, tell) = (Arc::clone(&self.opener), Arc::clone(&self.parts.clock), self.tell.clone());
        let open = async move {
            let opened = loop {
                match opener.open(shard, claimed.was_lost).await {
                    Err(error) if error.is_retryable() => clock.sleep(OPEN_AGAIN).await,
                    opened => break opened,
                }
            };
            let _the_keeper_has_ended = tell.send(News::Opened { claimed, opened });
        };
        self.opening.insert(shard, Opening { held: claimed.held, task: tokio::spawn(open).abort_handle() });
    }

    /// Ends the opening of a shard. It may have begun to work already, so that is cut off.
    fn forget_opening(&mut self, shard: ShardId) {
        if let Some(opening) = self.opening.remove(&shard) {
            opening.task.abort();
            self.cut_off(shard);
        }
    }

    fn cut_off(&mut self, shard: ShardId) {
        if let Some(claimed) = self.unopened.get_mut(&shard) {
            claimed.was_lost = true;
        }
    }

    fn hear(&mut self, news: News) {
        let ways = self.ways.upgrade();
        match news {
            News::Left { shard, kept } => {
                self.leaving.remove(&shard);
                ways.iter().for_each(|ways| drop(ways.remove(shard)));
                match kept {
                    Some(claimed) => drop(self.unopened.insert(shard, claimed)),
                    None => drop(self.left.insert(shard)),
                }
                self.parts.others.has_changed();
            }
            News::Opened { claimed, opened } => {
                let Held { shard, epoch } = claimed.held;
                if self.opening.get(&shard).is_none_or(|opening| opening.held.epoch != epoch) {
                    return; // it was lost meanwhile; without a way to it, it ends
                }
                self.opening.remove(&shard);
                match (opened, ways) {
                    (Ok(opened), Some(ways)) if self.sure_until.is_some_and(|sure| Instant::now() < sure) => {
                        self.add(claimed.held, opened, &ways);
                        if self.ends {
                            self.leave(&ways, shard);
                        }
                    }
                    (Ok(_), _) => self.cut_off(shard),
                    (Err(error), _) => {
                        tracing::error!(shard, %error, code = error.code(), "a shard could not be opened");
                        if let Some(ready) = self.ready.take() {
                            let _nobody_waits = ready.send(Err(error));
                        }
                    }
                }
                self.is_ready();
            }
        }
    }

    /// Tells whoever waits for the start, once it is over.
    fn is_ready(&mut self) {
        if self.opening.is_empty()
            && let Some(ready) = self.ready.take()
        {
            let (instance, shards) = (&self.parts.others.member.id, self.open.len());
            tracing::info!(instance, shards, "taking part in the work on the store");
            let _nobody_waits = ready.send(Ok(()));
        }
    }

    fn add(&mut self, held: Held, Opened { way, over, term }: Opened, ways: &Ways) {
        self.unopened.remove(&held.shard);
        self.parts.others.has_term(held.shard, term);
        ways.add(held.shard, way);
        self.open.insert(held.shard, Open { held, over });
        self.parts.others.has_changed();
        metrics::shards(self.open.len());
    }

    /// Stops a shard, whatever is in flight.
    fn stop(&mut self, ways: &Ways, shard: ShardId) {
        if let Some(way) = ways.remove(shard) {
            let _it_has_stopped = way.control.send(Control::Stop);
        }
        self.open.remove(&shard);
        self.parts.others.has_changed();
    }

    /// Nobody knows who has them: the leases could not be renewed in time.
    fn lose_all(&mut self) {
        tracing::error!(shards = self.open.len(), "the leases could not be renewed in time: everything is stopped here until they can be");
        self.sure_until = None;
        let Some(ways) = self.ways.upgrade() else { return };
        for shard in self.opening.keys().copied().collect::<Vec<_>>() {
            self.forget_opening(shard);
        }
        for shard in self.open.keys().copied().collect::<Vec<_>>() {
            self.stop(&ways, shard);
        }
        for control in self.leaving.values().flatten() {
            let _it_has_stopped = control.send(Control::Stop);
        }
        metrics::shards(0);
    }

    /// Lets a shard come to rest, and gives it away.
    fn leave(&mut self, ways: &Ways, shard: ShardId) {
        let Some(Open { over, held }) = self.open.remove(&shard) else { return };
        let (drained, control) = (ways.drain_one(shard), ways.control_of(shard));
        self.leaving.insert(shard, control.clone());
        let grace = self.parts.grace * if self.ends { 1 } else { MOVES };
        let (clock, release) = (Arc::clone(&self.parts.clock), self.release(shard));
        let tell = self.tell.clone();
        drop(tokio::spawn(async move {
            let in_good_order = tokio::select! {
                biased;
                drained = drained => drained,
                () = clock.sleep(grace) => false,
            };
            if let Some(control) = control.filter(|_| !in_good_order) {
                tracing::warn!(shard, "attempts were still in flight when the shard had to be given away; they are made again elsewhere");
                let _it_has_stopped = control.send(Control::Stop);
            }
            let _ended = over.await;
            let kept = (!release(in_good_order).await).then_some(Claimed { held, was_lost: !in_good_order });
            let _the_keeper_has_ended = tell.send(News::Left { shard, kept });
        }));
    }

    /// Gives a shard away that is not open here.
    fn give_back(&mut self, shard: ShardId, in_good_order: bool) {
        self.leaving.insert(shard, None);
        let (release, tell) = (self.release(shard), self.tell.clone());
        drop(tokio::spawn(async move {
            release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { shard, kept: None });
        }));
    }

    /// How a shard is given away; false if that does not work.
    fn release(&self, shard: ShardId) -> impl FnOnce(bool) -> BoxFuture<'static, bool> + Send + use<> {
        let (others, clock) = (Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock));
        move |in_good_order| {
            let release = async move {
                for _ in 0..RELEASES {
                    match others.leases.release(&others.member.id, &[shard], in_good_order).await {
                        Ok(()) => return true,
                        Err(error) => tracing::warn!(shard, %error, "a shard could not be given away; trying again"),
                    }
                    clock.sleep(OPEN_AGAIN).await;
                }
                false
            };
            release.boxed()
        }
    }

    /// Gives everything away. What is being opened is given away once it is open: it may have begun to work.
    fn end(&mut self) {
        (self.ends, self.next) = (true, Instant::now());
        let Some(ways) = self.ways.upgrade() else { return };
        for shard in self.open.keys().copied().collect::<Vec<_>>() {
            self.leave(&ways, shard);
        }
    }
}
