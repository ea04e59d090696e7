//! A person with `sqlite3` can read what is in the file, while the store is open.

use crate::fixture::{claimed, event, everything, key, person};
use rusqlite::types::FromSql;
use rusqlite::{Connection, Row};
use steadfast_kernel::{EntityId, Timestamp};
use steadfast_store::{Batch, EndedBelow, KeyChange, KeyRow, Store};
use tempfile::tempdir;

/// The first row of a query.
fn first<T>(connection: &Connection, sql: &str, read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>) -> T {
    connection.query_row(sql, [], read).unwrap()
}

fn value<T: FromSql>(connection: &Connection, sql: &str) -> T {
    first(connection, sql, |row| row.get(0))
}

/// All columns of the first row, as text.
fn line(connection: &Connection, sql: &str, columns: usize) -> Vec<String> {
    let text = |row: &Row<'_>, column| row.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
    first(connection, sql, |row| (0..columns).map(|column| text(row, column)).collect())
}

#[tokio::test]
async fn the_columns_of_an_event_say_what_happened() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    store.commit(everything(1)).await.unwrap();
    let person = person(dir.path());
    let texts = line(&person, "SELECT entity, type, subject, reason, encoding, payload FROM events", 6);
    assert_eq!(texts, ["order-17", "RETRY_SCHEDULED", "charge#1", "the card service is away", "json", "{\"amount\":12}"]);
    assert_eq!(value::<String>(&person, "SELECT concat_ws(' ', seq, epoch, attempt, backoff_ms) FROM events"), "1 1 2 1200");
}

#[tokio::test]
async fn json_can_be_queried_and_other_bytes_are_blobs() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let payloads: [&[u8]; 4] = [b"{\"amount\":12}", b"12", b"\"\0\"", b"\xff"];
    for (seq, payload) in (1..).zip(payloads) {
        store.commit(event(seq, payload)).await.unwrap();
    }
    let person = person(dir.path());
    assert_eq!(value::<i64>(&person, "SELECT payload ->> 'amount' FROM events WHERE seq = 1"), 12);
    assert_eq!(value::<String>(&person, "SELECT group_concat(typeof(payload)) FROM events"), "text,text,blob,blob");
}

#[tokio::test]
async fn what_is_not_an_event_is_a_plain_row() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    store.commit(everything(1)).await.unwrap();
    let person = person(dir.path());
    let columns = "SELECT run, workflow, tenant, status, wait, text FROM runs WHERE plan IS NULL";
    assert_eq!(line(&person, columns, 6), ["order-17", "bill", "acme", "WAITING", "BACKOFF", "charging"]);
    assert_eq!(line(&person, "SELECT run, name FROM timers", 2), ["order-17", "retry:charge#1"]);
    assert_eq!(line(&person, "SELECT from_entity, to_entity, kind FROM outbox", 3), ["order-17", "limit:key/card", "REQUEST_SLOT"]);
    assert_eq!(line(&person, "SELECT run, class, code FROM letters", 3), ["order-16", "poison", "DECODE_FAILURE"]);
    assert_eq!(line(&person, "SELECT key, owner, payload FROM keys", 3), ["session/17", "web-1", "{\"user\":\"ada\"}"]);
    assert_eq!(value::<String>(&person, "SELECT payload ->> 'user' FROM keys"), "ada");
    let told = ["session/16", "https://example.com/hook", "the hook is away"];
    assert_eq!(line(&person, "SELECT key, target, reason FROM callbacks", 3), told);
    let task = ["switch-17/acme", "switch-17", "PAUSED"];
    assert_eq!(line(&person, "SELECT run, plan, task_status FROM runs WHERE plan IS NOT NULL", 3), task);
    assert_eq!(
        value::<String>(
            &person,
            "SELECT concat_ws(' ', stage, completed, checkpoint, pause_requested, begun_at - started_at) FROM runs WHERE plan IS NOT NULL"
        ),
        "2 2 1 1 1000000"
    );
    assert_eq!(line(&person, "SELECT plan, definition, status, why FROM plans", 4), ["switch-17", "switch", "PAUSED", "the line is down"]);
    assert_eq!(line(&person, "SELECT tenant, plan, task FROM locks", 3), ["acme", "switch-17", "switch-17/acme"]);
    assert_eq!(value::<String>(&person, "SELECT concat_ws(' ', epoch, fence, lease_us, waiting) FROM locks"), "1 3 9000000000 1");
    assert_eq!(value::<String>(&person, "SELECT concat_ws(' ', id, term, seq) FROM shards"), "0 1 1");
}

