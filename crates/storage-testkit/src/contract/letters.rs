//! Checks dead letters: put, removed, and listed newest first.

use super::Harness;
use super::fixture::{Writer, all_letters, event, events, key, letter, letter_id, letters, run, step};
use std::time::Duration;
use steadfast_kernel::{
    Class, Code, Direction, Failure, LetterAbout, LetterHome, LetterId, MessageKind, Revision, RouteName, Seq, Timestamp,
};
use steadfast_store::LetterChange::{Fail, Put, Remove};
use steadfast_store::{LetterCursor, LetterFilter, LetterKind, LetterRow, Store};

/// Lets everything through.
const ALL: LetterFilter =
    LetterFilter { home: None, key_prefix: None, kind: None, tenant: None, class: None, code: None, since: None, until: None };

/// A letter about the end of a key, which keeps it.
fn of_key(name: &str, seq: Seq, added_at: i64, revision: Revision) -> LetterRow {
    LetterRow {
        letter: LetterId { home: LetterHome::Key(key(name)), seq },
        about: LetterAbout::Expiry { key: key(name), revision },
        ..letter("bill", seq, added_at)
    }
}

/// A letter about a message of a route.
fn of_route(name: &str, seq: Seq, added_at: i64, direction: Direction, kind: MessageKind) -> LetterRow {
    let route = RouteName::new(name).unwrap();
    let (peer, request) = ("https://10.0.0.7:7373/a".into(), "r-1/ü with spaces".into());
    LetterRow {
        letter: LetterId { home: LetterHome::Route(route.clone()), seq },
        about: LetterAbout::Message { route, direction, kind, peer, request },
        ..letter("bill", seq, added_at)
    }
}

/// A letter with everything.
fn full() -> LetterRow {
    let mut failure = Failure::new(Code::InvalidArgument, "not a \u{201c}number\u{201d}\n");
    failure.class = Class::Poison;
    failure.causes = vec!["line 1".into(), String::new(), "\u{1f980}".into()];
    failure.retry_after = Some(Duration::from_micros(1_500_001));
    (failure.attempts, failure.max_attempts) = (7, Some(u32::MAX));
    LetterRow {
        shard: 5,
        about: LetterAbout::Step { run: run("order-17/2"), step: step("read").undo() },
        tenant: Some("acme's".into()),
        failure,
        added_at: Timestamp::MAX,
        ..letter("team/bill.2", 1_000_000, 0)
    }
}

/// All fields of a letter, by its id and in the list.
pub async fn a_letter_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(letters([Put(full()), Put(letter("bill", 1, 0))])).await;
    assert_eq!(store.letter(&full().letter).await.unwrap(), Some(full()));
    assert_eq!(store.letter(&letter_id("bill", 1)).await.unwrap(), Some(letter("bill", 1, 0)));
    assert_eq!(all_letters(&store).await, [full(), letter("bill", 1, 0)]);
}

/// A number of another box is another letter.
pub async fn letters_of_boxes_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0)
        .await
        .write(letters([Put(letter("bill", 1, 5)), Put(letter("ship", 2, 5))]))
        .await;
    for absent in [letter_id("bill", 2), letter_id("ship", 1), letter_id("bil", 1), letter_id("Bill", 1)] {
        assert_eq!(store.letter(&absent).await.unwrap(), None, "{absent}");
    }
}

/// A letter of a key says which key and which revision of it, and is another than that of a workflow of the same name.
pub async fn letters_of_keys_come_back(harness: &impl Harness) {
    let store = harness.open().await;
    let rows = [of_key("team/Session:17.a", 1 << 40, 9, 1 << 41), of_key("bill", 1, 5, 0), letter("bill", 1, 5)];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(letters(rows.iter().cloned().map(Put))).await;
    assert_eq!(all_letters(&store).await, rows);
    for row in &rows {
        assert_eq!(store.letter(&row.letter).await.unwrap().as_ref(), Some(row));
    }
    writer.write(letters([Remove(rows[1].letter.clone())])).await;
    assert_eq!(store.letter(&rows[1].letter).await.unwrap(), None);
    assert_eq!(store.letter(&rows[2].letter).await.unwrap().as_ref(), Some(&rows[2]));
}

/// A letter of a message says all of it, and is another than those of a key or a workflow of the same name.
pub async fn letters_of_messages_come_back(harness: &impl Harness) {
    let store = harness.open().await;
    let rows = [
        of_route("team/mail.v2", 1 << 40, 9, Direction::Sent, MessageKind::Tell),
        of_route("bill", 2, 5, Direction::Received, MessageKind::Frame),
        of_route("bill", 1, 5, Direction::Received, MessageKind::Call),
        of_key("bill", 1, 5, 0),
        letter("bill", 1, 5),
    ];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(letters(rows.iter().cloned().map(Put))).await;
    assert_eq!(all_letters(&store).await, rows);
    for row in &rows {
        assert_eq!(store.letter(&row.letter).await.unwrap().as_ref(), Some(row));
    }
    writer.write(letters([Remove(rows[2].letter.clone())])).await;
    assert_eq!(store.letter(&rows[2].letter).await.unwrap(), None);
    assert_eq!(store.letter(&rows[3].letter).await.unwrap().as_ref(), Some(&rows[3]));
}

