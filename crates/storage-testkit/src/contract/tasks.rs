//! Checks rows of tasks: their extra fields, and lookup by plan and by tenant.

use super::Harness;
use super::fixture::{Writer, all_tasks, ended, event, events, plan_id, plan_row, plans, row, rows, run, task_row, tenant, time};
use steadfast_kernel::{Status, TaskStatus};
use steadfast_store::{RunFilter, RunRow, ShardId, Store, Sweep, Swept, TaskCount, TaskRow};

/// A task with everything.
fn full(id: &str) -> RunRow {
    let task = TaskRow {
        started_at: Some(steadfast_kernel::Timestamp::from_micros(17)),
        plan: plan_id("team/switch.17_a-b"),
        status: TaskStatus::Paused,
        stage: Some(u32::MAX),
        completed: u32::MAX,
        checkpoint: Some(u32::MAX),
        pause_requested: true,
    };
    RunRow { status: Status::Paused, task: Some(task), ..task_row(id, "p") }
}

/// The task with another status.
fn with(status: TaskStatus, row: RunRow) -> RunRow {
    let task = row.task.clone().map(|task| TaskRow { status, ..task });
    RunRow { task, ..row }
}

/// A task of plan `p`.
fn of_p(id: &str) -> RunRow {
    task_row(id, "p")
}

async fn counts(store: &impl Store, plans: &[&str]) -> Vec<(String, &'static str, u64)> {
    let plans: Vec<_> = plans.iter().map(|id| plan_id(id)).collect();
    let counts = store.task_counts(&plans).await.unwrap();
    counts
        .into_iter()
        .map(|TaskCount { plan, status, tasks }| (plan.to_string(), status.as_str(), tasks))
        .collect()
}

async fn latest(store: &impl Store, id: &str) -> Option<String> {
    store.latest_task(&tenant(id)).await.unwrap().map(|row| row.run.to_string())
}

/// All fields of a task, in whatever list it is.
pub async fn a_task_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(rows([full("a"), of_p("b")])).await;
    for row in [full("a"), of_p("b")] {
        let plan = row.task.clone().map(|task| task.plan).unwrap();
        assert_eq!(store.run(&row.run).await.unwrap(), Some(row.clone()));
        assert_eq!(store.tasks(&plan, None, 9).await.unwrap(), [row]);
    }
    assert_eq!(store.runs(&RunFilter::default(), None, 9).await.unwrap(), [of_p("b"), full("a")]);
    assert_eq!(store.oldest(0, None, 9).await.unwrap(), [full("a"), of_p("b")]);
    assert_eq!(store.latest_task(&tenant("acme")).await.unwrap(), Some(of_p("b")));
}

/// Whatever a task is, its row says so, and it is counted as that and as nothing else.
pub async fn every_status_of_a_task_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for status in TaskStatus::ALL {
        let row = with(status, of_p("a"));
        writer.write(rows([row.clone()])).await;
        assert_eq!(store.run(&run("a")).await.unwrap(), Some(row));
        assert_eq!(counts(&store, &["p"]).await, [("p".to_string(), status.as_str(), 1)]);
    }
}

/// A task put again is the new one, in every field, and the only one of its run: of another plan, another tenant, or no task.
pub async fn a_task_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let others = [
        full("a"),
        with(TaskStatus::Running, of_p("a")),
        task_row("a", "q"),
        RunRow { tenant: Some("umbrella".into()), ..of_p("a") },
        RunRow { tenant: None, ..of_p("a") },
        RunRow { shard: 1, started_at: time(8), ..of_p("a") },
        row("a"),
        ended("a", Status::Completed),
    ];
    for row in others.into_iter().flat_map(|other| [of_p("a"), other, of_p("a")]) {
        writer.write(rows([row.clone()])).await;
        assert_eq!(store.run(&run("a")).await.unwrap(), Some(row.clone()));
        assert_eq!(store.runs(&RunFilter::default(), None, 9).await.unwrap(), std::slice::from_ref(&row));
        for plan in ["p", "q", "team/switch.17_a-b"] {
            let is_its = row.task.as_ref().is_some_and(|task| task.plan == plan_id(plan));
            assert_eq!(all_tasks(&store, plan).await.len(), usize::from(is_its), "{plan}: {row:?}");
            assert_eq!(counts(&store, &[plan]).await.len(), usize::from(is_its), "{plan}: {row:?}");
        }
        for id in ["acme", "umbrella"] {
            let is_its = row.task.is_some() && row.tenant.as_deref() == Some(id);
            assert_eq!(latest(&store, id).await.is_some(), is_its, "{id}: {row:?}");
        }
    }
}

