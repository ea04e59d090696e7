//! Checks the feed: entries in write order from any position, for all entities or one.

use super::Harness;
use super::fixture::{Writer, ended, entity, event, events, row, rows, time};
use steadfast_kernel::{EntityId, PlanId, Seq, Status, TaskStatus};
use steadfast_store::{Batch, Fed, Position, RunRow, Store, Sweep, Swept, TaskRow};

/// Everything after a place, as text.
async fn fed(store: &impl Store, after: &Position, entity: Option<&EntityId>) -> Vec<String> {
    let fed = store.feed(after, entity, usize::MAX).await.unwrap();
    let mut at = after.clone();
    for fed in &fed {
        assert!(!at.covers(fed.place), "places rise: {fed:?}");
        at.advance(fed.place);
    }
    fed.iter().map(|fed| format!("{}/{}", fed.entity, fed.record.seq)).collect()
}

async fn swept(store: &impl Store, term: u64, id: &str) {
    let sweep = [Sweep { entity: entity(id), ended_at: time(9) }];
    while store.sweep(0, term, &sweep).await.unwrap() == [Swept::Half] {}
}

/// The order is that of the batches and within them, whoever's journals they are; a new handle goes on after the last place.
pub async fn what_is_written_comes_in_its_order(harness: &impl Harness) {
    let store = harness.open().await;
    assert_eq!(store.last().await.unwrap(), Position::default());
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("b", 1), event("a", 1), event("b", 2)])).await;
    writer.write(events([event("a", 2)])).await;
    assert_eq!(fed(&store, &Position::default(), None).await, ["b/1", "a/1", "b/2", "a/2"]);
    let first = store.feed(&Position::default(), None, 1).await.unwrap();
    assert_eq!(first[0].record, event("b", 1).record, "all of the entry is there");
    let last = store.last().await.unwrap();
    assert_eq!(fed(&store, &last, None).await, [""; 0]);
    drop(store);
    let store = harness.open().await;
    assert_eq!(store.last().await.unwrap(), last);
    Writer::claim(&store, 0).await.write(events([event("c", 1)])).await;
    assert_eq!(fed(&store, &last, None).await, ["c/1"]);
}

/// Whatever the size of a page, the pages together are the feed.
pub async fn pages_of_the_feed_meet(harness: &impl Harness) {
    let store = harness.open().await;
    let all = (1..=7).flat_map(|seq| [event("a", seq), event("b", seq)]);
    Writer::claim(&store, 0).await.write(events(all)).await;
    for limit in 1..=15 {
        for entity in [None, Some(entity("b"))] {
            let (mut found, mut after): (Vec<Fed>, _) = (Vec::new(), Position::default());
            loop {
                let page = store.feed(&after, entity.as_ref(), limit).await.unwrap();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                page.iter().for_each(|fed| after.advance(fed.place));
                found.extend(page);
            }
            assert_eq!(found.len(), if entity.is_some() { 7 } else { 14 }, "pages of {limit}");
        }
    }
    assert_eq!(store.feed(&Position::default(), None, 0).await.unwrap(), []);
}

/// Every shard has an order of its own: whoever has come far in one misses nothing of another, and sees nothing twice.
pub async fn shards_are_fed_each_in_its_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (mut first, mut second) = (Writer::claim(&store, 0).await, Writer::claim(&store, 3).await);
    for seq in 1..=5 {
        first.write(events([event("a", seq)])).await;
        second.write(events([event("b", 2 * seq - 1), event("b", 2 * seq)])).await;
    }
    for limit in 1..=16 {
        let (mut found, mut after): (Vec<Fed>, _) = (Vec::new(), Position::default());
        loop {
            let page = store.feed(&after, None, limit).await.unwrap();
            if page.is_empty() {
                break;
            }
            for fed in page {
                assert!(!after.covers(fed.place), "pages of {limit}: {fed:?} was seen before");
                after.advance(fed.place);
                found.push(fed);
            }
        }
        assert_eq!(after, store.last().await.unwrap());
        for (id, last) in [("a", 5), ("b", 10)] {
            let seqs: Vec<_> = found.iter().filter(|fed| fed.entity == entity(id)).map(|fed| fed.record.seq).collect();
            assert_eq!(seqs, (1..=last).collect::<Vec<_>>(), "pages of {limit}");
        }
    }
}

