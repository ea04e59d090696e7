//! Reads every row of a store, and records which cases the reads covered.

use super::Seen;
use super::chance::{ENTITIES, HOMES, IDS, SHARDS};
use super::keys::PREFIXES;
use super::plans::{self, Plans};
use steadfast_kernel::{
    Class, EntityId, Envelope, KeyName, LetterHome, LetterId, PlanId, Record, RunId, Snapshot, Status, Timer, Timestamp,
};
use steadfast_store::{
    Backlog, CallbackCursor, CallbackFilter, CallbackRow, Definition, EndedCursor, EndedFilter, Fed, Head, KeyRow, LetterCursor,
    LetterFilter, LetterKind, LetterRow, Position, RunCursor, RunFilter, RunPage, RunRow, Store, TimerKey,
};

/// What is asked for beside everything that there is.
pub(super) struct Asked {
    pub(super) runs: [RunFilter; 4],
    /// What is searched for, and among how many at most.
    pub(super) search: (String, usize),
    pub(super) names: Vec<KeyName>,
    pub(super) callbacks: [CallbackFilter; 2],
    pub(super) plans: plans::Asked,
    /// How many there are in a page.
    pub(super) page: usize,
}

/// An entry of the feed without its place.
type Told = (EntityId, Option<String>, Option<PlanId>, Record);

/// What a store answers. Lists are read in two pages.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    commits: u64,
    heads: Vec<Head>,
    journals: Vec<Vec<Record>>,
    snapshots: Vec<Option<Snapshot>>,
    runs: Vec<Option<RunRow>>,
    lists: Vec<[Vec<RunRow>; 2]>,
    searches: Vec<[RunPage; 2]>,
    oldest: Vec<[Vec<RunRow>; 2]>,
    ended: Vec<[Vec<RunRow>; 2]>,
    half_swept: Vec<Vec<EntityId>>,
    to_recover: Vec<[Vec<RunRow>; 2]>,
    timers: Vec<[Vec<Timer>; 2]>,
    outbox: Vec<[Vec<Envelope>; 2]>,
    letters: ([Vec<LetterRow>; 4], u64),
    letter: Vec<Option<LetterRow>>,
    keys: Vec<KeyRow>,
    keys_below: Vec<[Vec<KeyRow>; 2]>,
    callbacks: Vec<[Vec<CallbackRow>; 2]>,
    callbacks_count: Vec<u64>,
    backlogs: Vec<Backlog>,
    plans: Plans,
    feed: Vec<Told>,
    /// How many entries were ever written.
    last: u64,
    definitions: Vec<Definition>,
}

impl Contents {
    pub(super) async fn of(
        store: &impl Store,
        Asked { runs, search: (text, examined_max), names, callbacks, plans, page }: &Asked,
    ) -> Self {
        let page = *page;
        let mut all = Contents {
            commits: store.commits(),
            heads: heads(store).await,
            journals: vec![],
            snapshots: vec![],
            runs: vec![],
            lists: vec![],
            searches: vec![],
            oldest: vec![],
            ended: vec![],
            half_swept: vec![],
            to_recover: vec![],
            timers: vec![],
            outbox: vec![],
            letters: letters(store, page).await,
            letter: vec![],
            keys: store.keys(names).await.unwrap(),
            keys_below: vec![],
            callbacks: vec![],
            callbacks_count: vec![store.callbacks_count(&(0..SHARDS).collect::<Vec<_>>()).await.unwrap()],
            backlogs: store.backlogs(&(0..SHARDS).rev().collect::<Vec<_>>()).await.unwrap(),
            plans: Plans::of(store, plans, page).await,
            feed: feed(store, page).await,
            last: store.last().await.unwrap().places().iter().map(|place| place.number).sum(),
            definitions: store.definitions().await.unwrap(),
        };
        for id in ENTITIES {
            let entity = EntityId::from_stored(id).unwrap();
            all.journals.push(store.journal(&entity, page as u64, page * 8).await.unwrap());
            all.snapshots.push(store.snapshot(&entity).await.unwrap());
        }
        for id in IDS {
            all.runs.push(store.run(&RunId::new(id).unwrap()).await.unwrap());
        }
        for filter in runs {
            all.lists.push(list(store, filter, page).await);
            all.searches.push(search(store, filter, text, page, *examined_max).await);
        }
        for shard in 0..SHARDS {
            all.oldest.push(oldest(store, shard, page).await);
            for status in Status::ALL {
                all.ended.push(ended(store, shard, status, page).await);
            }
            all.half_swept.push(store.half_swept(shard).await.unwrap());
            all.to_recover.push(to_recover(store, shard, page).await);
            all.timers.push(timers(store, shard, page).await);
            all.outbox.push(outbox(store, shard, page).await);
            all.callbacks_count.push(store.callbacks_count(&[shard]).await.unwrap());
        }
        for prefix in PREFIXES {
            all.keys_below.push(keys_below(store, prefix, page).await);
        }
        for filter in callbacks {
            all.callbacks.push(ends(store, filter, page).await);
        }
        for home in HOMES {
            let letter = LetterId { home: LetterHome::parse(home).unwrap(), seq: page as u64 };
            all.letter.push(store.letter(&letter).await.unwrap());
        }
        all
    }

