//! The keeper of this instance's leases: it says that the instance lives, takes its fair share of the shards, opens what it has taken, gives away what is too much, and
//! stops at once what it has lost.
//!
//! What an instance may do is counted from before it asked: a shard is stopped here before anybody else may have it, unless the process does not get to run at all.
//! Then the next commit is refused, because whoever has taken the shard has raised its term.

use super::Others;
use super::round::{Beaten, Looked, beat, look, share};
use crate::clock::Clock;
use crate::engine::{Opened, Opener, Ways};
use crate::error::Error;
use crate::feed::Followers;
use crate::health::Health;
use crate::metrics;
use crate::shard::Control;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::cmp::Reverse;
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

/// A shard that cannot be read is tried again after this.
const OPEN_AGAIN: Duration = Duration::from_millis(200);

/// So often it is tried to give a shard away; after that it is opened again.
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
    /// Until when what is here is this instance's for sure.
    sure_until: Option<Instant>,
    /// When the next beat is, and whether it is looked after it who has what; when that was last done, and by when it has to be done again.
    next: Instant,
    look: bool,
    looked: Instant,
    look_at: Instant,
    /// It was looked at least once, or tried.
    has_looked: bool,
    /// Nothing is taken before that: a shard could not be opened here, and another instance may be able to.
    takes_from: Instant,
    /// Everything is given away.
    ends: bool,
    /// Told to those who wait for a shard to come to rest when that is no longer waited for as long as it takes.
    hurry: watch::Sender<bool>,
    /// Told when the first shards are open.
    ready: Option<oneshot::Sender<Result<(), Error>>>,
}