/// Those of others are left out, and so is what has a similar name.
pub async fn one_entity_can_be_followed(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1), event("a/b", 1), event("A", 1), event("a", 2)])).await;
    let first = Position::from_iter([store.feed(&Position::default(), None, 1).await.unwrap()[0].place]);
    assert_eq!(fed(&store, &Position::default(), Some(&entity("a"))).await, ["a/1", "a/2"]);
    assert_eq!(fed(&store, &first, Some(&entity("a"))).await, ["a/2"]);
    assert_eq!(fed(&store, &Position::default(), Some(&entity("b"))).await, [""; 0]);
}

/// The tenant, and the plan of a task, stand in the row of the run.
pub async fn a_run_comes_with_its_tenant(harness: &impl Harness) {
    let store = harness.open().await;
    let acme = RunRow { tenant: Some("acme".into()), ..row("a") };
    let (plan, status) = (PlanId::new("p").unwrap(), TaskStatus::Running);
    let task = TaskRow {
        plan: plan.clone(),
        status,
        stage: Some(1),
        completed: 1,
        checkpoint: Some(0),
        pause_requested: true,
        started_at: Some(time(8)),
    };
    let task = RunRow { tenant: Some("umbrella".into()), task: Some(task), ..row("p/umbrella") };
    let events = vec![event("a", 1), event("b", 1), event("p/umbrella", 1)];
    Writer::claim(&store, 0).await.write(Batch { events, ..rows([acme, row("b"), task]) }).await;
    for entity in [None, Some(entity("p/umbrella"))] {
        let fed = store.feed(&Position::default(), entity.as_ref(), 9).await.unwrap();
        let whose: Vec<_> = fed.into_iter().map(|fed| (fed.tenant, fed.plan)).collect();
        let all = [(Some("acme".to_string()), None), (None, None), (Some("umbrella".to_string()), Some(plan.clone()))];
        assert_eq!(whose, if entity.is_some() { &all[2..] } else { &all[..] });
    }
}

/// A batch that failed left nothing, and those after it have places that nobody saw before.
pub async fn what_failed_is_not_fed(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.fail(events([event("b", 1), event("a", 1)])).await;
    let before = store.last().await.unwrap();
    writer.write(events([event("c", 1)])).await;
    assert_eq!(fed(&store, &Position::default(), None).await, ["a/1", "c/1"]);
    let last = store.last().await.unwrap();
    assert!(last.includes(&before) && last != before);
}

/// Whoever has seen the last entry of a run that is then removed sees what comes after it, also from a new handle.
pub async fn a_place_is_not_given_again(harness: &impl Harness) {
    let mut store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let mut seen = Position::default();
    for round in 1..=3 {
        let batch = Batch { events: (1..=3).map(|seq| event("a", seq)).collect(), ..rows([ended("a", Status::Completed)]) };
        writer.write(batch).await;
        let new = store.feed(&seen, None, 99).await.unwrap();
        assert_eq!(new.len(), 3, "round {round}");
        new.iter().for_each(|fed| seen.advance(fed.place));
        swept(&store, writer.head.term, "a").await;
        assert_eq!(store.last().await.unwrap(), seen);
        if round == 2 {
            drop(store);
            store = harness.open().await;
        }
        writer = Writer::claim(&store, 0).await;
    }
}

/// Nobody sees the rest of a journal whose beginning is gone.
pub async fn what_is_half_swept_is_not_fed(harness: &impl Harness) {
    const MANY: Seq = 2000;
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer
        .write(Batch { events: (1..=MANY).map(|seq| event("long", seq)).collect(), ..rows([ended("long", Status::Completed)]) })
        .await;
    let step = store
        .sweep(0, writer.head.term, &[Sweep { entity: entity("long"), ended_at: time(9) }])
        .await
        .unwrap();
    assert_eq!(step, [Swept::Half], "{MANY} entries in one step");
    assert_eq!(fed(&store, &Position::default(), None).await, [""; 0]);
    assert_eq!(fed(&store, &Position::default(), Some(&entity("long"))).await, [""; 0]);
}