    /// Notes what there was: answers and none, second pages and none.
    pub(super) fn note(&self, seen: &mut Seen) {
        let Contents { commits, heads, journals, snapshots, runs, lists, searches, oldest, ended, half_swept, to_recover, timers, .. } =
            self;
        let Contents { outbox, letters, letter, keys, keys_below, callbacks, callbacks_count, backlogs, feed, last, definitions, .. } =
            self;
        self.plans.note(seen);
        seen.either("keys", !keys.is_empty());
        keys_below.iter().for_each(|pages| seen.pages("keys_below", pages));
        callbacks.iter().for_each(|pages| seen.pages("callbacks", pages));
        callbacks_count.iter().for_each(|count| seen.either("callbacks_count", *count > 0));
        backlogs
            .iter()
            .for_each(|backlog| seen.either("backlogs", backlog.first_due.is_some() && backlog.messages > 0));
        seen.either("feed", !feed.is_empty());
        seen.either("last", *last > 0);
        seen.either("definitions", !definitions.is_empty());
        seen.either("commits", *commits > 0);
        heads.iter().for_each(|head| seen.either("head", head.term > 0));
        journals.iter().for_each(|journal| seen.either("journal", !journal.is_empty()));
        snapshots.iter().for_each(|snapshot| seen.either("snapshot", snapshot.is_some()));
        runs.iter().for_each(|run| seen.either("run", run.is_some()));
        letter.iter().for_each(|letter| seen.either("letter", letter.is_some()));
        lists.iter().for_each(|pages| seen.pages("runs", pages));
        searches
            .iter()
            .for_each(|[page, more]| seen.pages("search", &[page.rows.clone(), more.rows.clone()]));
        oldest.iter().for_each(|pages| seen.pages("oldest", pages));
        ended.iter().for_each(|pages| seen.pages("ended", pages));
        half_swept.iter().for_each(|runs| seen.either("half_swept", !runs.is_empty()));
        to_recover.iter().for_each(|pages| seen.pages("to_recover", pages));
        timers.iter().for_each(|pages| seen.pages("timers", pages));
        outbox.iter().for_each(|pages| seen.pages("outbox", pages));
        let ([newest, older, oldest, later], count) = letters;
        seen.pages("letters", &[newest.clone(), older.clone()]);
        seen.pages("oldest_letters", &[oldest.clone(), later.clone()]);
        seen.either("letters_count", *count > 0);
    }
}

pub(super) async fn heads(store: &impl Store) -> Vec<Head> {
    let mut heads = vec![];
    for shard in 0..SHARDS {
        heads.push(store.head(shard).await.unwrap());
    }
    heads
}

async fn list(store: &impl Store, filter: &RunFilter, page: usize) -> [Vec<RunRow>; 2] {
    let rows = store.runs(filter, None, page).await.unwrap();
    let more = store.runs(filter, rows.last().map(RunCursor::from).as_ref(), page).await.unwrap();
    [rows, more]
}

