//! Finds top-level modules of a crate that depend on each other in a circle.

use super::rust_file::RustFile;
use super::rust_lexer::{Token, TokenKind};
use super::tally::{Offender, Tally};
use super::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};

/// Modules that reach themselves, among all modules below the root of the crate.
pub(crate) fn modules_in_cycles(workspace: &Workspace<'_>, home: &str) -> Tally {
    let graph = ModuleGraph::of(workspace, home);
    let circles = graph.circles();
    let offenders = circles.iter().flat_map(|circle| circle.iter().map(|module| graph.place(module, circle))).collect();
    Tally { offenders, of: graph.arrows.len() }
}

/// The largest set of modules that all reach each other.
pub(crate) fn largest_cycle(workspace: &Workspace<'_>, home: &str) -> Vec<String> {
    let circles = ModuleGraph::of(workspace, home).circles();
    circles.into_iter().max_by_key(BTreeSet::len).unwrap_or_default().into_iter().collect()
}

/// Modules, the modules that they need, and the first place that needs each.
type ModuleArrows = BTreeMap<String, BTreeMap<String, Offender>>;

struct ModuleGraph {
    arrows: ModuleArrows,
}

impl ModuleGraph {
    fn of(workspace: &Workspace<'_>, home: &str) -> Self {
        let mut arrows = ModuleArrows::new();
        for module in workspace.code(home).filter_map(top_module) {
            arrows.entry(module).or_default();
        }
        let exported = exports(workspace, home, &arrows);
        for file in workspace.code(home) {
            let Some(from) = top_module(file) else { continue };
            for (name, line) in paths_from_root(file) {
                let to = if arrows.contains_key(name) { Some(name) } else { exported.get(name).map(String::as_str) };
                if let Some(to) = to.filter(|to| *to != from) {
                    let place = || Offender::new(&file.source.path, line, format!("module `{from}` needs `{to}`"));
                    arrows.entry(from.clone()).or_default().entry(to.to_owned()).or_insert_with(place);
                }
            }
        }
        Self { arrows }
    }

    /// Sets of two or more modules that all reach each other.
    fn circles(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<&String, BTreeSet<&String>> = self.arrows.keys().map(|module| (module, self.reached_from(module))).collect();
        let mut circles: Vec<BTreeSet<String>> = Vec::new();
        for (module, others) in &reached {
            let circle = others.iter().filter(|other| reached[**other].contains(*module)).map(|other| (**other).clone());
            let circle: BTreeSet<String> = circle.collect();
            if circle.len() > 1 && !circles.contains(&circle) {
                circles.push(circle);
            }
        }
        circles
    }

    fn reached_from(&self, module: &String) -> BTreeSet<&String> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&String> = self.arrows[module].keys().collect();
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(self.arrows[next].keys());
            }
        }
        reached
    }

    /// The first place where a module needs another one of its circle.
    fn place(&self, module: &str, circle: &BTreeSet<String>) -> Offender {
        let arrow = self.arrows[module].iter().find(|(to, _)| circle.contains(*to)).map(|(_, place)| place.clone());
        arrow.unwrap_or_else(|| Offender::new(module, 1, "in a cycle"))
    }
}

/// The top-level module of a file; the root of a crate has none.
fn top_module(file: &RustFile<'_>) -> Option<String> {
    let first = file.below_src()?.split('/').next()?;
    let module = first.trim_end_matches(".rs");
    (!["lib", "main", "bin"].contains(&module)).then(|| module.to_owned())
}

/// Names that the root of the crate takes from a module: `pub use engine::Engine;`.
fn exports(workspace: &Workspace<'_>, home: &str, modules: &ModuleArrows) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for file in workspace.code(home).filter(|file| top_module(file).is_none()) {
        for (at, _) in file.code.iter().enumerate().filter(|(_, token)| token.is_word("use")) {
            let start = at + 1 + usize::from(file.code.get(at + 1).is_some_and(|next| next.is_word("crate"))) * 3;
            let statement = file.code[start.min(file.code.len())..].split(|token| token.is_mark(';')).next().unwrap_or_default();
            let Some(module) = statement.first().filter(|first| modules.contains_key(first.text)) else { continue };
            let names = statement[1..].iter().filter(|token| token.kind == TokenKind::Word);
            exported.extend(names.map(|name| (name.text.to_owned(), module.text.to_owned())));
        }
    }
    exported
}

/// The first names of all paths that start at the root of the crate, written with `crate` or with
/// enough `super`s.
fn paths_from_root<'a>(file: &RustFile<'a>) -> Vec<(&'a str, usize)> {
    let code = &file.code;
    let mut found = Vec::new();
    let mut depth = ModuleDepth { file: file.below_src().map_or(0, depth_of_file), inline: Vec::new(), braces: 0 };
    for at in 0..code.len() {
        depth.follow(code, at);
        let starts = |word: &str| code[at].is_word(word) && !is_visibility(code, at);
        if starts("crate") && is_path_separator(code, at + 1) {
            found.extend(first_names(&code[at + 3..]));
        } else if starts("super") && !follows_super(code, at) {
            let (levels, end) = supers(code, at);
            if levels == depth.levels() && is_path_separator(code, end) {
                found.extend(first_names(&code[end + 2..]));
            }
        }
    }
    found
}

