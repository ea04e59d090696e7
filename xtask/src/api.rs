//! Compares the public API of the sdk with its snapshot.
//!
//! rustdoc writes each crate as JSON, and `public-api` renders a line per item. The sdk re-exports
//! items of other crates; their lines stand below the line of the re-export. The format of the JSON
//! changes with the compiler: a new compiler may need another version of `public-api`.

use crate::{cargo, root, run};
use anyhow::{Context, Result, anyhow, ensure};
use public_api::{Builder, PublicItem};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SNAPSHOT: &str = "snapshots/sdk-api.txt";

pub(crate) const SDK: &str = "steadfast";

/// The crates that the sdk re-exports items of.
const RE_EXPORTED: [&str; 6] =
    ["steadfast-kernel", "steadfast-macros", "steadfast-messaging", "steadfast-runtime", "steadfast-store", "steadfast-store-redis"];

/// All features of the sdk. `steadfast/FEATURE` would mean the sdk's own dev-dependency.
const FEATURES: &str = "embedded,messages,redis,testing";

/// Crates whose traits are known: the line of the implementation says everything about its
/// functions.
const KNOWN: [&str; 4] = ["core::", "alloc::", "std::", "serde_core::"];

/// Traits that the compiler implements and no caller relies on.
const IGNORED: [&str; 5] = [
    "core::marker::Freeze",
    "core::marker::Unpin",
    "core::marker::StructuralPartialEq",
    "core::marker::UnsafeUnpin",
    "core::panic::unwind_safe::",
];

/// Compares the API with the snapshot.
///
/// # Errors
/// The diff and the command that accepts the new API.
pub(crate) fn check() -> Result<()> {
    steadfast_test_snapshots::compare_file(SNAPSHOT, &rendered()?).map_err(|mismatch| anyhow!(mismatch))
}

/// Writes the API into the snapshot.
pub(crate) fn accept() -> Result<()> {
    let file = root().join(SNAPSHOT);
    std::fs::write(&file, rendered()?).with_context(|| format!("cannot write {}", file.display()))
}

fn rendered() -> Result<String> {
    let folder = document()?;
    let sdk = Documented::read(&folder, SDK)?;
    let others = RE_EXPORTED.iter().map(|package| Documented::read(&folder, package)).collect::<Result<Vec<_>>>()?;
    let mut text = String::new();
    for item in &sdk.items {
        push_line(&mut text, "", item);
        if let Some(path) = sdk.json.foreign(item) {
            let lines = foreign_items(path, &others)?;
            lines.into_iter().for_each(|item| push_line(&mut text, "  ", item));
        }
    }
    Ok(text)
}

fn push_line(text: &mut String, indent: &str, item: &PublicItem) {
    let line = item.to_string();
    if !IGNORED.iter().any(|ignored| line.starts_with("impl") && line.contains(ignored)) {
        text.push_str(indent);
        text.push_str(&line);
        text.push('\n');
    }
}

/// The items below a path of another crate; none if the crate is not part of the workspace.
fn foreign_items<'a>(path: &[String], others: &'a [Documented]) -> Result<Vec<&'a PublicItem>> {
    if !path.first().is_some_and(|name| name.starts_with(SDK)) {
        return Ok(Vec::new());
    }
    let items = others.iter().map(|other| other.below(path)).find(|items| !items.is_empty());
    items.with_context(|| format!("no documented crate has {}; add its crate to the list in xtask/src/api.rs", path.join("::")))
}

/// A crate as rustdoc describes it.
struct Documented {
    items: Vec<PublicItem>,
    json: Json,
}

impl Documented {
    fn read(folder: &Path, package: &str) -> Result<Documented> {
        let file = folder.join(format!("{}.json", package.replace('-', "_")));
        let api = Builder::from_rustdoc_json(&file).omit_blanket_impls(true).build();
        let text = std::fs::read_to_string(&file).with_context(|| format!("rustdoc has not written {}", file.display()))?;
        let items = api.with_context(|| format!("cannot read {}", file.display()))?.into_items().collect();
        Ok(Documented {
            items: without_known_functions(items),
            json: serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?,
        })
    }

