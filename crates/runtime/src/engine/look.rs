//! What can be seen of runs and limits; nothing changes.
//!
//! Tested by `crates/sdk/tests/it/listing.rs`.

use super::{Engine, PAGE};
use crate::error::Error;
use crate::host::{self, Opening, Replayed};
use crate::shard::{Request, RunView};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::run::{self, StepView};
use steadfast_kernel::{EntityId, Entry, Event, LimitKey, Refusal, Run, RunId, Seq, Timestamp, Wait};
use steadfast_store::{Backlog, EXAMINED_MAX, EXAMINED_STEP, RunCursor, RunFilter, RunPage, ShardId, Store};

/// After that time a search begins no other step, and answers with what it has found: with the last step it is to be within fifty milliseconds.
const SEARCH_TIME: Duration = Duration::from_millis(20);

/// How far a shard is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The shard.
    pub shard: ShardId,
    /// How long the timer that is due for longest has waited; nothing if none is due.
    pub overdue: Duration,
    /// How many messages its entities have for others who have not heard them yet, counted up to [a number](Backlog::COUNTED_MAX).
    pub messages: u64,
}

impl Lag {
    fn of(backlog: Backlog, now: Timestamp) -> Self {
        let Backlog { shard, first_due, messages } = backlog;
        Lag { shard, overdue: first_due.map(|due| now.saturating_since(due)).unwrap_or_default(), messages }
    }
}

impl Engine {
    /// Who holds a slot of a limit, and who waits for one; nothing if nobody ever asked for one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn limit(&self, key: &LimitKey) -> Result<Option<Limit>, Error> {
        self.look(|reply| Request::Limit { key: key.clone(), reply }).await
    }

    /// Runs that the filter lets through and that have the text, if one is given: newest first, from the one after `after`. A page of a search may have fewer than
    /// `limit` though there are more, because no more than [`EXAMINED_MAX`] runs are looked at for it, and fewer if that takes long.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self, filter: &RunFilter, text: Option<&str>, after: Option<&RunCursor>, limit: usize) -> Result<RunPage, Error> {
        let store = self.store()?;
        let page = match text {
            Some(text) => self.search(&*store, filter, text, after, limit).await,
            None => store.runs(filter, after, limit.saturating_add(1)).await.map(|rows| RunPage::cut(rows, limit)),
        };
        page.map_err(Error::from_store)
    }

    /// Step by step, until the page is full, or so many were looked at, or the time is over.
    async fn search(
        &self,
        store: &dyn Store,
        filter: &RunFilter,
        text: &str,
        after: Option<&RunCursor>,
        limit: usize,
    ) -> Result<RunPage, steadfast_store::Error> {
        let (began, mut page) = (self.parts.clock.now(), RunPage { rows: Vec::new(), next: after.cloned() });
        for _ in 0..EXAMINED_MAX / EXAMINED_STEP {
            let step = store
                .search(filter, text, page.next.as_ref(), limit.saturating_sub(page.rows.len()), EXAMINED_STEP)
                .await?;
            page.rows.extend(step.rows);
            page.next = step.next;
            let took = self.parts.clock.now().saturating_since(began);
            if page.next.is_none() || page.rows.len() >= limit || took >= SEARCH_TIME {
                break;
            }
        }
        Ok(page)
    }

    /// How far every shard of the store is behind, by number, whoever has it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn lags(&self) -> Result<Vec<Lag>, Error> {
        let store = self.store()?;
        let shards: Vec<_> = (0..store.shards()).collect();
        let (backlogs, now) = (store.backlogs(&shards).await.map_err(Error::from_store)?, self.parts.clock.now());
        Ok(backlogs.into_iter().map(|backlog| Lag::of(backlog, now)).collect())
    }

    /// Looks at a run.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub async fn view(&self, run: &RunId) -> Result<RunView, Error> {
        let mut view = self.look(|reply| Request::View { run: run.clone(), reply }).await?;
        for wait in &mut view.waits {
            if let Wait::Slot { key, position } = wait {
                *position = self.limit(key).await?.and_then(|limit| limit.position(run));
            }
            if let Wait::Lock { tenant, holder } = wait {
                *holder = match self.lock(tenant).await? {
                    Some(lock) => Some(lock.lease.holder()),
                    None => self.seen_elsewhere(tenant).await,
                };
            }
        }
        Ok(view)
    }

    /// The journal of a run from the entry after that one, at most `limit` entries.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub async fn journal(&self, run: &RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        let entries = self.entries(&run.into(), after, limit).await?;
        if entries.is_empty() && self.store()?.run(run).await.map_err(Error::from_store)?.is_none() {
            return Err(Refusal::RunNotFound { run: run.clone() }.into());
        }
        Ok(entries)
    }

    /// The journal of any entity from the entry after that one, at most `limit` entries; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn entries(&self, entity: &EntityId, after: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        let records = self.store()?.journal(entity, after, limit).await.map_err(Error::from_store)?;
        let broken = |why: String| Error::JournalBroken { entity: entity.clone(), why };
        records
            .iter()
            .map(|record| Entry::try_from(record).map_err(|unreadable| broken(unreadable.to_string())))
            .collect()
    }

    /// What the code of a run did and does in its present life, step by step.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub async fn steps(&self, run: &RunId) -> Result<Vec<StepView>, Error> {
        let in_flight = self.view(run).await?.in_flight; // first: what ends meanwhile is on record then
        let journal = self.whole_journal(run).await?;
        let retried = journal.iter().rev().find(|entry| matches!(entry.event, Event::RunRetried(_)));
        let retried = retried.map(|entry| (entry.at, entry.seq));
        Ok(run::steps(&run::script(journal), &in_flight, retried))
    }

    async fn whole_journal(&self, run: &RunId) -> Result<Vec<Entry>, Error> {
        let mut journal: Vec<Entry> = Vec::new();
        loop {
            let page = self.journal(run, journal.last().map_or(0, |entry| entry.seq), PAGE).await?;
            let last = page.len() < PAGE;
            journal.extend(page);
            if last {
                return Ok(journal);
            }
        }
    }

    /// Replays the journal of a run against the code that is registered here, without carrying anything out.
    ///
    /// # Errors
    /// If there is no such run, its code is not here, or it cannot be read.
    pub async fn replay(&self, run: &RunId) -> Result<Replayed, Error> {
        let journal = self.whole_journal(run).await?;
        let broken = |illegal: steadfast_kernel::IllegalTransition| Error::JournalBroken { entity: run.into(), why: illegal.to_string() };
        let mut state: Option<Run> = None;
        for entry in &journal {
            state = Some(run::evolve(run, state, entry).map_err(broken)?);
        }
        let Some(state) = state else { return Err(Refusal::RunNotFound { run: run.clone() }.into()) };
        let code = self.registered(&state.workflow)?.code;
        let (events, opening) = (journal.len(), Opening::of(&state, run::script(journal)));
        let mismatch = host::compare(&*code, opening, Arc::clone(&self.parts.clock), self.parts.config.payload_bytes_max).await;
        Ok(Replayed { events, mismatch })
    }
}
