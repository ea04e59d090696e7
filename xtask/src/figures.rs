//! Compares figures that the documentation states with the file of measured results.

mod numbers;
mod results;

use anyhow::{Context, Result};
use numbers::{Number, numbers};
use results::{Figure, Results};
use std::path::{Path, PathBuf};

const FILE: &str = "docs/performance/results.toml";
/// Names the results that a line, or the block below it, states.
const MARK: (&str, &str) = ("<!-- results:", "-->");

/// The figures that are not in the file of results, as `file:line: figure and next action`.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("{FILE} cannot be read"))?;
    let results = Results::parse(&text).with_context(|| format!("{FILE} is invalid"))?;
    let mut problems = Vec::new();
    for page in pages(root)? {
        let text = std::fs::read_to_string(root.join(&page)).with_context(|| format!("{} cannot be read", page.display()))?;
        problems.extend(check(&text, &results).into_iter().map(|problem| format!("{}:{problem}", page.display())));
    }
    Ok(problems)
}

/// README.md, CONTRIBUTING.md, the pages of `docs`, and the README files of crates and examples.
/// Decisions are left out: they give the figures of their day as reasons.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    let mut folders = vec![PathBuf::from("docs"), PathBuf::from("crates"), PathBuf::from("examples")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let is_left_out = path == Path::new("docs/decisions") || path.ends_with("target");
            if entry.file_type()?.is_dir() && !is_left_out {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Problems of a page, each with its line.
fn check(text: &str, results: &Results) -> Vec<String> {
    let mut problems = Vec::new();
    let mut block = None; // the names of a mark that stands alone, until the next blank line
    let mut is_code = false;
    for (line, at) in text.lines().zip(1..) {
        is_code ^= line.trim_start().starts_with("```");
        let (own, prose) = (references(line), without_markup(line));
        if is_code {
            continue;
        }
        if prose.trim().is_empty() {
            block = own;
            continue;
        }
        let found = match (&own, &block) {
            (Some(names), _) => check_marked(&prose, names, results),
            (None, Some(names)) if line.trim_start().starts_with('|') => check_row(line, names, results),
            (None, Some(names)) => check_marked(&prose, names, results),
            (None, None) => check_unmarked(&prose),
        };
        problems.extend(found.into_iter().map(|problem| format!("{at}: {problem}")));
    }
    problems
}

/// The names in the mark of a line.
fn references(line: &str) -> Option<Vec<&str>> {
    let (_, rest) = line.split_once(MARK.0)?;
    let (names, _) = rest.split_once(MARK.1)?;
    Some(names.split(';').map(str::trim).collect())
}

/// Prose without comments, code spans and link targets.
fn without_markup(line: &str) -> String {
    let line = without(line, "<!--", "-->");
    let line = without(&line, "`", "`");
    without(&line, "](", ")")
}

/// The line without its parts between two marks.
pub(crate) fn without(line: &str, open: &str, close: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, inside)) = rest.split_once(open) {
        let Some((_, after)) = inside.split_once(close) else { break };
        kept.push_str(before);
        kept.push(' ');
        rest = after;
    }
    kept + rest
}

fn check_unmarked(prose: &str) -> Vec<String> {
    let numbers = numbers(prose);
    let Some(number) = numbers.iter().find(|number| number.looks_measured()) else { return Vec::new() };
    vec![format!("{} looks like a measurement; add it to {FILE} and `{} NAME {}` to the line", number.text, MARK.0, MARK.1)]
}

fn check_marked(prose: &str, names: &[&str], results: &Results) -> Vec<String> {
    match results.find_all(names) {
        Ok(found) => missing(prose, found.into_values(), &names.join("; ")),
        Err(unknown) => vec![format!("`{unknown}` is not in {FILE}; correct the name or add the result")],
    }
}

/// A row of a marked table: its first cell names the result that the other cells state. A row
/// without a name is a head.
fn check_row(row: &str, names: &[&str], results: &Results) -> Vec<String> {
    let cells = row.trim().trim_start_matches('|');
    let (first, others) = cells.split_once('|').unwrap_or((cells, ""));
    let (name, others) = (first.replace(['`', '*'], ""), without_markup(others));
    let name = name.trim();
    if name.is_empty() || numbers(&others).is_empty() {
        return check_marked(&others, names, results);
    }
    match results.find_all(names).map(|found| found.get(name).copied()) {
        Ok(Some(figures)) => missing(&others, [figures], name),
        Ok(None) => vec![format!("`{name}` is no result of {}; the first cell of a row is its name in {FILE}", names.join("; "))],
        Err(_) => check_marked(&others, names, results),
    }
}

/// Problems of the numbers that none of the figures has.
fn missing<'a>(prose: &str, figures: impl IntoIterator<Item = &'a [Figure]>, name: &str) -> Vec<String> {
    let figures: Vec<&Figure> = figures.into_iter().flatten().collect();
    let is_known = |number: &&Number| figures.iter().any(|figure| figure.covers(number));
    let numbers = numbers(prose);
    let unknown = numbers.iter().filter(|number| !is_known(number));
    unknown
        .map(|number| {
            format!("{} is not a figure of `{name}` in {FILE}; state a figure of the file, or measure again and change both", number.text)
        })
        .collect()
}

#[cfg(test)]
mod tests;
