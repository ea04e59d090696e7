//! The examples of the guide are right.

use std::path::Path;
use steadfast_definitions::check;

/// The YAML examples of the guide, each with the line that it begins in.
fn examples(guide: &str) -> Vec<(usize, String)> {
    let (mut examples, mut inside) = (Vec::new(), None);
    for (number, line) in guide.lines().enumerate() {
        match (&mut inside, line) {
            (None, "```yaml") => inside = Some((number + 1, String::new())),
            (Some(_), "```") => examples.extend(inside.take()),
            (Some((_, text)), line) => *text += &format!("{line}\n"),
            (None, _) => {}
        }
    }
    examples
}

#[test]
fn every_example_of_the_guide_is_right() {
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/definitions.md")).unwrap();
    let examples = examples(&guide);
    assert!(examples.len() >= 7, "only {} examples were found", examples.len());
    for (line, text) in examples {
        let is_whole = text.starts_with("workflow: ") || text.starts_with("plan: ");
        let whole = if is_whole { text } else { format!("workflow: example\nsteps:\n{text}") };
        if let Err(problems) = check("definitions.md", &whole) {
            panic!("the example after line {line}:\n{}", problems.iter().map(|problem| format!("{problem}\n")).collect::<String>());
        }
    }
}

#[test]
fn every_example_of_the_guide_to_messages_is_right() {
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/messages.md")).unwrap();
    let examples = examples(&guide);
    assert!(examples.len() >= 2, "only {} examples were found", examples.len());
    for (line, text) in examples {
        if let Err(problems) = check("messages.md", &text) {
            panic!("the example after line {line}: {problems:#?}");
        }
    }
}

#[test]
fn the_example_of_the_readme_is_right() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let examples = examples(&readme);
    assert_eq!(examples.len(), 1);
    if let Err(problems) = check("README.md", &examples[0].1) {
        panic!("{problems:#?}");
    }
}
