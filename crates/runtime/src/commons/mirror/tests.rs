//! What is sent, and what is remembered of it, without any Redis.

use super::*;
use std::time::Duration;
use steadfast_kernel::{Payload, TenantId};
use steadfast_store::SharedCheckpoint;

fn me() -> InstanceId {
    InstanceId::new("a").unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.saturating_add(Duration::from_secs(seconds))
}

fn plan(seq: Seq, status: PlanStatus) -> PlanImage {
    PlanImage {
        seq,
        plan: PlanId::new("night").unwrap(),
        status,
        tasks: vec![task_id("night", 0), task_id("night", 1)],
        max_concurrency: 2,
        created_at: at(1),
        started_at: None,
        definition: "switch".into(),
        hash: "h".into(),
        vars: Payload::json("{}"),
    }
}

fn task_id(plan: &str, number: usize) -> RunId {
    RunId::new(format!("{plan}/t{number}")).unwrap()
}

fn task(number: usize, seq: Seq, status: TaskStatus) -> TaskImage {
    TaskImage {
        seq,
        task: task_id("night", number),
        tenant: TenantId::new(format!("t{number}")).unwrap(),
        plan: PlanId::new("night").unwrap(),
        status,
        pause_requested: false,
        created_at: at(1),
        started_at: None,
        definition: "switch".into(),
        hash: "h".into(),
        fence: 0,
        checkpoint: None,
    }
}

fn checkpoint(index: u32, version: u64) -> Option<SharedCheckpoint> {
    let (completed, data) = (Vec::new(), Payload::json("{}"));
    Some(SharedCheckpoint { index, completed, data, saved_at: at(2), version, fence: 1 })
}

/// What is sent, in short.
fn line(write: &Write) -> String {
    match write {
        Write::Plan { fields, whole, .. } => format!("plan {} {}", fields.len(), if *whole { "whole" } else { "part" }),
        Write::Task { task, fields, whole, .. } => format!("{task} {} {}", fields.len(), if *whole { "whole" } else { "part" }),
        Write::Index { task, unless_there, .. } => format!("index {task}{}", if *unless_there { " unless there" } else { "" }),
        Write::Checkpoint { task, checkpoint } => format!("checkpoint {task} {}", checkpoint.version),
        Write::DropCheckpoint { task, .. } => format!("no checkpoint {task}"),
        other => format!("{other:?}"),
    }
}

fn lines(mirror: &Mirror) -> Vec<String> {
    mirror.writes(&me()).iter().map(|(_, write)| line(write)).collect()
}

/// Sends all there is; what becomes of a write is said by its line.
fn send_with(mirror: &mut Mirror, answer: impl Fn(&str) -> Wrote) -> (Vec<String>, Vec<Then>) {
    let (mut sent, mut thens) = (Vec::new(), Vec::new());
    for (about, write) in mirror.writes(&me()) {
        let line = line(&write);
        thens.push(mirror.wrote(about, &answer(&line), at(9)));
        sent.push(line);
    }
    thens.retain(|then| *then != Then::Nothing);
    (sent, thens)
}

fn send(mirror: &mut Mirror) -> Vec<String> {
    send_with(mirror, |_| Wrote::Done).0
}

/// A plan of two tasks that others know.
fn known() -> Mirror {
    let mut mirror = Mirror::default();
    mirror.plan(plan(1, PlanStatus::Ready), true, at(1));
    for number in 0..2 {
        mirror.task(task(number, 1, TaskStatus::Pending), true, at(1));
    }
    send(&mut mirror);
    assert!(!mirror.has_news());
    mirror
}

#[test]
fn a_plan_and_all_of_its_tasks_are_one_list_and_wait_until_it_is_made() {
    let mut mirror = Mirror::default();
    mirror.plan(plan(1, PlanStatus::Created), true, at(1));
    mirror.task(task(0, 1, TaskStatus::Pending), true, at(1));
    assert!(!mirror.has_news() && mirror.writes(&me()).is_empty());
    assert_eq!(mirror.lag(), (2, Some(at(1))), "they are behind all the same");
    mirror.task(task(1, 1, TaskStatus::Pending), true, at(2));
    mirror.plan(plan(2, PlanStatus::Ready), false, at(3));
    let sent = send(&mut mirror);
    assert_eq!(sent, ["plan 8 whole", "night/t0 8 whole", "night/t1 8 whole", "index night/t0", "index night/t1"]);
    assert_eq!((lines(&mirror), mirror.lag()), (vec![], (0, None)));
}