/// Ids in the order that is due, which is that of their bytes.
const IN_ORDER: [&str; 9] = ["0", "B", "p/a", "p/a-1", "p/a.b", "p/a/b", "p/b", "q/a", "z"];

/// Tasks of plan `p` in an order that is not theirs, which began at other times in other shards, and others between them.
async fn put_shuffled(store: &impl Store) {
    let (odd, even): (Vec<_>, Vec<_>) = IN_ORDER.iter().rev().enumerate().partition(|(place, _)| place % 2 == 1);
    let begun = |(place, id): (usize, &&str)| RunRow {
        shard: ShardId::try_from(place % 3).unwrap(),
        started_at: time((place as i64 * 5) % 4),
        ..of_p(id)
    };
    let mut writer = Writer::claim(store, 0).await;
    writer.write(rows(odd.into_iter().map(begun))).await;
    writer
        .write(rows([row("p"), row("p/c"), task_row("p/d", "q"), task_row("p/e", "P"), task_row("p/f", "p/a")]))
        .await;
    writer.write(rows(even.into_iter().map(begun))).await;
}

/// In the order of their ids, whenever and wherever they began, and none of another plan.
pub async fn tasks_of_a_plan_come_in_the_order_of_their_ids(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    let ids: Vec<_> = all_tasks(&store, "p").await.iter().map(|row| row.run.to_string()).collect();
    assert_eq!(ids, IN_ORDER);
    assert!(IN_ORDER.is_sorted());
    assert_eq!(all_tasks(&store, "q").await, [task_row("p/d", "q")]);
    assert_eq!(all_tasks(&store, "p/c").await, []);
}

/// Whatever the size of a page and whatever it begins after, the pages together are the list.
pub async fn pages_of_tasks_meet(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    let all = all_tasks(&store, "p").await;
    for limit in 0..=all.len() {
        for place in 0..all.len() {
            let page = store.tasks(&plan_id("p"), Some(&all[place].run), limit).await.unwrap();
            assert_eq!(page, all[place + 1..].iter().take(limit).cloned().collect::<Vec<_>>(), "{limit} after {place}");
        }
        assert_eq!(store.tasks(&plan_id("p"), None, limit).await.unwrap(), all[..limit]);
    }
    for (after, left) in [("-", 9), ("A", 8), ("p", 7), ("p/a-2", 5), ("p/c", 2), ("zz", 0)] {
        assert_eq!(store.tasks(&plan_id("p"), Some(&run(after)), 99).await.unwrap().len(), left, "after {after}");
    }
}

/// By plan and then by the name of the status, whatever the order in which they are asked for; nothing is counted twice.
pub async fn tasks_are_counted_by_status(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let some = [
        ("a", "p", TaskStatus::Running),
        ("b", "p", TaskStatus::RolledBack),
        ("c", "p", TaskStatus::Pending),
        ("d", "p", TaskStatus::Running),
        ("e", "P", TaskStatus::Completed),
        ("f", "p-1", TaskStatus::Failed),
        ("g", "p", TaskStatus::Cancelled),
    ];
    writer.write(rows(some.map(|(id, plan, status)| with(status, task_row(id, plan))))).await;
    writer.write(rows([row("h"), RunRow { shard: 4, ..with(TaskStatus::Running, of_p("i")) }])).await;
    let of_p =
        [("CANCELLED", 1), ("PENDING", 1), ("ROLLED_BACK", 1), ("RUNNING", 3)].map(|(status, tasks)| ("p".to_string(), status, tasks));
    assert_eq!(counts(&store, &["p"]).await, of_p);
    assert_eq!(counts(&store, &["p", "missing", "p"]).await, of_p);
    let all = [vec![("P".to_string(), "COMPLETED", 1)], of_p.to_vec(), vec![("p-1".to_string(), "FAILED", 1)]].concat();
    assert_eq!(counts(&store, &["p-1", "p", "P"]).await, all);
    assert_eq!(counts(&store, &["missing"]).await, []);
    assert_eq!(counts(&store, &[]).await, []);
}

