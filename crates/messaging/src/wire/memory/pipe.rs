//! One direction of a link in memory: it takes packets at the near end, does to them what the faults say, and gives them to the far end.
//!
//! That an end has gone is news that travels as packets do: behind them, and not at all while the direction swallows.

use super::faults::{Counts, Faults, Rules};
use crate::wire::{too_long, until};
use bytes::Bytes;
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::ChaCha8Rng;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::Failure;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many packets may be on their way in one direction.
const IN_FLIGHT_MAX: usize = 32;

/// By how much a packet is held back at most so that others overtake it.
const HELD_BACK_MAX: Duration = Duration::from_millis(20);

/// How long packets that were sent before an end has gone have to arrive.
const LINGER: Duration = Duration::from_secs(1);

/// What one end of a link knows.
#[derive(Debug, Default)]
pub(super) struct End {
    /// It has dropped a half of its link.
    pub(super) gone: CancellationToken,
    /// It has been told that the other end has gone.
    pub(super) told: CancellationToken,
}

/// One direction of a link.
pub(super) struct Pipe {
    pub(super) way: (String, String),
    pub(super) from: mpsc::Receiver<Bytes>,
    /// Nothing once the far end has gone.
    pub(super) to: Option<mpsc::Sender<Result<Bytes, Failure>>>,
    pub(super) near: Arc<End>,
    pub(super) far: Arc<End>,
    pub(super) cut: Arc<CancellationToken>,
    pub(super) rules: watch::Receiver<Rules>,
    pub(super) random: ChaCha8Rng,
    pub(super) counts: Arc<Mutex<Counts>>,
    pub(super) packet_bytes_max: usize,
}

/// What is on its way.
#[derive(Default)]
struct Way {
    faults: Faults,
    cut_at: Option<Instant>,
    in_flight: BTreeMap<(Instant, u64), Bytes>,
    sequence: u64,
    /// When the last packet that keeps its place arrives.
    last: Option<Instant>,
}

impl Pipe {
    pub(super) async fn run(mut self) {
        let mut way = Way::default();
        self.look_up(&mut way);
        while self.step(&mut way).await {}
    }

    /// Waits for one thing to happen and does it; says whether there is more to do.
    async fn step(&mut self, way: &mut Way) -> bool {
        let due = way.in_flight.first_key_value().map(|((due, _), _)| *due);
        let is_due = due.is_some_and(|due| due <= Instant::now());
        let has_room = way.in_flight.len() < IN_FLIGHT_MAX;
        tokio::select! {
            biased;
            () = self.cut.cancelled() => {
                let reason = Failure::transient("the link was cut");
                let _there_is_no_room_for_a_reason = self.to.take().map(|to| to.try_send(Err(reason)));
                return false;
            }
            () = self.near.told.cancelled() => return false,
            Ok(()) = self.rules.changed() => self.look_up(way),
            () = until(way.cut_at), if way.cut_at.is_some() => self.cut_by_chance(),
            () = gone(self.to.as_ref(), &self.far), if self.to.is_some() => {
                self.far.gone.cancel();
                self.to = None;
                way.in_flight.clear();
            }
            () = room(self.to.as_ref()), if is_due => self.deliver(way),
            () = self.near.gone.cancelled() => return self.leave(way).await,
            packet = self.from.recv(), if has_room => match packet {
                Some(packet) if packet.len() > self.packet_bytes_max => return self.refuse(way, packet.len()).await,
                Some(packet) => self.take(way, packet),
                None => self.near.gone.cancel(),
            },
            () = until(due), if due.is_some() && !is_due => {}
        }
        true
    }

    fn look_up(&mut self, way: &mut Way) {
        way.faults = self.rules.borrow_and_update().of(&self.way.0, &self.way.1);
        way.cut_at = way.faults.cut_after.clone().map(|after| Instant::now() + between(&mut self.random, &after));
    }

    fn cut_by_chance(&self) {
        if !self.cut.is_cancelled() {
            self.counts.lock().cut += 1;
            self.cut.cancel();
        }
    }

    fn take(&mut self, way: &mut Way, packet: Bytes) {
        let mut counts = self.counts.lock();
        counts.packets += 1;
        if way.faults.swallow || self.to.is_none() {
            counts.swallowed += 1;
        } else if hit(&mut self.random, way.faults.drop) {
            counts.dropped += 1;
        } else {
            if hit(&mut self.random, way.faults.duplicate) {
                counts.duplicated += 1;
                way.set_off(&mut self.random, &mut counts, packet.clone());
            }
            way.set_off(&mut self.random, &mut counts, packet);
        }
    }

