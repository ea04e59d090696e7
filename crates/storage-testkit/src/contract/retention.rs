//! Checks the removal of ended runs and plans: atomic for readers, stepwise for the writer.

use super::Harness;
use super::fixture::{
    Writer, add, all_plans, all_tasks, arm, ended, entity, envelope, event, letter, plan_id, plan_row, plans, record, row, rows, run,
    settle, snapshot, task_row, time, timer,
};
use steadfast_kernel::{EntityId, PlanStatus, RunId, Seq, Status, Timer, TimerName, Timestamp};
use steadfast_store::{
    Append, Batch, EndedCursor, EndedFilter, Error, LetterChange, PlanRow, Position, RunCursor, RunFilter, RunRow, Store, Sweep, Swept,
};

/// More entries than any store removes in one step.
const MANY: u64 = 5_000;

/// Of a run, or of another entity by its stored id.
fn sweep(id: &str) -> Sweep {
    Sweep { entity: stored(id), ended_at: time(9) }
}

fn stored(id: &str) -> EntityId {
    EntityId::from_stored(id).unwrap()
}

/// The row of a plan that has ended.
fn ended_plan(id: &str) -> PlanRow {
    PlanRow { status: PlanStatus::Completed, ended_at: Some(time(9)), ..plan_row(id, 5) }
}

/// Entries of that entity, by its stored id.
fn entries(id: &str, seqs: impl IntoIterator<Item = Seq>) -> Vec<Append> {
    seqs.into_iter().map(|seq| Append { shard: 0, entity: stored(id), record: record(seq) }).collect()
}

/// Sweeps until nothing is left to be done: what became of each, and in how many steps.
async fn sweep_all(store: &impl Store, term: u64, ids: &[&str]) -> (Vec<Swept>, usize) {
    let (mut left, mut outcomes, mut steps): (Vec<_>, Vec<_>, _) = (ids.iter().map(|id| sweep(id)).collect(), Vec::new(), 0);
    while !left.is_empty() {
        let swept = store.sweep(0, term, &left).await.unwrap();
        assert!(!swept.is_empty(), "a step does something");
        let done = swept.into_iter().take_while(|swept| *swept != Swept::Half).collect::<Vec<_>>();
        left.drain(..done.len());
        outcomes.extend(done);
        steps += 1;
    }
    (outcomes, steps)
}

async fn ids(store: &impl Store) -> Vec<RunId> {
    store.runs(&RunFilter::default(), None, 99).await.unwrap().into_iter().map(|row| row.run).collect()
}

/// Nothing that stays is in between.
pub async fn ended_runs_are_found_by_how_and_when_they_ended(harness: &impl Harness) {
    let store = harness.open().await;
    let at = |id: &str, status, ended_at| RunRow { ended_at: Some(time(ended_at)), ..ended(id, status) };
    let failed = |id, ended_at| at(id, Status::Failed, ended_at);
    let task = RunRow { status: Status::Failed, ended_at: Some(time(60)), recover: None, ..task_row("task", "p") };
    let elsewhere = RunRow { shard: 1, ..failed("elsewhere", 60) };
    let all = [
        failed("late", 80),
        failed("b", 70),
        failed("a", 70),
        failed("early", 50),
        at("done", Status::Completed, 60),
        task,
        elsewhere,
        row("open"),
    ];
    Writer::claim(&store, 0).await.write(rows(all)).await;
    let found = async |filter: &EndedFilter, after: Option<&EndedCursor>, limit| {
        let rows = store.ended(filter, after, limit).await.unwrap();
        rows.iter().map(|row| row.run.to_string()).collect::<Vec<_>>().join(" ")
    };
    let filter = EndedFilter { shard: 0, status: Status::Failed, tasks: false, until: time(70) };
    assert_eq!(found(&filter, None, 9).await, "early a b");
    assert_eq!(found(&filter, None, 2).await, "early a");
    assert_eq!(found(&filter, Some(&EndedCursor { ended_at: time(70), run: run("a") }), 9).await, "b");
    assert_eq!(
        found(&EndedFilter { until: Timestamp::MAX, ..filter.clone() }, Some(&EndedCursor { ended_at: time(70), run: run("b") }), 9).await,
        "late"
    );
    assert_eq!(found(&EndedFilter { until: time(49), ..filter.clone() }, None, 9).await, "");
    assert_eq!(found(&EndedFilter { tasks: true, ..filter.clone() }, None, 9).await, "task");
    assert_eq!(found(&EndedFilter { status: Status::Completed, ..filter.clone() }, None, 9).await, "done");
    assert_eq!(found(&EndedFilter { shard: 1, ..filter }, None, 9).await, "elsewhere");
}

