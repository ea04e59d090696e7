//! What README and guide say of keys can be called as it stands there.

use crate::served::Served;
use crate::steadfast::Called;
use std::path::Path;
use std::process::Stdio;

const REMOVE: &str = "workflow: remove-file\nsteps:\n  - { name: remove, set: \"{{ input.file }}\" }\n";

/// The commands of the first block of a section.
fn commands(file: &str, section: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split(&format!("\n{section}\n")).nth(1).unwrap_or_else(|| panic!("{file} has no {section}"));
    let block = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    block.lines().map(Into::into).collect()
}

/// Has a shell call the binary.
fn shell(served: &Served, line: &str) -> Called {
    let binary = Path::new(env!("CARGO_BIN_EXE_steadfast"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(&served.dir).stdin(Stdio::null());
    shell.env("PATH", path).env("STEADFAST_SERVER", &served.url);
    Called::of(&shell.output().unwrap())
}

#[test]
fn what_the_guide_and_the_readme_say_of_keys_works_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("definitions")).unwrap();
    std::fs::write(dir.path().join("definitions/remove-file.yaml"), REMOVE).unwrap();
    for (file, section, count) in [("docs/guide/command-line.md", "## key", 8), ("README.md", "## A key that is not forgotten", 3)] {
        let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0"]);
        let lines = commands(file, section);
        assert_eq!(lines.len(), count, "{file}: {lines:#?}");
        for line in lines {
            assert!(line.starts_with("steadfast key "), "{line}");
            shell(&served, &line).ends_with(0);
        }
    }
}