/// A newer failure changes why a letter is there and nothing else; of one that is gone it changes nothing.
pub async fn a_newer_failure_takes_the_place_of_the_older_one(harness: &impl Harness) {
    let store = harness.open().await;
    let row = of_route("mail", 1, 5, Direction::Sent, MessageKind::Tell);
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(letters([Put(row.clone()), Put(letter("bill", 1, 5))])).await;
    let failed = Fail(row.letter.clone(), full().failure);
    writer.write(letters([failed.clone(), Fail(letter_id("ship", 1), full().failure)])).await;
    let expected = LetterRow { failure: full().failure, ..row.clone() };
    assert_eq!(all_letters(&store).await, [expected.clone(), letter("bill", 1, 5)]);
    let filter = LetterFilter { code: Some(Code::InvalidArgument), ..ALL };
    assert_eq!(store.letters(&filter, None, 9).await.unwrap(), [expected], "and it is found by it");
    writer.write(letters([Remove(row.letter.clone()), failed])).await;
    assert_eq!(store.letter(&row.letter).await.unwrap(), None);
}

/// A letter put again is the new one, in every field.
pub async fn a_letter_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for row in [letter("team/bill.2", 1_000_000, 5), full(), letter("team/bill.2", 1_000_000, 9)] {
        writer.write(letters([Put(row.clone())])).await;
        assert_eq!(store.letter(&row.letter).await.unwrap(), Some(row.clone()));
        assert_eq!(all_letters(&store).await, [row]);
    }
}

/// Letters in the order that is due: by time, then by box or key as text and number, all backwards.
fn in_order() -> Vec<LetterRow> {
    let places = [
        ("a", 1, 9),
        ("z", 1, 5),
        ("keys", 1, 5),
        ("key:b", 2, 5),
        ("key:a:b", 1, 5),
        ("key:a", 10, 5),
        ("key:a", 9, 5),
        ("key/a", 1, 5),
        ("key", 1, 5),
        ("bill/2", 1, 5),
        ("bill-2", 1, 5),
        ("bill", 10, 5),
        ("bill", 2, 5),
        ("bill", 1, 5),
        ("B", 1, 5),
        ("z", 2, 4),
    ];
    let row = |(home, seq, at): (&str, Seq, i64)| match home.strip_prefix("key:") {
        Some(key) => of_key(key, seq, at, 3),
        None => letter(home, seq, at),
    };
    places.into_iter().map(row).collect()
}

/// Puts the letters in an order that is not theirs.
async fn put_shuffled(store: &impl Store) {
    let (odd, even): (Vec<_>, Vec<_>) = in_order().into_iter().enumerate().partition(|(place, _)| place % 2 == 1);
    let mut writer = Writer::claim(store, 0).await;
    writer.write(letters(odd.into_iter().map(|(_, row)| Put(row)))).await;
    writer.write(letters(even.into_iter().map(|(_, row)| Put(row)))).await;
}

/// The order of the list is that of [`LetterCursor`], backwards.
pub async fn letters_come_newest_first(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    let found = all_letters(&store).await;
    assert_eq!(found, in_order());
    assert!(found.iter().rev().is_sorted_by_key(LetterCursor::from));
}

/// Whatever the size of a page, the pages together are the list, though many letters came at the same time.
pub async fn pages_of_letters_meet(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    for limit in 1..=in_order().len() {
        let mut found: Vec<LetterRow> = vec![];
        loop {
            let page = store.letters(&ALL, found.last().map(LetterCursor::from).as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            found.extend(page.iter().cloned());
            assert!(found.len() <= in_order().len(), "pages repeat");
            if page.is_empty() {
                break;
            }
        }
        assert_eq!(found, in_order(), "pages of {limit}");
    }
    assert_eq!(store.letters(&ALL, None, 0).await.unwrap(), []);
}

/// A page may begin after a letter that was removed meanwhile.
pub async fn what_is_removed_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(letters((1..=3).map(|seq| Put(letter("bill", seq, 5))))).await;
    writer.write(letters([Remove(letter_id("bill", 2))])).await;
    assert_eq!(store.letter(&letter_id("bill", 2)).await.unwrap(), None);
    assert_eq!(all_letters(&store).await, [letter("bill", 3, 5), letter("bill", 1, 5)]);
    let after = LetterCursor::from(&letter("bill", 2, 5));
    assert_eq!(store.letters(&ALL, Some(&after), 9).await.unwrap(), [letter("bill", 1, 5)]);
}

