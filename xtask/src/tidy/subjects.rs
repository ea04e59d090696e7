//! Checks that tests and their subjects in other crates name each other.
//!
//! A test file whose subject lives in another crate has the line ``//! Subject: `PATH`.`` in its header.
//! The subject answers with ``//! Tested by `PATH`.``; both paths start at the root of the workspace.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Component, Path};

/// The name of one file in the header of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// A test names its subject.
    Subject,
    /// A subject names its test.
    TestedBy,
}

impl Link {
    const BOTH: [Link; 2] = [Link::Subject, Link::TestedBy];

    fn prefix(self) -> &'static str {
        match self {
            Link::Subject => "//! Subject:",
            Link::TestedBy => "//! Tested by",
        }
    }

    fn answer(self) -> Link {
        match self {
            Link::Subject => Link::TestedBy,
            Link::TestedBy => Link::Subject,
        }
    }

    /// The line that names this path.
    fn line(self, path: &str) -> String {
        format!("{} `{path}`.", self.prefix())
    }
}

/// The links in the header of one file, and its malformed lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    links: Vec<(Link, String)>,
    malformed: Vec<String>,
}

impl Header {
    fn of(text: &str) -> Self {
        let mut header = Header::default();
        for line in text.lines() {
            for link in Link::BOTH {
                match path(line, link) {
                    Some(Ok(path)) => header.links.push((link, path.to_owned())),
                    Some(Err(Malformed)) => header.malformed.push(line.to_owned()),
                    None => {}
                }
            }
        }
        header
    }

    fn names(&self, link: Link, path: &str) -> bool {
        self.links.iter().any(|(named_as, named)| *named_as == link && named == path)
    }
}

struct Malformed;

/// The path that a line names by this link, if it is a line of that kind.
fn path(line: &str, link: Link) -> Option<Result<&str, Malformed>> {
    let rest = line.strip_prefix(link.prefix())?;
    let path = rest.strip_prefix(" `").and_then(|rest| rest.strip_suffix("`."));
    Some(path.filter(|path| !path.contains('`')).ok_or(Malformed))
}

/// The headers of all Rust files, by path from the root of the workspace.
struct Workspace {
    headers: BTreeMap<String, Header>,
    crates: Vec<String>,
}

impl Workspace {
    fn read(root: &Path) -> std::io::Result<Self> {
        let mut workspace = Workspace { headers: BTreeMap::new(), crates: vec![] };
        workspace.read_folder(root, root)?;
        Ok(workspace)
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    self.read_folder(root, &path)?;
                }
            } else if name == "Cargo.toml" {
                self.crates.push(from_root(root, folder));
            } else if name.ends_with(".rs") {
                self.headers.insert(from_root(root, &path), Header::of(&fs::read_to_string(&path)?));
            }
        }
        Ok(())
    }

    /// The folder of the crate that a file belongs to.
    fn crate_of(&self, file: &str) -> &str {
        let holds = |folder: &&String| file.strip_prefix(folder.as_str()).is_some_and(|rest| folder.is_empty() || rest.starts_with('/'));
        self.crates.iter().filter(holds).max_by_key(|folder| folder.len()).map_or("", String::as_str)
    }

    /// Where a file has moved that `file` names: it names `file`, which does not name it yet.
    fn moved_to(&self, file: &str, link: Link, missing: &str) -> Option<&str> {
        let header = self.headers.get(file)?;
        let names_file = |(path, of): &(&String, &Header)| of.names(link.answer(), file) && !header.names(link, path);
        let candidates = self.headers.iter().filter(names_file).map(|(path, _)| path.as_str());
        candidates.max_by_key(|path| equal_names_at_end(path, missing))
    }

    fn has_stale(&self, file: &str, link: Link) -> bool {
        let stale = |(of, path): &(Link, String)| *of == link && !self.headers.contains_key(path);
        self.headers.get(file).is_some_and(|header| header.links.iter().any(stale))
    }

    fn problem(&self, file: &str, link: Link, named: &str) -> Option<Problem> {
        let Some(header) = self.headers.get(named) else {
            let moved_to = self.moved_to(file, link, named);
            return Some(moved_to.map_or(Problem::Missing, |path| Problem::Moved(path.to_owned())));
        };
        if self.crate_of(file) == self.crate_of(named) {
            return Some(Problem::SameCrate);
        }
        let is_answered = header.names(link.answer(), file) || self.has_stale(named, link.answer()); // a stale answer is reported itself
        (!is_answered).then_some(Problem::Unanswered)
    }
}

/// How many names two paths have in common, counted from their ends.
fn equal_names_at_end(a: &str, b: &str) -> usize {
    a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count()
}

/// A defect of one link.
enum Problem {
    Missing,
    Moved(String),
    SameCrate,
    Unanswered,
}

/// A problem with its link: the sentence that a developer reads.
struct Report<'a> {
    file: &'a str,
    link: Link,
    named: &'a str,
    problem: Problem,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { file, link, named, problem } = self;
        let answer = link.answer().line(file);
        match problem {
            Problem::Missing => write!(f, "{file}: `{named}` does not exist; write the new path, or remove `{}`", link.line(named)),
            Problem::Moved(path) => write!(f, "{file}: `{named}` does not exist; `{path}` names this file, so write `{}`", link.line(path)),
            Problem::SameCrate => write!(f, "{file}: `{named}` is in the same crate; remove `{}`", link.line(named)),
            Problem::Unanswered => write!(f, "{named}: add `{answer}` to the header, because `{file}` has `{}`", link.line(named)),
        }
    }
}

/// Lists every link between a test and its subject that is malformed, stale, or one-sided.
pub(crate) fn problems(root: &Path) -> Vec<String> {
    match Workspace::read(root) {
        Ok(workspace) => problems_of(&workspace),
        Err(error) => vec![format!("cannot read the Rust files under {}: {error}", root.display())],
    }
}

fn problems_of(workspace: &Workspace) -> Vec<String> {
    let mut problems = vec![];
    for (file, header) in &workspace.headers {
        let form = |line| format!("{file}: `{line}` must be `{}` or `{}`", Link::Subject.line("PATH"), Link::TestedBy.line("PATH"));
        problems.extend(header.malformed.iter().map(form));
        for (link, named) in &header.links {
            let report = |problem| Report { file, link: *link, named, problem }.to_string();
            problems.extend(workspace.problem(file, *link, named).map(report));
        }
    }
    problems
}

/// The path below the root, with slashes on every platform.
fn from_root(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let names = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests;