#[tokio::test]
async fn views_show_times_that_people_read() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    store.commit(everything(1)).await.unwrap();
    let person = person(dir.path());
    assert_eq!(line(&person, "SELECT run, time, type FROM journal", 3), ["order-17", "2026-01-02T03:04:05.000678Z", "RETRY_SCHEDULED"]);
    assert_eq!(line(&person, "SELECT run, started, wait FROM open_runs", 3), ["order-17", "2026-01-02T03:04:05Z", "BACKOFF"]);
    assert_eq!(line(&person, "SELECT time, name FROM due_timers", 2), ["2026-01-02T03:04:06.200678Z", "retry:charge#1"]);
    let plan = ["switch-17", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"];
    assert_eq!(line(&person, "SELECT plan, created, started FROM open_plans", 3), plan);
    let task = ["switch-17/acme", "acme", "PAUSED", "2026-01-02T03:04:06Z"];
    assert_eq!(line(&person, "SELECT task, tenant, status, started FROM open_tasks", 4), task);
    let lock = ["acme", "switch-17/acme", "2026-01-02T03:04:05Z", "2026-01-02T05:34:05Z"];
    assert_eq!(line(&person, "SELECT tenant, task, held_since, expires FROM held_locks", 4), lock);
    let letter = ["bill.4", "2026-01-02T03:04:05Z", "read#1", "acme", "not a number"];
    assert_eq!(line(&person, "SELECT letter, added, step, tenant, message FROM dead_letters", 5), letter);
    let key = ["session/17", "web-1", "2026-01-02T03:05:05.000678Z", "{\"user\":\"ada\"}"];
    assert_eq!(line(&person, "SELECT key, owner, expires, value FROM live_keys", 4), key);
    let callback = ["session/16/11", "2026-01-02T03:04:05Z", "https://example.com/hook", "2026-01-02T03:04:06Z", "the hook is away"];
    assert_eq!(line(&person, "SELECT callback, ended, target, next, reason FROM pending_callbacks", 5), callback);
}

#[tokio::test]
async fn journals_of_runs_are_shown_apart_from_others() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    for (seq, entity) in (1..).zip(["limit:key/card", "order-17", "letters:bill", "limit", "key:session/17"]) {
        let mut batch = event(seq, "1");
        batch.events[0].entity = EntityId::from_stored(entity).unwrap();
        store.commit(batch).await.unwrap();
    }
    let person = person(dir.path());
    assert_eq!(value::<String>(&person, "SELECT group_concat(run, ' ') FROM journal"), "limit order-17");
    assert_eq!(
        value::<String>(&person, "SELECT group_concat(entity, ' ') FROM other_journals"),
        "key:session/17 letters:bill limit:key/card"
    );
}

/// A directory that has ended is kept for the sake of the keys below it, and is no key any more.
#[tokio::test]
async fn keys_that_are_gone_are_not_shown() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let below = EndedBelow { at: Timestamp::EPOCH, deleted: false };
    let gone = KeyRow { ended_at: Some(Timestamp::EPOCH), ended_below: Some(below), ..key("gone") };
    let again = KeyRow { ended_below: Some(below), ..key("again") };
    let keys = [gone, again, key("plain")].map(|row| KeyChange::Put(Box::new(row)));
    store.commit(Batch { keys: keys.into(), ..event(1, "1") }).await.unwrap();
    let shown = "SELECT group_concat(key, ' ') FROM live_keys";
    assert_eq!(value::<String>(&person(dir.path()), shown), "again plain");
}

#[tokio::test]
async fn views_that_people_add_are_kept() {
    let dir = tempdir().unwrap();
    drop(claimed(dir.path()).await);
    person(dir.path())
        .execute_batch("CREATE VIEW mine AS SELECT count(*) AS events FROM events")
        .unwrap();
    drop(claimed(dir.path()).await);
    assert_eq!(value::<i64>(&person(dir.path()), "SELECT events FROM mine"), 0);
}
