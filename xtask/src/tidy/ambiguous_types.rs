//! Finds type names with several meanings, within a crate and across product crates.

use super::tally::{Offender, Tally};
use super::workspace::Workspace;
use std::collections::BTreeMap;

/// Names that may stand once per file, because code uses them with their module: `store::Error`.
const GENERIC: [&str; 9] = ["Error", "Result", "Config", "State", "Command", "Event", "Answer", "Effect", "Refusal"];

/// Names that several types of one crate have, among all its names.
pub(crate) fn within_crate(workspace: &Workspace<'_>, home: &str) -> Tally {
    let names = definitions(workspace, home);
    let mut tally = Tally { of: names.len(), ..Tally::default() };
    for (name, places) in &names {
        let same = if GENERIC.contains(name) { in_one_file(places) } else { places.iter().collect() };
        if let [first, others @ ..] = same.as_slice()
            && !others.is_empty()
        {
            let listed: Vec<_> = others.iter().map(|other| format!("{}:{}", other.path, other.line)).collect();
            let mut offender = Offender::new(&first.path, first.line, format!("`{name}` is also defined at {}", listed.join(", ")));
            offender.others = others.iter().map(|other| (other.path.clone(), other.line)).collect();
            tally.offenders.push(offender);
        }
    }
    tally
}

/// Names of a product crate that another one gives to a type of its own.
pub(crate) fn across_crates(workspace: &Workspace<'_>, home: &str) -> Tally {
    if !workspace.product.iter().any(|product| product == home) {
        return Tally::default();
    }
    let others: Vec<_> = workspace
        .product
        .iter()
        .filter(|other| *other != home)
        .map(|other| (other, definitions(workspace, other)))
        .collect();
    let names = definitions(workspace, home);
    let mut tally = Tally { of: names.len(), ..Tally::default() };
    for (name, places) in names.iter().filter(|(name, _)| !GENERIC.contains(name)) {
        let homes: Vec<_> = others
            .iter()
            .filter(|(_, others)| others.contains_key(name))
            .map(|(home, _)| home.as_str())
            .collect();
        if let (Some(first), false) = (places.first(), homes.is_empty()) {
            tally
                .offenders
                .push(Offender::new(&first.path, first.line, format!("`{name}` is also a type of {}", homes.join(", "))));
        }
    }
    tally
}

fn definitions<'w>(workspace: &'w Workspace<'_>, home: &'w str) -> BTreeMap<&'w str, Vec<Offender>> {
    let mut names: BTreeMap<&str, Vec<Offender>> = BTreeMap::new();
    for file in workspace.code(home) {
        for item in file.items.iter().filter(|item| item.is_type()) {
            names.entry(item.name).or_default().push(Offender::new(&file.source.path, item.line, ""));
        }
    }
    names
}

/// The definitions of the first file that has several.
fn in_one_file(places: &[Offender]) -> Vec<&Offender> {
    places
        .chunk_by(|one, next| one.path == next.path)
        .find(|file| file.len() > 1)
        .unwrap_or_default()
        .iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn notes(files: &[(&str, &str)], measure: impl Fn(&Workspace<'_>, &str) -> Tally) -> Vec<String> {
        let texts = SourceTree::of(files);
        let workspace = Workspace::new(&texts, vec!["a".into(), "b".into()]);
        measure(&workspace, "a").offenders.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn second_definition_is_reported() {
        let files = [("crates/a/src/x.rs", "struct Gate; struct Lone;"), ("crates/a/src/y.rs", "\nenum Gate {}")];
        assert_eq!(notes(&files, within_crate), ["crates/a/src/x.rs:1: `Gate` is also defined at crates/a/src/y.rs:2"]);
    }

    #[test]
    fn generic_name_stands_per_file() {
        let twice = "mod m { struct Error; } struct Error;";
        assert!(notes(&[("crates/a/src/x.rs", "struct Error;"), ("crates/a/src/y.rs", "enum Error {}")], within_crate).is_empty());
        assert_eq!(notes(&[("crates/a/src/x.rs", "struct Error;"), ("crates/a/src/y.rs", twice)], within_crate).len(), 1);
    }

    #[test]
    fn tools_share_names_freely() {
        let gate = "struct Gate; struct Error;";
        let files = [("crates/a/src/x.rs", gate), ("crates/b/src/x.rs", gate), ("crates/bench/src/x.rs", gate)];
        assert_eq!(notes(&files, across_crates), ["crates/a/src/x.rs:1: `Gate` is also a type of b"]);
    }
}
