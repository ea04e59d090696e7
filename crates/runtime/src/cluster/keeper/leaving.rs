//! How a shard comes to rest and is given away, and how one is stopped that is this instance's no longer.
//!
//! Tested by `crates/sdk/tests/it/cluster/moves.rs`.
//! Tested by `crates/sdk/tests/it/cluster/stays.rs`.
//! Tested by `crates/cli/tests/it/cluster/stop.rs`.

use super::super::round::within;
use super::{LeaseKeeper, News, Open, ROUND_GAP};
use crate::clock::Clock;
use crate::engine::Ways;
use crate::metrics;
use crate::shard::Control;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::cmp::Reverse;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Held, ShardId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// So often it is tried to give a shard away; after that it is opened again.
const RELEASES: u32 = 5;

/// A shard has the grace period to come to rest, but at least so long, twice as long the next time, and so on. Nothing begins in it meanwhile.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// That goes up to here if somebody wants the instance to be empty.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// And up to here if it is only for an even share: nobody is in a hurry then.
const PATIENCE_SHARE_MAX: Duration = Duration::from_secs(60);

/// After a time in which it did not come to rest it is left alone for so many times as long, if it is only for an even share.
const LEFT_ALONE: u32 = 10;

/// So many shards with something in them come to rest at a time for an even share, so that most of the work goes on.
const AT_ONCE: usize = 4;

/// After a try that has failed.
const AGAIN: Duration = Duration::from_millis(200);

/// Why a shard is given away, the more urgent the later. One that comes to rest for a reason that is no more goes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pace {
    /// There is no reason.
    Stay,
    /// Others have less.
    Share,
    /// Somebody wants it.
    Drain,
    /// The instance ends.
    End,
}

/// A shard that did not come to rest in time.
pub(super) struct Busy {
    /// How long it is waited for the next time.
    patience: Duration,
    /// Since when it goes on here, and how long it was waited for before.
    since: Instant,
    had: Duration,
}

/// What became of a shard that was to come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    InGoodOrder,
    /// It takes too long, and the shard need not be given away now.
    TooLong,
    /// It need not be given away any more.
    CalledBack,
    CutOff,
}

/// Somebody who waits for a shard to come to rest.
struct Resting {
    clock: Arc<dyn Clock>,
    grace: Duration,
    patience: Duration,
    pace: watch::Receiver<Pace>,
}

impl Resting {
    /// Waits for it. If the instance ends meanwhile, what is in flight has the grace period from then on.
    async fn wait(mut self, drained: impl Future<Output = bool>, control: Option<&mpsc::UnboundedSender<Control>>) -> Rest {
        let mut drained = pin!(drained);
        let of_drained = |at_rest| if at_rest { Rest::InGoodOrder } else { Rest::CutOff };
        let begun = *self.pace.borrow();
        if begun != Pace::End {
            let rest = tokio::select! {
                biased;
                at_rest = &mut drained => return of_drained(at_rest),
                pace = reaches(&mut self.pace, |pace| pace < begun || pace == Pace::End) => (pace != Pace::End).then_some(Rest::CalledBack),
                () = self.clock.sleep(self.patience) => Some(Rest::TooLong),
            };
            if let Some(rest) = rest {
                return match goes_on(control).await {
                    true => rest,
                    false => of_drained(drained.await), // it came to rest, or was stopped, before it heard of that
                };
            }
        }
        tokio::select! {
            biased;
            at_rest = drained => of_drained(at_rest),
            () = self.clock.sleep(self.grace) => Rest::CutOff,
        }
    }
}

/// The first pace that is so. If nobody can tell any more, it is the end.
async fn reaches(pace: &mut watch::Receiver<Pace>, is_so: impl Fn(Pace) -> bool) -> Pace {
    pace.wait_for(|pace| is_so(*pace)).await.map_or(Pace::End, |pace| *pace)
}

