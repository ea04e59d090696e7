//! What a person with `psql` finds.

use crate::fixture::{Database, batch, entity, key, record, row};
use steadfast_kernel::{Payload, Record};
use steadfast_store::{Append, Batch, CallbackFilter, KeyChange, LetterFilter, RunRow, Store};

/// A run is found by its id, with what happened to it in plain columns.
#[tokio::test]
async fn a_person_finds_a_run_and_what_happened_to_it() {
    let database = Database::new();
    let store = database.open().await;
    let failed = Record {
        kind: "RETRY_SCHEDULED".into(),
        subject: Some("charge#1".into()),
        attempt: Some(2),
        backoff_ms: Some(1500),
        reason: Some("card declined".into()),
        payload: Some(Payload::json(r#"{"order": 17, "who": "Zoë"}"#)),
        ..record(2)
    };
    let events = [record(1), failed].map(|record| Append { shard: 0, entity: entity("order-17"), record });
    let state = RunRow { tenant: Some("acme".into()), wait: Some("BACKOFF".into()), ..row("order-17") };
    store
        .commit(batch(&store, Batch { events: events.into(), runs: vec![state], ..Batch::default() }).await)
        .await
        .unwrap();
    let found = database.psql(
        "SELECT sequence, event_type, attempt_number, backoff_delay_ms, failure_reason, payload->>'who', extract(year from occurred_at)
         FROM steadfast.workflow_events WHERE workflow_id = 'order-17' AND attempt_number = 2",
    );
    assert_eq!(found, "2|RETRY_SCHEDULED|2|1500|card declined|Zoë|2026");
    let state = "SELECT status, workflow, tenant, wait_reason, started_at AT TIME ZONE 'UTC' FROM steadfast.workflow_state WHERE workflow_id = 'order-17'";
    assert_eq!(database.psql(state), "RUNNING|bill|acme|BACKOFF|2026-01-01 00:00:00");
    let index = "SELECT indexdef FROM pg_indexes WHERE tablename = 'workflow_events' AND indexdef LIKE '%(workflow_id, attempt_number)'";
    assert_eq!(database.psql(index).lines().count(), 1);
}

/// Tables say what they are for, and so do columns whose names do not.
#[tokio::test]
async fn every_table_says_what_it_is_for() {
    let database = Database::new();
    let _made = database.open().await;
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'steadfast'::regnamespace AND relkind = 'r'";
    assert!(database.psql(tables).lines().count() >= 14);
    assert_eq!(database.psql(&format!("{tables} AND obj_description(oid) IS NULL")), "");
    let payload = "SELECT col_description('steadfast.workflow_events'::regclass, attnum) IS NOT NULL FROM pg_attribute
        WHERE attrelid = 'steadfast.workflow_events'::regclass AND attname = 'payload'";
    assert_eq!(database.psql(payload), "t");
}

/// Whatever somebody's payload and texts have in them, they are kept to the byte, and so is what others commit with them. People see what can be shown.
#[tokio::test]
async fn what_postgresql_cannot_show_is_kept_all_the_same() {
    let database = Database::new();
    let store = database.open().await;
    let payloads: Vec<Vec<u8>> = vec![
        b"{\"a\":1}".into(),
        b"\"\\u0000\"".into(),
        b"\"\xff\xfe\"".into(),
        b"\0".into(),
        b"1e999999".into(),
        b"\"\\ud800\"".into(),
        b"".into(),
        [vec![b'['; 20_000], vec![b']'; 20_000]].concat(),
        format!("{{\"{}\": 1}}", "k".repeat(60_000)).into(),
        format!("-{}.{}", "9".repeat(20_000), "9".repeat(20_000)).into(),
    ];
    let text = "a\0b\u{1a}c".to_owned();
    let records: Vec<_> = (1..)
        .zip(&payloads)
        .map(|(seq, bytes)| {
            let (reason, subject) = (Some(text.clone()), Some(text.clone()));
            Record { payload: Some(Payload::json(bytes.clone())), reason, subject, ..record(seq) }
        })
        .collect();
    let events = records
        .iter()
        .map(|record| Append { shard: 0, entity: entity("odd"), record: record.clone() })
        .collect();
    let state = RunRow { tenant: Some(text.clone()), text: Some(text), ..row("odd") };
    let keys = vec![KeyChange::Put(Box::new(crate::fixture::key("odd", b"\"\\u0000\"")))];
    store
        .commit(batch(&store, Batch { events, runs: vec![state.clone()], keys, ..Batch::default() }).await)
        .await
        .unwrap();
    assert_eq!(store.journal(&entity("odd"), 0, 99).await.unwrap(), records);
    assert_eq!(store.run(&state.run).await.unwrap(), Some(state));
    let shown = "SELECT string_agg(sequence::text, ' ' ORDER BY sequence) FROM steadfast.workflow_events WHERE payload IS NOT NULL";
    assert_eq!(database.psql(shown), "1 9");
    assert_eq!(database.psql("SELECT value IS NULL, value_bytes FROM steadfast.keys"), "t|\\x225c753030303022");
}

/// Should PostgreSQL refuse something that is only for people, it is left out.
#[tokio::test]
async fn what_is_for_people_never_fails_a_commit() {
    let database = Database::new();
    let store = database.open().await;
    database.psql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.payload IS NOT NULL THEN RAISE EXCEPTION 'no' USING ERRCODE = '22P05'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON steadfast.workflow_events FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let shown = Record { payload: Some(Payload::json("{}")), ..record(1) };
    let events = vec![Append { shard: 0, entity: entity("a"), record: shown.clone() }];
    store.commit(batch(&store, Batch { events, ..Batch::default() }).await).await.unwrap();
    assert_eq!(store.journal(&entity("a"), 0, 9).await.unwrap(), [shown]);
}

/// What no name can begin with, nothing is found by; it is no reason to fail.
#[tokio::test]
async fn a_prefix_with_a_zero_finds_nothing() {
    let database = Database::new();
    let store = database.open().await;
    let keys = vec![KeyChange::Put(Box::new(key("a/b", b"1")))];
    store.commit(batch(&store, Batch { keys, ..Batch::default() }).await).await.unwrap();
    assert_eq!(store.keys_below("a/", None, 9).await.unwrap().len(), 1);
    assert_eq!(store.keys_below("a/\0", None, 9).await.unwrap(), []);
    let callbacks = CallbackFilter { prefix: "a/\0".into(), ..CallbackFilter::default() };
    assert_eq!(store.callbacks(&callbacks, None, 9).await.unwrap(), []);
    let letters = LetterFilter { key_prefix: Some("a/\0".into()), ..LetterFilter::default() };
    assert_eq!(store.letters(&letters, None, 9).await.unwrap(), []);
    assert_eq!(store.letters_count(&letters).await.unwrap(), 0);
}