    /// The item of that path and all that belongs to it, each line once.
    fn below(&self, path: &[String]) -> Vec<&PublicItem> {
        let own = |(id, summary): (&u32, &Summary)| (summary.crate_id == 0 && summary.path == path).then_some(*id);
        let mut ids: BTreeSet<u32> = self.json.paths.iter().filter_map(own).collect();
        loop {
            let children: Vec<u32> = self.items.iter().filter_map(|item| child(item, &ids)).collect();
            if children.is_empty() {
                break;
            }
            ids.extend(children);
        }
        let mut seen = BTreeSet::new();
        self.items
            .iter()
            .filter(|item| ids.contains(&item.id().0) && seen.insert(item.to_string()))
            .collect()
    }
}

/// Drops the functions of implementations of known traits.
fn without_known_functions(items: Vec<PublicItem>) -> Vec<PublicItem> {
    let known: BTreeSet<u32> = items.iter().filter(|item| implements_known(item)).map(|item| item.id().0).collect();
    let is_known = |item: &PublicItem| {
        let of_known = item.parent_id().is_some_and(|parent| known.contains(&parent.0));
        of_known && item.to_string().starts_with("pub fn ")
    };
    items.into_iter().filter(|item| !is_known(item)).collect()
}

fn implements_known(item: &PublicItem) -> bool {
    let line = item.to_string();
    let trait_path = line.split_once(" for ").and_then(|(head, _)| head.strip_prefix("impl")?.rsplit("> ").next());
    line.starts_with("impl") && trait_path.is_some_and(|path| KNOWN.iter().any(|known| path.trim_start().starts_with(known)))
}

/// The id of an item whose parent is among those and which is not itself.
fn child(item: &PublicItem, ids: &BTreeSet<u32>) -> Option<u32> {
    let belongs = item.parent_id().is_some_and(|parent| ids.contains(&parent.0));
    (belongs && !ids.contains(&item.id().0)).then_some(item.id().0)
}

/// The parts of rustdoc's JSON that resolve re-exports.
#[derive(Deserialize)]
struct Json {
    index: BTreeMap<u32, Item>,
    paths: BTreeMap<u32, Summary>,
}

#[derive(Deserialize)]
struct Item {
    inner: Inner,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(rename = "use")]
    re_export: Option<ReExport>,
}

#[derive(Deserialize)]
struct ReExport {
    id: Option<u32>,
}

#[derive(Deserialize)]
struct Summary {
    crate_id: u32,
    path: Vec<String>,
}

impl Json {
    /// The path of an item that is a re-export from another crate.
    fn foreign(&self, item: &PublicItem) -> Option<&[String]> {
        let id = self.index.get(&item.id().0)?.inner.re_export.as_ref()?.id?;
        self.paths.get(&id).filter(|summary| summary.crate_id != 0).map(|summary| &summary.path[..])
    }
}

/// Has rustdoc write the JSON and returns its folder.
fn document() -> Result<PathBuf> {
    let build = crate::target();
    let target = build.join("sdk-api"); // a folder of its own: cargo would replace the pages for people
    let mut doc = cargo();
    doc.args(["doc", "--locked", "--quiet", "--no-deps", "--lib", "--features", FEATURES, "--package", SDK]);
    doc.args(RE_EXPORTED.iter().flat_map(|package| ["--package", package]));
    doc.env("RUSTDOC", wrapper(&target)?)
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --cap-lints allow")
        .env("CARGO_BUILD_BUILD_DIR", &build)
        .env("CARGO_TARGET_DIR", &target);
    run(&mut doc).context("the sdk cannot be documented as JSON")?;
    let folder = target.join("doc");
    std::iter::once(&SDK).chain(&RE_EXPORTED).try_for_each(|package| put_page(&folder, package))?;
    Ok(folder)
}

/// Puts the page that cargo looks for: without it, cargo would write the JSON of unchanged crates
/// again.
fn put_page(folder: &Path, package: &str) -> Result<()> {
    let pages = folder.join(package.replace('-', "_"));
    std::fs::create_dir_all(&pages)?;
    Ok(std::fs::write(pages.join("index.html"), "")?)
}

/// Writes a rustdoc that may use unstable options. Set for cargo as a whole, the variable would
/// recompile every crate whose build script reads it.
fn wrapper(folder: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from).context("run it by `cargo xtask`")?;
    let rustdoc = cargo.with_file_name("rustdoc");
    ensure!(rustdoc.exists(), "{} is missing; install the rustdoc of this toolchain", rustdoc.display());
    std::fs::create_dir_all(folder)?;
    let file = folder.join("rustdoc");
    std::fs::write(&file, format!("#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec '{}' \"$@\"\n", rustdoc.display()))?;
    std::fs::set_permissions(&file, Permissions::from_mode(0o755))?;
    Ok(file)
}
