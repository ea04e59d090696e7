//! Checks rows of keys: put, removed, found by name, and listed by prefix.

use super::Harness;
use super::fixture::{Writer, all_keys, event, events, key, key_row, keys, put_key, time, workflow};
use std::slice;
use std::time::Duration;
use steadfast_kernel::{Encoding, Held, KeyName, Payload, Target, Timestamp};
use steadfast_store::KeyChange::Remove;
use steadfast_store::{EndedBelow, KeyRow, Store};

/// A key with everything, whose value is any bytes.
fn full() -> KeyRow {
    let held = Held {
        revision: 1 << 40,
        value: Payload { encoding: Encoding::Json, bytes: (0..=255).collect::<Vec<u8>>().into() },
        ttl: Duration::from_micros(1_500_001),
        expires_at: Timestamp::MAX,
        owner: Some("worker's \u{1f980}\n".into()),
        directory: true,
        on_expire: Some(Target::Url("https://example.com/hook?token=a%20b#c".into())),
        put_at: time(1),
    };
    KeyRow { shard: 5, key: key("team/Session:17.a_b-c"), held, ended_at: None, ended_below: None }
}

async fn found(store: &impl Store, names: &[&str]) -> Vec<String> {
    let names: Vec<_> = names.iter().map(|name| key(name)).collect();
    names_of(store.keys(&names).await.unwrap())
}

async fn below(store: &impl Store, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    names_of(store.keys_below(prefix, after.map(key).as_ref(), limit).await.unwrap())
}

fn names_of(rows: Vec<KeyRow>) -> Vec<String> {
    rows.into_iter().map(|row| row.key.to_string()).collect()
}

/// All fields of a key, by its name and in the list.
pub async fn a_key_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let empty = KeyRow { held: Held { value: Payload::json(""), ttl: Duration::ZERO, ..key_row("z").held }, ..key_row("z") };
    Writer::claim(&store, 0).await.write(keys([put_key(&full()), put_key(&empty)])).await;
    assert_eq!(store.keys(&[full().key]).await.unwrap(), [full()]);
    assert_eq!(store.keys(&[key("z")]).await.unwrap(), slice::from_ref(&empty));
    assert_eq!(all_keys(&store).await, [full(), empty]);
}

/// Whoever is told: nobody, an address, a run with what it is given, or a handler.
pub async fn every_target_of_a_key_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let run = |input: &'static [u8]| Target::StartRun { workflow: workflow("team/log.out"), input: Payload::json(input) };
    let targets = [None, Some(Target::Url("http://a".into())), Some(run(b"")), Some(run(b"\xff\x00")), Some(Target::Handler)];
    let row = |place: usize, target: &Option<Target>| {
        let name = format!("k{place}");
        KeyRow { held: Held { on_expire: target.clone(), ..key_row(&name).held }, ..key_row(&name) }
    };
    let rows: Vec<_> = targets.iter().enumerate().map(|(place, target)| row(place, target)).collect();
    Writer::claim(&store, 0).await.write(keys(rows.iter().map(put_key))).await;
    assert_eq!(all_keys(&store).await, rows);
}

/// A value is to the byte what was put, whether or not it can be read as what it says it is.
pub async fn values_of_keys_come_back_exactly(harness: &impl Harness) {
    let store = harness.open().await;
    let values: [&[u8]; 7] = [b"", b"null", b"12", b"{\"a\": 1}", b"\"\0\"", b"\xff\xfe", "\"sp\u{e4}t\"".as_bytes()];
    let mut writer = Writer::claim(&store, 0).await;
    for value in values {
        let row = KeyRow { held: Held { value: Payload::json(value), ..key_row("a").held }, ..key_row("a") };
        writer.write(keys([put_key(&row)])).await;
        assert_eq!(all_keys(&store).await, [row]);
    }
}

/// A key put again is the new one, in every field.
pub async fn a_key_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let plain = key_row(full().key.as_str());
    for row in [
        plain.clone(),
        full(),
        KeyRow { ended_at: Some(time(9)), ended_below: Some(EndedBelow { at: time(8), deleted: true }), ..full() },
        plain,
    ] {
        writer.write(keys([put_key(&row)])).await;
        assert_eq!(store.keys(&[full().key]).await.unwrap(), slice::from_ref(&row));
        assert_eq!(all_keys(&store).await, [row]);
    }
}

/// A directory that has ended says so, and so does one that came after it; they are rows like others until they are removed.
pub async fn a_directory_that_has_ended_is_there(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let times = [None, Some(Timestamp::EPOCH), Some(Timestamp::MAX)];
    for (ended_at, below) in times.into_iter().flat_map(|ended_at| times.map(|below| (ended_at, below))) {
        let ended_below = below.map(|at| EndedBelow { at, deleted: ended_at.is_none() });
        let row = KeyRow { ended_at, ended_below, ..full() };
        writer.write(keys([put_key(&row)])).await;
        assert_eq!(store.keys(&[full().key]).await.unwrap(), slice::from_ref(&row));
        assert_eq!(store.keys_below("team/", None, 9).await.unwrap(), [row]);
    }
}

