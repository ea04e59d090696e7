//! Generates random batches that overlap, and random queries.

use steadfast_kernel::run::Recover;
use steadfast_kernel::{
    Direction, EntityId, Envelope, Failure, LetterAbout, LetterHome, LetterId, Message, MessageKind, Payload, PlanId, Record, RunId,
    Snapshot, Status, StepId, Timer, TimerName, Timestamp, WorkflowName,
};
use steadfast_store::{
    Append, Batch, Definition, Fence, Forgotten, Head, LetterChange, LetterRow, OutboxChange, RunFilter, RunRow, Sweep, TaskRow,
    TimerChange,
};

/// Few enough for operations to meet.
pub(super) const IDS: [&str; 6] = ["a", "a-1", "a/1", "B", "b", "10"];
pub(super) const ENTITIES: [&str; 11] =
    ["a", "a-1", "key/a", "limit:key/a", "limit:workflow/a", "letters:a", "key:a", "key:a/b", "plan:a", "lock:a", "route:a"];
pub(super) const WORKFLOWS: [&str; 3] = ["bill", "Bill", "a/b"];
pub(super) const HOMES: [&str; 7] = ["bill", "Bill", "a/b", "key:a", "key:bill", "route:a/b", "route:bill"];
/// Of tenants, texts and what is looked for.
const TEXTS: [&str; 6] = ["acme", "ACME 5%", "a_\\b", "b", "", "%"];
const WAITS: [&str; 2] = ["TIMER", "SIGNAL"];
pub(super) const SHARDS: u32 = 2;

