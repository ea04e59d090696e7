//! Compares a store with the reference store under random operations.
//!
//! A seed decides all operations of a case. Cases repeat until every operation has had every outcome.
//! The test prints its first seed. `DIFFERENTIAL_SEED` repeats a seed; `DIFFERENTIAL_CASES` sets the minimum number of cases.
//! A store runs the comparison as a test:
//!
//! ```
//! use async_trait::async_trait;
//! use steadfast_storage_testkit::contract::Harness;
//! use steadfast_store::memory::Memory; // the store under test
//!
//! struct Fresh(parking_lot::Mutex<Memory>);
//!
//! #[async_trait]
//! impl Harness for Fresh {
//!     type Store = Memory;
//!
//!     async fn open(&self) -> Memory {
//!         let mut data = self.0.lock();
//!         *data = data.reopen();
//!         data.clone()
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! steadfast_storage_testkit::differential::random_operations_have_the_outcomes_of_the_reference_store(|| Fresh(Default::default())).await;
//! # });
//! ```
//!
//! Subject: `crates/store/src/lib.rs`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test that prints how to repeat it")]

mod chance;
mod contents;
mod keys;
mod plans;
mod seen;

use crate::contract::Harness;
use chance::Chance;
use contents::{Asked, Contents, heads};
use seen::Seen;
use steadfast_kernel::EntityId;
use steadfast_store::memory::Memory;
use steadfast_store::{Batch, CallbackFilter, Error, Head, RunFilter, Store, Sweep, Swept};

/// How much is asked of a pair of stores.
const OPERATIONS: usize = 200;

/// How many seeds there are unless somebody says otherwise, and after how many something that has never happened never will.
const CASES: u64 = 3;
const CASES_MAX: u64 = 30;

/// The reference store and the one under test.
struct Pair<H: Harness> {
    seed: u64,
    chance: Chance,
    harness: H,
    model: Memory,
    store: Option<H::Store>,
    last: &'static str,
}

impl<H: Harness> Pair<H> {
    async fn new(seed: u64, harness: H) -> Self {
        let store = harness.open().await;
        Pair { seed, chance: Chance(seed), harness, model: Memory::new(), store: Some(store), last: "nothing" }
    }

    fn store(&self) -> &H::Store {
        self.store.as_ref().unwrap()
    }

    async fn operate(&mut self, seen: &mut Seen) {
        match self.chance.below(24) {
            0..=2 => self.claim(seen).await,
            3..=4 => self.reopen(seen).await,
            5..=7 => self.commit_in_line(seen).await,
            8 => self.commit_unheard(seen).await,
            9 => self.commit_behind_a_claim(seen).await,
            10..=11 => self.sweep(seen).await,
            _ => self.commit(seen).await,
        }
    }

    async fn claim(&mut self, seen: &mut Seen) {
        let shard = self.chance.shard();
        let head = self.model.claim(shard).await.unwrap();
        assert_eq!(self.store().claim(shard).await.unwrap(), head);
        seen.note(if head.term > 1 { "claim: again" } else { "claim: done" });
        self.last = "a claim";
    }

    async fn reopen(&mut self, seen: &mut Seen) {
        self.store = None;
        self.store = Some(self.harness.open().await);
        self.model = self.model.reopen();
        seen.note(format!("reopened: after {}", self.last));
    }

    async fn commit(&mut self, seen: &mut Seen) {
        let batch = self.chance.batch(&heads(&self.model).await);
        let how = if batch.fences.len() > 1 { ", of both shards" } else { "" };
        let found = self.store().commit(batch.clone()).await;
        let expected = self.apply(batch, seen, how).await;
        assert_eq!(said(&found), said(&expected));
    }

    /// Several that are in line before an outcome is known, each drawn as if those before it were applied.
    async fn commit_in_line(&mut self, seen: &mut Seen) {
        let (mut line, mut heads) = (vec![], heads(&self.model).await);
        for _ in 0..2 + self.chance.below(4) {
            let batch = self.chance.batch(&heads);
            for fence in &batch.fences {
                heads[fence.shard as usize] = Head { term: fence.term, seq: fence.upto };
            }
            line.push((self.store().commit(batch.clone()), batch));
        }
        for (outcome, batch) in line {
            let expected = self.apply(batch, seen, ", in line").await;
            assert_eq!(said(&outcome.await), said(&expected));
        }
    }

    /// Whoever asked has gone.
    async fn commit_unheard(&mut self, seen: &mut Seen) {
        let batch = self.chance.batch(&heads(&self.model).await);
        drop(self.store().commit(batch.clone()));
        let _unheard = self.apply(batch, seen, "").await;
        self.store().commit(Batch::default()).await.unwrap(); // stands behind it; it has no fence, so it changes nothing
        self.model.commit(Batch::default()).await.unwrap();
        seen.note("commit: nobody listens");
    }

