//! Lists of dead letters, keys and locks.

use super::quickly;
use crate::fixture::{Database, key};
use steadfast_kernel::{Class, Code, Failure, KeyName, LetterHome, TenantId, WorkflowName};
use steadfast_store::{LetterFilter, LetterKind, Store};
use steadfast_store_postgres::Postgres;

/// The oldest fifth are of one tenant, and those of keys; those of messages are of nobody, and none of them is poison.
const LETTERS: &str = "INSERT INTO steadfast.letters
SELECT h.home, n, n % 64, CASE WHEN strpos(h.home, ':') > 0 THEN h.home ELSE 'run-' || n END,
  CASE h.kind WHEN 'step' THEN 'charge#1' WHEN 'key' THEN '7' ELSE 'sent call bank ' || n END,
  CASE WHEN n <= 50000 THEN 'big' WHEN h.kind = 'step' THEN 'tenant-' || n % 1000 END,
  CASE WHEN n <= 50000 OR h.kind = 'route' THEN 'permanent' WHEN n % 2 = 0 THEN 'poison' ELSE 'transient' END,
  'UNAVAILABLE', 'connection refused', '\\xBYTES', timestamptz '2026-01-01 UTC' + n * interval '1 s'
FROM generate_series(1, 250000) AS n
CROSS JOIN LATERAL (SELECT CASE WHEN n <= 50000 THEN 'key' WHEN n % 4 = 0 THEN 'route' ELSE 'step' END AS kind) AS k
CROSS JOIN LATERAL (SELECT k.kind, CASE k.kind WHEN 'key' THEN 'key:jobs/' || n WHEN 'route' THEN 'route:r' || n % 9 ELSE 'w' || n % 40 END AS home) AS h";

const KEYS: &str = "INSERT INTO steadfast.keys (key, shard, revision, expires_at, encoding, value_bytes, body)
SELECT 'jobs/' || n % 500 || '/' || n, n % 64, 1, timestamptz '2026-01-01 UTC', 'json', '1', '\\xBYTES' FROM generate_series(1, 250000) AS n";

const LOCKS: &str = "INSERT INTO steadfast.locks
SELECT 'tenant-' || n, n % 64, 'plan-' || n % 50, 'run-' || n, 1, n, 30000000, timestamptz '2026-01-01 UTC', timestamptz '2026-01-01 UTC', 0
FROM generate_series(1, 250000) AS n";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn make(database: &Database) {
    let failure = Failure::transient("connection refused").encode();
    database.psql(&LETTERS.replace("BYTES", &hex(&failure)));
    database.psql(&KEYS.replace("BYTES", &hex(&key("k", b"1").held.encode())));
    database.psql(LOCKS);
}

pub(super) async fn are_quick(store: &Postgres) {
    let all = LetterFilter::default;
    let big = || Some("big".to_owned());
    for (what, filter, rows) in [
        ("all letters", all(), 100),
        ("letters of a workflow", LetterFilter { home: Some(LetterHome::Workflow(WorkflowName::new("w7").unwrap())), ..all() }, 100),
        ("letters of messages", LetterFilter { kind: Some(LetterKind::Message), ..all() }, 100),
        ("letters of keys, by their names", LetterFilter { key_prefix: Some("jobs/".into()), ..all() }, 100),
        ("letters of a few keys", LetterFilter { key_prefix: Some("jobs/4999".into()), ..all() }, 11),
        ("letters of keys that there are not", LetterFilter { key_prefix: Some("none/".into()), ..all() }, 0),
        ("letters of a tenant", LetterFilter { tenant: big(), ..all() }, 100),
        ("letters of a class", LetterFilter { class: Some(Class::Permanent), ..all() }, 100),
        ("letters of a code", LetterFilter { code: Some(Code::Unavailable), ..all() }, 100),
        ("letters of a code that none has", LetterFilter { code: Some(Code::Internal), ..all() }, 0),
        ("a tenant's letters of a class", LetterFilter { tenant: big(), class: Some(Class::Poison), ..all() }, 0),
        ("letters of messages of a class", LetterFilter { kind: Some(LetterKind::Message), class: Some(Class::Poison), ..all() }, 0),
        ("a tenant's letters of steps", LetterFilter { kind: Some(LetterKind::Step), tenant: big(), ..all() }, 0),
        (
            "a tenant's letters of messages of a code",
            LetterFilter { kind: Some(LetterKind::Message), tenant: big(), code: Some(Code::Unavailable), ..all() },
            0,
        ),
        (
            "a tenant's letters of keys of a class",
            LetterFilter { key_prefix: Some("jobs/".into()), tenant: big(), class: Some(Class::Poison), ..all() },
            0,
        ),
    ] {
        quickly(what, rows, async || store.letters(&filter, None, 100).await).await;
        quickly(&format!("{what}, oldest first"), rows, async || store.oldest_letters(&filter, None, 100).await).await;
        quickly(&format!("how many: {what}"), 1, async || Ok(vec![store.letters_count(&filter).await?])).await;
    }
    let (first, last) = (KeyName::new("jobs/0/1000").unwrap(), TenantId::new("tenant-5").unwrap());
    quickly("all keys", 100, async || store.keys_below("", None, 100).await).await;
    quickly("keys below a name", 100, async || store.keys_below("jobs/77/", None, 100).await).await;
    quickly("keys further on", 100, async || store.keys_below("jobs/", Some(&first), 100).await).await;
    quickly("keys that there are not", 0, async || store.keys_below("none/", None, 100).await).await;
    quickly("all locks", 100, async || store.locks(None, 100).await).await;
    quickly("locks further on", 100, async || store.locks(Some(&last), 100).await).await;
}
