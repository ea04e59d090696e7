//! Measures names, prose and structure against the budgets in `tidy.toml`.

mod ambiguous_types;
mod budget;
mod budget_update;
mod changed_lines;
mod crate_arrows;
mod dead_links;
mod line_width;
mod long_sentences;
mod markdown;
mod measures;
mod module_cycles;
mod module_headers;
mod one_word_names;
mod product_lines;
mod pronouns;
mod prose;
mod report;
mod rust_file;
mod rust_items;
mod rust_lexer;
mod source_tree;
mod tally;
mod test_code;
mod test_subjects;
mod workspace;

use crate::{figures, root};
use anyhow::{Context, Result, bail};
use budget::{Finding, Verdict};
use measures::{FigureRow, MEASURES, Measure};
pub(crate) use product_lines::{ProductFile, product_files};
use source_tree::SourceTree;
use std::io::Write as _;
use toml::{Table, Value};
use workspace::Workspace;

const HELP: &str = "\
cargo xtask tidy [--report] [--list FIGURE] [--update]

Measures names, prose and structure per crate and fails when a figure exceeds its budget.
Budgets, crate arrows and the meaning of every figure stand in tidy.toml.

  --report        prints all figures, and the largest files, functions, structs and cycles
  --list FIGURE   prints every place that a figure of tidy.toml counts, such as long_headers
  --update        lowers budgets to the figures of the work tree and enters those of new crates;
                  it raises none
";

enum Mode {
    Compare,
    Report,
    List(&'static Measure),
    Update,
    Help,
}

impl Mode {
    fn parse(arguments: &[String]) -> Result<Self> {
        match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Ok(Self::Compare),
            ["--report"] => Ok(Self::Report),
            ["--update"] => Ok(Self::Update),
            ["--help" | "-h"] => Ok(Self::Help),
            ["--list", key] => {
                let known = || MEASURES.iter().map(|measure| measure.key).collect::<Vec<_>>().join(", ");
                let measure = MEASURES.iter().find(|measure| measure.key == *key);
                measure.map(Self::List).with_context(|| format!("unknown figure `{key}`; known are {}", known()))
            }
            other => bail!("unknown arguments: {}\n\n{HELP}", other.join(" ")),
        }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mode = Mode::parse(arguments)?;
    if matches!(mode, Mode::Help) {
        show(HELP);
        return Ok(());
    }
    let texts = SourceTree::read(&root())?;
    let document = document(&texts)?;
    let workspace = Workspace::new(&texts, product_crates(&texts, &document)?);
    if let Mode::List(measure) = mode {
        show(&report::places(&workspace, measure));
        return Ok(());
    }
    let rows = measures::rows(&workspace);
    if matches!(mode, Mode::Report) {
        show(&format!("{}{}\n", report::table(&rows), report::largest(&workspace)));
    }
    settle(&texts, &rows, &document, matches!(mode, Mode::Update))
}

fn document(texts: &SourceTree) -> Result<Table> {
    let text = texts.get("tidy.toml").context("tidy.toml is missing in the root of the workspace")?;
    text.text.parse().context("cannot read tidy.toml")
}

/// Crates in `crates/` that are not listed as tools.
fn product_crates(texts: &SourceTree, document: &Table) -> Result<Vec<String>> {
    let tools = document.get("tools").and_then(Value::as_array).context("tidy.toml has no list `tools`")?;
    let tools: Vec<&str> = tools.iter().filter_map(|tool| tool.as_str()).collect();
    let manifests = texts.with_extension("toml").filter(|text| text.path == format!("crates/{}/Cargo.toml", text.home));
    Ok(manifests.map(|text| text.home.clone()).filter(|home| !tools.contains(&home.as_str())).collect())
}

/// Compares figures and arrows with `tidy.toml`, and updates it on request.
fn settle(texts: &SourceTree, rows: &[FigureRow], document: &Table, updates: bool) -> Result<()> {
    let skipped = (rustfmt_width(texts) > line_width::COLUMNS).then_some(measures::WIDE_CODE);
    let findings = budget::compare(rows, document, skipped);
    let stale = budget::stale(rows, document);
    let mut faults = crate_arrows::faults(texts, document)?;
    faults.extend(figures::problems(&root())?);
    if updates {
        let text = texts.get("tidy.toml").map(|text| text.text.as_str()).unwrap_or_default();
        let text = budget_update::updated_text(text, &findings, &stale);
        std::fs::write(root().join("tidy.toml"), text).context("cannot write tidy.toml")?;
    } else {
        faults.extend(stale.iter().map(|row| stale_fault(row)));
        faults.extend(without_budget(&findings));
        print_better(&findings);
    }
    faults.extend(worse(&findings));
    if faults.is_empty() {
        show(&format!("tidy: {} figures hold\n", findings.len()));
        return Ok(());
    }
    bail!("{}\ntidy: {} failed; `cargo xtask tidy --help` and tidy.toml explain the figures", faults.join("\n"), faults.len())
}

fn stale_fault(row: &str) -> String {
    format!("{row}: tidy.toml has a budget, but no crate has this name; `cargo xtask tidy --update` removes it")
}

fn worse(findings: &[Finding<'_>]) -> Vec<String> {
    let worse: Vec<_> = findings.iter().filter(|finding| finding.verdict == Verdict::Worse).collect();
    if worse.is_empty() {
        return Vec::new();
    }
    let changes = changed_lines::ChangedLines::since_budgets(&root());
    worse.into_iter().map(|finding| report::worse(finding, &changes)).collect()
}

/// One line per row that has figures without a budget.
fn without_budget(findings: &[Finding<'_>]) -> Vec<String> {
    let new: Vec<_> = findings.iter().filter(|finding| finding.verdict == Verdict::New).collect();
    let rows = new.chunk_by(|one, next| one.row == next.row);
    rows.map(|row| {
        let keys: Vec<_> = row.iter().map(|finding| finding.measure.key).collect();
        format!("{}: tidy.toml has no budget for {}; `cargo xtask tidy --update` enters it", row[0].row, keys.join(", "))
    })
    .collect()
}

fn print_better(findings: &[Finding<'_>]) {
    let better = report::better(findings);
    if !better.is_empty() {
        show(&format!("Better than the budget; `cargo xtask tidy --update` lowers it:\n{better}\n"));
    }
}

/// The width that rustfmt fills. While it exceeds the limit, rustfmt itself makes wide lines.
fn rustfmt_width(texts: &SourceTree) -> usize {
    let document: Option<Table> = texts.get("rustfmt.toml").and_then(|text| text.text.parse().ok());
    let width = document.and_then(|document| document.get("max_width")?.as_integer());
    width.and_then(|width| usize::try_from(width).ok()).unwrap_or(100)
}

/// Writes to the standard output. A reader such as `head` may close it early.
fn show(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
