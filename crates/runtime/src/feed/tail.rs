//! What was written last, read once for all who follow everything.

use super::{Fed, PAGE, ends};
use crate::error::Error;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use steadfast_kernel::{EntityId, Entry};
use steadfast_store::{Position, ShardId, Store};

/// How much is kept, in entries and in bytes of their payloads. Who is further behind reads for itself.
const KEPT: usize = 4096;
const KEPT_BYTES: usize = 8 << 20;

/// A part of the feed.
#[derive(Clone, Default)]
pub(super) struct Page {
    pub(super) items: Vec<Arc<Fed>>,
    /// The position up to which it reaches.
    pub(super) upto: Position,
    /// There may be more already.
    pub(super) more: bool,
}

/// The end of the feed.
#[derive(Default)]
pub(super) struct Tail {
    kept: Mutex<Kept>,
    /// Held by who reads the store for all.
    reading: tokio::sync::Mutex<()>,
}

/// What was written after `after` and up to `upto`, in the order in which it was read.
#[derive(Default)]
struct Kept {
    after: Position,
    upto: Position,
    items: VecDeque<(Arc<Fed>, usize)>,
    /// How many were here before the first of them.
    gone: usize,
    /// Where those of each shard are, as numbers of places and of items, counted with those that were here before.
    shards: BTreeMap<ShardId, VecDeque<(u64, usize)>>,
    bytes: usize,
}

impl Tail {
    /// What was written after a position.
    pub(super) async fn read(&self, store: &dyn Store, after: &Position) -> Result<Page, Error> {
        if let Some(page) = self.kept.lock().page(after) {
            return Ok(page);
        }
        let _alone = self.reading.lock().await;
        if let Some(page) = self.kept.lock().page(after) {
            return Ok(page); // somebody else has read it meanwhile
        }
        let page = read(store, after, None).await?;
        self.kept.lock().add(after, &page);
        Ok(page)
    }
}

impl Kept {
    /// What there is after that position, if it is known here and not just nothing.
    fn page(&self, after: &Position) -> Option<Page> {
        if !after.includes(&self.after) || after.includes(&self.upto) {
            return None;
        }
        let from = self.first_after(after).unwrap_or(self.items.len());
        let mut new = self.items.range(from..).map(|(fed, _)| fed).filter(|fed| !after.covers(fed.place));
        let items: Vec<_> = new.by_ref().take(PAGE).map(Arc::clone).collect();
        let more = new.next().is_some();
        let mut upto = after.clone();
        match more {
            true => items.iter().for_each(|fed| upto.advance(fed.place)),
            false => upto.join(&self.upto),
        }
        Some(Page { items, upto, more })
    }

    /// Where the first item is that is not covered.
    fn first_after(&self, after: &Position) -> Option<usize> {
        let first = |(shard, places): (&ShardId, &VecDeque<(u64, usize)>)| {
            let at = places.partition_point(|(number, _)| *number <= after.number(*shard));
            places.get(at).map(|(_, item)| item - self.gone)
        };
        self.shards.iter().filter_map(first).min()
    }

    /// Adds what was read from that position on, if that is later than what is here.
    fn add(&mut self, after: &Position, page: &Page) {
        if self.upto.includes(&page.upto) || !page.upto.includes(&self.upto) {
            return;
        }
        if *after != self.upto {
            *self = Kept { after: after.clone(), ..Kept::default() };
        }
        for fed in &page.items {
            let bytes = size(fed);
            self.bytes += bytes;
            let item = self.gone + self.items.len();
            self.shards.entry(fed.place.shard).or_default().push_back((fed.place.number, item));
            self.items.push_back((Arc::clone(fed), bytes));
        }
        self.upto = page.upto.clone();
        while self.items.len() > KEPT || self.bytes > KEPT_BYTES {
            let Some((fed, bytes)) = self.items.pop_front() else { break };
            self.bytes -= bytes;
            self.gone += 1;
            self.after.advance(fed.place);
            if let Some(places) = self.shards.get_mut(&fed.place.shard) {
                places.pop_front();
            }
        }
    }
}

/// Reads the store. An entry that cannot be read is left out: whoever asks for its journal is told.
pub(super) async fn read(store: &dyn Store, after: &Position, entity: Option<&EntityId>) -> Result<Page, Error> {
    let rows = store.feed(after, entity, PAGE).await.map_err(Error::from_store)?;
    let (more, mut upto) = (rows.len() == PAGE, after.clone());
    rows.iter().for_each(|row| upto.advance(row.place));
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        match Entry::try_from(&row.record) {
            Ok(entry) => {
                let rolled_back = row.plan.is_some() && ends::a_roll_back(store, &row.entity, &entry).await?;
                let (tenant, plan) = (row.tenant, row.plan);
                items.push(Arc::new(Fed { place: row.place, entity: row.entity, tenant, plan, rolled_back, entry }));
            }
            Err(error) => tracing::error!(entity = %row.entity, seq = row.record.seq, %error, "an entry of the feed cannot be read"),
        }
    }
    Ok(Page { items, upto, more })
}

