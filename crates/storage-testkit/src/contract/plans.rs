//! Checks rows of plans: put, replaced, and listed newest first by filter.

use super::Harness;
use super::fixture::{Writer, all_plans, event, events, plan_id, plan_row, plans, time};
use std::slice;
use steadfast_kernel::{PlanStatus, Timestamp};
use steadfast_store::{PlanCursor, PlanFilter, PlanRow, Store};

/// A plan with everything.
fn full() -> PlanRow {
    PlanRow {
        shard: 5,
        definition: "team/Switch \u{1f980}".into(),
        status: PlanStatus::Failed,
        why: Some("the line\u{2019}s down\nand \0 stays so".into()),
        started_at: Some(Timestamp::EPOCH),
        ended_at: Some(Timestamp::MAX),
        created_at: Timestamp::MAX,
        ..plan_row("team/switch.17_a-b", 0)
    }
}

async fn ids(store: &impl Store, filter: &PlanFilter) -> Vec<String> {
    let rows = store.plans(filter, None, usize::MAX).await.unwrap();
    rows.iter().map(|row| row.plan.to_string()).collect()
}

/// All fields of a plan.
pub async fn a_plan_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let empty = PlanRow { definition: String::new(), why: Some(String::new()), ..plan_row("b", 0) };
    Writer::claim(&store, 0).await.write(plans([full(), empty.clone()])).await;
    assert_eq!(store.plan(&full().plan).await.unwrap(), Some(full()));
    assert_eq!(store.plan(&plan_id("b")).await.unwrap(), Some(empty.clone()));
    assert_eq!(store.plan(&plan_id("B")).await.unwrap(), None);
    assert_eq!(all_plans(&store).await, [full(), empty]);
}

/// Whatever a plan is, its row says so, and the list of those that are so has it.
pub async fn every_status_of_a_plan_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for status in PlanStatus::ALL {
        let row = PlanRow { status, ..plan_row("a", 5) };
        writer.write(plans([row.clone()])).await;
        assert_eq!(store.plan(&row.plan).await.unwrap(), Some(row));
        for other in PlanStatus::ALL {
            let listed = ids(&store, &PlanFilter { status: Some(other), ..PlanFilter::default() }).await;
            assert_eq!(listed.len(), usize::from(other == status), "{other:?} while it is {status:?}");
        }
    }
}

/// A row put again is the new one, in every field, and has left its place in the list.
pub async fn a_plan_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let first = plan_row(full().plan.as_str(), 5);
    for row in [first.clone(), full(), PlanRow { created_at: time(9), ..first.clone() }, first] {
        writer.write(plans([row.clone()])).await;
        assert_eq!(store.plan(&row.plan).await.unwrap(), Some(row.clone()));
        assert_eq!(all_plans(&store).await, slice::from_ref(&row));
        let filter = PlanFilter { definition: Some(row.definition.clone()), ..PlanFilter::default() };
        assert_eq!(store.plans(&filter, None, 9).await.unwrap(), [row]);
    }
}

/// A merged batch may put a plan several times.
pub async fn the_last_of_several_rows_of_a_plan_stays(harness: &impl Harness) {
    let store = harness.open().await;
    let last = PlanRow { status: PlanStatus::Paused, created_at: time(4), ..plan_row("a", 5) };
    Writer::claim(&store, 0)
        .await
        .write(plans([plan_row("a", 5), plan_row("b", 5), last.clone()]))
        .await;
    assert_eq!(all_plans(&store).await, [plan_row("b", 5), last]);
}

/// By the time of their creation and then by the bytes of their ids, both backwards, over all shards.
pub async fn plans_come_newest_first(harness: &impl Harness) {
    let store = harness.open().await;
    let elsewhere = PlanRow { shard: 7, ..plan_row("c", 6) };
    let all = [("a", 5), ("B", 5), ("b", 5), ("a/1", 5), ("a-1", 5), ("z", 4), ("0", 900)].map(|(id, at)| plan_row(id, at));
    Writer::claim(&store, 0).await.write(plans(all.into_iter().chain([elsewhere]))).await;
    assert_eq!(ids(&store, &PlanFilter::default()).await, ["0", "c", "b", "a/1", "a-1", "a", "B", "z"]);
}

/// Plans with every mix of fields that filters ask for, several at a time.
fn mixed() -> Vec<PlanRow> {
    let mut all = vec![];
    for status in PlanStatus::ALL {
        for (shard, definition) in [(0, "switch"), (1, "switch"), (1, "Switch"), (2, "switch/2")] {
            let number = all.len();
            let row = plan_row(&format!("p{}", (number * 11) % 28), 100 + (number as i64 * 7) % 9);
            all.push(PlanRow { shard, definition: definition.into(), status, ..row });
        }
    }
    all
}

fn filters() -> impl Iterator<Item = PlanFilter> {
    (0..64).map(|asked: u32| PlanFilter {
        shard: (asked & 1 > 0).then_some(asked >> 3 & 1),
        status: (asked & 2 > 0).then_some(PlanStatus::ALL[asked as usize % 7]),
        definition: (asked & 4 > 0).then(|| if asked & 16 > 0 { "switch".into() } else { "Switch".into() }),
    })
}

/// What the list has to be.
fn expected(filter: &PlanFilter) -> Vec<PlanRow> {
    let mut rows: Vec<_> = mixed().into_iter().filter(|row| filter.lets_through(row)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(PlanCursor::from(row)));
    rows
}

/// Every filter with every other gives what [`PlanFilter::lets_through`] lets through.
pub async fn filters_of_plans_apply_alone_and_together(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(plans(mixed())).await;
    for filter in filters() {
        assert_eq!(store.plans(&filter, None, usize::MAX).await.unwrap(), expected(&filter), "{filter:?}");
    }
}

/// Whatever is asked for and whatever the size of a page, the pages together are the list.
pub async fn pages_of_plans_meet(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(plans(mixed())).await;
    for (filter, limit) in filters().flat_map(|filter| [1, 2, 3, 5, 28].map(|limit| (filter.clone(), limit))) {
        let mut found: Vec<PlanRow> = vec![];
        loop {
            let page = store.plans(&filter, found.last().map(PlanCursor::from).as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            found.extend(page);
            assert!(found.len() <= 28, "pages repeat");
            if is_last {
                break;
            }
        }
        assert_eq!(found, expected(&filter), "pages of {limit} of {filter:?}");
    }
    assert_eq!(store.plans(&PlanFilter::default(), None, 0).await.unwrap(), []);
}

/// The plan that a page begins after need not be there.
pub async fn a_page_of_plans_begins_after_any_place(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0)
        .await
        .write(plans([plan_row("a", 5), plan_row("c", 5), plan_row("z", 1)]))
        .await;
    for (at, id, left) in [(9, "a", 3), (5, "d", 3), (5, "b", 2), (5, "B", 1), (2, "zz", 1), (1, "a", 0), (0, "z", 0)] {
        let after = PlanCursor { created_at: time(at), plan: plan_id(id) };
        assert_eq!(store.plans(&PlanFilter::default(), Some(&after), 9).await.unwrap().len(), left, "after {id} at {at}");
    }
}

/// A batch that fails neither puts nor replaces.
pub async fn plans_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.write(plans([plan_row("a", 5)])).await;
    let mut failing = plans([PlanRow { status: PlanStatus::Completed, ..plan_row("a", 6) }, plan_row("b", 5)]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(all_plans(&store).await, [plan_row("a", 5)]);
}
