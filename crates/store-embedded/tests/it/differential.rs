//! Random operations against the reference store and this one: outcomes and contents are the same.

use steadfast_kernel::{Payload, Record, RunId, Status, StepId, Timer, TimerName, Timestamp, WorkflowName};
use steadfast_store::memory::Memory;
use steadfast_store::{Append, Batch, Error, Fence, Head, RunRow, Store, TimerChange, TimerKey};
use steadfast_store_embedded::Embedded;
use tempfile::tempdir;

/// Few enough for operations to meet.
const IDS: [&str; 6] = ["a", "a-1", "a/1", "B", "b", "10"];
const SHARDS: u32 = 2;
const OPERATIONS: usize = 250;

/// Chance from a seed: splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn shard(&mut self) -> u32 {
        u32::try_from(self.below(SHARDS.into())).unwrap()
    }

    fn run(&mut self) -> RunId {
        RunId::new(IDS[usize::try_from(self.below(IDS.len() as u64)).unwrap()]).unwrap()
    }

    fn some<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    fn batch(&mut self, heads: &[Head]) -> Batch {
        Batch {
            fences: vec![self.fence(heads)],
            events: self.some(Self::append),
            runs: self.some(Self::row),
            timers: self.some(Self::change),
        }
    }

    /// Mostly the one that fits.
    fn fence(&mut self, heads: &[Head]) -> Fence {
        let shard = self.shard();
        let Head { term, seq } = heads[shard as usize];
        let (term, after) = match self.below(10) {
            0 => (term + 1, seq),
            1 => (term, seq + 1),
            2 => (term.saturating_sub(1), seq.saturating_sub(1)),
            _ => (term, seq),
        };
        Fence { shard, term, after, upto: after + 1 + self.below(3) }
    }

    fn append(&mut self) -> Append {
        let payload: Vec<u8> = self.some(|chance| u8::try_from(chance.below(256)).unwrap());
        let record = Record {
            seq: 1 + self.below(60),
            epoch: 1,
            kind: "STEP_COMPLETED".into(),
            at: Timestamp::from_micros(self.below(1_000).cast_signed()),
            subject: None,
            attempt: None,
            backoff_ms: Some(self.below(u64::MAX)),
            reason: None,
            payload: (self.below(2) == 0).then(|| Payload::json(payload)),
            body: vec![0; 3].into(),
        };
        Append { run: self.run(), record }
    }

    fn row(&mut self) -> RunRow {
        let status = Status::ALL[usize::try_from(self.below(4)).unwrap()];
        RunRow {
            shard: self.shard(),
            run: self.run(),
            workflow: WorkflowName::new("bill").unwrap(),
            status,
            wait: (self.below(2) == 0).then(|| "TIMER".into()),
            started_at: Timestamp::EPOCH,
            ended_at: status.is_final().then_some(Timestamp::MAX),
        }
    }

    fn change(&mut self) -> TimerChange {
        let step = StepId::new("", ["a", "b"][usize::try_from(self.below(2)).unwrap()], 1).unwrap();
        let name = match self.below(3) {
            0 => TimerName::Retry(step),
            1 => TimerName::Sleep(step),
            _ => TimerName::Deadline,
        };
        let run = self.run();
        if self.below(3) == 0 {
            return TimerChange::Disarm { run, name };
        }
        let due = Timestamp::from_micros(self.below(4).cast_signed());
        TimerChange::Arm { shard: self.shard(), timer: Timer { run, name, due, revision: self.below(100) } }
    }
}

/// The outcome, as far as stores have to agree on it.
fn outcome(outcome: Result<(), Error>) -> Result<(), String> {
    outcome.map_err(|error| error.to_string())
}

async fn heads(store: &impl Store) -> Vec<Head> {
    let mut heads = vec![];
    for shard in 0..SHARDS {
        heads.push(store.head(shard).await.unwrap());
    }
    heads
}

/// Everything that can be read, in pages of that many.
async fn contents(store: &impl Store, page: usize) -> String {
    let mut all = format!("{:?}\n", heads(store).await);
    for id in IDS {
        let run = RunId::new(id).unwrap();
        all += &format!("{:?}\n", store.run(&run).await.unwrap());
        let journal = store.journal(&run, page as u64, page * 8).await.unwrap();
        let payloads: Vec<_> = journal.iter().map(|record| record.payload.as_ref().map(|payload| payload.bytes.clone())).collect();
        all += &format!("{journal:?} {payloads:?}\n");
    }
    for shard in 0..SHARDS {
        let rows = store.open_runs(shard, None, page).await.unwrap();
        all += &format!("{rows:?}\n{:?}\n", store.open_runs(shard, rows.last().map(|row| &row.run), page).await.unwrap());
        let timers = store.timers(shard, None, page).await.unwrap();
        all += &format!("{timers:?}\n{:?}\n", store.timers(shard, timers.last().map(TimerKey::from).as_ref(), page).await.unwrap());
    }
    all
}

async fn compare(seed: u64) {
    let dir = tempdir().unwrap();
    let (mut chance, model) = (Chance(seed), Memory::new());
    let mut store = Embedded::open(dir.path()).unwrap();
    for operation in 0..OPERATIONS {
        match chance.below(20) {
            0 => {
                let shard = chance.shard();
                assert_eq!(store.claim(shard).await.unwrap(), model.claim(shard).await.unwrap());
            }
            1 => {
                drop(store);
                store = Embedded::open(dir.path()).unwrap();
            }
            _ => {
                let batch = chance.batch(&heads(&model).await);
                let (found, expected) = (store.commit(batch.clone()).await, model.commit(batch).await);
                assert_eq!(outcome(found), outcome(expected), "seed {seed}, operation {operation}");
            }
        }
        let page = 1 + usize::try_from(chance.below(5)).unwrap();
        assert_eq!(contents(&store, page).await, contents(&model, page).await, "seed {seed}, operation {operation}");
    }
    assert!(model.commits() > 60, "seed {seed}: too few batches were applied to say anything");
}

#[tokio::test]
async fn random_operations_have_the_outcomes_of_the_reference_store() {
    for seed in 1..=4 {
        compare(seed).await;
    }
}