struct Open {
    held: Held,
    over: JoinHandle<()>,
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
    /// It has come to rest, or was stopped; and it was given away, or that did not work and it is still here.
    Left {
        shard: ShardId,
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
            sure_until: None,
            next: now,
            look: true,
            looked: now,
            look_at: now,
            has_looked: false,
            takes_from: now,
            ends: false,
            hurry: watch::channel(false).0,
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
        let takes = !self.ends && self.takes_from <= now;
        let missing = if takes { share(self.opener.shards(), &beat).saturating_sub(beat.held.len()) } else { 0 };
        Some(look(Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock), drain, missing).boxed())
    }

    /// What was looked for is known, and what was free is taken.
    fn take(&mut self, Looked { taken, look_at, failed }: Looked) {
        self.has_looked = true;
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
        let share = beat.as_ref().map_or(0, |beat| share(self.opener.shards(), beat));
        let surplus = (self.open.len() + self.opening.len()).saturating_sub(if self.ends { 0 } else { share });
        for shard in self.idlest(&ways, surplus) {
            self.leave(&ways, shard);
        }
        self.is_ready();
        metrics::shards(self.open.len());
    }

    /// So many of the shards that are open here: those first in which the least is under way, since all that is in a shard waits while it comes to rest.
    fn idlest(&self, ways: &Ways, count: usize) -> Vec<ShardId> {
        let mut shards: Vec<_> = self.open.keys().map(|shard| (ways.load_of(*shard), Reverse(*shard))).collect();
        shards.sort_unstable();
        shards.into_iter().map(|(_, Reverse(shard))| shard).take(count).collect()
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
        for (_, control) in self.leaving.iter().filter(|(shard, _)| !held.contains_key(shard)) {
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

    /// Whether what was under way in a shard when it came here has been cut off.
    fn was_cut_off(&self, held: &Held) -> bool {
        held.was_lost || self.worked.get(&held.shard) == Some(&held.epoch)
    }

    /// Opens a shard that is not open here, beside the keeper's other work.
    fn begin(&mut self, held: Held) {
        let Held { shard, .. } = held;
        if self.has(shard) {
            return;
        }
        let cut_off = self.was_cut_off(&held);
        if self.ends {
            return self.give_back(held, !cut_off);
        }
        let (opener, clock, tell) = (Arc::clone(&self.opener), Arc::clone(&self.parts.clock), self.tell.clone());
        let lease = self.parts.others.leases.lease();
        self.openings += 1;
        let number = self.openings;
        let open = async move {
            let until = Instant::now() + lease; // whom the store does not answer for so long keeps the shard from others
            let opened = loop {
                match opener.open(shard, cut_off).await {
                    Err(error) if error.is_retryable() && Instant::now() < until => clock.sleep(OPEN_AGAIN).await,
                    opened => break opened,
                }
            };
            let _the_keeper_has_ended = tell.send(News::Opened { number, held, opened });
        };
        self.opening.insert(shard, Opening { number, held, task: tokio::spawn(open).abort_handle() });
    }

    /// Ends the opening of a shard, which has not begun to work.
    fn forget_opening(&mut self, shard: ShardId) {
        if let Some(opening) = self.opening.remove(&shard) {
            opening.task.abort();
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Left { shard, in_good_order, released } => self.has_left(shard, in_good_order, released),
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

    fn has_left(&mut self, shard: ShardId, in_good_order: bool, released: bool) {
        self.leaving.remove(&shard);
        self.ways.upgrade().iter().for_each(|ways| drop(ways.remove(shard)));
        if in_good_order {
            self.worked.remove(&shard);
        }
        if released {
            self.left.insert(shard); // else it is opened again after the next beat
        }
        self.parts.others.has_changed();
    }

    fn has_opened(&mut self, held: Held, opened: Opened) {
        let Some(ways) = self.ways.upgrade() else { return };
        if self.sure_until.is_none_or(|sure| Instant::now() >= sure) {
            return; // another instance may have it by now; it is dropped before it begins to work
        }
        self.add(held, opened, &ways);
        if self.ends {
            self.leave(&ways, held.shard);
        }
    }

    /// Another instance may be able to open it, so this one does not keep it.
    fn has_not_opened(&mut self, held: Held, error: Error) {
        let Held { shard, .. } = held;
        if let Error::Store(error) = &error
            && matches!(**error, steadfast_store::Error::Fenced { .. })
        {
            return tracing::warn!(shard, %error, "another instance has taken the shard before it was open here");
        }
        tracing::error!(shard, %error, code = error.code(), "a shard could not be opened");
        self.takes_from = Instant::now() + self.parts.others.leases.lease();
        self.give_back(held, !self.was_cut_off(&held));
        if let Some(ready) = self.ready.take() {
            let _nobody_waits = ready.send(Err(error));
        }
    }

    /// Tells whoever waits for the start, once it is over.
    fn is_ready(&mut self) {
        if self.has_looked
            && self.opening.is_empty()
            && let Some(ready) = self.ready.take()
        {
            let (instance, shards) = (&self.parts.others.member.id, self.open.len());
            tracing::info!(instance, shards, "taking part in the work on the store");
            let _nobody_waits = ready.send(Ok(()));
        }
    }

    /// Sets a shard to work.
    fn add(&mut self, held: Held, Opened { way, begin, over, term }: Opened, ways: &Ways) {
        self.parts.others.has_term(held.shard, term);
        ways.add(held.shard, way); // before it begins, so that whatever it has others say is heard
        self.worked.insert(held.shard, held.epoch);
        let _it_waits_for_that = begin.send(());
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

    /// Lets a shard come to rest, however long that takes, and gives it away. Only if the instance ends, what is in flight has no more than the grace period.
    fn leave(&mut self, ways: &Ways, shard: ShardId) {
        let Some(Open { over, held }) = self.open.remove(&shard) else { return };
        let (drained, control) = (ways.drain_one(shard), ways.control_of(shard));
        self.leaving.insert(shard, control.clone());
        let (clock, release, grace) = (Arc::clone(&self.parts.clock), self.release(held), self.parts.grace);
        let (tell, mut hurry) = (self.tell.clone(), self.hurry.subscribe());
        drop(tokio::spawn(async move {
            let in_good_order = tokio::select! {
                biased;
                drained = drained => drained,
                () = async {
                    drop(hurry.wait_for(|hurry| *hurry).await); // also if nobody can tell any more
                    clock.sleep(grace).await;
                } => false,
            };
            if let Some(control) = control.filter(|_| !in_good_order) {
                tracing::warn!(shard, "attempts were still in flight when the shard had to be given away; they are made again elsewhere");
                let _it_has_stopped = control.send(Control::Stop);
            }
            let _ended = over.await;
            let released = release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { shard, in_good_order, released });
        }));
    }

    /// Gives a shard away that is not open here.
    fn give_back(&mut self, held: Held, in_good_order: bool) {
        let shard = held.shard;
        self.leaving.insert(shard, None);
        let (release, tell) = (self.release(held), self.tell.clone());
        drop(tokio::spawn(async move {
            let released = release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { shard, in_good_order, released });
        }));
    }

    /// How a shard is given away; false if that does not work.
    fn release(&self, held: Held) -> impl FnOnce(bool) -> BoxFuture<'static, bool> + Send + use<> {
        let (others, clock) = (Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock));
        move |in_good_order| {
            let release = async move {
                for _ in 0..RELEASES {
                    match others.leases.release(&others.member.id, held, in_good_order).await {
                        Ok(()) => return true,
                        Err(error) => tracing::warn!(shard = held.shard, %error, "a shard could not be given away; trying again"),
                    }
                    clock.sleep(OPEN_AGAIN).await;
                }
                false
            };
            release.boxed()
        }
    }

    /// Gives everything away. What is being opened is given away once it is open.
    fn end(&mut self) {
        (self.ends, self.next) = (true, Instant::now());
        self.hurry.send_replace(true);
        let Some(ways) = self.ways.upgrade() else { return };
        for shard in self.open.keys().copied().collect::<Vec<_>>() {
            self.leave(&ways, shard);
        }
    }
}
