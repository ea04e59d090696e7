//! Golden journals of format 1: what engines have recorded is followed by the code that made it, for ever.
//!
//! The files are in the kernel's `tests/golden`, where `README.md` says how to add one. The code of a story must go on fitting them; it may be changed only as users may
//! change theirs.
//!
//! Subject: `crates/runtime/src/host/replay.rs`.

#[path = "../../../../kernel/tests/it/golden/text.rs"]
mod text;

mod code;
mod families;
mod lives;
mod operators;
mod plain;

use futures_util::future::LocalBoxFuture;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, Entry, SECOND, Status, Store, Timestamp, VirtualClock};
use steadfast_kernel::{Entity, EntityId, RunId, machine};
use steadfast_store::{Append, Batch, Fence, LetterChange, RunFilter, RunRow, TimerChange};
use text::Journal;

/// Something that has happened to an engine.
struct Story {
    /// The name of its file.
    name: &'static str,
    /// How it came about.
    make: fn(Memory) -> LocalBoxFuture<'static, ()>,
    /// How it goes on.
    go_on: fn(Engine) -> LocalBoxFuture<'static, ()>,
}

/// A story that is over.
fn the_end(_engine: Engine) -> LocalBoxFuture<'static, ()> {
    Box::pin(async {})
}

fn stories() -> Vec<Story> {
    [plain::stories(), operators::stories(), families::stories(), lives::stories()]
        .into_iter()
        .flatten()
        .collect()
}

async fn start(store: &Memory, at: Timestamp) -> Engine {
    code::register(Engine::on(store.clone()).clock(VirtualClock::start_at(at))).start().await.unwrap()
}

/// An engine for the beginning of a story.
async fn begin(store: &Memory) -> Engine {
    start(store, Timestamp::from_micros(1_767_225_600_000_000)).await
}

/// Everything in the store, once nothing is on its way any more.
async fn journals(store: &Memory) -> Vec<Journal> {
    while !store.outbox(0, None, 1).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rows = store.runs(&RunFilter::default(), None, 100).await.unwrap();
    let mut entities: Vec<EntityId> = rows.iter().rev().map(|row| (&row.run).into()).collect();
    entities.extend(code::OTHERS.map(|id| EntityId::from_stored(id).unwrap()));
    let mut journals = Vec::new();
    for entity in entities {
        let records = store.journal(&entity, 0, 1000).await.unwrap();
        if !records.is_empty() {
            journals.push((entity, records));
        }
    }
    journals
}

/// A store in which that has happened, and when it happened last.
async fn stored(journals: Vec<Journal>) -> (Memory, Timestamp) {
    let store = Memory::new();
    let term = store.claim(0).await.unwrap().term;
    let mut batch = Batch { fences: vec![Fence { shard: 0, term, after: 0, upto: 1 }], ..Batch::default() };
    let mut last = Timestamp::EPOCH;
    for (id, records) in journals {
        let mut state: Option<Entity> = None;
        for record in records {
            let entry = Entry::try_from(&record).unwrap();
            last = last.max(entry.at);
            batch.letters.extend(LetterChange::of(0, &id, &entry));
            state = Some(machine::advance(&id, state, &entry).unwrap().0);
            batch.events.push(Append { shard: 0, entity: id.clone(), record });
        }
        if let Some(run) = state.as_ref().and_then(Entity::run) {
            batch.runs.push(RunRow::of(0, run));
            batch.timers.extend(run.timers().into_iter().map(|timer| TimerChange::Arm { shard: 0, timer }));
        }
    }
    store.commit(batch).await.unwrap();
    (store, last)
}

/// Writes the stories that have no file yet; otherwise there is nothing to do, because old files are never made again.
#[tokio::test(start_paused = true)]
async fn stories_without_a_file_are_added_when_somebody_wants_that() {
    let there = text::names();
    for story in stories().iter().filter(|story| !there.iter().any(|name| name == story.name)) {
        assert!(text::is_adding(), "{} has no file; README.md in the kernel's tests/golden says how to add it", story.name);
        let store = Memory::new();
        (story.make)(store.clone()).await;
        text::add(story.name, &journals(&store.reopen()).await);
    }
}

#[test]
fn every_golden_journal_has_a_story_or_was_made_by_hand() {
    let told: Vec<_> = stories().iter().map(|story| story.name).collect();
    let untold = text::names().into_iter().filter(|name| !told.contains(&name.as_str()));
    let lost: Vec<_> = untold.filter(|name| !name.starts_with("by-hand")).collect();
    assert!(lost.is_empty(), "{lost:?} have no story");
}

#[tokio::test(start_paused = true)]
async fn the_code_that_made_them_follows_them_without_a_mismatch() {
    for story in stories() {
        let (store, last) = stored(text::load(story.name)).await;
        let engine = start(&store, last).await;
        for run in runs(&store).await {
            let length = store.journal(&(&run).into(), 0, 1000).await.unwrap().len();
            let replayed = engine.replay(run.as_str()).await.unwrap();
            assert_eq!((replayed.mismatch, replayed.events), (None, length), "{run} of {}", story.name);
        }
        engine.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_stays_as_it_was_and_the_rest_goes_on() {
    for story in stories() {
        let journals = text::load(story.name);
        let (store, last) = stored(journals.clone()).await;
        let engine = start(&store, last.saturating_add(SECOND)).await;
        (story.go_on)(engine.clone()).await;
        for (id, records) in journals {
            let now = store.journal(&id, 0, 1000).await.unwrap();
            let has_ended = records.last().is_some_and(|last| Entry::try_from(last).unwrap().event.is_end());
            assert!(!has_ended || now.len() == records.len(), "{id} of {} had ended", story.name);
            assert_eq!(now[..records.len()], records, "{id} of {} is only added to", story.name);
        }
        for run in runs(&store).await {
            let view = engine.run(run.as_str()).unwrap().view().await.unwrap();
            assert!(view.status.is_final(), "{run} of {} is {:?}", story.name, view.status);
            assert_eq!(engine.replay(run.as_str()).await.unwrap().mismatch, None, "{run} of {}", story.name);
        }
        engine.shutdown().await;
    }
}

async fn runs(store: &Memory) -> Vec<RunId> {
    let rows = store.runs(&RunFilter::default(), None, 100).await.unwrap();
    rows.into_iter().map(|row| row.run).collect()
}

/// Waits until a run is where the story has it.
async fn comes_to(engine: &Engine, run: &str, status: Status) {
    let run = engine.run(run).unwrap();
    crate::support::until(&format!("{} is {status:?}", run.id()), async || run.view().await.is_ok_and(|view| view.status == status)).await;
}
