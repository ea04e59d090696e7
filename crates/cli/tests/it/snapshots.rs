//! Compares the help of every command with the committed snapshot.

use crate::help::commands;
use crate::steadfast::{Called, command};
use steadfast_test_snapshots::assert_snapshot;

#[test]
fn help_matches_snapshot() {
    let help: Vec<String> = commands(&[]).iter().map(|path| block(path)).collect();
    assert_snapshot("help.txt", &help.concat());
}

/// The help of one command, indented below its name, so that a diff shows the name.
fn block(path: &[String]) -> String {
    let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let mut call = command(std::env::temp_dir().as_path(), &args);
    let help = Called::of(&call.env("COLUMNS", "100").env("NO_COLOR", "1").output().unwrap()).ends_with(0).out;
    let lines = help.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("    {line}\n") });
    format!("steadfast {}\n\n{}\n", args.join(" "), lines.collect::<String>())
}
