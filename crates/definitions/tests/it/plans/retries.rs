//! A task that failed goes on where it stopped, when a person wants it.

use super::{Rollout, Site};
use serde_json::{Value as Json, json};
use steadfast::{Failure, TaskStatus};

const STAGES: [&str; 5] = ["s0", "s1", "s2", "s3", "s4"];

/// Every stage writes its name to a file, fails if another file says so, and adds its name to a list.
fn text() -> String {
    let stage = |name: &str| {
        format!(
            r#"
  - name: {name}
    run: {{ command: [sh, -c, "echo {name} >> log; test ! -e {name}.broken"], exit: {{ permanent: [1] }} }}
    checkpoint: {{ did: "{{{{ checkpoint.did | default([]) + ['{name}'] }}}}" }}
"#
        )
    };
    format!("plan: a\nstages:{}", STAGES.map(stage).concat())
}

fn did(count: usize) -> Json {
    json!({ "did": STAGES[..count] })
}

/// The stages from the first to the last of them.
fn span(first: usize, last: usize) -> Vec<usize> {
    (0..STAGES.len()).map(|stage| usize::from((first..=last).contains(&stage))).collect()
}

/// How often each stage was done while that happened.
async fn done_by(site: &Site, act: impl Future<Output = TaskStatus>, expected: TaskStatus) -> Vec<usize> {
    let count = || STAGES.map(|stage| site.log().iter().filter(|line| *line == stage).count());
    let before = count();
    assert_eq!(act.await, expected);
    count().iter().zip(before).map(|(after, before)| after - before).collect()
}

#[tokio::test]
async fn a_stage_that_fails_keeps_the_checkpoint_and_a_retry_runs_only_the_rest() {
    let site = Site::of(&text()).await;
    site.break_down("s2");
    assert_eq!(site.start().await, TaskStatus::Failed);
    let task = site.task().await;
    assert_eq!((task.stage, task.lock.is_some()), (Some((2, "s2".into())), true));
    assert_eq!(site.left().await, Some(did(2)));
    site.mend("s2");
    assert_eq!(site.retry(true).await, TaskStatus::Completed);
    assert_eq!(site.log(), ["s0", "s1", "s2", "s2", "s3", "s4"]);
    assert_eq!(site.result().await, did(5));
    assert!(site.task().await.lock.is_none());
}

#[tokio::test]
async fn whatever_stage_fails_a_retry_runs_every_stage_once_more_or_not_at_all() {
    let last = STAGES.len() - 1;
    for (first, one) in STAGES.into_iter().enumerate() {
        for (second, other) in STAGES.into_iter().enumerate().skip(first) {
            let site = Site::of(&text()).await;
            site.break_down(one);
            assert_eq!(done_by(&site, site.start(), TaskStatus::Failed).await, span(0, first), "{first}, {second}");
            assert_eq!(site.left().await, (first > 0).then(|| did(first)), "{first}, {second}");
            site.mend(one);
            site.break_down(other);
            assert_eq!(done_by(&site, site.retry(true), TaskStatus::Failed).await, span(first, second), "{first}, {second}");
            assert_eq!(site.left().await, (second > 0).then(|| did(second)), "{first}, {second}");
            site.mend(other);
            assert_eq!(done_by(&site, site.retry(true), TaskStatus::Completed).await, span(second, last), "{first}, {second}");
            assert_eq!(site.result().await, did(5), "{first}, {second}");
        }
    }
}

#[tokio::test]
async fn a_retry_from_the_start_runs_everything_and_keeps_nothing() {
    let site = Site::of(&text()).await;
    site.break_down("s3");
    assert_eq!(site.start().await, TaskStatus::Failed);
    site.mend("s3");
    let last = STAGES.len() - 1;
    assert_eq!(done_by(&site, site.retry(false), TaskStatus::Completed).await, span(0, last));
    assert_eq!(site.result().await, did(5));
}

#[tokio::test]
async fn a_stage_is_retried_by_its_policy_or_by_that_of_the_plan() {
    let text = r#"
plan: a
retry: { max_attempts: 2, base: 1h, max_delay: 2h }
stages:
  - { name: one, run: { command: ["true"] }, retry: { max_attempts: 3, base: 1h, max_delay: 2h } }
  - { name: two, run: { command: ["true"] } }
"#;
    let rollout = Rollout::created(text, json!({})).await;
    for attempt in 1..=2 {
        rollout.lab.fail_attempt("one", attempt, Failure::transient("not now"));
        rollout.lab.fail_attempt("two", attempt, Failure::transient("not now either"));
    }
    rollout.start().await;
    let failure = rollout.result().await.unwrap_err();
    assert_eq!((&*failure.message, failure.attempts), ("gave up after 2 of 2 attempts: not now either", 2));
    assert_eq!(rollout.task().await.stage, Some((1, "two".into())));
}

#[tokio::test]
async fn a_stage_that_cannot_be_begun_has_failed_and_is_begun_by_a_retry() {
    for does in ["set: \"{{ input.missing }}\"", "set: 1, when: \"{{ input.missing }}\"", "wait: \"{{ input.missing }}\""] {
        let text = format!("plan: a\nstages:\n  - {{ name: one, set: 1 }}\n  - {{ name: two, {does} }}\n  - {{ name: three, set: 1 }}\n");
        let rollout = Rollout::of(&text, json!({})).await;
        for _ in 0..2 {
            let failure = rollout.result().await.unwrap_err();
            assert!(failure.message.starts_with("step two, ") && failure.message.ends_with("`input.missing` is undefined"), "{failure:?}");
            assert_eq!(rollout.left().await, Some(json!({})));
            rollout.retry().await;
        }
        assert_eq!(rollout.calls(&["one", "three"]), [1, 0]);
    }
}