/// Those that there are of those that are named, once each and in the order of their names.
pub async fn several_keys_are_found_at_once(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0)
        .await
        .write(keys(["b", "a", "a/b", "A"].map(|name| put_key(&key_row(name)))))
        .await;
    assert_eq!(found(&store, &["b", "a/b", "missing", "a", "b", "a/b/c"]).await, ["a", "a/b", "b"]);
    assert_eq!(found(&store, &["B", "a/c", "aa"]).await, [""; 0]);
    assert_eq!(found(&store, &[]).await, [""; 0]);
    let many: Vec<KeyName> = (0..3_000).map(|number| key(&format!("n{number}"))).chain([key("a")]).collect();
    assert_eq!(names_of(store.keys(&many).await.unwrap()), ["a"]);
}

/// Names in the order that is due, which is that of their bytes.
const IN_ORDER: [&str; 14] = ["-", ".a", "10", "9", "B", "_", "a", "a-1", "a.b", "a/b", "a/b/c", "a0", "a:b", "b"];

/// Puts keys of those names in an order that is not theirs.
async fn put_shuffled(store: &impl Store) {
    let (odd, even): (Vec<_>, Vec<_>) = IN_ORDER.iter().rev().enumerate().partition(|(place, _)| place % 2 == 1);
    let mut writer = Writer::claim(store, 0).await;
    writer.write(keys(odd.into_iter().map(|(_, name)| put_key(&key_row(name))))).await;
    writer.write(keys(even.into_iter().map(|(_, name)| put_key(&key_row(name))))).await;
}

/// A prefix is the beginning of a name, to the byte; nothing is the beginning of all.
pub async fn keys_are_listed_by_what_they_begin_with(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    let all = ["", "a", "a-", "a.", "a/", "a/b", "a/b/", "a:", "a0", "A", "b", "bb", "9", "-", "_", "%", "*", "\u{e4}", "\u{10ffff}"];
    for prefix in all {
        let expected: Vec<_> = IN_ORDER.into_iter().filter(|name| name.starts_with(prefix)).collect();
        assert_eq!(below(&store, prefix, None, 99).await, expected, "{prefix:?}");
    }
    assert!(IN_ORDER.is_sorted() && IN_ORDER.iter().map(|name| key(name)).is_sorted());
}

/// Whatever the size of a page, the pages together are the list.
pub async fn pages_of_keys_meet(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    for (prefix, limit) in ["", "a", "a/"]
        .into_iter()
        .flat_map(|prefix| (1..=IN_ORDER.len()).map(move |limit| (prefix, limit)))
    {
        let expected: Vec<_> = IN_ORDER.into_iter().filter(|name| name.starts_with(prefix)).collect();
        let mut found: Vec<String> = vec![];
        loop {
            let page = below(&store, prefix, found.last().map(String::as_str), limit).await;
            assert!(page.len() <= limit);
            found.extend(page.iter().cloned());
            assert!(found.len() <= expected.len(), "pages repeat");
            if page.is_empty() {
                break;
            }
        }
        assert_eq!(found, expected, "pages of {limit} of {prefix:?}");
    }
    assert_eq!(below(&store, "", None, 0).await, [""; 0]);
}

/// A page may begin after a name that is not there, before the first one that begins so, or after the last.
pub async fn a_page_of_keys_begins_after_any_name(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    assert_eq!(below(&store, "a/", Some("a/a"), 9).await, ["a/b", "a/b/c"]);
    assert_eq!(below(&store, "a/", Some("a/b/a"), 9).await, ["a/b/c"]);
    assert_eq!(below(&store, "a/", Some("A"), 9).await, ["a/b", "a/b/c"]);
    assert_eq!(below(&store, "a", Some("a"), 1).await, ["a-1"]);
    assert_eq!(below(&store, "a/", Some("a/b/c"), 9).await, [""; 0]);
    assert_eq!(below(&store, "a/", Some("b"), 9).await, [""; 0]);
}

/// Removed is gone, and whoever removes need not know whether it is there. What is below a key is no part of it.
pub async fn a_key_that_is_removed_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    Writer::claim(&store, 0)
        .await
        .write(keys([Remove(key("a")), Remove(key("a/b")), Remove(key("c"))]))
        .await;
    assert_eq!(found(&store, &["a", "a/b", "a/b/c"]).await, ["a/b/c"]);
    assert_eq!(below(&store, "a/", None, 9).await, ["a/b/c"]);
    assert_eq!(all_keys(&store).await.len(), IN_ORDER.len() - 2);
}

/// Put then removed is gone, removed then put is there, put twice is the last one.
pub async fn keys_of_one_batch_change_in_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (key_row("a"), key_row("b"));
    let last = KeyRow { held: Held { revision: 8, ..second.held.clone() }, ..second.clone() };
    let changes = [put_key(&first), Remove(first.key.clone()), Remove(second.key.clone()), put_key(&second), put_key(&last)];
    Writer::claim(&store, 0).await.write(keys(changes)).await;
    assert_eq!(all_keys(&store).await, [last]);
}

/// A batch that fails neither puts nor removes.
pub async fn keys_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.write(keys([put_key(&key_row("a"))])).await;
    let mut failing = keys([Remove(key("a")), put_key(&key_row("b"))]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(all_keys(&store).await, [key_row("a")]);
}