#[test]
fn only_what_has_changed_is_sent() {
    let mut mirror = known();
    mirror.task(TaskImage { started_at: Some(at(3)), fence: 1, ..task(0, 2, TaskStatus::Running) }, false, at(3));
    mirror.plan(PlanImage { started_at: Some(at(3)), ..plan(2, PlanStatus::Running) }, false, at(3));
    assert_eq!(send(&mut mirror), ["plan 2 part", "night/t0 2 part"]);
    let running = TaskImage { started_at: Some(at(3)), fence: 1, ..task(0, 3, TaskStatus::Running) };
    mirror.task(TaskImage { checkpoint: checkpoint(0, 3), ..running.clone() }, false, at(4));
    assert_eq!(send(&mut mirror), ["checkpoint night/t0 3"], "the hash is as it was");
    mirror.task(TaskImage { seq: 4, checkpoint: None, fence: 2, ..running }, false, at(5));
    assert_eq!(send(&mut mirror), ["night/t0 0 part", "no checkpoint night/t0"], "the fence is written by itself");
}

#[test]
fn the_latest_is_sent_once_however_much_came_before_and_what_comes_late_is_passed_over() {
    let mut mirror = known();
    for seq in 2..9 {
        mirror.task(TaskImage { checkpoint: checkpoint(0, seq), ..task(0, seq, TaskStatus::Running) }, false, at(seq));
    }
    mirror.task(task(0, 3, TaskStatus::Waiting), false, at(10));
    assert_eq!(mirror.lag(), (1, Some(at(2))));
    assert_eq!(send(&mut mirror), ["night/t0 1 part", "checkpoint night/t0 8"]);
}

#[test]
fn what_changed_while_it_was_sent_is_sent_again() {
    let mut mirror = known();
    mirror.task(task(0, 2, TaskStatus::Running), false, at(2));
    let writes = mirror.writes(&me());
    mirror.task(task(0, 3, TaskStatus::Waiting), false, at(3));
    for (about, _) in writes {
        mirror.wrote(about, &Wrote::Done, at(9));
    }
    assert_eq!(send(&mut mirror), ["night/t0 1 part"]);
    assert!(!mirror.has_news());
}

#[test]
fn a_checkpoint_that_is_there_is_told() {
    let mut mirror = known();
    mirror.task(TaskImage { checkpoint: checkpoint(0, 5), ..task(0, 5, TaskStatus::Running) }, false, at(2));
    assert_eq!(mirror.has_told(&task_id("night", 0)), 0);
    assert_eq!(send_with(&mut mirror, |_| Wrote::Done).1, [Then::Reached(task_id("night", 0), 5)]);
    mirror.task(TaskImage { checkpoint: checkpoint(0, 5), ..task(0, 6, TaskStatus::Failed) }, false, at(3));
    mirror.task(TaskImage { checkpoint: checkpoint(0, 5), ..task(0, 7, TaskStatus::RollingBack) }, false, at(3));
    assert_eq!(mirror.has_told(&task_id("night", 0)), 5, "it is not sent again");
}

#[test]
fn what_is_missing_is_sent_whole() {
    let mut mirror = known();
    mirror.task(TaskImage { checkpoint: checkpoint(0, 2), ..task(0, 2, TaskStatus::Running) }, false, at(2));
    mirror.plan(plan(2, PlanStatus::Running), false, at(2));
    let gone = |line: &str| if line.ends_with("part") { Wrote::Missing } else { Wrote::Done };
    send_with(&mut mirror, gone);
    let sent = send(&mut mirror);
    assert_eq!(sent, ["plan 8 whole", "night/t0 8 whole", "checkpoint night/t0 2", "index night/t0 unless there"]);
    assert!(!mirror.has_news());
}

