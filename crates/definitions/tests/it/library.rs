//! The folder and its versions.

use crate::support::vars;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use steadfast::memory::Memory;
use steadfast::testing::Lab;
use steadfast::{Engine, Error, Store, Timestamp};
use steadfast_definitions::{Changes, Library, Settings, check};
use steadfast_kernel::WorkflowName;
use steadfast_runtime::Registered;
use steadfast_runtime::host::Code;
use steadfast_store::Batch;

fn text(workflow: &str, value: &str) -> String {
    format!(
        "workflow: {workflow}\ndescription: says something\nsteps:\n  - {{ name: ask, approve: {{}} }}\n  - {{ name: say, set: {value} }}\noutput: \"{{{{ steps.say.output }}}}\"\n"
    )
}

fn open(folder: &Path) -> (Library, Changes) {
    Library::open(folder, vars(), Settings::default(), Vec::new()).unwrap()
}

fn name(name: &str) -> WorkflowName {
    WorkflowName::new(name).unwrap()
}

/// What changed, in short.
fn told(changes: &Changes) -> [Vec<String>; 4] {
    [
        changes.added.iter().map(|definition| definition.name.to_string()).collect(),
        changes.changed.iter().map(|definition| definition.name.to_string()).collect(),
        changes.removed.iter().map(ToString::to_string).collect(),
        changes.problems().map(ToString::to_string).collect(),
    ]
}

#[test]
fn a_folder_is_read_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    write("a.yaml", &text("a", "1"));
    write("b.yml", &text("b", "1"));
    write("notes.txt", "not: [ours");
    let (library, changes) = open(folder.path());
    assert_eq!(told(&changes), [vec!["a", "b"], vec![], vec![], vec![]]);
    assert!(library.reload().unwrap().is_empty(), "nothing has changed");

    let before = library.current(&name("a")).unwrap();
    write("a.yaml", &text("a", "2"));
    fs::remove_file(folder.path().join("b.yml")).unwrap();
    write("c.yaml", &text("c", "1"));
    assert_eq!(told(&library.reload().unwrap()), [vec!["c"], vec!["a"], vec!["b"], vec![]]);
    let after = library.current(&name("a")).unwrap();
    assert_ne!(before.hash, after.hash);
    let versions = library.code(&name("a")).versions().unwrap();
    assert_eq!(versions, [before.hash.clone(), after.hash.clone()].into(), "runs of both can go on here, and of no other");
    assert!(versions.iter().all(|hash| library.code(&name("a")).knows(Some(hash))));
    assert_eq!(library.version(&before.hash).unwrap().text, text("a", "1"), "the version before is still there");
    assert!(library.current(&name("b")).is_none() && library.names().contains(&name("b")));
}

#[test]
fn a_broken_file_leaves_the_version_before_it_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    write("a.yaml", &text("a", "1"));
    write("b.yaml", "workflow: b\nsteps: []\n");
    let (library, changes) = open(folder.path());
    assert_eq!(told(&changes), [vec!["a"], vec![], vec![], vec!["b.yaml:2:8: the workflow has no steps"]]);
    let before = library.current(&name("a")).unwrap();
    write("a.yaml", "workflow: a\nstepps: []\n");
    let changes = library.reload().unwrap();
    assert_eq!((changes.broken.len(), changes.removed.len()), (2, 0));
    assert_eq!(library.current(&name("a")).unwrap().hash, before.hash);
}

#[tokio::test]
async fn a_file_that_is_broken_at_the_start_leaves_the_newest_kept_version_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &[u8]| fs::write(folder.path().join(file), text).unwrap();
    let kept = |workflow: &str, value: &str, at: i64| check(workflow, &text(workflow, value)).unwrap().kept(Timestamp::from_micros(at));
    let all = vec![kept("a", "oldest", 1), kept("b", "b", 2), kept("a", "newest", 3), kept("c", "c", 4), kept("gone", "1", 5)];
    write("a.yaml", b"# ours\nworkflow: \"a\" # the first\nsteps: [\n");
    write("b.yaml", b"workflow: b\n# \xff\nsteps: []\n");
    write("c.yaml", b"about: c\nsteps: []\n");
    let (library, changes) = Library::open(folder.path(), vars(), Settings::default(), all).unwrap();
    assert_eq!((&told(&changes)[0], changes.broken.len()), (&vec!["a".to_string(), "b".into()], 3));
    assert!(library.current(&name("c")).is_none() && library.current(&name("gone")).is_none(), "nobody says that it is still there");
    assert_eq!(library.current(&name("a")).unwrap().file, "a.yaml");

    let lab = Lab::new().register_code("a", Registered::new(Arc::new(library.code(&name("a"))))).open().await;
    let result = async |run: &str| {
        lab.start_named("a", run, &json!(null)).await;
        lab.signal(run, "ask", &json!(null)).await;
        lab.result::<Json>(run).await
    };
    assert_eq!(result("before").await, Ok(json!("newest")));
    let again = library.reload().unwrap();
    assert_eq!((again.added.len(), again.removed.len()), (0, 0), "it stays in use");
    write("a.yaml", text("a", "mended").as_bytes());
    assert_eq!(told(&library.reload().unwrap())[1], ["a"]);
    assert_eq!(result("after").await, Ok(json!("mended")));
}

