//! Checks limits: large batches, long journals, large payloads, long and unusual names.

use super::Harness;
use super::fixture::{
    Writer, add, all_callbacks, all_keys, all_letters, all_locks, all_messages, all_plans, all_tasks, all_timers, arm, callback, callbacks,
    changes, entity, envelope, event, events, forgotten, key_row, keys, letter, letters, lock_row, locks, messages, plan_id, plan_row,
    plans, put_callback, put_key, put_lock, record, row, rows, run, snapshot, step, task_row, tenant, timer, workflow,
};
use steadfast_kernel::{Held, Lease, Letter, LetterAbout, Message, Payload, Record, StepId, TimerName};
use steadfast_store::{
    Append, Batch, CallbackCursor, CallbackFilter, KeyRow, LetterChange, LetterCursor, LetterFilter, LockRow, PlanCursor, PlanFilter,
    PlanRow, RunCursor, RunFilter, RunRow, Store, TimerKey,
};

/// What an engine accepts by default as an input or output.
const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// A group commit can have as much as this in one batch: more than a statement has room for parameters in some databases.
pub async fn a_batch_may_be_large(harness: &impl Harness) {
    const MANY: usize = 7_000;
    let store = harness.open().await;
    let ids: Vec<String> = (0..MANY).map(|number| format!("run-{number:05}")).collect();
    let batch = Batch {
        fences: vec![],
        events: ids.iter().flat_map(|id| [event(id, 1), event(id, 2)]).collect(),
        runs: ids.iter().map(|id| row(id)).chain(ids.iter().map(|id| task_row(&format!("p/{id}"), "p"))).collect(),
        timers: ids.iter().map(|id| arm(0, &timer(id, TimerName::Deadline, 5))).collect(),
        outbox: ids.iter().map(|id| add(&envelope(id, 1))).collect(),
        letters: (1..=MANY as u64).map(|seq| LetterChange::Put(letter("bill", seq, 5))).collect(),
        snapshots: ids.iter().map(|id| snapshot(id, 2)).collect(),
        definitions: vec![],
        keys: ids.iter().map(|id| put_key(&key_row(id))).collect(),
        callbacks: ids.iter().map(|id| put_callback(&callback(id, 1, 5))).collect(),
        plans: ids.iter().map(|id| plan_row(id, 5)).collect(),
        locks: ids.iter().map(|id| put_lock(&lock_row(id))).collect(),
        forgotten: ids.iter().skip(1).step_by(2).map(|id| forgotten(id, Some(2))).collect(),
    };
    Writer::claim(&store, 0).await.write(batch).await;
    assert_eq!(store.commits(), 1);
    let recovered = store.to_recover(0, None, usize::MAX).await.unwrap();
    assert!(recovered.iter().map(|row| row.run.as_str()).eq(ids.iter().map(String::as_str)));
    assert_eq!(store.runs(&RunFilter::default(), None, usize::MAX).await.unwrap().len(), 2 * MANY);
    assert_eq!(all_tasks(&store, "p").await.len(), MANY);
    assert_eq!(all_plans(&store).await.len(), MANY);
    assert_eq!(all_locks(&store).await.len(), MANY);
    let all: Vec<_> = ids.iter().map(|id| plan_id(id)).chain([plan_id("p")]).collect();
    assert_eq!(store.task_counts(&all).await.unwrap().iter().map(|count| count.tasks).collect::<Vec<_>>(), [MANY as u64]);
    assert_eq!(all_timers(&store, 0).await.len(), MANY);
    assert_eq!(all_messages(&store, 0).await.len(), MANY);
    assert_eq!(all_letters(&store).await.len(), MANY);
    assert_eq!(all_keys(&store).await.len(), MANY);
    assert_eq!(all_callbacks(&store).await.len(), MANY);
    for (id, forgotten) in [(&ids[0], 0), (&ids[MANY / 2], 0), (&ids[MANY - 1], 1)] {
        assert_eq!(store.journal(&entity(id), 0, 9).await.unwrap(), [record(1), record(2)][forgotten..]);
        assert_eq!(store.snapshot(&entity(id)).await.unwrap(), Some(snapshot(id, 2)));
    }
}

