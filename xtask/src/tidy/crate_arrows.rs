//! Compares dependencies between crates with the list in `tidy.toml`.

use super::source_tree::SourceTree;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// A crate and the crates of the workspace that it depends on, all by folder.
type CrateArrows = BTreeMap<String, BTreeSet<String>>;

/// A list of `tidy.toml` and the sections of a manifest that it speaks of.
struct ArrowList {
    table: &'static str,
    sections: &'static [&'static str],
}

const LISTS: [ArrowList; 2] = [
    ArrowList { table: "arrows", sections: &["dependencies", "build-dependencies"] },
    ArrowList { table: "test_arrows", sections: &["dev-dependencies"] },
];

/// One line per arrow that is not declared, and per declared arrow that does not exist.
pub(crate) fn faults(texts: &SourceTree, budget: &Table) -> Result<Vec<String>> {
    let manifests = manifests(texts)?;
    let mut faults = Vec::new();
    for list in &LISTS {
        let found = found(&manifests, list.sections);
        let declared = declared(budget, list.table)?;
        faults.extend(differences(list, &found, &declared));
    }
    Ok(faults)
}

fn differences(list: &ArrowList, found: &CrateArrows, declared: &CrateArrows) -> Vec<String> {
    let (table, section) = (list.table, list.sections[0]);
    let nothing = BTreeSet::new();
    let mut faults = Vec::new();
    for home in found.keys().chain(declared.keys()).collect::<BTreeSet<_>>() {
        let (found, declared) = (found.get(home).unwrap_or(&nothing), declared.get(home).unwrap_or(&nothing));
        let undeclared = found.difference(declared).map(|to| {
            format!(
                "{home}: depends on `{to}` ({section}), which [{table}] in tidy.toml does not declare; remove the dependency or declare it"
            )
        });
        let unused = declared.difference(found).map(|to| {
            format!("{home}: [{table}] in tidy.toml declares `{to}`, but no dependency ({section}) exists; remove it from the list")
        });
        faults.extend(undeclared.chain(unused));
    }
    faults
}

/// The manifests of all crates by folder, with the name of each package.
fn manifests(texts: &SourceTree) -> Result<Vec<(String, String, Table)>> {
    let mut manifests = Vec::new();
    for text in texts.with_extension("toml").filter(|text| is_manifest(&text.path, &text.home)) {
        let manifest: Table = text.text.parse().with_context(|| format!("cannot read {}", text.path))?;
        let name = manifest
            .get("package")
            .and_then(|package| package.get("name")?.as_str())
            .with_context(|| format!("{} names no package", text.path))?
            .to_owned();
        manifests.push((text.home.clone(), name, manifest));
    }
    Ok(manifests)
}

/// Whether the file is the manifest of a crate, not one inside its tests or templates.
fn is_manifest(path: &str, home: &str) -> bool {
    path == format!("crates/{home}/Cargo.toml") || path == "xtask/Cargo.toml"
}

fn found(manifests: &[(String, String, Table)], sections: &[&str]) -> CrateArrows {
    let homes: BTreeMap<&str, &str> = manifests.iter().map(|(home, package, _)| (package.as_str(), home.as_str())).collect();
    let mut arrows = CrateArrows::new();
    for (home, _, manifest) in manifests {
        let targets = manifest.get("target").and_then(Value::as_table);
        let per_target = targets.into_iter().flat_map(|targets| targets.values().filter_map(Value::as_table));
        let tables = std::iter::once(manifest).chain(per_target);
        let lists = tables.flat_map(|table| sections.iter().filter_map(|section| table.get(*section)?.as_table()));
        let packages = lists.flat_map(|list| list.iter().map(|(key, value)| package(key, value)));
        let to = packages
            .filter_map(|package| homes.get(package))
            .filter(|to| *to != home)
            .map(|to| (*to).to_owned());
        arrows.entry(home.clone()).or_default().extend(to);
    }
    arrows
}

/// The package that an entry of a section means: `name = { package = "other" }` is `other`.
fn package<'a>(key: &'a str, value: &'a Value) -> &'a str {
    value.get("package").and_then(Value::as_str).unwrap_or(key)
}

fn declared(budget: &Table, table: &str) -> Result<CrateArrows> {
    let list = budget
        .get(table)
        .and_then(Value::as_table)
        .with_context(|| format!("tidy.toml has no table [{table}]"))?;
    let mut arrows = CrateArrows::new();
    for (home, to) in list {
        let to = to.as_array().with_context(|| format!("tidy.toml: {table}.{home} must be a list of crates"))?;
        arrows.insert(home.clone(), to.iter().filter_map(|to| to.as_str().map(str::to_owned)).collect());
    }
    Ok(arrows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(arrows: &str, manifest: &str) -> Vec<String> {
        let texts = SourceTree::of(&[
            ("crates/cli/Cargo.toml", &format!("[package]\nname = \"steadfast-cli\"\n{manifest}")),
            ("crates/sdk/Cargo.toml", "[package]\nname = \"steadfast\"\n[dev-dependencies]\nsteadfast = { path = \".\" }"),
            ("crates/store/Cargo.toml", "[package]\nname = \"steadfast-store\""),
            ("crates/cli/tests/it/Cargo.toml", "not = a manifest"),
        ]);
        faults(&texts, &arrows.parse().unwrap()).unwrap()
    }

    #[test]
    fn declared_arrows_pass() {
        let manifest = "[dependencies]\nsteadfast.workspace = true\nserde = \"1\"\n[target.'cfg(unix)'.dependencies]\nkept = { package = \"steadfast-store\", optional = true }";
        assert!(faults_of("[arrows]\ncli = [\"sdk\", \"store\"]\n[test_arrows]", manifest).is_empty());
    }

    #[test]
    fn undeclared_arrow_fails() {
        let faults = faults_of("[arrows]\n[test_arrows]", "[dependencies]\nsteadfast-store.workspace = true");
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("cli: depends on `store` (dependencies)"), "{}", faults[0]);
    }

    #[test]
    fn missing_arrow_fails() {
        let faults = faults_of(
            "[arrows]\ncli = [\"store\"]\ngone = [\"sdk\"]\n[test_arrows]",
            "[dev-dependencies]\nsteadfast = { path = \"../sdk\" }",
        );
        let starts: Vec<_> = faults.iter().map(|fault| fault.split(',').next().unwrap_or_default()).collect();
        assert_eq!(starts.len(), 3);
        assert_eq!(starts[0], "cli: [arrows] in tidy.toml declares `store`");
        assert_eq!(starts[1], "gone: [arrows] in tidy.toml declares `sdk`");
        assert_eq!(starts[2], "cli: depends on `sdk` (dev-dependencies)");
    }
}