#[test]
fn a_workflow_has_one_file() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["one.yaml", "two.yaml"] {
        fs::write(folder.path().join(file), text("a", "1")).unwrap();
    }
    let (library, changes) = open(folder.path());
    assert_eq!(told(&changes)[3], ["two.yaml:1:1: the workflow a is defined by one.yaml already"]);
    assert_eq!(library.current(&name("a")).unwrap().file, "one.yaml");
    assert!(Library::open(&folder.path().join("none"), vars(), Settings::default(), Vec::new()).is_err());
}

#[test]
fn a_description_says_what_people_want_to_know() {
    let folder = tempfile::tempdir().unwrap();
    let text = "workflow: a\ndescription: It ships.\ninput: { type: object }\ndeadline: 2h\nsteps:\n  - { name: one, set: 1 }\n  - { name: two, wait: 1s }\n  - { name: three, after: [], set: 1 }\n";
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let described = serde_json::to_value(open(folder.path()).0.describe()).unwrap();
    let version = described[0]["version"].as_str().unwrap();
    assert_eq!(version.len(), 64);
    let steps = json!([{"name": "one", "kind": "set", "after": []}, {"name": "two", "kind": "wait", "after": ["one"]}, {"name": "three", "kind": "set", "after": []}]);
    let expected = json!([{"kind": "workflow",
            "name": "a", "version": version, "file": "a.yaml", "description": "It ships.", "steps": steps, "input": {"type": "object"}, "deadlineMs": 7_200_000}]);
    assert_eq!(described, expected);
}

#[tokio::test]
async fn a_run_keeps_the_version_that_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text("a", "old")).unwrap();
    let (library, _) = open(folder.path());
    let lab = Lab::new().register_code("a", Registered::new(Arc::new(library.code(&name("a"))))).open().await;
    lab.start_named("a", "early", &json!(null)).await;
    lab.settle().await;
    fs::write(folder.path().join("a.yaml"), text("a", "new")).unwrap();
    library.reload().unwrap();
    lab.start_named("a", "late", &json!(null)).await;
    lab.crash().await;
    for (run, value) in [("early", "old"), ("late", "new")] {
        lab.signal(run, "ask", &json!(null)).await;
        assert_eq!(lab.result::<Json>(run).await, Ok(json!(value)));
    }

    lab.start_named("a", "last", &json!(null)).await;
    lab.settle().await;
    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    library.reload().unwrap();
    let engine = lab.engine().await;
    let error: Error = engine.start("a", &json!(null)).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("the definition of a is gone"), "{error}");
    lab.signal("last", "ask", &json!(null)).await;
    assert_eq!(lab.result::<Json>("last").await, Ok(json!("new")), "what is under way goes on");
}

#[tokio::test]
async fn another_process_has_the_versions_that_the_store_kept() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text("a", "old")).unwrap();
    let store = Memory::new();
    let (library, changes) = open(folder.path());
    let definitions = changes.added.iter().map(|definition| definition.kept(Timestamp::EPOCH)).collect();
    store.commit(Batch { definitions, ..Batch::default() }).await.unwrap();
    let on = |store: Memory, library: &Library| {
        Engine::on(store).register_code("a", Registered::new(Arc::new(library.code(&name("a"))))).start()
    };
    let engine = on(store.clone(), &library).await.unwrap();
    engine.start("a", &()).id("r").await.unwrap();
    store.crash();
    drop((engine, library));

    fs::write(folder.path().join("a.yaml"), text("a", "new")).unwrap();
    let store = store.reopen();
    let (forgetful, _) = open(folder.path());
    let engine = on(store.clone(), &forgetful).await.unwrap();
    let run = engine.run("r").unwrap();
    run.signal("ask", &()).await.unwrap();
    let why = run.why().await.unwrap();
    assert!(why.waits.iter().any(|wait| wait.reason() == "NO_WORKER"), "without its version it waits: {why}");
    store.crash();
    drop((engine, forgetful));

    let store = store.reopen();
    let kept = store.definitions().await.unwrap();
    let (library, changes) = Library::open(folder.path(), vars(), Settings::default(), kept).unwrap();
    assert_eq!(changes.added.len(), 1);
    let engine = on(store, &library).await.unwrap();
    assert_eq!(engine.run("r").unwrap().result::<Json>().await.unwrap(), json!("old"));
}

#[tokio::test]
async fn a_step_that_could_not_be_begun_goes_another_way_when_it_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let text = "workflow: a\nsteps:\n  - { name: one, set: 1 }\n  - { name: nap, wait: \"{{ vars.nap }}\" }\n";
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let store = Memory::new();
    let on = |store: Memory, nap: Option<&str>| {
        let vars = nap.map(|nap| ("nap".to_string(), json!(nap))).into_iter().collect();
        let (library, _) = Library::open(folder.path(), vars, Settings::default(), Vec::new()).unwrap();
        Engine::on(store).register_code("a", Registered::new(Arc::new(library.code(&name("a"))))).start()
    };
    let engine = on(store.clone(), None).await.unwrap();
    let run = engine.start("a", &()).id("r").await.unwrap();
    let error = run.result::<Json>().await.unwrap_err();
    assert!(error.to_string().contains("step nap, wait: `vars.nap` is undefined"), "{error}");
    store.crash();
    drop((engine, run));
    let engine = on(store.reopen(), Some("1ms")).await.unwrap();
    let run = engine.run("r").unwrap();
    run.retry().await.unwrap();
    assert_eq!(run.result::<Json>().await.unwrap(), json!(null));
    assert_eq!(engine.replay("r").await.unwrap().mismatch, None);
}