async fn search(store: &impl Store, filter: &RunFilter, text: &str, page: usize, examined_max: usize) -> [RunPage; 2] {
    let found = store.search(filter, text, None, page, examined_max).await.unwrap();
    let more = store.search(filter, text, found.next.as_ref(), page, examined_max).await.unwrap();
    [found, more]
}

async fn oldest(store: &impl Store, shard: u32, page: usize) -> [Vec<RunRow>; 2] {
    let rows = store.oldest(shard, None, page).await.unwrap();
    let more = store.oldest(shard, rows.last().map(RunCursor::from).as_ref(), page).await.unwrap();
    [rows, more]
}

async fn ended(store: &impl Store, shard: u32, status: Status, page: usize) -> [Vec<RunRow>; 2] {
    let filter = EndedFilter { shard, status, tasks: page.is_multiple_of(2), until: Timestamp::MAX };
    let rows = store.ended(&filter, None, page).await.unwrap();
    let more = store.ended(&filter, rows.last().and_then(EndedCursor::of).as_ref(), page).await.unwrap();
    [rows, more]
}

async fn to_recover(store: &impl Store, shard: u32, page: usize) -> [Vec<RunRow>; 2] {
    let rows = store.to_recover(shard, None, page).await.unwrap();
    let more = store.to_recover(shard, rows.last().map(RunCursor::from).as_ref(), page).await.unwrap();
    [rows, more]
}

async fn timers(store: &impl Store, shard: u32, page: usize) -> [Vec<Timer>; 2] {
    let timers = store.timers(shard, None, page).await.unwrap();
    let more = store.timers(shard, timers.last().map(TimerKey::from).as_ref(), page).await.unwrap();
    [timers, more]
}

async fn outbox(store: &impl Store, shard: u32, page: usize) -> [Vec<Envelope>; 2] {
    let messages = store.outbox(shard, None, page).await.unwrap();
    let last = messages.last().map(|message| (message.from.clone(), message.seq));
    let more = store.outbox(shard, last.as_ref(), page).await.unwrap();
    [messages, more]
}

async fn keys_below(store: &impl Store, prefix: &str, page: usize) -> [Vec<KeyRow>; 2] {
    let rows = store.keys_below(prefix, None, page).await.unwrap();
    let more = store.keys_below(prefix, rows.last().map(|row| &row.key), page).await.unwrap();
    [rows, more]
}

async fn ends(store: &impl Store, filter: &CallbackFilter, page: usize) -> [Vec<CallbackRow>; 2] {
    let rows = store.callbacks(filter, None, page).await.unwrap();
    let more = store.callbacks(filter, rows.last().map(CallbackCursor::from).as_ref(), page).await.unwrap();
    [rows, more]
}

/// The feed, read in pages and sorted: stores need not agree on the order of what is not of one entity and shard.
async fn feed(store: &impl Store, page: usize) -> Vec<Told> {
    let (mut all, mut after) = (Vec::<Told>::new(), Position::default());
    loop {
        let fed = store.feed(&after, None, page * 4).await.unwrap();
        if fed.is_empty() {
            all.sort_by(|a, b| (&a.0, a.3.seq).cmp(&(&b.0, b.3.seq)));
            return all;
        }
        for Fed { place, entity, tenant, plan, record } in fed {
            assert!(!after.covers(place), "{entity}/{} was fed twice", record.seq);
            after.advance(place);
            all.push((entity, tenant, plan, record));
        }
    }
}

async fn letters(store: &impl Store, page: usize) -> ([Vec<LetterRow>; 4], u64) {
    let all = LetterFilter::default();
    let rows = store.letters(&all, None, page).await.unwrap();
    let more = store.letters(&all, rows.last().map(LetterCursor::from).as_ref(), page).await.unwrap();
    let some = LetterFilter { kind: Some(LetterKind::ALL[page % 3]), class: [None, Some(Class::Transient)][page % 2], ..all };
    let oldest = store.oldest_letters(&some, None, page).await.unwrap();
    let later = store.oldest_letters(&some, oldest.last().map(LetterCursor::from).as_ref(), page).await.unwrap();
    ([rows, more, oldest, later], store.letters_count(&some).await.unwrap())
}
