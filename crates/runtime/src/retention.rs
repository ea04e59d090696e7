//! Retention: how long ended runs and plans are kept, and the sweeper that looks for those whose time is over.
//!
//! The sweeper asks for the runs of the shard whose time is over, by how and when they have ended, and hands them to the shard a few at a time. The shard is their only writer: it knows
//! whether somebody has to do with one of them right now, and lets nobody at it while it is removed. What stays is not read, and while nothing is to go nobody asks: the store says when the
//! next one will be due.
//!
//! Tested by `crates/sdk/tests/it/retention.rs`.

mod plans;

use crate::clock::Clock;
use crate::engine::Ways;
use crate::shard::Request;
use plans::Looked;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Period, Status, Timestamp};
use steadfast_store::{EndedCursor, EndedFilter, Error, RunRow, ShardId, Store, Sweep, shard_of};
use tokio::sync::oneshot;

/// How often the sweeper looks at the most, counted from the engine's start.
const EVERY: Duration = Duration::from_secs(60);

/// How often it looks at the least, and how often at tasks of plans that are not here: nothing tells when such a plan goes, and there may be many whose plan stays.
const RARELY: Duration = Duration::from_secs(3600);

/// How runs end.
const ENDS: [Status; 3] = [Status::Completed, Status::Failed, Status::Cancelled];

/// How many rows are read at once.
const PAGE: usize = 500;

/// How many runs are handed over at once: whoever asks for one of them meanwhile waits for all of them.
const HANDED: usize = 50;

/// Between two pages others have their turn.
const PAUSE: Duration = Duration::from_millis(5);

/// How long runs are kept after their end, by how they have ended. Nothing is removed that nobody has set a time for.
///
/// A run that was removed is as if it had never been: there is no such run, and a start with its id begins a new one. So a start is idempotent for as long as its run is kept.
/// `INTERRUPTED` is no end; such runs stay.
///
/// A plan is kept for as long as a run that ended likewise, and its tasks are kept for as long as the plan. It stays while a task of it has not ended or keeps its tenant's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Of those that have completed; for ever if nothing is said.
    pub completed: Option<Duration>,
    /// Of those that have failed; for ever if nothing is said.
    pub failed: Option<Duration>,
    /// Of those that were cancelled or terminated; for ever if nothing is said.
    pub cancelled: Option<Duration>,
}

impl Retention {
    /// Everything is kept for ever.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long to keep runs that have completed.
    #[must_use]
    pub fn completed(mut self, keep_for: Duration) -> Self {
        self.completed = Some(keep_for);
        self
    }

    /// How long to keep runs that have failed.
    #[must_use]
    pub fn failed(mut self, keep_for: Duration) -> Self {
        self.failed = Some(keep_for);
        self
    }

    /// How long to keep runs that were cancelled or terminated.
    #[must_use]
    pub fn cancelled(mut self, keep_for: Duration) -> Self {
        self.cancelled = Some(keep_for);
        self
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        let all = [("completed", self.completed), ("failed", self.failed), ("cancelled", self.cancelled)];
        match all.into_iter().find(|(_, keep_for)| *keep_for == Some(Duration::ZERO)) {
            Some((name, _)) => {
                Err(format!("the retention of {name} runs is 0: they would be gone before anybody could ask how they ended"))
            }
            None => Ok(()),
        }
    }

    fn keep_for(&self, status: Status) -> Option<Duration> {
        match status {
            Status::Completed => self.completed,
            Status::Failed => self.failed,
            Status::Cancelled => self.cancelled,
            _ => None,
        }
    }

    /// The shortest time; nothing if everything is kept.
    fn shortest(&self) -> Option<Duration> {
        [self.completed, self.failed, self.cancelled].into_iter().flatten().min()
    }

    /// The run of that row, if its time is over. A task stays for as long as its plan.
    fn over(&self, row: &RunRow, now: Timestamp) -> Option<Sweep> {
        if row.task.is_some() {
            return None;
        }
        let (keep_for, ended_at) = (self.keep_for(row.status)?, row.ended_at?);
        (ended_at.saturating_add(keep_for) <= now).then(|| Sweep { entity: (&row.run).into(), ended_at })
    }
}

/// Looks for runs whose time is over.
pub(crate) struct Sweeper {
    pub(crate) retention: Retention,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) shard: ShardId,
    /// Does not keep the engine alive.
    pub(crate) ways: Weak<Ways>,
}

