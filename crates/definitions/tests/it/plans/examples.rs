//! The plans of `examples/rollout` do what they say.

use super::site::Site;
use crate::support::Shelf;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use steadfast::TaskStatus;
use steadfast::testing::PlanCheck;
use steadfast_definitions::check;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rollout")
}

fn names(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let mut names: Vec<_> = paths.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// One of them, with its scripts beside it.
async fn example(file: &str, vars: Json) -> Site {
    Site::with(&fs::read_to_string(folder().join(file)).unwrap(), &vars, scripts).await
}

fn scripts(to: &Path) {
    fs::create_dir(to.join("scripts")).unwrap();
    for script in entries(&folder().join("scripts")) {
        fs::copy(&script, to.join("scripts").join(script.file_name().unwrap())).unwrap();
    }
}

/// Has one of them stand all that a plan has to stand, each time in a folder of its own.
async fn stands_everything(file: &str, vars: Json) {
    let text = fs::read_to_string(folder().join(file)).unwrap().replace("wait: 1s", "wait: 1ms");
    let shelves = RefCell::new(Vec::new());
    let engine = || {
        let shelf = Shelf::of(&[&text]);
        scripts(shelf.folder.path());
        let engine = shelf.builder();
        shelves.borrow_mut().push(shelf); // its folder stays until the end
        engine
    };
    let check = PlanCheck::new(file.trim_end_matches(".yaml"), engine).vars(&vars).in_real_time();
    check.fail_at_every_stage().await;
    check.run_every_stage_twice().await;
    check.undo_twice().await;
}

#[tokio::test]
async fn the_gateway_can_be_switched_whatever_goes_wrong() {
    stands_everything("switch-gateway.yaml", json!({"to": "new"})).await;
    stands_everything("switch-gateway.yaml", json!({"to": "new", "ask": true})).await;
}

#[tokio::test]
async fn the_database_can_be_upgraded_whatever_goes_wrong() {
    stands_everything("upgrade-database.yaml", json!({"schema": 2})).await;
    stands_everything("upgrade-database.yaml", json!({"schema": 1})).await;
}

#[test]
fn every_example_is_right() {
    let files = names(entries(&folder()).filter(|path| path.extension().is_some_and(|extension| extension == "yaml")));
    assert_eq!(files, ["switch-gateway.yaml", "upgrade-database.yaml"]);
    for file in files {
        let checked = check(&file, &fs::read_to_string(folder().join(&file)).unwrap());
        assert!(checked.is_ok_and(|definition| definition.is_plan()), "{file}");
    }
}

#[tokio::test]
async fn a_tenant_is_moved_to_another_gateway_and_back() {
    let site = example("switch-gateway.yaml", json!({"to": "new"})).await;
    assert_eq!(site.start().await, TaskStatus::Completed);
    assert_eq!(site.result().await, json!({"from": "old", "drained": 4}));
    assert_eq!(site.read("state/acme.gateway"), "new\n");
    assert_eq!(site.lines("state/log"), ["drain acme ", "move acme new", "verify acme new", "undrain acme "]);
    assert_eq!(site.roll_back().await, TaskStatus::RolledBack);
    assert_eq!(site.lines("state/log")[4..], ["drain acme ", "move acme old", "undrain acme "]);
    assert_eq!(site.read("state/acme.gateway"), "old\n");
}

#[tokio::test]
async fn a_tenant_that_is_sick_is_verified_again_once_it_is_well() {
    let site = example("switch-gateway.yaml", json!({"to": "new"})).await;
    site.write("state/acme.sick");
    assert_eq!(site.start().await, TaskStatus::Failed);
    assert_eq!(site.task().await.stage, Some((3, "verify".into())));
    assert_eq!(site.left().await, Some(json!({"from": "old", "drained": 4})));
    site.remove("state/acme.sick");
    assert_eq!(site.retry(true).await, TaskStatus::Completed);
    assert_eq!(site.lines("state/log"), ["drain acme ", "move acme new", "verify acme new", "verify acme new", "undrain acme "]);
}

#[tokio::test]
async fn a_database_is_upgraded_and_restored_from_its_backup() {
    let site = example("upgrade-database.yaml", json!({"schema": 2})).await;
    site.write("state/acme.full");
    assert_eq!(site.start().await, TaskStatus::Failed);
    assert_eq!(site.left().await, Some(json!({"schema": 1, "rows": 2, "backup": "state/acme.p_acme.backup"})));
    site.remove("state/acme.full");
    assert_eq!(site.retry(true).await, TaskStatus::Completed);
    assert_eq!(site.result().await["schema"], 2);
    assert_eq!(site.read("state/acme.database"), "schema 2\nrow a\nrow b\n");
    let done = ["look acme ", "freeze acme ", "backup acme p/acme", "migrate acme 2", "migrate acme 2", "compare acme 2", "thaw acme "];
    assert_eq!(site.lines("state/log"), done);
    assert_eq!(site.roll_back().await, TaskStatus::RolledBack);
    assert_eq!(site.lines("state/log")[7..], ["freeze acme ", "restore acme state/acme.p_acme.backup", "thaw acme "]);
    assert_eq!(site.read("state/acme.database"), "schema 1\nrow a\nrow b\n");
}
