//! The keeper on a store of its own, in virtual time.

#![allow(clippy::disallowed_methods, reason = "tests sleep in virtual time")]

use super::*;
use crate::clock::VirtualClock;
use steadfast_kernel::Seq;
use steadfast_kernel::StepId;
use steadfast_store::memory::{Fault, Memory};
use steadfast_store::{Batch, Fence, TimerChange};

const MINUTE: Duration = Duration::from_secs(60);

struct Bench {
    clock: VirtualClock,
    store: Memory,
    orders: mpsc::UnboundedSender<Order>,
    fired: mpsc::UnboundedReceiver<Fired>,
    role: watch::Sender<Role>,
    written: u64,
}

impl Bench {
    async fn new() -> Self {
        let (store, clock) = (Memory::new(), VirtualClock::start());
        store.claim(0).await.unwrap();
        let (orders, fired) = (mpsc::unbounded_channel().0, mpsc::unbounded_channel().1);
        Bench { clock, store, orders, fired, role: watch::channel(Role::Leader { term: 1 }).0, written: 0 }
    }

    /// A keeper that finds what is in the store.
    fn start(&mut self) {
        let (orders, orders_in) = mpsc::unbounded_channel();
        let (fired_out, fired) = mpsc::unbounded_channel();
        (self.orders, self.fired) = (orders, fired);
        let keeper = TimerKeeper::new(
            Arc::new(self.clock),
            Arc::new(self.store.clone()),
            0,
            self.role.subscribe(),
            orders_in,
            fired_out,
            Limits::default(),
        );
        tokio::spawn(keeper.run());
    }

    fn timer(&self, run: &str, after: Duration, revision: Seq) -> Timer {
        let name = TimerName::Sleep(StepId::sleep("", 1));
        Timer { entity: EntityId::from_stored(run).unwrap(), name, due: self.clock.now().saturating_add(after), revision }
    }

    async fn write(&mut self, timers: Vec<TimerChange>) {
        let fence = Fence { shard: 0, term: 1, after: self.written, upto: self.written + 1 };
        self.written += 1;
        self.store.commit(Batch { fences: vec![fence], timers, ..Batch::default() }).await.unwrap();
    }

    /// As the shard does: the row, then the order.
    async fn arm(&mut self, timer: &Timer) {
        self.write(vec![TimerChange::Arm { shard: 0, timer: timer.clone() }]).await;
        self.orders.send(Order::Arm(timer.clone())).unwrap();
    }

    /// The next timer that is told, and how long it took.
    async fn next(&mut self) -> Fired {
        let told = tokio::time::timeout(500 * 24 * 60 * MINUTE, self.fired.recv()).await;
        let fired = told.expect("nothing is told").unwrap();
        assert!(fired.timer.due <= self.clock.now(), "never early");
        fired
    }