#[test]
fn in_doubt_all_that_lives_is_looked_at_and_what_has_ended_is_not() {
    let mut mirror = known();
    mirror.task(task(0, 2, TaskStatus::Completed), false, at(2));
    mirror.task(TaskImage { checkpoint: checkpoint(0, 2), ..task(1, 2, TaskStatus::Failed) }, false, at(2));
    send(&mut mirror);
    mirror.doubt(at(3));
    assert_eq!(mirror.lag(), (2, Some(at(3))));
    let sent = send_with(&mut mirror, |line| if line.ends_with("part") { Wrote::Missing } else { Wrote::Done }).0;
    assert_eq!(sent, ["plan 1 part", "night/t1 2 part", "checkpoint night/t1 2", "index night/t1 unless there"]);
    let sent = send(&mut mirror);
    assert_eq!(sent, ["plan 8 whole", "night/t1 8 whole", "checkpoint night/t1 2", "index night/t1 unless there"]);
}

#[test]
fn in_doubt_a_checkpoint_that_is_no_more_is_removed() {
    let mut mirror = known();
    let running = TaskImage { fence: 1, ..task(0, 2, TaskStatus::Running) };
    mirror.task(TaskImage { checkpoint: checkpoint(0, 2), ..running.clone() }, false, at(2));
    send(&mut mirror);
    mirror.task(TaskImage { seq: 3, ..running }, false, at(3)); // from its start, while nobody could be told
    mirror.doubt(at(4));
    assert!(lines(&mirror).contains(&"no checkpoint night/t0".to_string()), "{:?}", lines(&mirror));
}

#[test]
fn of_several_tasks_of_a_tenant_the_last_one_is_its_index_again() {
    let mut mirror = Mirror::default();
    let of = |plan: &str, created| TaskImage {
        task: task_id(plan, 0),
        plan: PlanId::new(plan).unwrap(),
        created_at: at(created),
        ..task(0, 2, TaskStatus::Failed)
    };
    for (plan, created) in [("c", 1), ("b", 3), ("a", 2)] {
        mirror.task(of(plan, created), false, at(9));
    }
    let index = |lines: Vec<String>| lines.into_iter().filter(|line| line.starts_with("index")).collect::<Vec<_>>();
    assert_eq!(index(lines(&mirror)), ["index b/t0 unless there"]);
    send_with(&mut mirror, |line| if line.ends_with("part") { Wrote::Missing } else { Wrote::Done });
    assert_eq!(index(lines(&mirror)), ["index b/t0 unless there"]);
}

#[test]
fn a_task_that_is_anothers_is_forgotten_and_told() {
    for checkpoint_only in [false, true] {
        let mut mirror = known();
        let status = if checkpoint_only { TaskStatus::Pending } else { TaskStatus::Running };
        mirror.task(TaskImage { checkpoint: checkpoint(0, 2), ..task(0, 2, status) }, false, at(2));
        let b = InstanceId::new("b").unwrap();
        let not = |_: &str| Wrote::NotYours { owner: Some(InstanceId::new("b").unwrap()), fence: 9 };
        let (_, thens) = send_with(&mut mirror, not);
        assert!(thens.contains(&Then::NotYours(task_id("night", 0), Some(b), 9)), "{thens:?}");
        assert_eq!((lines(&mirror), mirror.lag()), (vec![], (0, None)));
        mirror.task(task(0, 3, TaskStatus::HandedOver), false, at(3));
        assert!(!mirror.has_news(), "nothing is said about it any more");
    }
}

#[test]
fn a_plan_that_is_anothers_is_told_and_its_tasks_are_sent_all_the_same() {
    let mut mirror = known();
    mirror.plan(plan(2, PlanStatus::Running), false, at(2));
    mirror.task(task(0, 2, TaskStatus::Running), false, at(2));
    let not = |line: &str| match line.starts_with("plan") {
        true => Wrote::NotYours { owner: None, fence: 0 },
        false => Wrote::Done,
    };
    let (_, thens) = send_with(&mut mirror, not);
    assert_eq!(thens, [Then::PlanNotYours(PlanId::new("night").unwrap(), None)]);
    assert!(!mirror.has_news());
}

#[test]
fn something_else_in_its_place_is_tried_again_later_and_hinders_nobody() {
    let mut mirror = known();
    mirror.task(task(0, 2, TaskStatus::Running), false, at(2));
    mirror.task(task(1, 2, TaskStatus::Running), false, at(2));
    let foreign = |line: &str| match line.starts_with("night/t0") {
        true => Wrote::Foreign { key: "k".into() },
        false => Wrote::Done,
    };
    assert_eq!(send_with(&mut mirror, foreign).1, [Then::Foreign("k".into())]);
    assert_eq!((mirror.has_news(), mirror.lag()), (false, (1, Some(at(2)))), "it is behind, and not sent again and again");
    mirror.try_again();
    assert_eq!(send(&mut mirror), ["night/t0 1 part"]);
}

