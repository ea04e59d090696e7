//! Who may pass, and what those are told who may not, in virtual time.

use super::*;
use crate::clock::VirtualClock;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(10);

fn gate() -> Arc<Gate> {
    Arc::new(Gate::new(Arc::new(VirtualClock::start()), PATIENCE))
}

fn run() -> RunId {
    RunId::new("night/acme").unwrap()
}

impl Gate {
    /// Lets those through whose checkpoint is shared, for so long.
    fn share(&self, time: Duration, change: u64) {
        self.lets
            .send_replace(Lets::Shared { from: self.clock.now(), until: self.clock.now().saturating_add(time), change });
    }
}

/// What a stage is told that had to wait for too long.
async fn refusal(gate: &Gate) -> String {
    let began = Instant::now();
    let failure = gate.pass(&run()).await.unwrap_err();
    assert_eq!((began.elapsed(), failure.code), (PATIENCE, Code::Unavailable));
    assert_eq!(failure.class, steadfast_kernel::Class::Transient, "the policy of the stage decides");
    failure.message
}

#[tokio::test(start_paused = true)]
async fn nobody_passes_before_the_commons_were_reached() {
    let why = refusal(&gate()).await;
    assert!(why.contains("it was not reached since the start"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_stage_without_a_checkpoint_before_it_passes_at_once() {
    let gate = gate();
    gate.share(PATIENCE, 0);
    gate.pass(&run()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stage_waits_for_the_checkpoint_before_it_and_no_longer() {
    let gate = gate();
    gate.require(&run(), 7);
    gate.share(2 * PATIENCE, 0);
    let (began, waits) = (Instant::now(), Arc::clone(&gate));
    let passed = tokio::spawn(async move { waits.pass(&run()).await.map(|()| Instant::now()) });
    for (second, version) in [(1, 6), (2, 7)] {
        gate.clock.sleep(Duration::from_secs(1)).await;
        gate.reached(&run(), version);
        gate.share(2 * PATIENCE, second);
    }
    assert_eq!(passed.await.unwrap().unwrap() - began, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_is_never_shared_fails_the_stage() {
    let gate = gate();
    gate.require(&run(), 7);
    gate.share(2 * PATIENCE, 0);
    let why = refusal(&gate).await;
    assert!(why.contains("the last checkpoint could not be written"), "{why}");
    gate.forget(&run());
    gate.pass(&run()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_passes_once_others_may_take_this_instance_for_gone() {
    let gate = gate();
    gate.share(Duration::from_secs(1), 0);
    gate.clock.sleep(Duration::from_secs(1)).await;
    let why = refusal(&gate).await;
    assert!(why.contains("it does not answer in time"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn alone_everybody_passes_whatever_is_not_shared() {
    let gate = gate();
    gate.require(&run(), 7);
    gate.lets.send_replace(Lets::Everybody);
    gate.pass(&run()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn not_alone_nobody_passes_and_the_reason_is_told() {
    let gate = gate();
    gate.lets.send_replace(Lets::Nobody { why: "the line is cut; instance b was seen lately".into() });
    let why = refusal(&gate).await;
    assert!(why.contains("the line is cut; instance b was seen lately"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_waits_passes_as_soon_as_everybody_may() {
    let gate = gate();
    gate.lets.send_replace(Lets::Nobody { why: "the line is cut".into() });
    let waits = Arc::clone(&gate);
    let passed = tokio::spawn(async move { waits.pass(&run()).await });
    gate.clock.sleep(PATIENCE / 2).await;
    gate.lets.send_replace(Lets::Everybody);
    passed.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_anothers_does_not_pass_until_it_has_a_lock_again() {
    let gate = gate();
    gate.lets.send_replace(Lets::Everybody);
    gate.shut(&run(), true);
    let why = refusal(&gate).await;
    assert!(why.contains("another has the task, or its lock"), "{why}");
    gate.shut(&run(), false);
    gate.pass(&run()).await.unwrap();
}
