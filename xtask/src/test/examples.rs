//! Runs every example twice: on an empty folder, then on its result.

use crate::{cargo, root, run};
use anyhow::{Context, Result, ensure};

/// A folder below `examples/` with a `main.rs` is an example of the sdk. The others hold
/// definitions, which have tests.
pub(crate) fn run_all() -> Result<()> {
    let names = names()?;
    ensure!(!names.is_empty(), "`examples` has no program");
    let manifest = root().join("Cargo.toml").canonicalize()?;
    for name in names {
        let folder = tempfile::tempdir()?;
        for time in ["first", "second"] {
            println!("example {name}, {time} run");
            let mut example = cargo();
            example.args(["run", "--quiet", "--locked", "--package", "steadfast", "--example", &name, "--manifest-path"]);
            run(example.arg(&manifest).current_dir(folder.path())).with_context(|| format!("the {time} run of example {name} failed"))?;
        }
    }
    Ok(())
}

fn names() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(root().join("examples"))?;
    let mut names: Vec<String> = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<_>>()?;
    names.retain(|name| root().join("examples").join(name).join("main.rs").is_file());
    names.sort();
    Ok(names)
}
