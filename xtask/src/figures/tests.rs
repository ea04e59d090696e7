//! Tests the comparison of stated figures with results.

use super::*;

const FILE: &str = r#"
machine.quiet = "two cores"
[measurement.runs]
commit = "f734745"
date = "2026-11-15"
machine = "quiet"
command = "cargo xtask bench runs"
[measurement.runs.results]
"one-step: runs per second" = [{ values = [1969, 55753], unit = "runs/s", at = "1, 256 clients" }]
"fdatasync" = [{ values = [0.14], unit = "p50 ms" }, { values = [0.23], unit = "p99 ms" }]
"#;

fn problems_of(page: &str) -> Vec<String> {
    check(page, &Results::parse(FILE).unwrap())
}

#[test]
fn stated_figures_are_accepted() {
    let page = "Some 55,000 runs a second at 256 clients, 0.14 ms a sync. <!-- results: runs -->\n";
    assert_eq!(problems_of(page), Vec::<String>::new());
}

#[test]
fn changed_figure_is_named() {
    let problems = problems_of("# Speed\n\n54,000 runs a second. <!-- results: runs/one-step: runs per second -->\n");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("3: 54,000 is not a figure of `runs/one-step: runs per second`"), "{problems:?}");
}

#[test]
fn figure_of_other_result_is_named() {
    let problems = problems_of("A sync takes 0.14 ms. <!-- results: runs/one-step: runs per second -->\n");
    assert!(problems[0].starts_with("1: 0.14 is not"), "{problems:?}");
}

#[test]
fn unmarked_measurement_is_named() {
    let problems = problems_of("It starts 55,753 runs a second.\nThe timeout is 30 s.\n");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("1: 55,753 looks like a measurement"), "{problems:?}");
}

#[test]
fn unknown_result_is_named() {
    let problems = problems_of("It takes 1 ms. <!-- results: keys -->\n");
    assert!(problems[0].starts_with("1: `keys` is not in"), "{problems:?}");
}

#[test]
fn row_states_result_of_its_name() {
    let table = "<!-- results: runs -->\n| | 1 | 256 clients |\n| --- | --- | --- |\n| one-step: runs per second | 1,969 | 55,753 |\n| `fdatasync` | p50 0.14 ms | p99 0.23 ms |\n";
    assert_eq!(problems_of(table), Vec::<String>::new());
    let problems = problems_of(&table.replace("p50 0.14", "p50 1,969"));
    assert!(problems[0].starts_with("5: 1,969 is not a figure of `fdatasync`"), "{problems:?}");
    let problems = problems_of(&table.replace("`fdatasync`", "`sync`"));
    assert!(problems[0].starts_with("5: `sync` is no result of runs"), "{problems:?}");
}

#[test]
fn mark_ends_with_its_block() {
    let problems = problems_of("<!-- results: runs -->\nA sync takes 0.14 ms.\nIt does.\n\nAnother takes 0.23 ms.\n");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("5: 0.23 looks"), "{problems:?}");
}

#[test]
fn code_is_left_out() {
    assert_eq!(problems_of("```text\n9 runs a second\n```\nSee `7 a second` and [it](page-9.md).\n"), Vec::<String>::new());
}

#[test]
fn committed_pages_state_only_results() {
    let problems = problems(&crate::root()).unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn decisions_are_left_out() {
    let pages = pages(&crate::root()).unwrap();
    assert!(pages.contains(&"README.md".into()) && pages.contains(&"docs/operate/sizing.md".into()), "{pages:?}");
    assert!(!pages.iter().any(|page| page.starts_with("docs/decisions")), "{pages:?}");
}
