//! Checks pending expiry callbacks: put, removed, counted, and listed longest-waiting first.

use super::Harness;
use super::fixture::{Writer, all_callbacks, callback, callbacks, event, events, key, key_row, keys, put_callback, put_key, time};
use std::slice;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, Revision, Timestamp};
use steadfast_store::CallbackChange::Remove;
use steadfast_store::{CallbackCursor, CallbackFilter, CallbackRow, ShardId, Store};

/// An end with everything: an attempt has failed and another one is to come.
fn full() -> CallbackRow {
    let mut failure = Failure::new(Code::Unavailable, "the hook\u{2019}s server is away\n");
    failure.class = Class::Transient;
    failure.causes = vec!["line 1".into(), String::new(), "\u{1f980}".into()];
    failure.retry_after = Some(Duration::from_micros(1_500_001));
    (failure.attempts, failure.max_attempts) = (7, Some(u32::MAX));
    CallbackRow {
        shard: 5,
        target: "https://example.com/\u{e4}".into(),
        attempt: u32::MAX,
        next_at: Some(Timestamp::MAX),
        of: Some(u32::MAX),
        failure: Some(failure),
        ended_at: Timestamp::MAX,
        ..callback("team/Session:17.a_b-c", 1 << 40, 0)
    }
}

async fn list(store: &impl Store, filter: &CallbackFilter) -> Vec<CallbackRow> {
    store.callbacks(filter, None, usize::MAX).await.unwrap()
}

/// All fields of an end.
pub async fn a_callback_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let first = CallbackRow { target: String::new(), ..callback("a", 1, 0) };
    Writer::claim(&store, 0).await.write(callbacks([put_callback(&full()), put_callback(&first)])).await;
    assert_eq!(all_callbacks(&store).await, [first, full()]);
}

/// An end put again is the new one, in every field, and has left its place in the list.
pub async fn a_callback_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let first = callback(full().key.as_str(), full().revision, 5);
    for row in [first.clone(), full(), CallbackRow { ended_at: time(9), ..first }] {
        writer.write(callbacks([put_callback(&row)])).await;
        assert_eq!(all_callbacks(&store).await, slice::from_ref(&row));
        assert_eq!(store.callbacks_count(&[row.shard]).await.unwrap(), 1);
    }
}

/// Ends in the order that is due: by time, then by name, then by revision as a number.
fn in_order() -> Vec<CallbackRow> {
    let places: [(&str, Revision, i64); 10] = [
        ("z", 1, 0),
        ("B", 1, 5),
        ("a", 2, 5),
        ("a", 10, 5),
        ("a", 1 << 40, 5),
        ("a-1", 1, 5),
        ("a/b", 1, 5),
        ("a:b", 1, 5),
        ("b", 3, 5),
        ("a", 1, 1_000_000),
    ];
    places.into_iter().map(|(name, revision, ended_at)| callback(name, revision, ended_at)).collect()
}

/// Puts the ends in an order that is not theirs.
async fn put_shuffled(store: &impl Store) {
    let (odd, even): (Vec<_>, Vec<_>) = in_order().into_iter().rev().enumerate().partition(|(place, _)| place % 2 == 1);
    let mut writer = Writer::claim(store, 0).await;
    writer.write(callbacks(odd.iter().map(|(_, row)| put_callback(row)))).await;
    writer.write(callbacks(even.iter().map(|(_, row)| put_callback(row)))).await;
}

/// The order of the list is that of [`CallbackCursor`].
pub async fn those_that_have_waited_for_longest_come_first(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    let found = all_callbacks(&store).await;
    assert_eq!(found, in_order());
    assert!(found.is_sorted_by_key(CallbackCursor::from));
}