/// Whoever removes need not know whether it is there.
pub async fn removing_what_is_not_there_is_fine(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(letters([Put(letter("bill", 1, 5))])).await;
    writer.write(letters([Remove(letter_id("bill", 2)), Remove(letter_id("ship", 1))])).await;
    assert_eq!(all_letters(&store).await, [letter("bill", 1, 5)]);
}

/// Put then removed is gone, removed then put is there.
pub async fn letters_of_one_batch_change_in_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (letter("bill", 1, 5), letter("bill", 2, 5));
    let changes = [Put(first.clone()), Remove(first.letter), Remove(second.letter.clone()), Put(second.clone())];
    Writer::claim(&store, 0).await.write(letters(changes)).await;
    assert_eq!(all_letters(&store).await, [second]);
}

/// A batch that fails neither puts nor removes.
pub async fn letters_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.write(letters([Put(letter("bill", 1, 5))])).await;
    let mut failing = letters([Remove(letter_id("bill", 1)), Put(letter("bill", 2, 5))]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(all_letters(&store).await, [letter("bill", 1, 5)]);
}

/// Letters that differ in all that can be asked for, oldest first.
fn various() -> Vec<LetterRow> {
    let failing = |code, class| {
        let mut failure = Failure::new(code, "no");
        failure.class = class;
        failure
    };
    let mut rows = vec![
        letter("bill", 1, 1),
        LetterRow { failure: failing(Code::Unavailable, Class::Transient), ..letter("ship", 1, 2) },
        of_key("session:1/a", 1, 3, 1),
        LetterRow { failure: failing(Code::NotFound, Class::Permanent), ..of_key("session:2", 1, 3, 1) },
        of_route("mail", 1, 4, Direction::Sent, MessageKind::Tell),
        LetterRow {
            failure: failing(Code::Unavailable, Class::Transient),
            ..of_route("mail", 2, 5, Direction::Received, MessageKind::Call)
        },
        of_route("mail/in", 1, 5, Direction::Received, MessageKind::Frame),
        LetterRow { tenant: Some("acme".into()), ..letter("bill", 2, 6) },
    ];
    rows.sort_by_key(|row| LetterCursor::from(row));
    rows
}

/// One filter for each thing that can be asked for, and some that ask for several.
fn filters() -> Vec<LetterFilter> {
    let home = |home: &str| LetterFilter { home: LetterHome::parse(home), ..ALL };
    let at = |micros| Some(Timestamp::from_micros(micros));
    let mut filters = vec![ALL, home("bill"), home("key:session:2"), home("route:mail"), home("nobody")];
    filters.extend(LetterKind::ALL.map(|kind| LetterFilter { kind: Some(kind), ..ALL }));
    filters.extend(["", "session:", "session:1", "S"].map(|prefix| LetterFilter { key_prefix: Some(prefix.into()), ..ALL }));
    filters.extend([Class::Transient, Class::Permanent, Class::Poison].map(|class| LetterFilter { class: Some(class), ..ALL }));
    filters.extend([Code::Unavailable, Code::NotFound, Code::Internal].map(|code| LetterFilter { code: Some(code), ..ALL }));
    filters.extend(["acme", "Acme"].map(|tenant| LetterFilter { tenant: Some(tenant.into()), ..ALL }));
    filters.extend([0, 3, 4, 7].map(|micros| LetterFilter { since: at(micros), ..ALL }));
    filters.extend([0, 1, 5, 7].map(|micros| LetterFilter { until: at(micros), ..ALL }));
    filters.push(LetterFilter {
        kind: Some(LetterKind::Message),
        code: Some(Code::Unavailable),
        since: at(2),
        until: at(6),
        ..home("route:mail")
    });
    filters.push(LetterFilter { kind: Some(LetterKind::Step), key_prefix: Some(String::new()), ..ALL });
    filters
}

/// Whatever is asked for, in either order and in pages of any size, it is what the filter lets through; and so many are counted.
pub async fn letters_are_found_by_what_is_asked_for(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(letters(various().into_iter().rev().map(Put))).await;
    for filter in filters() {
        let expected: Vec<_> = various().into_iter().filter(|row| filter.lets_through(row)).collect();
        assert_eq!(store.letters_count(&filter).await.unwrap(), expected.len() as u64, "{filter:?}");
        for limit in [1, 2, 9] {
            let (mut newest, mut oldest): (Vec<LetterRow>, Vec<LetterRow>) = (vec![], vec![]);
            for _page in 0..=various().len() {
                newest.extend(store.letters(&filter, newest.last().map(LetterCursor::from).as_ref(), limit).await.unwrap());
                oldest.extend(store.oldest_letters(&filter, oldest.last().map(LetterCursor::from).as_ref(), limit).await.unwrap());
            }
            assert_eq!(oldest, expected, "{filter:?}");
            newest.reverse();
            assert_eq!(newest, expected, "{filter:?}");
        }
    }
}