    /// A claim gets between two batches of the holder before it.
    async fn commit_behind_a_claim(&mut self, seen: &mut Seen) {
        let (shard, before) = (self.chance.shard(), heads(&self.model).await);
        let head = self.store().claim(shard).await.unwrap();
        assert_eq!(head, self.model.claim(shard).await.unwrap());
        let batch = self.chance.batch(&before);
        let found = self.store().commit(batch.clone()).await;
        let expected = self.apply(batch, seen, ", in line behind a claim").await;
        assert_eq!(said(&found), said(&expected));
    }

    async fn sweep(&mut self, seen: &mut Seen) {
        let (shard, ended) = (self.chance.shard(), self.chance.sweeps());
        let term = heads(&self.model).await[shard as usize].term + u64::from(self.chance.below(6) == 0);
        let before = self.model.rewound(usize::MAX);
        let expected = sweep_all(&self.model, shard, term, &ended).await;
        assert_eq!(sweep_all(self.store(), shard, term, &ended).await, expected);
        match expected {
            Ok(swept) => {
                for (sweep, swept) in ended.iter().zip(swept) {
                    seen.note(format!("sweep: {swept:?}"));
                    if let EntityId::Plan(plan) = &sweep.entity
                        && before.plan(plan).await.unwrap().is_some()
                    {
                        seen.note(format!("sweep of a plan: {swept:?}"));
                    }
                }
            }
            Err(_) => seen.note("sweep: fenced"),
        }
    }

    /// Applies a batch to the model, and notes what came of it.
    async fn apply(&mut self, batch: Batch, seen: &mut Seen, how: &str) -> Result<(), Error> {
        let before = self.model.rewound(usize::MAX);
        let outcome = self.model.commit(batch.clone()).await;
        if outcome.is_ok() {
            seen.changes(&batch, &before).await;
            self.last = "a commit";
        }
        seen.outcome(&outcome, how);
        outcome
    }

    /// Reads everything of both.
    async fn compare(&mut self, seen: &mut Seen) {
        let page = 1 + usize::try_from(self.chance.below(5)).unwrap();
        let asked = Asked {
            runs: [RunFilter::default(), self.chance.filter(), self.chance.filter(), self.chance.only()],
            search: (self.chance.text(), 1 + usize::try_from(self.chance.below(8)).unwrap()),
            names: self.chance.some(Chance::key_name),
            callbacks: [CallbackFilter::default(), self.chance.callback_filter()],
            plans: self.chance.asked_of_plans(),
            page,
        };
        let expected = Contents::of(&self.model, &asked).await;
        assert_eq!(Contents::of(self.store(), &asked).await, expected);
        expected.note(seen);
    }
}

/// What becomes of them in the end; how many steps it takes is up to the store.
async fn sweep_all(store: &impl Store, shard: u32, term: u64, runs: &[Sweep]) -> Result<Vec<Swept>, String> {
    let (mut left, mut all) = (runs, Vec::new());
    while !left.is_empty() {
        let swept = store.sweep(shard, term, left).await.map_err(|error| error.to_string())?;
        let done: Vec<_> = swept.into_iter().take_while(|swept| *swept != Swept::Half).collect();
        left = &left[done.len()..];
        all.extend(done);
    }
    Ok(all)
}

/// The outcome, as far as stores have to agree on it.
fn said(outcome: &Result<(), Error>) -> Result<(), String> {
    outcome.as_ref().copied().map_err(ToString::to_string)
}

/// Says how to repeat what has failed.
struct Repeat(u64, usize);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("operation {} has failed; repeat it with DIFFERENTIAL_SEED={} DIFFERENTIAL_CASES=1", self.1, self.0);
        }
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Compares a store with the reference store; each case has a new one.
///
/// # Panics
/// If they differ.
pub async fn random_operations_have_the_outcomes_of_the_reference_store<H: Harness>(make: impl Fn() -> H) {
    let first = setting("DIFFERENTIAL_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let cases = setting("DIFFERENTIAL_CASES").unwrap_or(CASES);
    println!("DIFFERENTIAL_SEED={first} DIFFERENTIAL_CASES={cases}");
    let mut seen = Seen::default();
    for case in 0.. {
        if case >= cases && (seen.missing().is_empty() || setting("DIFFERENTIAL_SEED").is_some()) {
            return;
        }
        assert!(case < cases.max(CASES_MAX), "never seen in {case} cases from seed {first} on: {:#?}", seen.missing());
        let mut pair = Pair::new(first + case, make()).await;
        let mut repeat = Repeat(pair.seed, 0);
        for operation in 0..OPERATIONS {
            repeat.1 = operation;
            pair.operate(&mut seen).await;
            pair.compare(&mut seen).await;
        }
    }
}