/// Rows are walked in the order of their beginning, each shard for itself.
pub async fn runs_come_oldest_first(harness: &impl Harness) {
    let store = harness.open().await;
    let at = |id: &str, at| RunRow { started_at: time(at), ..row(id) };
    let elsewhere = RunRow { shard: 1, ..at("z", 1) };
    Writer::claim(&store, 0)
        .await
        .write(rows([at("b", 2), at("a", 2), at("c", 1), elsewhere, at("d", 3)]))
        .await;
    let all = store.oldest(0, None, 9).await.unwrap();
    assert_eq!(all.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), ["c", "a", "b", "d"]);
    for (place, row) in all.iter().enumerate() {
        assert_eq!(
            store.oldest(0, Some(&RunCursor::from(row)), 2).await.unwrap(),
            all[place + 1..].iter().take(2).cloned().collect::<Vec<_>>()
        );
    }
}

/// Row, journal and timers; nothing of its neighbours, and nothing that has a life of its own.
pub async fn everything_of_a_swept_run_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let names = ["a", "a-1", "a/1"];
    let deadline = timer("a", TimerName::Deadline, 5);
    let events = names.iter().flat_map(|id| [event(id, 1), event(id, 2)]).collect();
    let timers = vec![arm(0, &deadline), arm(0, &timer("a-1", TimerName::Deadline, 6))];
    let letters = vec![LetterChange::Put(letter("bill", 1, 3))];
    let snapshots = vec![snapshot("a", 2), snapshot("a-1", 2)];
    let ended = names.map(|id| ended(id, Status::Failed)).to_vec();
    writer.write(Batch { events, timers, letters, snapshots, runs: ended, ..Batch::default() }).await;
    assert_eq!(sweep_all(&store, writer.head.term, &["a"]).await.0, [Swept::Gone]);
    assert_eq!(store.run(&run("a")).await.unwrap(), None);
    assert_eq!(ids(&store).await, [run("a/1"), run("a-1")]);
    assert!(store.journal(&entity("a"), 0, 9).await.unwrap().is_empty());
    assert_eq!(store.journal(&entity("a-1"), 0, 9).await.unwrap().len(), 2);
    assert_eq!(store.timers(0, None, 9).await.unwrap().len(), 1);
    assert_eq!(store.letters(&steadfast_store::LetterFilter::default(), None, 9).await.unwrap().len(), 1);
    assert_eq!(store.snapshot(&entity("a")).await.unwrap(), None);
    assert_eq!(store.snapshot(&entity("a-1")).await.unwrap(), Some(snapshot("a-1", 2)));
    assert!(store.half_swept(0).await.unwrap().is_empty());
    assert_eq!(sweep_all(&store, writer.head.term, &["a"]).await.0, [Swept::Gone], "again is the same");
    writer.write(Batch { events: vec![event("a", 1)], ..rows([row("a")]) }).await;
    assert_eq!(store.journal(&entity("a"), 0, 9).await.unwrap().len(), 1, "its id is free");
}

/// Under way, ended at another time, in another shard, or with something to say: not now.
pub async fn what_must_not_be_removed_is_kept(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let said = envelope("speaks", 4);
    let retried = RunRow { ended_at: Some(time(10)), ..ended("retried", Status::Completed) };
    let runs = vec![
        RunRow { ended_at: Some(time(9)), ..row("open") },
        RunRow { status: Status::Interrupted, ..ended("interrupted", Status::Failed) },
        retried,
        RunRow { shard: 1, ..ended("elsewhere", Status::Completed) },
        ended("speaks", Status::Completed),
        ended("speaks-not", Status::Cancelled),
    ];
    let names = ["open", "interrupted", "retried", "elsewhere", "speaks", "speaks-not"];
    let events = names.iter().map(|id| event(id, 1)).collect();
    writer.write(Batch { runs, events, outbox: vec![add(&said)], ..Batch::default() }).await;
    let (swept, _) = sweep_all(&store, writer.head.term, &names).await;
    assert_eq!(swept, [Swept::Kept, Swept::Kept, Swept::Kept, Swept::Kept, Swept::Kept, Swept::Gone]);
    for id in &names[..5] {
        assert!(store.run(&run(id)).await.unwrap().is_some(), "{id}");
        assert_eq!(store.journal(&entity(id), 0, 9).await.unwrap().len(), 1, "{id}");
    }
    writer.write(Batch { outbox: vec![settle(&said)], ..Batch::default() }).await;
    assert_eq!(sweep_all(&store, writer.head.term, &["speaks"]).await.0, [Swept::Gone], "it was heard");
}

