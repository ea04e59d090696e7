//! Finds links of Markdown that lead nowhere inside the workspace.

use super::markdown::{Fences, blocks, code_span};
use super::source_tree::SourceText;
use super::tally::{Offender, Tally};
use super::workspace::Workspace;
use std::collections::BTreeMap;

/// Relative links whose file or heading does not exist; addresses with a scheme are left alone.
pub(crate) fn dead_links(workspace: &Workspace<'_>, home: &str) -> Tally {
    let mut tally = Tally::default();
    for page in workspace.markdown(home) {
        for (line, target) in links(&page.text) {
            tally.of += 1;
            if let Some(note) = fault(workspace, page, &target) {
                tally.offenders.push(Offender::new(&page.path, line, note));
            }
        }
    }
    tally
}

/// Every relative link with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in lines_without_code(text) {
        let definition = text
            .trim_start()
            .starts_with('[')
            .then(|| text.split_once("]: "))
            .flatten()
            .map(|(_, target)| target);
        let inline = text.match_indices("](").map(|(at, opening)| inside(&text[at + opening.len()..]));
        let html = ["href=\"", "src=\""]
            .into_iter()
            .flat_map(|name| text.split(name).skip(1))
            .filter_map(|rest| rest.split('"').next());
        let targets = definition.into_iter().chain(inline).chain(html).map(target_alone);
        found.extend(targets.filter(|target| is_relative(target)).map(|target| (line, target.to_owned())));
    }
    found
}

/// The lines outside fenced code, without code spans.
fn lines_without_code(text: &str) -> Vec<(usize, String)> {
    let mut fences = Fences::default();
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !fences.is_code(line));
    lines.map(|(number, line)| (number, without_spans(line))).collect()
}

fn without_spans(line: &str) -> String {
    let (mut kept, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        kept.push_str(&rest[..at]);
        rest = &rest[at + code_span(&rest[at..]).len()..];
    }
    kept + rest
}

/// The text up to the bracket that closes a link; brackets in pairs belong to the target.
fn inside(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, mark) in text.char_indices() {
        match mark {
            '(' => depth += 1,
            ')' if depth == 0 => return &text[..at],
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// A target without its title and its angle brackets.
fn target_alone(target: &str) -> &str {
    let target = target.trim();
    match target.strip_prefix('<') {
        Some(rest) => rest.split('>').next().unwrap_or_default(),
        None => target.split_whitespace().next().unwrap_or_default(),
    }
}

fn is_relative(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().is_some_and(|start| start.contains(':'));
    !target.is_empty() && !scheme && !target.starts_with("//")
}

/// The reason why a link is dead.
fn fault(workspace: &Workspace<'_>, page: &SourceText, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { Some(page.path.clone()) } else { resolved(&page.path, path) };
    let Some(path) = path.filter(|path| workspace.texts.exists(path)) else {
        return Some(format!("`{target}` leads to no file"));
    };
    let anchor = anchor.filter(|anchor| !anchor.is_empty())?;
    let text = workspace.texts.get(&path).filter(|_| path.ends_with(".md"))?;
    (!anchors(&text.text).iter().any(|known| known == anchor)).then(|| format!("`{target}` leads to no heading of {path}"))
}

/// A relative path from the root, or nothing if it leaves the workspace.
fn resolved(page: &str, target: &str) -> Option<String> {
    let folder = if target.starts_with('/') { "" } else { page.rsplit_once('/').map_or("", |(folder, _)| folder) };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a page: those of its headings, as GitHub makes them, and those given in HTML.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = blocks(text.lines(), 1).into_iter().filter(|block| block.is_heading);
    let mut anchors: Vec<String> = headings
        .map(|heading| {
            let slug = slug(&heading.text);
            let count = seen.entry(slug.clone()).or_default();
            *count += 1;
            if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
        })
        .collect();
    let given = ["id=\"", "name=\""]
        .into_iter()
        .flat_map(|name| text.split(name).skip(1))
        .filter_map(|rest| rest.split('"').next());
    anchors.extend(given.map(str::to_owned));
    anchors
}

/// A heading as GitHub writes it in addresses: small letters, no punctuation, `-` for blanks.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let kept = text.trim().chars().filter(|mark| mark.is_alphanumeric() || " -_".contains(*mark));
    kept.flat_map(char::to_lowercase).map(|mark| if mark == ' ' { '-' } else { mark }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn faults_of(page: &str) -> Vec<String> {
        let other = "# Title\n\n## Run: what, `a_b` & why?\n\n## Title\n\n```\n# Code\n```\n<a id=\"here\"></a>\n";
        let texts = SourceTree::of(&[("docs/guide/a.md", page), ("docs/b.md", other), ("crates/x/src/lib.rs", "")]);
        dead_links(&Workspace::new(&texts, Vec::new()), "docs")
            .offenders
            .into_iter()
            .map(|place| format!("{}: {}", place.line, place.note))
            .collect()
    }

    #[test]
    fn existing_targets_are_alive() {
        let page = "# Me\n[a](../b.md) [b](#me) ![c](../../crates/x \"title\") [d](/docs/b.md) [e](<../b.md>)\n\n[f]: ../b.md\n[g](https://x.y/z) [h](mailto:a@b)";
        assert_eq!(faults_of(page), [""; 0]);
    }

    #[test]
    fn missing_file_is_dead() {
        assert_eq!(faults_of("x\n[a](b.md), <img src=\"c.png\">"), ["2: `b.md` leads to no file", "2: `c.png` leads to no file"]);
        assert_eq!(faults_of("[a](../../../docs/b.md)").len(), 1);
        assert_eq!(faults_of("[a]: nowhere.md").len(), 1);
    }

    #[test]
    fn heading_punctuation_leaves_anchor() {
        assert!(faults_of("[a](../b.md#run-what-a_b--why) [b](../b.md#title-1) [c](../b.md#here)").is_empty());
        assert_eq!(faults_of("[a](../b.md#code)"), ["1: `../b.md#code` leads to no heading of docs/b.md"]);
        assert_eq!(faults_of("[a](../b.md#title-2) [b](#x)").len(), 2);
    }

    #[test]
    fn links_in_code_are_ignored() {
        assert!(faults_of("`[a](b.md)`\n````\n```\n[a](b.md)\n```\n````\n| `x](y)` |").is_empty());
        assert_eq!(faults_of("[`code`](b.md)\n\n| [t](c.md) |").len(), 2);
    }
}
