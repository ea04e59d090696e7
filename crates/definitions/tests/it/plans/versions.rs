//! Plans of a folder: their names, and the versions that tasks keep.

use super::{Rollout, TASK, yes};
use crate::support::vars;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use steadfast::memory::Memory;
use steadfast::{Engine, PlanStatus, Store, TaskStatus};
use steadfast_definitions::{Changes, Library, Settings};
use steadfast_kernel::{Timestamp, WorkflowName};
use steadfast_store::Batch;

fn text(value: &str) -> String {
    format!(
        "plan: a\nstages:\n  - {{ name: ask, approve: {{}} }}\n  - {{ name: say, set: {value}, checkpoint: {{ said: \"{{{{ output }}}}\" }} }}\n"
    )
}

fn open(folder: &Path, kept: Vec<steadfast_store::Definition>) -> (Library, Changes) {
    Library::open(folder, vars(), Settings::default(), kept).unwrap()
}

fn told(changes: &Changes) -> Vec<String> {
    changes.problems().map(ToString::to_string).collect()
}

fn name() -> WorkflowName {
    WorkflowName::new("a").unwrap()
}

#[tokio::test]
async fn a_task_keeps_the_version_that_it_began_with() {
    let rollout = Rollout::of(&text("old"), json!({})).await;
    let (file, library) = (rollout.shelf.folder.path().join("0.yaml"), rollout.shelf.library.clone());
    rollout.task().await;
    fs::write(&file, text("new")).unwrap();
    library.reload().unwrap();
    let engine = rollout.lab.engine().await;
    engine.create_plan("a").id("q").tenants(["globex"]).await.unwrap().start().await.unwrap();
    rollout.lab.crash().await;
    for (task, said) in [(TASK, "old"), ("q/globex", "new")] {
        rollout.lab.signal(task, "ask", &yes()).await;
        assert_eq!(rollout.lab.result::<Json>(task).await, Ok(json!({ "said": said })));
    }

    let engine = rollout.lab.engine().await;
    engine.create_plan("a").id("last").tenants(["acme"]).await.unwrap().start().await.unwrap();
    rollout.lab.settle().await;
    fs::remove_file(&file).unwrap();
    library.reload().unwrap();
    let error = engine.create_plan("a").id("none").tenants(["acme"]).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("the definition of a is gone"), "{error}");
    rollout.lab.signal("last/acme", "ask", &yes()).await;
    assert_eq!(rollout.lab.result::<Json>("last/acme").await, Ok(json!({ "said": "new" })));
}

#[tokio::test(start_paused = true)]
async fn another_process_has_the_versions_that_the_store_kept() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text("old")).unwrap();
    let (library, changes) = open(folder.path(), Vec::new());
    let store = Memory::new();
    let kept = changes.added[0].kept(Timestamp::EPOCH);
    store.commit(Batch { definitions: vec![kept], ..Batch::default() }).await.unwrap();
    let engine = Engine::on(store.clone()).register_code("a", library.registered(&name())).start().await.unwrap();
    let plan = engine.create_plan("a").id("p").tenants(["acme"]).await.unwrap();
    plan.start().await.unwrap();
    plan.until(|info| info.progress.contains_key(&TaskStatus::Waiting)).await.unwrap();
    engine.shutdown().await;

    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    let (library, _) = open(folder.path(), store.definitions().await.unwrap());
    assert!(library.registered(&name()).is_plan, "also of a plan whose file is gone");
    let engine = Engine::on(store).register_code("a", library.registered(&name())).start().await.unwrap();
    engine.run(TASK).unwrap().signal("ask", &yes()).await.unwrap();
    assert_eq!(engine.run(TASK).unwrap().result::<Json>().await.unwrap(), json!({ "said": "old" }));
    assert_ne!(engine.plan_status("p").await.unwrap().status, PlanStatus::Failed);
}

#[test]
fn plans_and_workflows_have_their_names_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    write("a.yaml", &text("1"));
    write("b.yaml", "workflow: a\nsteps:\n  - { name: one, set: 1 }\n");
    write("c.yaml", &text("2"));
    let (library, changes) = open(folder.path(), Vec::new());
    let expected = [
        "b.yaml:1:1: the workflow a has the name of a plan, which is defined by a.yaml",
        "c.yaml:1:1: the plan a is defined by a.yaml already",
    ];
    assert_eq!(told(&changes), expected);
    assert!(library.registered(&name()).is_plan);
    assert_eq!(library.describe().iter().map(|described| described.kind).collect::<Vec<_>>(), ["plan"]);
}

#[test]
fn a_broken_file_leaves_the_version_of_the_plan_before_it_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, text("1")).unwrap();
    let (library, changes) = open(folder.path(), Vec::new());
    let kept = changes.added[0].kept(Timestamp::EPOCH);
    fs::write(&file, "plan: a\nstages: []\n").unwrap();
    assert_eq!(told(&library.reload().unwrap()), ["a.yaml:2:9: the plan has no stages"]);
    assert_eq!(library.current(&name()).unwrap().text, text("1"));
    let (library, _) = open(folder.path(), vec![kept]);
    assert_eq!(library.current(&name()).unwrap().text, text("1"), "also when the program starts with it");
}

#[test]
fn a_name_may_become_that_of_the_other_kind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, "workflow: a\nsteps:\n  - { name: one, set: 1 }\n").unwrap();
    let (library, _) = open(folder.path(), Vec::new());
    let is_plan = || library.registered(&name()).is_plan;
    assert!(!is_plan());
    fs::write(&file, text("1")).unwrap();
    assert_eq!(library.reload().unwrap().changed.len(), 1);
    assert!(is_plan());
    let code = Arc::clone(&library.registered(&name()).code);
    assert!(code.terms(&steadfast_kernel::Payload::json("{}")).unwrap().plan.is_some());
}