/// A page that is not full is the last one: readers stop there.
pub async fn a_page_is_full_if_there_is_more(harness: &impl Harness) {
    const MANY: usize = 2_500;
    const PAGE: usize = 2_499;
    let store = harness.open().await;
    let ids: Vec<String> = (0..MANY).map(|number| format!("run-{number:05}")).collect();
    let batch = Batch {
        fences: vec![],
        events: (1..=MANY as u64).map(|seq| event("a", seq)).collect(),
        runs: ids.iter().map(|id| RunRow { task: task_row("a", "p").task, ..row(id) }).collect(),
        timers: ids.iter().map(|id| arm(0, &timer(id, TimerName::Deadline, 5))).collect(),
        outbox: ids.iter().map(|id| add(&envelope(id, 1))).collect(),
        letters: (1..=MANY as u64).map(|seq| LetterChange::Put(letter("bill", seq, 5))).collect(),
        keys: ids.iter().map(|id| put_key(&key_row(id))).collect(),
        callbacks: ids.iter().map(|id| put_callback(&callback(id, 1, 5))).collect(),
        plans: ids.iter().map(|id| plan_row(id, 5)).collect(),
        locks: ids.iter().map(|id| put_lock(&lock_row(id))).collect(),
        ..Batch::default()
    };
    Writer::claim(&store, 0).await.write(batch).await;
    assert_eq!(store.journal(&entity("a"), 0, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.runs(&RunFilter::default(), None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.to_recover(0, None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.timers(0, None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.outbox(0, None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.letters(&LetterFilter::default(), None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.keys_below("run-", None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.callbacks(&CallbackFilter::default(), None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.plans(&PlanFilter::default(), None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.tasks(&plan_id("p"), None, PAGE).await.unwrap().len(), PAGE);
    assert_eq!(store.locks(None, PAGE).await.unwrap().len(), PAGE);
}

/// A long journal is read page by page, or at once.
pub async fn a_journal_may_be_long(harness: &impl Harness) {
    const LONG: u64 = 5_000;
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for first in (1..=LONG).step_by(1_000) {
        writer.write(events((first..first + 1_000).map(|seq| event("a", seq)))).await;
    }
    let (mut after, mut found) = (0, 0);
    loop {
        let page = store.journal(&entity("a"), after, 999).await.unwrap();
        assert!(page.iter().map(|record| record.seq).eq(after + 1..=after + page.len() as u64));
        let Some(last) = page.last() else { break };
        (after, found) = (last.seq, found + page.len());
    }
    assert_eq!(found as u64, LONG);
    assert_eq!(store.journal(&entity("a"), LONG - 1, usize::MAX).await.unwrap(), [record(LONG)]);
}

/// The largest payloads in the journal, in a message and in a key, beside small ones.
pub async fn the_largest_payloads_come_back(harness: &impl Harness) {
    let store = harness.open().await;
    let bytes: Vec<u8> = (0..PAYLOAD_BYTES_MAX).map(|place| (place * 31 % 251) as u8).collect();
    let payload = Payload::json(bytes);
    let large = Record { payload: Some(payload.clone()), ..record(1) };
    let failure = letter("bill", 1, 5).failure;
    let posted = Letter {
        about: LetterAbout::Step { run: run("a"), step: step("read") },
        attempt: 1,
        tenant: None,
        failure,
        payload: payload.clone(),
    };
    let said = steadfast_kernel::Envelope { message: Message::PostLetter(posted), ..envelope("a", 1) };
    let held = KeyRow { held: Held { value: payload, ..key_row("a").held }, ..key_row("a") };
    let mut batch = events([Append { shard: 0, entity: entity("a"), record: large.clone() }, event("a", 2)]);
    (batch.outbox, batch.keys) = (vec![add(&said)], vec![put_key(&held), put_key(&key_row("b"))]);
    Writer::claim(&store, 0).await.write(batch).await;
    let journal = store.journal(&entity("a"), 0, 9).await.unwrap();
    assert!(journal == [large, record(2)], "what is this large is not shown");
    assert!(all_messages(&store, 0).await == [said], "what is this large is not shown");
    assert!(all_keys(&store).await == [held, key_row("b")], "what is this large is not shown");
}

/// Reasons and texts have no limit of their own below the store.
pub async fn long_texts_come_back(harness: &impl Harness) {
    let store = harness.open().await;
    let long = "sp\u{e4}ter \u{1f980}\n".repeat(20_000);
    let record = Record { reason: Some(long.clone()), subject: Some(long.clone()), ..record(1) };
    let row = RunRow { text: Some(long.clone()), tenant: Some(long.clone()), ..row("a") };
    let plan = PlanRow { definition: long.clone(), why: Some(long.clone()), ..plan_row("p", 5) };
    let mut batch = Batch { runs: vec![row.clone()], ..events([Append { shard: 0, entity: entity("a"), record: record.clone() }]) };
    batch.plans.push(plan.clone());
    Writer::claim(&store, 0).await.write(batch).await;
    assert!(store.journal(&entity("a"), 0, 9).await.unwrap() == [record], "what is this long is not shown");
    assert!(store.run(&run("a")).await.unwrap() == Some(row), "what is this long is not shown");
    assert!(store.plan(&plan_id("p")).await.unwrap() == Some(plan), "what is this long is not shown");
}

/// The longest ids, which differ in their last character, everywhere that an id is part of a key.
pub async fn the_longest_ids_come_back(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = ["1", "2"].map(|end| format!("{}{end}", "x/y".repeat(42) + "z"));
    assert_eq!(ids[0].len(), 128);
    let long_step = |id: &str| StepId::new(&"branch/".repeat(30), &id.replace('/', "-"), u32::MAX).unwrap();
    let mut writer = Writer::claim(&store, 0).await;
    for id in &ids {
        writer.write(events([event(id, 1)])).await;
        writer
            .write(rows([RunRow { workflow: workflow(id), tenant: Some(id.clone()), task: task_row("a", id).task, ..row(id) }]))
            .await;
        writer.write(changes([arm(0, &timer(id, TimerName::Retry(long_step(id)), 5))])).await;
        writer.write(messages([add(&envelope(&format!("letters:{id}"), 1))])).await;
        writer.write(letters([LetterChange::Put(letter(id, 1, 5))])).await;
        writer.write(keys([put_key(&key_row(id))])).await;
        writer.write(callbacks([put_callback(&callback(id, 1, 5))])).await;
        writer.write(plans([plan_row(id, 5)])).await;
        let lease = Lease { plan: plan_id(id), task: run(id), ..lock_row(id).lease };
        writer.write(locks([put_lock(&LockRow { lease, ..lock_row(id) })])).await;
    }
    let runs = store
        .runs(&RunFilter { workflow: Some(workflow(&ids[1])), ..RunFilter::default() }, None, 9)
        .await
        .unwrap();
    assert_eq!(runs.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), [ids[1].as_str()]);
    let [first, second] = [0, 1].map(|place| timer(&ids[place], TimerName::Retry(long_step(&ids[place])), 5));
    assert_eq!(store.timers(0, Some(&TimerKey::from(&first)), 9).await.unwrap(), [second]);
    let senders: Vec<_> = all_messages(&store, 0).await.iter().map(|message| message.from.to_string()).collect();
    assert_eq!(senders, ids.clone().map(|id| format!("letters:{id}")));
    let after = LetterCursor::from(&letter(&ids[1], 1, 5));
    assert_eq!(store.letters(&LetterFilter::default(), Some(&after), 9).await.unwrap(), [letter(&ids[0], 1, 5)]);
    assert_eq!(store.keys_below(&ids[0][..127], Some(&key_row(&ids[0]).key), 9).await.unwrap(), [key_row(&ids[1])]);
    assert_eq!(store.keys_below(&ids[1], None, 9).await.unwrap(), [key_row(&ids[1])]);
    assert_eq!(
        store
            .plans(&PlanFilter::default(), Some(&PlanCursor::from(&plan_row(&ids[1], 5))), 9)
            .await
            .unwrap(),
        [plan_row(&ids[0], 5)]
    );
    assert_eq!(store.tasks(&plan_id(&ids[1]), None, 9).await.unwrap().len(), 1);
    let latest = store.latest_task(&tenant(&ids[0])).await.unwrap().and_then(|row| row.task);
    assert_eq!(latest.map(|task| task.plan), Some(plan_id(&ids[0])));
    let last = store.locks(Some(&tenant(&ids[0])), 9).await.unwrap();
    assert_eq!(
        last.iter().map(|row| (row.tenant.as_str(), row.lease.plan.as_str())).collect::<Vec<_>>(),
        [(ids[1].as_str(), ids[1].as_str())]
    );
    let after = CallbackCursor::from(&callback(&ids[0], 1, 5));
    assert_eq!(store.callbacks(&CallbackFilter::default(), Some(&after), 9).await.unwrap(), [callback(&ids[1], 1, 5)]);
    for id in &ids {
        assert_eq!(store.journal(&entity(id), 0, 9).await.unwrap(), [record(1)]);
        assert_eq!(store.to_recover(0, Some(&RunCursor::from(&row(id))), 9).await.unwrap().len(), usize::from(*id == ids[0]));
    }
    let after = RunCursor { started_at: row("a").started_at, run: run(&ids[1]) };
    assert_eq!(store.runs(&RunFilter::default(), Some(&after), 9).await.unwrap().len(), 1);
}

/// Names are bytes: what looks alike is not the same, and the order is that of the bytes, whatever the language of the database.
pub async fn names_are_compared_by_their_bytes(harness: &impl Harness) {
    let store = harness.open().await;
    let names = ["Z#1", "a#1", "a b#1", "e\u{301}#1", "ss#1", "z#1", "\u{df}#1", "\u{e9}#1", "\u{20ac}#1", "\u{1f980}#1"];
    let mut sorted = names;
    sorted.sort_unstable();
    let named = |name: &str| timer("a", TimerName::Sleep(StepId::from_stored(name)), 5);
    Writer::claim(&store, 0)
        .await
        .write(changes(names.iter().rev().map(|name| arm(0, &named(name)))))
        .await;
    assert_eq!(all_timers(&store, 0).await, sorted.map(named));
    let after = TimerKey::from(&named("e\u{301}#1"));
    let rest: Vec<_> = sorted.iter().skip_while(|name| **name != "e\u{301}#1").skip(1).map(|name| named(name)).collect();
    assert_eq!(store.timers(0, Some(&after), 99).await.unwrap(), rest);
    let owned = |id: &str, tenant: &str| RunRow { tenant: Some(tenant.into()), ..row(id) };
    let tenants = [("a", "caf\u{e9}"), ("b", "cafe\u{301}"), ("c", "cafe"), ("d", "caf\u{e9} ")];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(rows(tenants.map(|(id, tenant)| owned(id, tenant)))).await;
    for (id, tenant) in tenants {
        let filter = RunFilter { tenant: Some(tenant.into()), ..RunFilter::default() };
        assert_eq!(store.runs(&filter, None, 9).await.unwrap(), [owned(id, tenant)]);
    }
}
