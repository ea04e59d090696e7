//! Compares the OpenAPI document with the code; its names are literals.

use std::path::{Path, PathBuf};
use steadfast_test_snapshots::assert_file;

#[test]
fn openapi_document_matches_code() {
    assert_file("docs/openapi.json", &steadfast_server::openapi());
}

#[test]
fn every_operation_id_is_literal() {
    let mut operations = 0;
    for (path, text) in sources() {
        for operation in text.split("#[utoipa::path(").skip(1) {
            operations += 1;
            let attribute = operation.split("fn ").next().unwrap_or_default();
            assert!(attribute.contains("operation_id = \""), "{}: add an operation_id to:\n{attribute}", path.display());
        }
    }
    assert!(operations > 50, "the test found {operations} operations");
}

#[test]
fn every_schema_name_is_literal() {
    let mut schemas = 0;
    for (path, text) in sources() {
        let derives = text
            .split("#[derive(")
            .skip(1)
            .filter(|rest| rest.split(')').next().unwrap_or_default().contains("ToSchema"));
        let derives = derives.map(|rest| (rest.split(" {").next().unwrap_or_default(), "#[schema(as = "));
        let implementations = text.split("impl ToSchema for ").skip(1).map(|rest| (rest, "{\n    fn name()"));
        for (schema, pin) in derives.chain(implementations) {
            schemas += 1;
            assert!(schema.contains(pin), "{}: {pin:?} is missing from:\n{schema}", path.display());
        }
    }
    assert!(schemas > 70, "the test found {schemas} schemas");
}

/// All source files of the server with their texts.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}