/// About how many bytes it takes.
fn size(fed: &Fed) -> usize {
    use steadfast_kernel::plan::PlanEvent;
    use steadfast_kernel::{Event, TaskEvent};
    let payload = match &fed.entry.event {
        Event::RunStarted { input: payload, .. }
        | Event::StepCompleted { output: payload, .. }
        | Event::SignalReceived { payload, .. }
        | Event::StepHeartbeat { details: payload, .. }
        | Event::ChildStarted { input: payload, .. }
        | Event::ChildEnded { outcome: Ok(payload), .. }
        | Event::RunContinued { input: payload }
        | Event::RunCompleted { output: payload } => payload.len(),
        Event::LetterAdded(letter) => letter.payload.len(),
        Event::Task(event) => match &**event {
            TaskEvent::CheckpointSaved { data, .. } => data.len(),
            _ => 0,
        },
        Event::Plan(event) => match &**event {
            PlanEvent::Created(created) => {
                created.input.len() + created.tenants.iter().map(|tenant| tenant.as_str().len() + 32).sum::<usize>()
            }
            _ => 0,
        },
        Event::KeyPut(held) | Event::KeyRenewed { restated: Some(held), .. } => held.size(),
        _ => 0,
    };
    512 + payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::{Event, RunId, Timestamp};
    use steadfast_store::Place;

    fn page(places: std::ops::RangeInclusive<u64>) -> Page {
        of(places.map(|number| Place { shard: 0, number }))
    }

    fn of(places: impl IntoIterator<Item = Place>) -> Page {
        let fed = |place: Place| {
            let entry = Entry::new(place.number, 1, Timestamp::from_micros(0), Event::RunInterrupted);
            let entity = (&RunId::new("a").unwrap()).into();
            Arc::new(Fed { place, entity, tenant: None, plan: None, rolled_back: false, entry })
        };
        let items: Vec<_> = places.into_iter().map(fed).collect();
        Page { upto: items.iter().map(|fed| fed.place).collect(), items, more: false }
    }

    fn at(number: u64) -> Position {
        Position::from_iter([Place { shard: 0, number }])
    }

    fn places(kept: &Kept, after: u64) -> Option<Vec<u64>> {
        kept.page(&at(after)).map(|page| page.items.iter().map(|fed| fed.place.number).collect())
    }

    #[test]
    fn what_was_read_is_there_for_others() {
        let mut kept = Kept::default();
        kept.add(&at(4), &page(5..=7));
        kept.add(&at(7), &page(8..=9));
        assert_eq!(places(&kept, 4), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(places(&kept, 8), Some(vec![9]));
        assert_eq!(places(&kept, 3), None, "that was not read");
        assert_eq!(places(&kept, 9), None, "there may be more in the store");
    }

    #[test]
    fn what_does_not_follow_on_takes_the_place_of_what_was_there() {
        let mut kept = Kept::default();
        kept.add(&at(4), &page(5..=7));
        kept.add(&at(20), &page(21..=22));
        assert_eq!((places(&kept, 4), places(&kept, 20)), (None, Some(vec![21, 22])));
        kept.add(&at(4), &page(5..=7));
        assert_eq!(places(&kept, 20), Some(vec![21, 22]), "who is behind does not take away what others need");
    }

    #[test]
    fn only_so_much_is_kept() {
        let mut kept = Kept::default();
        let many = KEPT as u64 + 10;
        kept.add(&at(0), &page(1..=many));
        assert_eq!((kept.items.len(), places(&kept, 9)), (KEPT, None));
        assert_eq!(places(&kept, 10).map(|places| places.len()), Some(PAGE));
    }

    /// Readers that have read for themselves may have come further in one shard than in another.
    #[test]
    fn what_is_missing_of_any_shard_is_given() {
        let place = |shard, number| Place { shard, number };
        let (a, b) = (|number| place(0, number), |number| place(1, number));
        let mut kept = Kept::default();
        kept.add(&Position::default(), &of([a(1), b(1), a(2), b(2), a(3)]));
        let missing = |after: &[Place]| {
            let page = kept.page(&after.iter().copied().collect()).unwrap();
            assert_eq!(page.upto, Position::from_iter([a(3), b(2)]));
            page.items.iter().map(|fed| fed.place).collect::<Vec<_>>()
        };
        assert_eq!(missing(&[]), [a(1), b(1), a(2), b(2), a(3)]);
        assert_eq!(missing(&[a(3)]), [b(1), b(2)]);
        assert_eq!(missing(&[a(1), b(2)]), [a(2), a(3)]);
        assert!(kept.page(&Position::from_iter([a(3), b(2)])).is_none());
    }
}