/// Who has lost the shard removes nothing.
pub async fn a_stale_holder_does_not_sweep(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { events: vec![event("a", 1)], ..rows([ended("a", Status::Completed)]) }).await;
    store.claim(0).await.unwrap();
    let error = store.sweep(0, writer.head.term, &[sweep("a")]).await.unwrap_err();
    assert!(matches!(error, Error::Fenced { shard: 0, .. }), "{error}");
    assert!(store.run(&run("a")).await.unwrap().is_some());
    assert_eq!(store.journal(&entity("a"), 0, 9).await.unwrap().len(), 1);
}

/// A sweep is beside the batches: the next one follows on from the last.
pub async fn a_sweep_does_not_move_the_shard_on(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(rows([ended("a", Status::Completed)])).await;
    sweep_all(&store, writer.head.term, &["a"]).await;
    assert_eq!((store.head(0).await.unwrap(), store.commits()), (writer.head, 1));
    writer.write(rows([row("b")])).await;
}

/// A long journal goes in steps. After the first one nobody sees anything of the run, and a restart finds what is left.
pub async fn a_long_journal_goes_in_steps_and_is_never_seen_half(harness: &impl Harness) {
    let mut store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer
        .write(Batch { events: (1..=MANY).map(|seq| event("long", seq)).collect(), ..rows([ended("long", Status::Completed)]) })
        .await;
    let head = writer.head;
    let (mut left, mut steps) = (vec![sweep("long")], 0);
    while !left.is_empty() {
        let swept = store.sweep(0, head.term + steps, &left).await.unwrap();
        steps += 1;
        assert_eq!(store.run(&run("long")).await.unwrap(), None);
        assert!(store.journal(&entity("long"), 0, 9).await.unwrap().is_empty(), "after {steps} steps");
        assert!(store.journal(&entity("long"), MANY - 3, 9).await.unwrap().is_empty(), "after {steps} steps");
        let half = store.half_swept(0).await.unwrap();
        assert_eq!(half, if swept == [Swept::Half] { vec![entity("long")] } else { vec![] }, "{swept:?}");
        assert!(store.half_swept(1).await.unwrap().is_empty());
        left = half.into_iter().map(|entity| Sweep { entity, ended_at: time(0) }).collect(); // the time of its end is gone with its row
        drop(store);
        store = harness.open().await;
        store.claim(0).await.unwrap();
    }
    assert!(steps > 1, "{MANY} entries in one step");
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { events: vec![event("long", 1)], ..rows([row("long")]) }).await;
    assert_eq!(store.journal(&entity("long"), 0, 9).await.unwrap().len(), 1);
}

/// Many runs go in few steps.
pub async fn many_small_runs_share_a_step(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let names: Vec<_> = (1..=200).map(|n| format!("r{n}")).collect();
    let events = names.iter().map(|id| event(id, 1)).collect();
    writer.write(Batch { events, ..rows(names.iter().map(|id| ended(id, Status::Completed))) }).await;
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (swept, steps) = sweep_all(&store, writer.head.term, &names).await;
    assert!(swept.len() == 200 && swept.iter().all(|swept| *swept == Swept::Gone));
    assert!(steps <= 20, "{steps}");
    assert!(ids(&store).await.is_empty());
}

/// Row, journal, timers and what was saved of a plan; nothing of its neighbours, and no run that is called the same.
pub async fn everything_of_a_swept_plan_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let names = ["plan:a", "plan:a-1", "a", "plan/a", "lock:a"];
    let deadline = |id: &str| Timer { entity: stored(id), ..timer("a", TimerName::Deadline, 5) };
    let batch = Batch {
        events: names.iter().flat_map(|id| entries(id, [1, 2])).collect(),
        timers: names.iter().map(|id| arm(0, &deadline(id))).collect(),
        snapshots: names.iter().map(|id| snapshot(id, 2)).collect(),
        runs: vec![ended("a", Status::Completed), task_row("t", "a-1")],
        ..plans(["a", "a-1"].map(ended_plan))
    };
    writer.write(batch).await;
    assert_eq!(sweep_all(&store, writer.head.term, &["plan:a"]).await.0, [Swept::Gone]);
    assert_eq!(all_plans(&store).await, [ended_plan("a-1")]);
    for (place, id) in names.into_iter().enumerate() {
        let there = place > 0;
        assert_eq!(store.journal(&stored(id), 0, 9).await.unwrap().len(), if there { 2 } else { 0 }, "{id}");
        assert_eq!(store.snapshot(&stored(id)).await.unwrap().is_some(), there, "{id}");
        assert_eq!(store.timers(0, None, 9).await.unwrap().contains(&deadline(id)), there, "{id}");
    }
    assert_eq!(ids(&store).await, [run("t"), run("a")]);
    assert!(store.half_swept(0).await.unwrap().is_empty());
    assert_eq!(sweep_all(&store, writer.head.term, &["plan:a"]).await.0, [Swept::Gone], "again is the same");
    writer.write(Batch { events: entries("plan:a", [1]), ..plans([plan_row("a", 6)]) }).await;
    assert_eq!(store.journal(&stored("plan:a"), 0, 9).await.unwrap().len(), 1, "its id is free");
}