/// Counts follow what is put, in the same batch and in later ones.
pub async fn counts_follow_the_tasks(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let ids: Vec<_> = (0..20).map(|number| format!("t{number}")).collect();
    let expect = |tasks: &[(&'static str, u64)]| tasks.iter().map(|(status, tasks)| ("p".to_string(), *status, *tasks)).collect::<Vec<_>>();
    writer.write(rows(ids.iter().map(|id| of_p(id)))).await;
    assert_eq!(counts(&store, &["p"]).await, expect(&[("PENDING", 20)]));
    writer.write(rows(ids[..5].iter().map(|id| with(TaskStatus::Running, of_p(id))))).await;
    assert_eq!(counts(&store, &["p"]).await, expect(&[("PENDING", 15), ("RUNNING", 5)]));
    let twice = [TaskStatus::Waiting, TaskStatus::Completed].map(|status| with(status, of_p("t0")));
    writer.write(rows(twice.into_iter().chain([task_row("t1", "q"), row("t2")]))).await;
    assert_eq!(counts(&store, &["p"]).await, expect(&[("COMPLETED", 1), ("PENDING", 15), ("RUNNING", 2)]));
}

/// The one that began last; of those that began at once the one with the highest id. Runs that are no tasks, and other tenants, do not count.
pub async fn the_latest_task_of_a_tenant_is_found(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let begun = |id: &str, tenant: &str, at| RunRow { tenant: Some(tenant.into()), started_at: time(at), ..task_row(id, "p") };
    let run_of = |id: &str, at| RunRow { tenant: Some("acme".into()), started_at: time(at), ..row(id) };
    assert_eq!(latest(&store, "acme").await, None);
    writer.write(rows([run_of("r1", 900), begun("x", "Acme", 900), begun("y", "acme/eu", 900)])).await;
    assert_eq!(latest(&store, "acme").await, None, "there is a run, and there are tasks of others");
    writer.write(rows([begun("b", "acme", 5), begun("z", "acme", 4), begun("B", "acme", 5)])).await;
    assert_eq!(latest(&store, "acme").await.as_deref(), Some("b"));
    writer.write(rows([RunRow { shard: 3, ..begun("b/1", "acme", 5) }, begun("b-1", "acme", 5)])).await;
    assert_eq!(latest(&store, "acme").await.as_deref(), Some("b/1"));
    writer.write(rows([begun("a", "acme", 6)])).await;
    assert_eq!(latest(&store, "acme").await.as_deref(), Some("a"));
    assert_eq!(latest(&store, "Acme").await.as_deref(), Some("x"));
    assert_eq!(latest(&store, "acme/eu").await.as_deref(), Some("y"));
    writer.write(rows([run_of("a", 6)])).await;
    assert_eq!(latest(&store, "acme").await.as_deref(), Some("b/1"), "it is no task any more");
}

/// A run that is swept is no task either.
pub async fn a_task_that_is_swept_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let done = with(TaskStatus::Completed, RunRow { status: Status::Completed, ended_at: Some(time(9)), ..of_p("a") });
    writer
        .write(steadfast_store::Batch { plans: vec![plan_row("p", 5)], events: vec![event("a", 1)], ..rows([done, of_p("b")]) })
        .await;
    let swept = store
        .sweep(0, writer.head.term, &[Sweep { entity: run("a").into(), ended_at: time(9) }])
        .await
        .unwrap();
    assert_eq!(swept, [Swept::Gone]);
    assert_eq!(all_tasks(&store, "p").await, [of_p("b")]);
    assert_eq!(counts(&store, &["p"]).await, [("p".to_string(), "PENDING", 1)]);
    assert_eq!(latest(&store, "acme").await.as_deref(), Some("b"));
    assert!(store.plan(&plan_id("p")).await.unwrap().is_some(), "its plan has a life of its own");
}

/// Tasks are rows of runs: a plan need not be there, and does not take them along.
pub async fn plans_and_tasks_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(rows([of_p("p")])).await;
    assert_eq!(store.plan(&plan_id("p")).await.unwrap(), None);
    writer.write(plans([plan_row("p", 5)])).await;
    assert_eq!(all_tasks(&store, "p").await, [of_p("p")]);
    assert_eq!(store.plan(&plan_id("p")).await.unwrap(), Some(plan_row("p", 5)));
}

/// A batch that fails changes no task.
pub async fn tasks_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(steadfast_store::Batch { events: vec![event("a", 1)], ..rows([of_p("a")]) }).await;
    let mut failing = rows([with(TaskStatus::Running, of_p("a")), of_p("b")]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(all_tasks(&store, "p").await, [of_p("a")]);
    assert_eq!(counts(&store, &["p"]).await, [("p".to_string(), "PENDING", 1)]);
}
