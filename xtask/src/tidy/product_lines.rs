//! Lists the lines of product crates that hold code which users run.

use super::source_tree::SourceTree;
use super::workspace::Workspace;
use crate::root;
use anyhow::Result;
use std::collections::BTreeSet;

/// A source file of a product crate.
pub(crate) struct ProductFile {
    /// From the root of the workspace.
    pub(crate) path: String,
    /// The folder of the crate below `crates`.
    pub(crate) crate_folder: String,
    /// Lines that hold more than comments, blanks and code that only tests compile.
    pub(crate) lines: BTreeSet<usize>,
}

/// The files of all product crates, as the work tree has them.
pub(crate) fn product_files() -> Result<Vec<ProductFile>> {
    let texts = SourceTree::read(&root())?;
    let product = super::product_crates(&texts, &super::document(&texts)?)?;
    Ok(files_of(&Workspace::new(&texts, product)))
}

fn files_of(workspace: &Workspace<'_>) -> Vec<ProductFile> {
    let files = workspace.product.iter().flat_map(|product| workspace.code(product));
    let file = files.map(|file| ProductFile {
        path: file.source.path.clone(),
        crate_folder: file.source.home.clone(),
        lines: file.code.iter().map(|token| token.line).collect(),
    });
    file.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_hold_no_product_lines() {
        let texts = SourceTree::of(&[
            ("crates/a/src/lib.rs", "//! Module.\n\nfn a() {\n    // comment\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"),
            ("crates/a/tests/it/main.rs", "fn c() {}"),
            ("crates/tool/src/lib.rs", "fn d() {}"),
        ]);
        let files = files_of(&Workspace::new(&texts, vec!["a".into()]));
        let found: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.lines.iter().copied().collect::<Vec<_>>()))
            .collect();
        assert_eq!(found, [("crates/a/src/lib.rs", vec![3, 5])]);
    }
}