/// A plan goes after its tasks, whatever they are, in whatever shard.
pub async fn a_plan_that_has_tasks_is_kept(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let done = |id: &str| RunRow { task: task_row(id, "p").task, ..ended(id, Status::Completed) };
    let elsewhere = RunRow { shard: 1, ..done("t2") };
    let events = [entries("plan:p", [1, 2]), entries("t1", [1])].concat();
    writer.write(Batch { plans: vec![ended_plan("p")], events, ..rows([done("t1"), elsewhere]) }).await;
    for _ in 0..2 {
        assert_eq!(sweep_all(&store, writer.head.term, &["plan:p"]).await.0, [Swept::Kept]);
    }
    assert_eq!(sweep_all(&store, writer.head.term, &["t1", "plan:p"]).await.0, [Swept::Gone, Swept::Kept]);
    assert_eq!(all_tasks(&store, "p").await.len(), 1);
    assert_eq!(all_plans(&store).await, [ended_plan("p")]);
    assert_eq!(store.journal(&stored("plan:p"), 0, 9).await.unwrap().len(), 2);
    writer.write(rows([done("t2")])).await;
    assert_eq!(sweep_all(&store, writer.head.term, &["t2", "plan:p"]).await.0, [Swept::Gone, Swept::Gone]);
    assert_eq!(store.plan(&plan_id("p")).await.unwrap(), None);
}

/// Under way, ended at another time, in another shard, or with something to say: not now. What is neither a run nor a plan has no end.
pub async fn what_is_no_ended_plan_is_kept(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let said = envelope("plan:speaks", 4);
    let runs = vec![
        PlanRow { status: PlanStatus::Paused, ..ended_plan("paused") },
        PlanRow { ended_at: None, ..ended_plan("open") },
        PlanRow { ended_at: Some(time(10)), ..ended_plan("resumed") },
        PlanRow { shard: 1, ..ended_plan("elsewhere") },
        ended_plan("speaks"),
    ];
    let names =
        ["plan:paused", "plan:open", "plan:resumed", "plan:elsewhere", "plan:speaks", "limit:key/a", "letters:a", "key:a", "lock:a"];
    let events = names.iter().flat_map(|id| entries(id, [1])).collect();
    writer.write(Batch { events, outbox: vec![add(&said)], ..plans(runs) }).await;
    assert_eq!(sweep_all(&store, writer.head.term, &names).await.0, [Swept::Kept; 9]);
    assert_eq!(all_plans(&store).await.len(), 5);
    for id in names {
        assert_eq!(store.journal(&stored(id), 0, 9).await.unwrap().len(), 1, "{id}");
    }
    writer.write(Batch { outbox: vec![settle(&said)], ..Batch::default() }).await;
    assert_eq!(sweep_all(&store, writer.head.term, &["plan:speaks"]).await.0, [Swept::Gone], "it was heard");
}

/// As with a run: after the first step nobody sees anything of the plan, and a restart finds what is left.
pub async fn a_long_plan_goes_in_steps_and_is_never_seen_half(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { events: entries("plan:long", 1..=MANY), ..plans([ended_plan("long")]) }).await;
    assert_eq!(store.sweep(0, writer.head.term, &[sweep("plan:long")]).await.unwrap(), [Swept::Half]);
    drop(store);
    let store = harness.open().await;
    assert_eq!(store.half_swept(0).await.unwrap(), [stored("plan:long")]);
    assert_eq!(store.plan(&plan_id("long")).await.unwrap(), None);
    assert!(store.journal(&stored("plan:long"), MANY - 3, 9).await.unwrap().is_empty());
    assert!(store.feed(&Position::default(), None, 9).await.unwrap().is_empty());
    let writer = Writer::claim(&store, 0).await;
    assert_eq!(sweep_all(&store, writer.head.term, &["plan:long"]).await.0, [Swept::Gone]);
    assert!(store.half_swept(0).await.unwrap().is_empty());
}
