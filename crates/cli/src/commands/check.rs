//! `steadfast check`: every mistake of definitions, with file, line and what was meant.

use crate::args::{Check, Common};
use crate::error::Error;
use crate::output::{self, style};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use steadfast_definitions::Problem;
use unicode_width::UnicodeWidthStr;

/// A problem, and the line of the file that it is about.
#[derive(Debug, Serialize)]
pub(crate) struct Located {
    #[serde(flatten)]
    problem: Problem,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// What was found in some files.
pub(crate) struct Checked {
    pub(crate) files: usize,
    /// Everything that is wrong with them.
    pub(crate) problems: Vec<Located>,
    /// Steps that start workflows that none of them defines, or plans. Others may define them, so that this is no mistake.
    elsewhere: Vec<String>,
}

pub(crate) fn run(common: &Common, args: &Check) -> Result<(), Error> {
    let Checked { files, problems, elsewhere } = problems_of(&args.paths)?;
    if common.json {
        output::data(serde_json::json!({ "files": files, "items": problems }));
        return if problems.is_empty() { Ok(()) } else { Err(Error::Said(1)) };
    }
    for problem in &problems {
        output::data(told(problem));
    }
    if problems.is_empty() && args.paths.iter().any(|path| path.is_dir()) {
        elsewhere.iter().for_each(output::say); // a broken file may be the one that has it
    }
    match (problems.len(), files) {
        (0, 0) => return Err(Error::Usage("there are no .yaml or .yml files there".into())),
        (0, 1) => output::say("1 file is good"),
        (0, files) => output::say(format_args!("{files} files are good")),
        (1, _) => return Err(Error::Failed("1 problem was found".into())),
        (count, _) => return Err(Error::Failed(format!("{count} problems were found"))),
    }
    Ok(())
}

/// Checks files, and those of folders. That one cannot be read is a problem of that file.
///
/// # Errors
/// If a path is not there, or a folder cannot be read.
pub(crate) fn problems_of(paths: &[PathBuf]) -> Result<Checked, Error> {
    let files = files(paths)?;
    let (mut names, mut routes) = (BTreeMap::new(), BTreeMap::<String, (String, String)>::new());
    let (mut problems, mut starts) = (Vec::new(), Vec::new());
    for path in &files {
        let file = path.display().to_string();
        let text = match read(path, &file) {
            Ok(text) => text,
            Err(problem) => {
                problems.push(Located { problem, source: None });
                continue;
            }
        };
        let checked = steadfast_definitions::check(&file, &text).and_then(|definition| {
            let what = definition.what();
            match names.insert(definition.name.to_string(), (what, file.clone())) {
                Some(other) => Err(vec![twice(&file, &text, (what, definition.name.as_str()), &other)]),
                None => {
                    if let Some(route) = definition.answers() {
                        if let Some((workflow, other)) = routes.get(route) {
                            return Err(vec![both_answer(&file, &text, route, workflow, other)]);
                        }
                        routes.insert(route.to_owned(), (definition.name.to_string(), file.clone()));
                    }
                    starts.extend(definition.starts().map(|(step, workflow)| (file.clone(), step.to_string(), workflow.to_string())));
                    Ok(())
                }
            }
        });
        let source = |problem: &Problem| text.lines().nth(usize::try_from(problem.line).unwrap_or(0).saturating_sub(1)).map(Into::into);
        let located = checked.err().into_iter().flatten().map(|problem| Located { source: source(&problem), problem });
        problems.extend(located);
    }
    let told = |(file, step, workflow): (String, String, String)| match names.get(&workflow) {
        Some(("plan", _)) => {
            Some(format!("note: step `{step}` of {file} starts {workflow}, which is a plan and cannot be started by itself"))
        }
        Some(_) => None,
        None => Some(format!("note: step `{step}` of {file} starts {workflow}, which no file here defines")),
    };
    Ok(Checked { files: files.len(), problems, elsewhere: starts.into_iter().filter_map(told).collect() })
}

/// The text of a file, or why there is none.
fn read(path: &Path, file: &str) -> Result<String, Problem> {
    let problem = |line, column, message| Problem { file: file.into(), line, column, message, help: None };
    let bytes = std::fs::read(path).map_err(|error| problem(1, 1, format!("the file cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let (line, column) = (before.matches('\n').count() + 1, before.chars().rev().take_while(|c| *c != '\n').count() + 1);
        problem(line as u64, column as u64, "the file is not text in UTF-8 from here on".into())
    })
}

/// Two files for one name, be it of a workflow or of a plan: nobody knows which is meant.
fn twice(file: &str, text: &str, (what, name): (&str, &str), (of_other, other): &(&str, String)) -> Problem {
    let line = text.lines().position(|line| line.starts_with(what)).map_or(1, |line| line as u64 + 1);
    let message = if what == *of_other {
        format!("the {what} {name} is defined by {other} already")
    } else {
        format!("the {what} {name} has the name of a {of_other}, which is defined by {other}")
    };
    Problem { file: file.into(), line, column: 1, message, help: Some("give one of them another name".into()) }
}

/// Two workflows that answer one route: a call has one answer, and the server uses the first alone.
fn both_answer(file: &str, text: &str, route: &str, workflow: &str, other: &str) -> Problem {
    let line = text.lines().position(|line| line.starts_with("answers")).map_or(1, |line| line as u64 + 1);
    let message = format!("the route {route} is answered by the workflow {workflow} already, which is defined by {other}");
    Problem { file: file.into(), line, column: 1, message, help: Some("have one of them answer another route: `answers: NAME`".into()) }
}

/// The files themselves, and those of folders.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if !std::fs::metadata(path).map_err(|error| unreadable(path, &error))?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries: Result<Vec<PathBuf>, _> = std::fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut inside = entries.map_err(|error| unreadable(path, &error))?;
        inside.retain(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Usage(format!("cannot read {}: {error}", path.display()))
}

/// `file:line:column: message`, the line with a caret under the place, and what to do.
fn told(located: &Located) -> String {
    let Located { problem, source } = located;
    let place = style::paint(style::BOLD, format_args!("{}:{}:{}", problem.file, problem.line, problem.column));
    let mut text = format!("{place}: {}", style::paint(style::BAD, &problem.message));
    let number = problem.line.to_string();
    let margin = " ".repeat(number.len());
    let bar = |number: &str| style::paint(style::FAINT, format_args!("  {number} | "));
    if let Some(source) = source.as_deref().filter(|source| !source.trim().is_empty()) {
        let before: String = source.chars().take(usize::try_from(problem.column).unwrap_or(1).saturating_sub(1)).collect();
        let caret = style::paint(style::BAD, "^");
        text += &format!("\n{}{source}\n{}{}{caret}", bar(&number), bar(&margin), " ".repeat(before.width()));
    }
    if let Some(help) = &problem.help {
        text += &format!("\n{}{help}", style::paint(style::FAINT, format_args!("  {margin} = help: ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_points_at_its_place() {
        let problem = Problem {
            file: "a.yaml".into(),
            line: 12,
            column: 11,
            message: "`inptu` is not known".into(),
            help: Some("did you mean `input`?".into()),
        };
        let source = Some("    set: \"é {{ inptu }}\"".into());
        let text = anstream::adapter::strip_str(&told(&Located { problem, source })).to_string();
        let expected = [
            "a.yaml:12:11: `inptu` is not known",
            "  12 |     set: \"é {{ inptu }}\"",
            "     |           ^",
            "     = help: did you mean `input`?",
        ];
        assert_eq!(text, expected.join("\n"));
    }

    #[test]
    fn two_files_of_one_workflow_are_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.yaml", "b.yml", "c.txt"] {
            std::fs::write(dir.path().join(name), "workflow: same\nsteps:\n  - name: x\n    set: 1\n").unwrap();
        }
        let Checked { files, problems, .. } = problems_of(&[dir.path().into()]).unwrap();
        assert_eq!((files, problems.len()), (2, 1), "{problems:?}");
        assert!(problems[0].problem.message.contains("defined by") && problems[0].problem.file.ends_with("b.yml"));
    }

    #[test]
    fn two_files_that_answer_one_route_are_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "workflow: pay\nanswers: true\nsteps:\n  - { name: x, set: 1 }\n").unwrap();
        std::fs::write(dir.path().join("b.yaml"), "workflow: other\nsteps:\n  - { name: x, set: 1 }\nanswers: pay\n").unwrap();
        let Checked { problems, .. } = problems_of(&[dir.path().into()]).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let Problem { file, line, message, .. } = &problems[0].problem;
        assert!(file.ends_with("b.yaml") && *line == 4, "{problems:?}");
        assert!(message.starts_with("the route pay is answered by the workflow pay already, which is defined by "), "{message}");
    }

    #[test]
    fn a_plan_and_a_workflow_of_one_name_are_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "workflow: same\nsteps:\n  - { name: x, start: { workflow: other } }\n").unwrap();
        std::fs::write(dir.path().join("b.yaml"), "# what it is for\nplan: same\nstages:\n  - { name: x, set: 1 }\n").unwrap();
        std::fs::write(dir.path().join("c.yaml"), "plan: other\nstages:\n  - { name: x, set: 1 }\n").unwrap();
        let Checked { problems, elsewhere, .. } = problems_of(&[dir.path().into()]).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let Problem { file, line, message, .. } = &problems[0].problem;
        assert!(file.ends_with("b.yaml") && *line == 2, "{problems:?}");
        assert!(
            message.starts_with("the plan same has the name of a workflow, which is defined by ") && message.ends_with("a.yaml"),
            "{message}"
        );
        assert!(
            elsewhere.len() == 1 && elsewhere[0].ends_with("starts other, which is a plan and cannot be started by itself"),
            "{elsewhere:?}"
        );
    }
}
