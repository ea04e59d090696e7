//! Everything that CI checks, in the order in which it is likely to fail.

use crate::{cargo, needs, root, run, shown};
use anyhow::{Context, Result, ensure};
use std::process::Command;

pub(crate) fn run_everything() -> Result<()> {
    needs::install()?;
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    step("clippy", cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]))?;
    step("tests and doc tests", cargo().args(["test", "--workspace", "--locked"]))?;
    step(
        "documentation",
        cargo()
            .args(["doc", "--workspace", "--features", "steadfast/testing", "--no-deps", "--locked", "--quiet"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    examples()?;
    println!("\nall checks passed");
    Ok(())
}

fn step(name: &str, command: &mut Command) -> Result<()> {
    println!("\n── {name}: cargo {}", shown(command));
    run(command).with_context(|| format!("{name} failed; repeat it with: cargo {}", shown(command)))
}

/// Every folder in `examples/` with a `main.rs` is an example of the `steadfast` package, and each of them is run, in a folder of its own. The others are definitions, which have tests.
fn examples() -> Result<()> {
    let mut names: Vec<String> = std::fs::read_dir(root().join("examples"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| root().join("examples").join(name).join("main.rs").is_file());
    names.sort();
    ensure!(!names.is_empty(), "there are no examples");
    let manifest = root().join("Cargo.toml").canonicalize()?;
    for name in names {
        let folder = tempfile::tempdir()?;
        for time in ["first", "second"] {
            let mut example = cargo();
            example.args(["run", "--quiet", "--locked", "--package", "steadfast", "--example", &name, "--manifest-path"]);
            step(&format!("example {name}, for the {time} time"), example.arg(&manifest).current_dir(folder.path()))?;
        }
    }
    Ok(())
}
