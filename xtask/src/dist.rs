//! Builds a stripped binary with its debug information in a file beside it.

use crate::{cargo, run as run_command, target, without_arguments};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    without_arguments(arguments)?;
    run_command(cargo().args(["build", "--profile", "dist", "--locked", "--package", "steadfast-cli"]))?;
    let folder = target().join("dist");
    let (built, package) = (folder.join("steadfast"), folder.join("package"));
    std::fs::create_dir_all(&package)?;
    let (binary, debug) = (package.join("steadfast"), package.join("steadfast.debug"));
    objcopy(&["--only-keep-debug"], &[&built, &debug])?;
    objcopy(&["--strip-all"], &[&built, &binary])?;
    // The link has the name and checksum of the file: debuggers find it in the folder of the
    // binary.
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[&link], &[&binary])?;
    for file in [&binary, &debug] {
        println!("{:>6.1} MB  {}", std::fs::metadata(file)?.len() as f64 / 1e6, file.display());
    }
    Ok(())
}

fn objcopy(options: &[&str], files: &[&Path]) -> Result<()> {
    let mut objcopy = Command::new("objcopy");
    run_command(objcopy.args(options).args(files)).context("objcopy, which comes with the linker (package binutils), did not work")
}