/// Has a shard go on that was to come to rest. False if it is over.
async fn goes_on(control: Option<&mpsc::UnboundedSender<Control>>) -> bool {
    let (reply, heard) = oneshot::channel();
    control.is_some_and(|control| control.send(Control::GoOn { reply }).is_ok()) && heard.await.is_ok()
}

impl LeaseKeeper {
    /// Gives away what is too much. If nothing is, all is forgotten of shards that did not come to rest: the next move is another one.
    pub(super) fn give_away(&mut self, ways: &Ways, surplus: usize) {
        if surplus == 0 && self.leaving.is_empty() {
            self.busy.clear();
        }
        for shard in self.idlest(ways, surplus) {
            self.leave(ways, shard);
        }
    }

    /// The shards that are given away now, if so many are too much: those first in which the least is under way, since nothing begins in a shard while it comes to rest. For an even share
    /// those that have been tried count as well, so that not all of them are tried one after the other.
    fn idlest(&self, ways: &Ways, surplus: usize) -> Vec<ShardId> {
        let is_for_share = *self.pace.borrow() <= Pace::Share;
        let stays = |shard: &ShardId| is_for_share && self.rescued.contains(shard); // nobody else has taken it
        let (free_to_go, busy): (Vec<_>, Vec<_>) =
            self.open.keys().copied().filter(|shard| !stays(shard)).partition(|shard| self.may_leave(*shard));
        let mut shards: Vec<_> = free_to_go.into_iter().map(|shard| (ways.load_of(shard), Reverse(shard))).collect();
        shards.sort_unstable_by_key(|(load, shard)| (self.busy.contains_key(&shard.0), *load, *shard)); // those that were never tried go first
        let idle = shards.iter().take_while(|(load, _)| *load == 0).count().min(surplus);
        let count = match is_for_share {
            true => idle + surplus.saturating_sub(idle + busy.len()).min(AT_ONCE.saturating_sub(self.leaving.len())),
            false => surplus,
        };
        shards.into_iter().map(|(_, Reverse(shard))| shard).take(count).collect()
    }