    async fn nothing_for(&mut self, duration: Duration) {
        assert!(tokio::time::timeout(duration, self.fired.recv()).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn timers_of_the_store_are_told_however_far_away_they_are() {
    let mut bench = Bench::new().await;
    let timers: Vec<_> = [1, 9, 11, 60, 600].map(|minutes| bench.timer(&format!("r{minutes}"), minutes * MINUTE, 1)).into();
    bench
        .write(timers.iter().map(|timer| TimerChange::Arm { shard: 0, timer: timer.clone() }).collect())
        .await;
    bench.start();
    for timer in timers {
        let fired = bench.next().await;
        assert_eq!((&fired.timer, fired.attempt), (&timer, 1));
        assert!(bench.clock.now().saturating_since(timer.due) < Duration::from_millis(2), "nor late");
        bench.orders.send(Order::Settle(timer)).unwrap();
    }
    bench.nothing_for(100 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_armed_beyond_the_horizon_is_found_in_the_store() {
    let mut bench = Bench::new().await;
    bench.start();
    tokio::time::sleep(MINUTE).await;
    let (far, near) = (bench.timer("far", 300 * MINUTE, 1), bench.timer("near", MINUTE, 1));
    bench.arm(&far).await;
    bench.arm(&near).await;
    for timer in [near, far] {
        assert_eq!(bench.next().await.timer, timer);
        bench.orders.send(Order::Settle(timer)).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_moves_beyond_the_horizon_does_not_fire_at_its_old_time() {
    let mut bench = Bench::new().await;
    bench.start();
    let (soon, later) = (bench.timer("a", MINUTE, 1), bench.timer("a", 60 * MINUTE, 2));
    bench.arm(&soon).await;
    tokio::task::yield_now().await;
    bench.arm(&later).await;
    assert_eq!(bench.next().await.timer, later);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_dealt_with_is_told_again_and_so_is_what_nobody_answers() {
    let mut bench = Bench::new().await;
    bench.start();
    let timer = bench.timer("a", MINUTE, 1);
    bench.arm(&timer).await;
    let fired = bench.next().await;
    bench.orders.send(Order::Again(fired)).unwrap();
    let fired = bench.next().await;
    assert_eq!(fired.attempt, 2, "the store was away for a moment");
    let fired = bench.next().await;
    assert_eq!(fired.attempt, 3, "nobody answered");
    bench.orders.send(Order::Settle(fired.timer)).unwrap();
    bench.nothing_for(60 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_disarmed_timer_is_not_told() {
    let mut bench = Bench::new().await;
    bench.start();
    let timer = bench.timer("a", MINUTE, 1);
    bench.arm(&timer).await;
    tokio::task::yield_now().await;
    bench.orders.send(Order::Disarm(timer.entity, timer.name)).unwrap();
    bench.nothing_for(60 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_tells_nothing_and_nothing_is_lost() {
    let mut bench = Bench::new().await;
    bench.start();
    let (early, late) = (bench.timer("a", MINUTE, 1), bench.timer("b", 2 * MINUTE, 1));
    bench.arm(&early).await;
    bench.arm(&late).await;
    assert_eq!(bench.next().await.timer, early);
    bench.role.send(Role::Follower).unwrap();
    bench.nothing_for(60 * MINUTE).await;
    bench.role.send(Role::Leader { term: 2 }).unwrap();
    assert_eq!([bench.next().await.timer, bench.next().await.timer], [early, late], "what was told and not settled is told again");
    bench.orders.send(Order::Stop).unwrap();
    bench.nothing_for(60 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn who_leads_again_knows_what_was_armed_meanwhile() {
    let mut bench = Bench::new().await;
    bench.start();
    bench.role.send(Role::Follower).unwrap();
    tokio::time::sleep(MINUTE).await;
    let timer = bench.timer("a", MINUTE, 1);
    bench.write(vec![TimerChange::Arm { shard: 0, timer: timer.clone() }]).await; // by another leader
    bench.role.send(Role::Leader { term: 3 }).unwrap();
    assert_eq!(bench.next().await.timer, timer);
}

#[tokio::test(start_paused = true)]
async fn a_role_is_given_up_though_there_is_much_to_tell() {
    let mut bench = Bench::new().await;
    let timers: Vec<_> = (0..10_000).map(|n| bench.timer(&format!("r{n:05}"), Duration::ZERO, 1)).collect();
    bench.write(timers.into_iter().map(|timer| TimerChange::Arm { shard: 0, timer }).collect()).await;
    bench.start();
    bench.next().await;
    bench.role.send(Role::Follower).unwrap();
    let mut told = 1;
    while tokio::time::timeout(MINUTE, bench.fired.recv()).await.is_ok() {
        told += 1;
    }
    assert!(told < 1_000, "{told} were told");
}

#[tokio::test(start_paused = true)]
async fn timers_in_memory_are_told_though_the_next_ones_cannot_be_read() {
    let mut bench = Bench::new().await;
    bench.start();
    tokio::task::yield_now().await;
    let (near, far) = (bench.timer("near", 8 * MINUTE, 1), bench.timer("far", 11 * MINUTE, 1));
    bench.arm(&near).await;
    bench.arm(&far).await;
    bench.store.faults().after(0, Fault::CrashBefore);
    let fence = Fence { shard: 0, term: 1, after: bench.written, upto: bench.written + 1 };
    bench.store.commit(Batch { fences: vec![fence], ..Batch::default() }).await.unwrap_err();
    assert!(bench.store.timers(0, None, 1).await.is_err(), "the store is away");
    let told = tokio::time::timeout(60 * MINUTE, bench.next()).await.expect("it is told");
    assert_eq!(told.timer, near);
    assert!(bench.clock.now().saturating_since(near.due) < Duration::from_millis(2), "nor late");
}

#[tokio::test(start_paused = true)]
async fn timers_that_nobody_spoke_of_are_found_when_somebody_asks_to_look() {
    let mut bench = Bench::new().await;
    bench.start();
    tokio::time::sleep(MINUTE).await;
    let timer = bench.timer("a", MINUTE, 1);
    bench.write(vec![TimerChange::Arm { shard: 0, timer: timer.clone() }]).await;
    bench.nothing_for(5 * MINUTE).await;
    bench.orders.send(Order::Reread).unwrap();
    assert_eq!(bench.next().await.timer, timer);
    bench.orders.send(Order::Settle(timer)).unwrap();
    bench.nothing_for(60 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn more_timers_than_a_page_are_all_told() {
    let mut bench = Bench::new().await;
    let timers: Vec<_> = (0..2500).map(|n| bench.timer(&format!("r{n:04}"), MINUTE, 1)).collect();
    bench
        .write(timers.iter().map(|timer| TimerChange::Arm { shard: 0, timer: timer.clone() }).collect())
        .await;
    bench.start();
    for timer in timers {
        let told = bench.next().await.timer;
        assert_eq!(told.entity, timer.entity, "more than a page, and all of them");
        bench.orders.send(Order::Settle(told)).unwrap();
    }
}

/// A clock that counts how often somebody sleeps by it.
struct Counting(VirtualClock, Arc<std::sync::atomic::AtomicUsize>);

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> futures_util::future::BoxFuture<'static, ()> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.0.sleep(duration)
    }

    fn steady_for(&self) -> Duration {
        self.0.steady_for()
    }
}

#[tokio::test(start_paused = true)]
async fn a_far_timer_is_not_looked_at_again_and_again_on_the_way() {
    let mut bench = Bench::new().await;
    let timer = bench.timer("year", 366 * 24 * 60 * MINUTE, 1);
    bench.write(vec![TimerChange::Arm { shard: 0, timer: timer.clone() }]).await;
    let ((orders, orders_in), (fired_out, fired)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    (bench.orders, bench.fired) = (orders, fired);
    let (naps, store) = (Arc::default(), Arc::new(bench.store.clone()));
    let clock = Arc::new(Counting(bench.clock, Arc::clone(&naps)));
    tokio::spawn(TimerKeeper::new(clock, store, 0, bench.role.subscribe(), orders_in, fired_out, Limits::default()).run());
    assert_eq!(bench.next().await.timer, timer);
    assert_eq!(naps.load(std::sync::atomic::Ordering::SeqCst), 3, "until it is near, until it is due, and after it");
}