/// Whatever the size of a page, the pages together are the list, though many ended at the same time.
pub async fn pages_of_callbacks_meet(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    for (prefix, limit) in ["", "a"].into_iter().flat_map(|prefix| (1..=in_order().len()).map(move |limit| (prefix, limit))) {
        let filter = CallbackFilter { prefix: prefix.into(), ..CallbackFilter::default() };
        let expected: Vec<_> = in_order().into_iter().filter(|row| filter.lets_through(row)).collect();
        let mut found: Vec<CallbackRow> = vec![];
        loop {
            let page = store.callbacks(&filter, found.last().map(CallbackCursor::from).as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            found.extend(page.iter().cloned());
            assert!(found.len() <= expected.len(), "pages repeat");
            if page.is_empty() {
                break;
            }
        }
        assert_eq!(found, expected, "pages of {limit} of {prefix:?}");
    }
    assert_eq!(store.callbacks(&CallbackFilter::default(), None, 0).await.unwrap(), []);
}

/// Whatever is asked for alone and together, what the filter lets through is there.
pub async fn filters_of_callbacks_apply_alone_and_together(harness: &impl Harness) {
    let store = harness.open().await;
    let names = ["a", "a/b", "a:b", "B", "b"];
    let row = |(number, name): (Revision, &str)| {
        let failed = CallbackRow { attempt: 2, next_at: Some(time(9)), of: Some(3), failure: full().failure, ..callback(name, number, 5) };
        let shard = ShardId::from(number % 4 > 1);
        CallbackRow { shard, ..if number % 2 == 0 { callback(name, number, 5) } else { failed } }
    };
    let rows: Vec<_> = (0..20).map(|number| (number, names[number as usize % 5])).map(row).collect();
    Writer::claim(&store, 0).await.write(callbacks(rows.iter().map(put_callback))).await;
    for shard in [None, Some(0), Some(1), Some(2)] {
        for prefix in ["", "a", "a/", "a:", "A", "B", "c", "%", "\u{e4}"] {
            for first in [false, true] {
                let filter = CallbackFilter { shard, prefix: prefix.into(), first };
                let mut expected: Vec<_> = rows.iter().filter(|row| filter.lets_through(row)).cloned().collect();
                expected.sort_by_key(|row| CallbackCursor::from(row));
                assert_eq!(list(&store, &filter).await, expected, "{filter:?}");
            }
        }
    }
}

/// Those of one shard are counted, whatever becomes of them next.
pub async fn callbacks_are_counted_by_shard(harness: &impl Harness) {
    let store = harness.open().await;
    assert_eq!(store.callbacks_count(&[0]).await.unwrap(), 0);
    let other = CallbackRow { shard: 1, ..callback("c", 1, 5) };
    let rows = [callback("a", 1, 5), CallbackRow { next_at: Some(time(9)), ..callback("a", 2, 5) }, callback("b", 1, 5), other];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(callbacks(rows.iter().map(put_callback))).await;
    for (shard, count) in [(0, 3), (1, 1), (2, 0)] {
        assert_eq!(store.callbacks_count(&[shard]).await.unwrap(), count, "{shard}");
    }
    writer.write(callbacks([Remove(key("a"), 2), put_callback(&rows[2])])).await;
    assert_eq!(store.callbacks_count(&[0]).await.unwrap(), 2);
}

/// Another revision of a key is another end. Whoever removes need not know whether it is there, and a page may begin after one that is gone.
pub async fn a_callback_that_is_removed_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let rows = [1, 2, 3].map(|revision| callback("a", revision, 5));
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(callbacks(rows.iter().map(put_callback))).await;
    writer.write(callbacks([Remove(key("a"), 2), Remove(key("a"), 4), Remove(key("b"), 1)])).await;
    let [first, gone, last] = rows;
    assert_eq!(all_callbacks(&store).await, [first, last.clone()]);
    let after = CallbackCursor::from(&gone);
    assert_eq!(store.callbacks(&CallbackFilter::default(), Some(&after), 9).await.unwrap(), [last]);
}

/// An end outlives its key, and a key its ends.
pub async fn callbacks_and_keys_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let mut both = keys([put_key(&key_row("a")), put_key(&key_row("b"))]);
    both.merge(callbacks([put_callback(&callback("a", 3, 5)), put_callback(&callback("b", 3, 5))]));
    writer.write(both).await;
    let mut gone = keys([steadfast_store::KeyChange::Remove(key("a"))]);
    gone.merge(callbacks([Remove(key("b"), 3)]));
    writer.write(gone).await;
    assert_eq!(all_callbacks(&store).await, [callback("a", 3, 5)]);
    assert_eq!(store.keys(&[key("a"), key("b")]).await.unwrap(), [key_row("b")]);
}

/// Put then removed is gone, removed then put is there.
pub async fn callbacks_of_one_batch_change_in_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (callback("a", 1, 5), callback("b", 1, 5));
    let changes = [put_callback(&first), Remove(first.key, 1), Remove(second.key.clone(), 1), put_callback(&second)];
    Writer::claim(&store, 0).await.write(callbacks(changes)).await;
    assert_eq!(all_callbacks(&store).await, [second]);
}

/// A batch that fails neither puts nor removes.
pub async fn callbacks_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.write(callbacks([put_callback(&callback("a", 1, 5))])).await;
    let mut failing = callbacks([Remove(key("a"), 1), put_callback(&callback("b", 1, 5))]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(all_callbacks(&store).await, [callback("a", 1, 5)]);
}