/// Chance from a seed: splitmix64.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(super) fn shard(&mut self) -> u32 {
        u32::try_from(self.below(SHARDS.into())).unwrap()
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    /// Half of the time.
    pub(super) fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| make(self))
    }

    fn run(&mut self) -> RunId {
        RunId::new(self.one_of(&IDS)).unwrap()
    }

    fn entity(&mut self) -> EntityId {
        EntityId::from_stored(self.one_of(&ENTITIES)).unwrap()
    }

    pub(super) fn workflow(&mut self) -> WorkflowName {
        WorkflowName::new(self.one_of(&WORKFLOWS)).unwrap()
    }

    pub(super) fn text(&mut self) -> String {
        self.one_of(&TEXTS).into()
    }

    /// Few enough for equal ones.
    pub(super) fn time(&mut self) -> Timestamp {
        Timestamp::from_micros(self.below(4).cast_signed())
    }

    pub(super) fn some<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    pub(super) fn batch(&mut self, heads: &[Head]) -> Batch {
        let fences = self.fences(heads);
        let mut events = self.some(Self::append);
        events.iter_mut().for_each(|append| append.shard = self.one_of(&fences).shard);
        Batch {
            fences,
            events,
            runs: self.some(Self::row),
            timers: self.some(Self::timer),
            outbox: self.some(Self::message),
            letters: self.some(Self::letter),
            snapshots: self.some(Self::snapshot),
            keys: self.some(Self::key),
            callbacks: self.some(Self::callback),
            plans: self.some(Self::plan),
            locks: self.some(Self::lock),
            forgotten: if self.below(4) == 0 { self.some(Self::forgotten) } else { vec![] },
            definitions: self.some(Self::definition),
        }
    }

    /// All of a journal, or the beginning of one.
    fn forgotten(&mut self) -> Forgotten {
        Forgotten { entity: self.entity(), before: self.maybe(|chance| chance.below(60)) }
    }

    fn definition(&mut self) -> Definition {
        Definition { hash: self.text(), workflow: self.workflow(), text: self.text(), kept_at: self.time() }
    }

    /// Of one shard, or of both.
    fn fences(&mut self, heads: &[Head]) -> Vec<Fence> {
        let shard = self.shard();
        let other = (self.below(5) == 0).then(|| self.fence(heads, (shard + 1) % SHARDS));
        [self.fence(heads, shard)].into_iter().chain(other).collect()
    }

    /// Mostly the one that fits.
    fn fence(&mut self, heads: &[Head], shard: u32) -> Fence {
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
        let payload = self.payload();
        let record = Record {
            seq: 1 + self.below(60),
            epoch: 1,
            kind: "STEP_COMPLETED".into(),
            at: Timestamp::from_micros(self.below(1_000).cast_signed()),
            subject: None,
            attempt: None,
            backoff_ms: Some(self.below(u64::MAX)),
            reason: None,
            payload: (self.below(2) == 0).then_some(payload),
            body: vec![0; 3].into(),
        };
        Append { shard: 0, entity: self.entity(), record }
    }

    pub(super) fn payload(&mut self) -> Payload {
        Payload::json(self.some(|chance| u8::try_from(chance.below(256)).unwrap()))
    }

    fn row(&mut self) -> RunRow {
        let status = self.one_of(&Status::ALL);
        let run = self.run();
        let (shard, workflow) = (u32::from(run.as_str() > "a"), WorkflowName::new(WORKFLOWS[run.as_str().len() % 3]).unwrap());
        let row = RunRow {
            shard,
            run,
            workflow,
            tenant: None,
            status,
            wait: self.maybe(|chance| chance.one_of(&WAITS).into()),
            text: self.maybe(Self::text),
            recover: Some(self.one_of(&[Recover::Host, Recover::Interrupt])).filter(|_| status == Status::Running || self.below(2) == 0),
            started_at: Timestamp::from_micros(2),
            ended_at: status.is_final().then_some(Timestamp::MAX),
            task: None,
        };
        let row = self.maybe(|chance| chance.moved(&row)).unwrap_or(row);
        match self.below(3) {
            0 => RunRow { task: Some(self.task()), ..row },
            1 => RunRow { task: Some(TaskRow { plan: PlanId::new("a").unwrap(), ..self.task() }), ..row },
            _ => row,
        }
    }

    /// A row in which also that is new which a run keeps for life.
    fn moved(&mut self, row: &RunRow) -> RunRow {
        let (shard, workflow, tenant, started_at) = (self.shard(), self.workflow(), self.maybe(Self::text), self.time());
        RunRow { shard, workflow, tenant, started_at, ..row.clone() }
    }

    pub(super) fn filter(&mut self) -> RunFilter {
        RunFilter {
            status: self.maybe(|chance| chance.one_of(&Status::ALL)),
            workflow: self.maybe(Self::workflow),
            tenant: self.maybe(Self::text),
            wait: self.maybe(|chance| chance.one_of(&WAITS).into()),
            since: self.maybe(Self::time),
            until: self.maybe(Self::time),
        }
    }

    /// A filter that asks for one thing, so that there are answers.
    pub(super) fn only(&mut self) -> RunFilter {
        let (asked, filter) = (self.below(4), RunFilter::default());
        match asked {
            0 => RunFilter { status: Some(self.one_of(&Status::ALL)), ..filter },
            1 => RunFilter { workflow: Some(self.workflow()), ..filter },
            2 => RunFilter { tenant: Some(self.text()), ..filter },
            _ => RunFilter { wait: Some(self.one_of(&WAITS).into()), ..filter },
        }
    }

    /// Runs and plans as they may have ended, or not.
    pub(super) fn sweeps(&mut self) -> Vec<Sweep> {
        let end = |chance: &mut Self| if chance.below(4) == 0 { Timestamp::EPOCH } else { Timestamp::MAX };
        self.some(|chance| match chance.below(3) {
            0 => Sweep { entity: EntityId::Plan(chance.plan_id()), ended_at: end(chance) },
            1 => Sweep { entity: chance.entity(), ended_at: end(chance) },
            _ => Sweep { entity: chance.run().into(), ended_at: end(chance) },
        })
    }

    fn message(&mut self) -> OutboxChange {
        let (from, seq) = (self.entity(), 1 + self.below(12));
        if self.below(3) == 0 {
            return OutboxChange::Settle { from, seq };
        }
        let epoch = u32::try_from(self.below(3)).unwrap();
        let message = match self.below(3) {
            0 => Message::RequestSlot { epoch, slots: 1 },
            1 => Message::ReleaseSlot { epoch },
            _ => Message::SettleLetter { step: StepId::new("", self.one_of(&["a", "b"]), 1).unwrap(), after: self.below(9) },
        };
        let envelope = Envelope { from, seq, to: self.entity(), message };
        OutboxChange::Add { shard: self.shard(), envelope }
    }

    fn letter(&mut self) -> LetterChange {
        let letter = LetterId { home: LetterHome::parse(self.one_of(&HOMES)).unwrap(), seq: 1 + self.below(12) };
        if self.below(3) == 0 {
            return LetterChange::Remove(letter);
        }
        if self.below(4) == 0 {
            return LetterChange::Fail(letter, Failure::transient(self.one_of(&TEXTS)));
        }
        let about = match &letter.home {
            LetterHome::Workflow(_) => LetterAbout::Step { run: self.run(), step: StepId::new("", "read", 1).unwrap() },
            LetterHome::Key(key) => LetterAbout::Expiry { key: key.clone(), revision: self.below(60) },
            LetterHome::Route(route) => LetterAbout::Message {
                route: route.clone(),
                direction: self.one_of(&[Direction::Received, Direction::Sent]),
                kind: self.one_of(&[MessageKind::Call, MessageKind::Tell, MessageKind::Frame]),
                peer: format!("peer-{}", self.below(3)),
                request: format!("r-{}", self.below(9)),
            },
        };
        let (tenant, failure) = (self.maybe(Self::text), Failure::poison(self.text()));
        LetterChange::Put(LetterRow { shard: self.shard(), letter, about, tenant, failure, added_at: self.time() })
    }

    fn snapshot(&mut self) -> Snapshot {
        let state: Vec<u8> = self.some(|chance| u8::try_from(chance.below(256)).unwrap());
        Snapshot { entity: self.entity(), seq: self.below(60), fold: u32::try_from(self.below(3)).unwrap(), state: state.into() }
    }

    fn timer(&mut self) -> TimerChange {
        let step = StepId::new("", self.one_of(&["a", "b"]), 1).unwrap();
        let name = match self.below(7) {
            0 => TimerName::Retry(step),
            1 => TimerName::Sleep(step),
            2 => TimerName::Deadline,
            3 => TimerName::Expiry,
            4 => TimerName::Callback(self.one_of(&[9, 10])),
            5 => TimerName::Lease,
            _ => TimerName::Forget,
        };
        let entity = match self.below(3) {
            0 => EntityId::from(self.run()),
            1 => EntityId::Lock(self.tenant()),
            _ => EntityId::Key(self.key_name()),
        };
        if self.below(3) == 0 {
            return TimerChange::Disarm { entity, name };
        }
        let due = self.time();
        TimerChange::Arm { shard: self.shard(), timer: Timer { entity, name, due, revision: self.below(100) } }
    }
}