/// The number of modules around a token.
struct ModuleDepth {
    file: usize,
    /// Open braces at each inline module.
    inline: Vec<usize>,
    braces: usize,
}

impl ModuleDepth {
    fn follow(&mut self, code: &[Token<'_>], at: usize) {
        if code[at].is_mark('{') {
            self.braces += 1;
            if at >= 2 && code[at - 2].is_word("mod") {
                self.inline.push(self.braces);
            }
        } else if code[at].is_mark('}') {
            self.inline.pop_if(|module| *module == self.braces);
            self.braces = self.braces.saturating_sub(1);
        }
    }

    fn levels(&self) -> usize {
        self.file + self.inline.len()
    }
}

/// The number of `super`s in a row, and the place after the last.
fn supers(code: &[Token<'_>], at: usize) -> (usize, usize) {
    let mut levels = 1;
    while is_path_separator(code, at + levels * 3 - 2) && code.get(at + levels * 3).is_some_and(|next| next.is_word("super")) {
        levels += 1;
    }
    (levels, at + levels * 3 - 2)
}

fn follows_super(code: &[Token<'_>], at: usize) -> bool {
    at >= 3 && is_path_separator(code, at - 2) && code[at - 3].is_word("super")
}

/// The number of modules above the items of a file: 0 in the root.
fn depth_of_file(path: &str) -> usize {
    let parts = path.split('/').count();
    let is_folder = path.ends_with("/mod.rs");
    if ["lib.rs", "main.rs"].contains(&path) { 0 } else { parts - usize::from(is_folder) }
}

/// Whether `crate` or `super` stands in `pub(crate)`, `pub(super)` or `pub(in …)`.
fn is_visibility(code: &[Token<'_>], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| code[at]);
    let opens =
        |back: usize| before(back).is_some_and(|token| token.is_mark('(')) && before(back + 1).is_some_and(|token| token.is_word("pub"));
    opens(1) || (before(1).is_some_and(|token| token.is_word("in")) && opens(2))
}

fn is_path_separator(code: &[Token<'_>], at: usize) -> bool {
    (at..at + 2).all(|at| code.get(at).is_some_and(|token| token.is_mark(':')))
}

/// The name that the code begins with, or the first names of its group `{a::b, c}`.
fn first_names<'a>(code: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let Some(first) = code.first() else { return Vec::new() };
    if first.kind == TokenKind::Word {
        return vec![(first.text, first.line)];
    }
    let (mut names, mut depth) = (Vec::new(), 0_usize);
    for pair in code.windows(2) {
        depth += usize::from(pair[0].is_mark('{'));
        depth = depth.saturating_sub(usize::from(pair[0].is_mark('}')));
        if depth == 0 {
            break;
        }
        if depth == 1 && (pair[0].is_mark('{') || pair[0].is_mark(',')) && pair[1].kind == TokenKind::Word {
            names.push((pair[1].text, pair[1].line));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn circle(files: &[(&str, &str)]) -> String {
        let paths: Vec<(String, &str)> = files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let texts = SourceTree::of(&paths.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>());
        let workspace = Workspace::new(&texts, Vec::new());
        assert_eq!(modules_in_cycles(&workspace, "a").offenders.len(), largest_cycle(&workspace, "a").len());
        largest_cycle(&workspace, "a").join(" ")
    }

    #[test]
    fn arrows_there_and_back_close() {
        assert_eq!(circle(&[("b.rs", "use crate::c::X;"), ("c/mod.rs", "fn f() { crate::b::g() }"), ("d.rs", "use crate::b;")]), "b c");
    }

    #[test]
    fn chain_is_no_circle() {
        assert_eq!(circle(&[("b.rs", "use crate::c::X;"), ("c.rs", "use crate::d;"), ("d.rs", "use crate::d::y;")]), "");
    }

    #[test]
    fn groups_name_several_modules() {
        let root = "use crate::{x::{b, Y}, d::Z,\n c as e};";
        assert_eq!(circle(&[("b.rs", root), ("c.rs", "use crate::b;"), ("d.rs", "use super::{b}; "), ("x.rs", "")]), "b c d");
    }

    #[test]
    fn super_counts_levels() {
        assert_eq!(circle(&[("b/e.rs", "use super::super::c;"), ("c.rs", "mod m { use super::super::b; }")]), "b c");
        assert_eq!(circle(&[("b/e.rs", "use super::c; use super::super::super::c;"), ("c.rs", "mod m { use super::b; }")]), "");
    }

    #[test]
    fn root_exports_lead_home() {
        let root = "pub use b::{Engine, inner::Other}; use crate::c::Line;";
        assert_eq!(circle(&[("lib.rs", root), ("b.rs", "use crate::Line;"), ("c.rs", "fn f(x: crate::Other) {}")]), "b c");
    }

    #[test]
    fn tests_and_visibility_are_free() {
        let text =
            "pub(in crate::c) fn f() {} pub(crate) struct X; #[cfg(test)] use crate::c; // crate::c::x\nconst A: &str = \"crate::c\";";
        assert_eq!(circle(&[("b.rs", text), ("c.rs", "use crate::b::f;")]), "");
    }
}