    /// The first packet arrives; nobody else takes the room that there is.
    fn deliver(&mut self, way: &mut Way) {
        if let (Some((_, packet)), Some(to)) = (way.in_flight.pop_first(), &self.to) {
            let _it_has_gone = to.try_send(Ok(packet));
            self.counts.lock().delivered += 1;
        }
    }

    /// A packet that is too long ends the link; the far end is told why.
    async fn refuse(&mut self, way: &mut Way, length: usize) -> bool {
        let reason = too_long(length, self.packet_bytes_max);
        let cut = Arc::clone(&self.cut);
        tokio::select! {
            biased;
            () = cut.cancelled() => {}
            () = self.arrive(way, Some(reason)) => {}
        }
        self.to = None;
        cut.cancel();
        false
    }

    /// The near end has gone: what it sent arrives, then the far end is told, unless nothing arrives here.
    async fn leave(&mut self, way: &mut Way) -> bool {
        self.from.close();
        while let Ok(packet) = self.from.try_recv() {
            self.take(way, packet);
        }
        let (cut, told, far) = (Arc::clone(&self.cut), Arc::clone(&self.near), Arc::clone(&self.far));
        tokio::select! {
            biased;
            () = cut.cancelled() => {}
            () = told.told.cancelled() => {}
            () = self.tell(way) => {}
        }
        far.told.cancel();
        false
    }

    async fn tell(&mut self, way: &mut Way) {
        self.arrive(way, None).await;
        let way = self.way.clone();
        let _the_network_is_no_more = self.rules.wait_for(|rules| !rules.of(&way.0, &way.1).swallow).await;
    }

    /// All that is on its way arrives, and the reason for the end behind it, if there is time.
    async fn arrive(&mut self, way: &mut Way, reason: Option<Failure>) {
        let Some(to) = &self.to else { return };
        let arrives = async {
            while let Some(((due, _), packet)) = way.in_flight.pop_first() {
                until(Some(due)).await;
                if to.send(Ok(packet)).await.is_err() {
                    return;
                }
                self.counts.lock().delivered += 1;
            }
            if let Some(reason) = reason {
                let _it_has_gone = to.send(Err(reason)).await;
            }
        };
        let _the_rest_is_lost = tokio::time::timeout(LINGER, arrives).await;
    }
}

impl Way {
    fn set_off(&mut self, random: &mut ChaCha8Rng, counts: &mut Counts, packet: Bytes) {
        let now = Instant::now();
        let due = self.faults.delay.as_ref().map_or(now, |delay| now + between(random, delay));
        let mut due = self.last.map_or(due, |last| last.max(due));
        if let Some(rate) = self.faults.rate {
            due += Duration::from_secs_f64(packet.len() as f64 / f64::from(rate.max(1)));
        }
        if hit(random, self.faults.reorder) {
            counts.reordered += 1;
            due += between(random, &(Duration::from_millis(1)..=HELD_BACK_MAX));
        } else {
            self.last = Some(due);
        }
        self.sequence += 1;
        self.in_flight.insert((due, self.sequence), packet);
    }
}

async fn gone(to: Option<&mpsc::Sender<Result<Bytes, Failure>>>, end: &End) {
    tokio::select! {
        biased;
        () = end.gone.cancelled() => {}
        () = async { match to { Some(to) => to.closed().await, None => std::future::pending().await } } => {}
    }
}

async fn room(to: Option<&mpsc::Sender<Result<Bytes, Failure>>>) {
    match to {
        Some(to) => drop(to.reserve().await),
        None => std::future::pending().await,
    }
}

fn hit(random: &mut ChaCha8Rng, likely: f64) -> bool {
    likely > 0.0 && (random.next_u64() >> 11) as f64 / ((1_u64 << 53) as f64) < likely
}

pub(super) fn between(random: &mut ChaCha8Rng, range: &RangeInclusive<Duration>) -> Duration {
    let span = range.end().saturating_sub(*range.start()).as_nanos();
    let span = u64::try_from(span).unwrap_or(u64::MAX - 1);
    *range.start() + Duration::from_nanos(random.next_u64() % (span + 1))
}