    /// Lets a shard come to rest, and gives it away. One that does not come to rest in time goes on here and is tried again later, so that nothing of it is cut off, unless the instance
    /// ends.
    pub(super) fn leave(&mut self, ways: &Ways, shard: ShardId) {
        let Some(Open { over, held }) = self.open.remove(&shard) else { return };
        let (drained, control) = (ways.drain_one(shard), ways.control_of(shard));
        self.leaving.insert(shard, control.clone());
        let (release, tell) = (self.release(held), self.tell.clone());
        let patience = self.patience(shard);
        let resting = Resting { clock: Arc::clone(&self.parts.clock), grace: self.parts.grace, patience, pace: self.pace.subscribe() };
        drop(tokio::spawn(async move {
            let rest = resting.wait(drained, control.as_ref()).await;
            if let Rest::TooLong | Rest::CalledBack = rest {
                let _the_keeper_has_ended = tell.send(News::Stays { held, over, waited: (rest == Rest::TooLong).then_some(patience) });
                return;
            }
            let in_good_order = rest == Rest::InGoodOrder;
            if let Some(control) = control.filter(|_| !in_good_order) {
                tracing::warn!(shard, "attempts were still in flight when the instance ended; they are made again elsewhere");
                let _it_has_stopped = control.send(Control::Stop);
            }
            let _ended = over.await;
            let released = release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { held, in_good_order, released });
        }));
    }

    /// A shard goes on here: it did not come to rest in the time that was waited for it, or was called back.
    pub(super) fn stays(&mut self, held: Held, over: JoinHandle<()>, waited: Option<Duration>) {
        let Held { shard, .. } = held;
        self.leaving.remove(&shard);
        let Some(ways) = self.ways.upgrade() else { return };
        ways.keep(shard);
        if let Some(had) = waited {
            self.busy.insert(shard, Busy { patience: had * 2, since: Instant::now(), had });
            tracing::info!(shard, waited = ?had, "a shard that is to be given away has attempts in flight: it goes on here for now");
        }
        self.open.insert(shard, Open { held, over });
        self.parts.others.has_changed();
        metrics::shards(self.open.len());
        if self.ends {
            self.leave(&ways, shard);
        }
    }

    /// How long a shard has to come to rest.
    fn patience(&self, shard: ShardId) -> Duration {
        let first = self.parts.grace.max(PATIENCE_MIN);
        let longest = if *self.pace.borrow() <= Pace::Share { PATIENCE_SHARE_MAX } else { PATIENCE_MAX };
        self.busy.get(&shard).map_or(first, |busy| busy.patience.min(longest))
    }

    /// Why shards are given away from now on, if there are too many here.
    pub(super) fn set_pace(&self, drains: bool, too_many: bool) {
        let pace = match (drains, too_many) {
            _ if self.ends => Pace::End,
            (true, _) => Pace::Drain,
            (false, true) => Pace::Share,
            (false, false) => Pace::Stay,
        };
        self.pace.send_if_modified(|now| std::mem::replace(now, pace) != pace);
    }

    /// Whether a shard that did not come to rest has been left alone for long enough.
    fn may_leave(&self, shard: ShardId) -> bool {
        let Some(Busy { since, had, .. }) = self.busy.get(&shard) else { return true };
        let times = match *self.pace.borrow() {
            Pace::Stay | Pace::Share => LEFT_ALONE,
            Pace::Drain => 1,
            Pace::End => 0,
        };
        since.elapsed() >= *had * times
    }

    /// Gives a shard away that is not open here.
    pub(super) fn give_back(&mut self, held: Held, in_good_order: bool) {
        self.leaving.insert(held.shard, None);
        let (release, tell) = (self.release(held), self.tell.clone());
        drop(tokio::spawn(async move {
            let released = release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { held, in_good_order, released });
        }));
    }

    /// How a shard is given away; false if that does not work.
    pub(super) fn release(&self, held: Held) -> impl FnOnce(bool) -> BoxFuture<'static, bool> + Send + use<> {
        let (others, clock) = (Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock));
        move |in_good_order| {
            let release = async move {
                for _ in 0..RELEASES {
                    let limit = others.leases.lease() / 3;
                    match within(&*clock, limit, others.leases.release(&others.member.id, held, in_good_order)).await {
                        Ok(()) => return true,
                        Err(error) => tracing::warn!(shard = held.shard, %error, "a shard could not be given away; trying again"),
                    }
                    clock.sleep(AGAIN).await;
                }
                false
            };
            release.boxed()
        }
    }

    pub(super) fn has_left(&mut self, Held { shard, epoch, .. }: Held, in_good_order: bool, released: bool) {
        self.leaving.remove(&shard);
        self.busy.remove(&shard);
        self.rescued.remove(&shard);
        self.ways.upgrade().iter().for_each(|ways| drop(ways.remove(shard)));
        if in_good_order {
            self.worked.remove(&shard);
            self.rested.insert(shard, epoch);
        }
        if released {
            self.left.insert(shard); // else it is opened again after the next beat
            self.look_within(ROUND_GAP); // more may have to go
        }
        self.parts.others.has_changed();
    }

    /// Stops a shard, whatever is in flight.
    pub(super) fn stop(&mut self, ways: &Ways, shard: ShardId) {
        if let Some(way) = ways.remove(shard) {
            let _it_has_stopped = way.control.send(Control::Stop);
        }
        self.open.remove(&shard);
        self.busy.remove(&shard);
        self.rescued.remove(&shard);
        self.parts.others.has_changed();
    }

    /// Nobody knows who has them: the leases could not be renewed in time.
    pub(super) fn lose_all(&mut self) {
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

    /// Gives everything away. What is being opened is given away once it is open.
    pub(super) fn end(&mut self) {
        (self.ends, self.next) = (true, Instant::now());
        self.set_pace(true, true);
        let Some(ways) = self.ways.upgrade() else { return };
        for shard in self.open.keys().copied().collect::<Vec<_>>() {
            self.leave(&ways, shard);
        }
    }
}