/// When there will be something to be done: the earliest time of those that are noted.
struct Agenda(Timestamp);

impl Agenda {
    fn note(&mut self, at: Timestamp) {
        self.0 = self.0.min(at);
    }
}

impl Sweeper {
    /// Runs until the shard is gone; not at all if everything is kept.
    pub(crate) async fn run(self) {
        let Some(shortest) = self.retention.shortest() else { return };
        let Some(period) = Period::new(self.clock.now(), EVERY) else { return };
        let (mut due, mut tasks_due) = (self.clock.now(), self.clock.now());
        loop {
            let now = self.clock.now();
            self.clock.sleep(next(&period, now, due).saturating_since(now)).await;
            let now = self.clock.now();
            // What ends from now on stays for the shortest time.
            let mut agenda = Agenda(now.saturating_add(shortest.min(RARELY)));
            match self.look_at_plans(&mut agenda).await {
                Ok(Looked::Gone(0) | Looked::NotNow) => {}
                Ok(Looked::Gone(removed)) => tracing::info!(shard = self.shard, removed, "ended plans whose time was over are removed"),
                Ok(Looked::Over) => return,
                Err(error) => {
                    agenda.note(now);
                    tracing::warn!(shard = self.shard, %error, code = error.code(), "ended plans could not be looked for");
                }
            }
            let with_tasks = tasks_due <= now;
            if with_tasks {
                tasks_due = now.saturating_add(RARELY);
            }
            match self.run_once(with_tasks, &mut agenda).await {
                Ok(Some(0)) => {}
                Ok(Some(removed)) => tracing::info!(shard = self.shard, removed, "ended runs whose time was over are removed"),
                Ok(None) => return,
                Err(error) => {
                    agenda.note(now);
                    tracing::warn!(shard = self.shard, %error, code = error.code(), "ended runs could not be looked for");
                }
            }
            due = agenda.0;
        }
    }

