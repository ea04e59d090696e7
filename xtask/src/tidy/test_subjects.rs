//! Checks that tests and their subjects in other crates name each other.

use super::prose::marker;
use super::rust_file::RustFile;
use super::tally::{Offender, Tally};
use super::workspace::Workspace;

/// Opens the line of a test's header that names its subject.
const SUBJECT: &str = "Subject:";
/// Opens the line of a subject's header that names a test in another crate.
const TESTED: &str = "Tested by";

/// Lines of headers that name a file that does not exist or does not name them in turn.
pub(crate) fn one_sided_subjects(workspace: &Workspace<'_>, home: &str) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.rust(home) {
        let is_test = file.source.path.contains("/tests/");
        let (own, back) = if is_test { (SUBJECT, TESTED) } else { (TESTED, SUBJECT) };
        for (line, path) in named(file, own) {
            tally.of += 1;
            if let Some(note) = fault(workspace, file, path, back) {
                tally.offenders.push(Offender::new(&file.source.path, line, note));
            }
        }
    }
    tally
}

/// The paths in backticks on the lines of a header that begin with `opening`.
fn named<'a>(file: &RustFile<'a>, opening: &'a str) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let header: Vec<_> = file.tokens.iter().take_while(|token| marker(token.text) == "//!").copied().collect();
    header.into_iter().flat_map(move |token| {
        let rest = token.text["//!".len()..].trim().strip_prefix(opening).unwrap_or_default();
        rest.split('`').skip(1).step_by(2).map(move |path| (token.line, path))
    })
}

/// The reason why a named path is wrong. A subject in the test's own crate need not answer.
fn fault(workspace: &Workspace<'_>, file: &RustFile<'_>, path: &str, back: &str) -> Option<String> {
    let Some(other) = workspace.files.iter().find(|other| other.source.path == path) else {
        return Some(format!("`{path}` is no Rust file of the workspace"));
    };
    let answers = named(other, back).any(|(_, path)| path == file.source.path);
    (!answers && other.source.home != file.source.home).then(|| format!("{path} has no line `//! {back} `{}`.`", file.source.path))
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    const TEST: &str = "crates/sdk/tests/it/timers.rs";
    const CODE: &str = "crates/runtime/src/timers.rs";

    fn notes(test: &str, code: &str) -> Vec<String> {
        let texts = SourceTree::of(&[(TEST, test), (CODE, code)]);
        let workspace = Workspace::new(&texts, Vec::new());
        ["sdk", "runtime"]
            .iter()
            .flat_map(|home| one_sided_subjects(&workspace, home).offenders)
            .map(|place| place.note)
            .collect()
    }

    #[test]
    fn names_both_ways_pass() {
        assert!(notes(&format!("//! Tests.\n//!\n//! Subject: `{CODE}`."), &format!("//! Tested by `{TEST}`.")).is_empty());
        assert!(notes("//! Tests.", "//! Code.").is_empty());
    }

    #[test]
    fn silent_side_is_reported() {
        assert_eq!(notes(&format!("//! Subject: `{CODE}`."), "//! Code."), [format!("{CODE} has no line `//! Tested by `{TEST}`.`")]);
        assert_eq!(notes("//! Tests.", &format!("//! Tested by `{TEST}`.")), [format!("{TEST} has no line `//! Subject: `{CODE}`.`")]);
    }

    #[test]
    fn moved_subject_is_reported() {
        assert_eq!(notes("//! Subject: `crates/gone/src/lib.rs`.", ""), ["`crates/gone/src/lib.rs` is no Rust file of the workspace"]);
    }
}
