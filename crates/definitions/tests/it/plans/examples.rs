//! The plans of `examples/rollout` do what they say.

use super::site::Site;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::{Path, PathBuf};
use steadfast::TaskStatus;
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
    let text = fs::read_to_string(folder().join(file)).unwrap();
    let scripts = |to: &Path| {
        fs::create_dir(to.join("scripts")).unwrap();
        for script in entries(&folder().join("scripts")) {
            fs::copy(&script, to.join("scripts").join(script.file_name().unwrap())).unwrap();
        }
    };
    Site::with(&text, &vars, scripts).await
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
