//! Entities are read from the store: the whole journal if it is short, otherwise what was saved of it and what came after.
//!
//! Tested by `crates/sdk/tests/it/saved.rs`.

use super::save::Saved;
use crate::error::Error;
use steadfast_kernel::{Entity, EntityId, Entry, Run, Seq, machine};
use steadfast_store::Store;

/// How many entries are read at once.
const PAGE: usize = 1000;

/// What was read of an entity.
pub(super) struct Found {
    pub(super) entity: Entity,
    /// What of its journal has to be known to replay it; nothing if that was not read.
    pub(super) journal: Option<Vec<Entry>>,
    pub(super) saved: Saved,
}

pub(super) struct Reader<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) id: &'a EntityId,
    /// A journal that is shorter has no need of snapshots.
    pub(super) snapshot_every: usize,
    /// It is known that something was saved.
    pub(super) is_saved: bool,
    /// It may have to be replayed.
    pub(super) to_replay: bool,
}

/// Entries that follow each other; if it is full there may be more.
struct Page {
    entries: Vec<Entry>,
    is_full: bool,
}

impl Page {
    const UNREAD: Page = Page { entries: Vec::new(), is_full: true };
}

impl Reader<'_> {
    /// Reads the entity; nothing if there is none.
    pub(super) async fn read(&self) -> Result<Option<Found>, Error> {
        let beginning = match self.is_saved {
            true => Page::UNREAD,
            false => self.page(0, self.snapshot_every).await?,
        };
        if beginning.is_full {
            match self.read_saved().await {
                Ok(None) => {}
                Err(Error::JournalBroken { entity, why }) => {
                    tracing::warn!(%entity, why, "what was saved of it does not fit its journal and is not used");
                }
                read => return read,
            }
        }
        let (entity, journal) = self.read_on(None, beginning).await?;
        Ok(entity.map(|entity| Found { entity, journal: Some(journal), saved: Saved::default() }))
    }

    /// Begins with what was saved; nothing if nothing was, or it is of another version.
    async fn read_saved(&self) -> Result<Option<Found>, Error> {
        let snapshot = self.store.snapshot(self.id).await.map_err(Error::from_store)?;
        let Some((snapshot, entity)) = snapshot.and_then(|snapshot| snapshot.restore().map(|entity| (snapshot, entity))) else {
            return Ok(None);
        };
        let (Some(entity), tail) = self.read_on(Some(entity), Page::UNREAD).await? else { return Ok(None) };
        let journal = match entity.run() {
            Some(run) if self.to_replay && run.open().is_some() => Some(self.past(run, snapshot.seq, tail).await?),
            _ => None,
        };
        Ok(Some(Found { entity, journal, saved: Saved::by(&snapshot) }))
    }

    /// What has to be known of a run to replay it, up to the end of that tail.
    async fn past(&self, run: &Run, saved: Seq, tail: Vec<Entry>) -> Result<Vec<Entry>, Error> {
        let mut past = Vec::new();
        for seq in run.past.kept.iter().filter(|seq| **seq <= saved) {
            past.extend(self.page(seq - 1, 1).await?.entries);
        }
        let mut after = run.past.continued.saturating_sub(1);
        while after < saved {
            let page = self.page(after, PAGE.min(usize::try_from(saved - after).unwrap_or(PAGE))).await?;
            after = page.entries.last().map_or(saved, |entry| entry.seq);
            past.extend(page.entries);
        }
        let counts = |entry: &Entry| entry.seq >= run.past.continued || run.past.kept.contains(&entry.seq);
        past.extend(tail.into_iter().filter(counts));
        Ok(past)
    }

    /// Folds the entries of that page, and all that follow if it is full.
    async fn read_on(&self, mut state: Option<Entity>, mut page: Page) -> Result<(Option<Entity>, Vec<Entry>), Error> {
        let mut journal = Vec::new();
        loop {
            for entry in &page.entries {
                let (next, _said) = machine::advance(self.id, state, entry).map_err(|illegal| self.broken(&illegal))?;
                state = Some(next);
            }
            journal.append(&mut page.entries);
            if !page.is_full {
                return Ok((state, journal));
            }
            page = self.page(state.as_ref().map_or(0, Entity::seq), PAGE).await?;
        }
    }

    async fn page(&self, after: Seq, limit: usize) -> Result<Page, Error> {
        let records = self.store.journal(self.id, after, limit).await.map_err(Error::from_store)?;
        let entry = |record| Entry::try_from(record).map_err(|unreadable| self.broken(&unreadable));
        let entries = records.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        Ok(Page { is_full: entries.len() == limit, entries })
    }

    fn broken(&self, why: &dyn std::fmt::Display) -> Error {
        Error::JournalBroken { entity: self.id.clone(), why: why.to_string() }
    }
}