#[test]
fn a_checkpoint_that_another_has_come_further_than_is_not_sent_again_and_again() {
    let mut mirror = known();
    mirror.task(TaskImage { checkpoint: checkpoint(0, 5), ..task(0, 5, TaskStatus::Pending) }, false, at(2));
    let further = |_: &str| Wrote::NotYours { owner: None, fence: 9 };
    assert_eq!(send_with(&mut mirror, further), (vec!["checkpoint night/t0 5".into()], vec![Then::Suspect(task_id("night", 0))]));
    assert!(!mirror.has_news());
}

#[test]
fn what_is_open_is_told_again_before_it_is_forgotten_there() {
    let mut mirror = known();
    mirror.refresh(Duration::from_secs(60), at(68));
    assert!(!mirror.has_news());
    mirror.refresh(Duration::from_secs(60), at(69));
    let sent = send(&mut mirror);
    assert!(sent.contains(&"plan 1 part".into()) && sent.contains(&"night/t0 2 part".into()), "{sent:?}");
    assert!(sent.contains(&"index night/t0 unless there".into()), "{sent:?}");
    mirror.refresh(Duration::from_secs(60), at(68));
    assert!(!mirror.has_news(), "it was told just now");
}

#[test]
fn a_round_has_so_many_bytes_and_what_is_left_comes_with_the_next() {
    let (mut mirror, large) = (known(), Payload::json("x".repeat(ROUND_BYTES)));
    for number in 0..2 {
        let saved = checkpoint(0, 5).map(|saved| SharedCheckpoint { data: large.clone(), ..saved });
        mirror.task(TaskImage { checkpoint: saved, ..task(number, 5, TaskStatus::Pending) }, false, at(2));
    }
    mirror.task(task(2, 1, TaskStatus::Pending), true, at(2));
    assert_eq!(send(&mut mirror), ["checkpoint night/t0 5", "checkpoint night/t1 5"]);
    assert_eq!(send(&mut mirror).first().map(String::as_str), Some("night/t2 8 whole"));
    assert!(!mirror.has_news());
}

#[test]
fn a_task_that_is_under_way_is_what_its_tenant_had_last() {
    let mut mirror = known();
    mirror.task(TaskImage { started_at: Some(at(2)), ..task(0, 2, TaskStatus::Running) }, false, at(2));
    send(&mut mirror);
    mirror.doubt(at(3));
    let sent = send(&mut mirror);
    assert!(sent.contains(&"index night/t0".into()) && sent.contains(&"index night/t1 unless there".into()), "{sent:?}");
}

#[test]
fn what_has_ended_is_forgotten_once_it_is_known_and_a_failed_task_is_not() {
    let mut mirror = known();
    mirror.task(task(0, 2, TaskStatus::Completed), false, at(2));
    mirror.task(task(1, 2, TaskStatus::Failed), false, at(2));
    mirror.plan(plan(2, PlanStatus::Failed), false, at(2));
    send(&mut mirror);
    assert_eq!((mirror.plans.len(), mirror.tasks.len(), mirror.open_plans()), (1, 1, vec![]), "who takes it up needs the plan");
    mirror.task(task(1, 3, TaskStatus::Cancelled), false, at(3));
    send(&mut mirror);
    assert_eq!((mirror.plans.len(), mirror.tasks.len()), (0, 0));
}

#[test]
fn beyond_its_bound_what_is_over_is_forgotten_and_has_to_be_looked_at_again() {
    let mut mirror = Mirror::default();
    for number in 0..REMEMBERED_MAX {
        let status = if number < 3 { TaskStatus::Pending } else { TaskStatus::Completed };
        mirror.task(task(number, 1, status), true, at(1));
    }
    assert!(!mirror.overflowed);
    mirror.plan(plan(1, PlanStatus::Ready), true, at(1));
    assert!(mirror.overflowed);
    assert_eq!((mirror.plans.len(), mirror.tasks.len(), mirror.lag()), (1, 3, (4, Some(at(1)))), "what is open is not");
}