    /// One look at what has ended: how many runs were removed. Nothing if the shard is gone.
    async fn run_once(&self, with_tasks: bool, agenda: &mut Agenda) -> Result<Option<usize>, Error> {
        let mut removed = 0;
        for status in ENDS {
            let Some(keep_for) = self.retention.keep_for(status) else { continue };
            for tasks in [false, true].into_iter().filter(|tasks| !tasks || with_tasks) {
                match self.remove_ended(status, keep_for, tasks, agenda).await? {
                    Some(more) => removed += more,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(removed))
    }

    /// Removes what has ended so and whose time is over, and notes when that of the next one will be.
    async fn remove_ended(&self, status: Status, keep_for: Duration, tasks: bool, agenda: &mut Agenda) -> Result<Option<usize>, Error> {
        let (mut removed, mut place) = (0, None);
        loop {
            let now = self.clock.now();
            let until = Timestamp::from_micros(now.as_micros().saturating_sub(i64::try_from(keep_for.as_micros()).unwrap_or(i64::MAX)));
            let filter = EndedFilter { shard: self.shard, status, tasks, until };
            let page = self.store.ended(&filter, place.as_ref(), PAGE).await?;
            let over = match tasks {
                false => page.iter().filter_map(|row| self.retention.over(row, now)).collect(),
                true => self.adopted_over(&page, now).await?,
            };
            for few in over.chunks(HANDED) {
                match self.hand_over(few.to_vec()).await {
                    Some(Some(gone)) => {
                        removed += gone;
                        if gone < few.len() {
                            agenda.note(now); // somebody has to do with one of them
                        }
                    }
                    Some(None) => {
                        agenda.note(now); // not now
                        return Ok(Some(removed));
                    }
                    None => return Ok(None),
                }
            }
            place = page.last().and_then(EndedCursor::of).or(place);
            if page.len() < PAGE {
                break;
            }
            self.clock.sleep(PAUSE).await;
        }
        if !tasks {
            let filter = EndedFilter { shard: self.shard, status, tasks, until: Timestamp::MAX };
            let next = self.store.ended(&filter, place.as_ref(), 1).await?;
            next.iter()
                .filter_map(|row| row.ended_at)
                .for_each(|ended_at| agenda.note(ended_at.saturating_add(keep_for)));
        }
        Ok(Some(removed))
    }

    /// Hands each to its own shard: tasks need not live where their plan does. How many of them are gone; `Some(None)` if a shard does not want to now, and `None`
    /// if this one is not here any more.
    async fn hand_over(&self, ended: Vec<Sweep>) -> Option<Option<usize>> {
        let mut by_shard: BTreeMap<ShardId, Vec<Sweep>> = BTreeMap::new();
        for sweep in ended {
            by_shard.entry(shard_of(&sweep.entity, self.store.shards())).or_default().push(sweep);
        }
        let mut gone = 0;
        for (shard, ended) in by_shard {
            let (reply, answer) = oneshot::channel();
            let ways = self.ways.upgrade()?;
            match ways.requests_of(shard) {
                Some(requests) => {
                    drop(ways);
                    let sent = requests.send(Request::Sweep { ended, reply }).await;
                    if sent.is_err() {
                        return if shard == self.shard { None } else { Some(None) };
                    }
                }
                None if shard == self.shard => return None,
                None => match ways.sweep_afar(shard, ended).await {
                    Some(few) => {
                        gone += few;
                        continue;
                    }
                    None => return Some(None),
                },
            }
            match answer.await {
                Ok(few) => gone += few,
                Err(_) => return Some(None),
            }
        }
        Some(Some(gone))
    }
}

/// The first time of the period that has not passed and at which what is due then is due. A pass that took longer does not shift the next ones.
fn next(period: &Period, now: Timestamp, due: Timestamp) -> Timestamp {
    let at_or_before = period.number(due);
    let number = if period.at(at_or_before) < due { at_or_before + 1 } else { at_or_before };
    period.at(number.max(period.number(now) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::{PlanId, RunId, TaskStatus, WorkflowName};
    use steadfast_store::TaskRow;

    fn row(status: Status, ended_at: Option<i64>) -> RunRow {
        RunRow {
            shard: 0,
            run: RunId::new("a").unwrap(),
            workflow: WorkflowName::new("w").unwrap(),
            tenant: None,
            status,
            wait: None,
            text: None,
            recover: None,
            started_at: Timestamp::EPOCH,
            ended_at: ended_at.map(|seconds| Timestamp::from_micros(seconds * 1_000_000)),
            task: None,
        }
    }

    #[test]
    fn every_status_has_its_own_time() {
        let seconds = Duration::from_secs;
        let retention = Retention::new().completed(seconds(10)).failed(seconds(20));
        let over = |status, ended_at, now| retention.over(&row(status, ended_at), Timestamp::from_micros(now)).is_some();
        assert!(!over(Status::Completed, Some(5), 14_999_999));
        assert!(over(Status::Completed, Some(5), 15_000_000), "the time is over when it is over");
        assert!(!over(Status::Failed, Some(5), 24_999_999));
        assert!(over(Status::Failed, Some(5), 25_000_000));
        for status in Status::ALL.into_iter().filter(|status| !matches!(status, Status::Completed | Status::Failed)) {
            assert!(!over(status, Some(5), i64::MAX), "{status:?} has no time");
        }
        assert!(!over(Status::Completed, None, i64::MAX));
    }

    #[test]
    fn it_looks_in_the_minute_in_which_something_is_due() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let period = Period::new(at(10), EVERY).unwrap();
        let next = |now, due| next(&period, at(now), at(due)).as_micros() / 1_000_000;
        assert_eq!(next(10, 10), 70, "not at once");
        assert_eq!(next(71, 0), 130, "what is late has to wait for the next minute");
        assert_eq!(next(71, 130), 130);
        assert_eq!(next(71, 131), 190);
        assert_eq!(next(71, 3_610), 3_610, "and nobody looks before that");
    }

    #[test]
    fn a_task_is_not_removed_for_itself() {
        let retention = Retention::new().completed(Duration::from_secs(10));
        let plan = PlanId::new("p").unwrap();
        let task = TaskRow {
            plan,
            status: TaskStatus::Completed,
            stage: None,
            completed: 3,
            checkpoint: None,
            pause_requested: false,
            started_at: None,
        };
        let row = RunRow { task: Some(task), ..row(Status::Completed, Some(5)) };
        assert_eq!(retention.over(&row, Timestamp::MAX), None);
        assert!(retention.over(&RunRow { task: None, ..row }, Timestamp::MAX).is_some());
    }
}
