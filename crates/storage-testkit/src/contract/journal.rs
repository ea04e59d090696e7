//! Checks that a journal returns its records byte for byte, in order.

use super::Harness;
use super::fixture::{Writer, entity, event, events, record, seqs, time, workflow};
use bytes::Bytes;
use steadfast_kernel::{EntityId, LimitKey, Payload, Record, Timestamp};
use steadfast_store::{Append, Store};

/// A record of which only the place is known.
fn bare() -> Record {
    let kind = "TIMER_FIRED".to_string();
    Record { kind, subject: None, attempt: None, payload: None, body: Bytes::new(), ..record(1) }
}

/// Appends the records to the journal of one run and asserts that it gives them back.
async fn assert_kept(store: &impl Store, records: Vec<Record>) {
    let appends = records.iter().map(|record| Append { shard: 0, entity: entity("a"), record: record.clone() });
    Writer::claim(store, 0).await.write(events(appends)).await;
    let found = store.journal(&entity("a"), 0, usize::MAX).await.unwrap();
    assert_eq!(found.len(), records.len());
    for (found, written) in found.iter().zip(&records) {
        assert_eq!(found, written);
    }
}

/// A record with everything and one with almost nothing.
pub async fn every_field_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let full = Record {
        seq: 2,
        epoch: 4,
        kind: "RETRY_SCHEDULED".into(),
        at: time(1_760_000_000_123_456),
        subject: Some("left/inner/charge#3".into()),
        attempt: Some(7),
        backoff_ms: Some(1_200),
        reason: Some("the card's issuer said \u{201c}später\u{201d}\nand no more".into()),
        payload: Some(Payload::json("{\"a\": 1 }\n")),
        body: Bytes::from_static(&[0, 255, 10, 13, 0]),
    };
    assert_kept(&store, vec![bare(), full]).await;
}

/// The largest numbers and times, empty texts, texts with a zero byte.
pub async fn fields_at_their_limits_come_back(harness: &impl Harness) {
    let store = harness.open().await;
    let large = Record {
        epoch: u32::MAX,
        at: Timestamp::MAX,
        attempt: Some(u32::MAX),
        backoff_ms: Some(u64::MAX),
        reason: Some("before\0after".into()),
        ..record(1)
    };
    let empty = Record {
        seq: 2,
        at: Timestamp::EPOCH,
        attempt: Some(0),
        backoff_ms: Some(0),
        subject: Some(String::new()),
        reason: Some(String::new()),
        ..record(2)
    };
    assert_kept(&store, vec![large, empty]).await;
}

/// The user's bytes are not text to the store, whatever they look like.
pub async fn payload_bytes_come_back_exactly(harness: &impl Harness) {
    let store = harness.open().await;
    let large = vec![b'x'; 300_000];
    let payloads: [&[u8]; 12] = [
        b"",
        b"null",
        b"12",
        b"1.50",
        b"\"12\"",
        b" {\"b\":1,\"a\":2} \r\n",
        "\"\u{feff}gr\u{fc}\u{df} \u{1f980}\"".as_bytes(),
        "\u{feff}1".as_bytes(),
        b"\"nul \0 inside\"",
        b"\0",
        &[0xff, 0xfe, 0x80, 0x00, 0xc3],
        &large,
    ];
    let with = |(seq, bytes): (u64, &&[u8])| Record { payload: Some(Payload::json(bytes.to_vec())), ..record(seq) };
    assert_kept(&store, (1..).zip(&payloads).map(with).collect()).await;
}

/// `after` and `limit` cut the journal into pages that meet.
pub async fn entries_come_in_order_and_in_pages(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events((1..=7).map(|seq| event("a", seq)))).await;
    writer.write(events((8..=11).map(|seq| event("a", seq)))).await;
    let page = async |after, limit| {
        let records = store.journal(&entity("a"), after, limit).await.unwrap();
        records.iter().map(|record| record.seq).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 4).await, [1, 2, 3, 4]);
    assert_eq!(page(4, 4).await, [5, 6, 7, 8]);
    assert_eq!(page(8, 4).await, [9, 10, 11]);
    assert_eq!(page(11, 4).await, [0; 0]);
    assert_eq!(page(0, 0).await, [0; 0]);
    assert_eq!(page(u64::MAX, usize::MAX).await, [0; 0]);
}

/// An id that begins like another is another.
pub async fn journals_of_ids_that_begin_alike_do_not_mix(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = ["a", "a-1", "a.1", "a/1", "a/1/x", "a1", "A", "a_1"];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events((1..=3).flat_map(|seq| ids.map(|id| event(id, seq))))).await;
    writer.write(events([event("a", 4)])).await;
    assert_eq!(seqs(&store, "a").await, [1, 2, 3, 4]);
    for id in &ids[1..] {
        assert_eq!(seqs(&store, id).await, [1, 2, 3], "{id}");
    }
    assert_eq!(seqs(&store, "a-").await, [0; 0]);
}

/// A run may be called what a limit or a workflow is called.
pub async fn journals_of_kinds_of_entities_do_not_mix(harness: &impl Harness) {
    let store = harness.open().await;
    let runs = ["bill", "key/bill", "workflow/bill", "limit", "letters", "limit/key/bill", "letters/bill"].map(entity);
    let limits = [LimitKey::of_key("bill").unwrap(), LimitKey::of_workflow(&workflow("bill"))].map(EntityId::Limit);
    let boxes = ["bill", "key/bill"].map(|name| EntityId::Letters(workflow(name)));
    let others = ["key:bill", "plan:bill", "plan:key/bill", "lock:bill", "lock:key/bill"].map(|id| EntityId::from_stored(id).unwrap());
    let all: Vec<_> = runs.into_iter().chain(limits).chain(boxes).chain(others).collect();
    let kind = |place: usize| format!("EVENT_OF_{place}");
    let append = |(place, entity): (usize, &EntityId)| Append {
        shard: 0,
        entity: entity.clone(),
        record: Record { kind: kind(place), ..record(1) },
    };
    Writer::claim(&store, 0).await.write(events(all.iter().enumerate().map(append))).await;
    for (place, entity) in all.iter().enumerate() {
        let found = store.journal(entity, 0, 9).await.unwrap();
        assert_eq!(found.iter().map(|record| &record.kind).collect::<Vec<_>>(), [&kind(place)], "{entity:?}");
    }
}

/// A second event of the same run and number refuses its batch.
pub async fn an_event_is_written_once(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    let mut other = event("a", 1);
    other.record.kind = "RUN_FAILED".into();
    writer.fail(events([event("b", 1), other])).await;
    assert_eq!(store.journal(&entity("a"), 0, 10).await.unwrap(), [record(1)]);
    assert_eq!(seqs(&store, "b").await, [0; 0]);
}

/// The same, within one batch.
pub async fn an_event_twice_in_one_batch_is_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.fail(events([event("a", 1), event("a", 1)])).await;
    assert_eq!(seqs(&store, "a").await, [0; 0]);
}