#[test]
fn however_much_is_open_is_remembered_and_not_looked_at_again_and_again() {
    let mut mirror = Mirror::default();
    for number in 0..=REMEMBERED_MAX {
        mirror.task(task(number, 1, TaskStatus::Pending), true, at(1));
    }
    assert_eq!((mirror.tasks.len(), mirror.overflowed), (REMEMBERED_MAX + 1, false));
    assert!(mirror.room > REMEMBERED_MAX);
}

/// Of which state a write says that it is.
fn as_of(mirror: &Mirror) -> Vec<String> {
    let writes = mirror.writes(&me()).into_iter();
    let texts = writes.filter_map(|(_, write)| match write {
        Write::Plan { as_of, .. } | Write::Task { as_of, .. } => Some(as_of.map_or_else(String::new, |as_of| as_of.to_string())),
        _ => None,
    });
    texts.collect()
}

/// The same plan and a task of it, where others write under this name, too.
fn known_among_many() -> Mirror {
    let mut mirror = Mirror::among_many();
    mirror.plan(plan(4, PlanStatus::Running), true, at(1));
    mirror.task(task(0, 7, TaskStatus::Running), true, at(1));
    assert_eq!(as_of(&mirror), ["1000000:4", "1000000:7"]);
    send(&mut mirror);
    mirror
}

#[test]
fn who_is_alone_says_nothing_of_states() {
    let mut mirror = Mirror::default();
    mirror.plan(plan(1, PlanStatus::Ready), true, at(1));
    assert_eq!(as_of(&mirror), [""]);
}

#[test]
fn what_another_has_gone_on_with_is_forgotten() {
    let mut mirror = known_among_many();
    mirror.task(TaskImage { checkpoint: checkpoint(0, 8), ..task(0, 8, TaskStatus::Completed) }, false, at(2));
    mirror.plan(plan(5, PlanStatus::Completed), false, at(2));
    let later = |line: &str| {
        if line.starts_with("checkpoint") {
            Wrote::NotYours { owner: None, fence: 2 }
        } else {
            Wrote::NotYours { owner: Some(me()), fence: 2 }
        }
    };
    let (_, thens) = send_with(&mut mirror, later);
    let expected = [
        Then::PlanNotYours(plan(1, PlanStatus::Ready).plan, Some(me())),
        Then::NotYours(task_id("night", 0), Some(me()), 2),
        Then::Reached(task_id("night", 0), 8),
    ];
    assert_eq!(thens, expected);
    assert_eq!((mirror.plans.len(), mirror.tasks.len(), mirror.lag()), (0, 0, (0, None)));
}

#[test]
fn what_goes_elsewhere_is_told_once_more_if_it_was_not_and_forgotten() {
    let mut mirror = known_among_many();
    mirror.task(task(0, 8, TaskStatus::Failed), false, at(2));
    mirror.leave(|_| true);
    assert_eq!((mirror.plans.len(), mirror.tasks.len()), (0, 1));
    assert_eq!(send(&mut mirror), ["night/t0 1 part"]);
    assert_eq!((mirror.tasks.len(), mirror.members.len()), (0, 0));
}

#[test]
fn what_comes_back_counts_as_untold() {
    let mut mirror = known_among_many();
    mirror.enter(|entity| matches!(entity, steadfast_kernel::EntityId::Run(_)), at(3));
    assert_eq!(send(&mut mirror), ["night/t0 2 part", "no checkpoint night/t0", "index night/t0 unless there"]);
}

#[test]
fn that_all_is_lost_is_seen_by_what_was_told() {
    let mut mirror = known_among_many();
    assert!(matches!(mirror.probe(&me()), Some(Write::Task { whole: false, .. })));
    mirror.task(task(0, 8, TaskStatus::Paused), false, at(2));
    assert!(matches!(mirror.probe(&me()), Some(Write::Plan { whole: false, .. })), "what is told anyway says it by itself");
    let missing = |line: &str| if line.ends_with("part") { Wrote::Missing } else { Wrote::Done };
    assert_eq!(send_with(&mut mirror, missing).1, [Then::Lost]);
    let mut mirror = Mirror::among_many();
    mirror.task(task(0, 8, TaskStatus::Paused), false, at(2));
    let thens = send_with(&mut mirror, missing).1;
    assert!(!thens.contains(&Then::Lost), "nobody has told of it before: {thens:?}");
    assert_eq!(send(&mut mirror), ["night/t0 8 whole", "no checkpoint night/t0", "index night/t0 unless there"]);
    assert!(Mirror::among_many().probe(&me()).is_none());
}
