//! Prints the table of all figures, the largest items and the faults.

use super::budget::{Finding, Verdict};
use super::changed_lines::ChangedLines;
use super::measures::{FigureRow, MEASURES, Measure};
use super::module_cycles;
use super::rust_items::ItemKind;
use super::tally::{Offender, Tally, Unit};
use super::workspace::Workspace;
use std::fmt::Write as _;

/// The places that a message shows at most.
const SHOWN: usize = 10;

/// The table: a row per crate, a column per measure.
pub(crate) fn table(rows: &[FigureRow]) -> String {
    let headings = |line: usize| MEASURES.iter().map(move |measure| measure.heading[line].to_owned());
    let mut grid: Vec<Vec<String>> = vec![
        ["", "Rust", "Rust"].map(str::to_owned).into_iter().chain(headings(0)).collect(),
        ["", "files", "lines"].map(str::to_owned).into_iter().chain(headings(1)).collect(),
    ];
    for row in rows {
        let cells = row.figures().map(|(measure, tally)| cell(measure, tally));
        grid.push([row.name.clone(), row.files.to_string(), row.lines.to_string()].into_iter().chain(cells).collect());
    }
    aligned(&grid)
}

/// A figure, or `-` where there is nothing to count.
fn cell(measure: &Measure, tally: &Tally) -> String {
    if tally.of == 0 { "-".to_owned() } else { measure.unit.shown(measure.unit.tenths(tally)) }
}

fn aligned(grid: &[Vec<String>]) -> String {
    let columns = grid.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        grid.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in grid {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The largest files, functions, structs and cycles of code that is no test.
pub(crate) fn largest(workspace: &Workspace<'_>) -> String {
    let (mut files, mut functions, mut structs) = (Vec::new(), Vec::new(), Vec::new());
    let homes = workspace.homes();
    for file in homes.iter().flat_map(|home| workspace.code(home)) {
        let path = &file.source.path;
        files.push((file.source.text.lines().count(), path.clone()));
        for item in &file.items {
            let place = format!("{path}:{} {}", item.line, item.name);
            match item.kind {
                ItemKind::Struct => structs.push((item.fields, place)),
                ItemKind::Function | ItemKind::TraitFunction => functions.push((item.lines(), place)),
                ItemKind::OtherType => {}
            }
        }
    }
    let cycles = homes
        .iter()
        .map(|home| (home, module_cycles::largest_cycle(workspace, home)))
        .filter(|(_, cycle)| !cycle.is_empty());
    let cycles = cycles.map(|(home, cycle)| (cycle.len(), format!("{home}: {}", cycle.join(", ")))).collect();
    let lists = [("files (lines)", files), ("functions (lines)", functions), ("structs (fields)", structs), ("cycles (modules)", cycles)];
    lists.map(|(title, list)| top(title, list)).concat()
}

fn top(title: &str, mut list: Vec<(usize, String)>) -> String {
    list.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let mut text = format!("\nLargest {title}\n");
    for (size, place) in list.iter().take(SHOWN) {
        let _ = writeln!(text, "{size:>7}  {place}");
    }
    text
}

/// A figure that is worse than its budget, with the places that a developer has to look at.
pub(crate) fn worse(finding: &Finding<'_>, changes: &ChangedLines) -> String {
    let unit = finding.measure.unit;
    let mut text = format!(
        "{}: {}: {}, budget {}{}\n",
        finding.row,
        finding.measure.title,
        shown_with_unit(unit, finding.figure),
        shown_with_unit(unit, finding.budget),
        if unit.is_rate() { format!(" ({} of {})", finding.tally.offenders.len(), finding.tally.of) } else { String::new() },
    );
    let (new, old): (Vec<&Offender>, Vec<&Offender>) = finding.tally.offenders.iter().partition(|place| changes.contain(place));
    let room = SHOWN.saturating_sub(new.len()).max(3);
    add_places(&mut text, &new, "on lines changed since tidy.toml", SHOWN);
    add_places(&mut text, &old, "before", room);
    text
}

fn add_places(text: &mut String, places: &[&Offender], title: &str, room: usize) {
    if !places.is_empty() {
        let _ = writeln!(text, "  {title}:");
    }
    for place in places.iter().take(room) {
        let _ = writeln!(text, "    {place}");
    }
    if places.len() > room {
        let _ = writeln!(text, "    and {} more", places.len() - room);
    }
}

fn shown_with_unit(unit: Unit, tenths: usize) -> String {
    let shown = unit.shown(tenths);
    if unit == Unit::Percent { format!("{shown} %") } else { shown }
}

/// Every place that a measure counts, crate by crate.
pub(crate) fn places(workspace: &Workspace<'_>, measure: &Measure) -> String {
    let homes = workspace.homes();
    let places = homes.iter().flat_map(|home| (measure.find)(workspace, home).offenders);
    places.map(|place| format!("{place}\n")).collect()
}

/// One line per figure that is better than its budget.
pub(crate) fn better(findings: &[Finding<'_>]) -> String {
    let mut text = String::new();
    for finding in findings.iter().filter(|finding| finding.verdict == Verdict::Better) {
        let unit = finding.measure.unit;
        let (figure, budget) = (shown_with_unit(unit, finding.figure), shown_with_unit(unit, finding.budget));
        let _ = writeln!(text, "{}: {}: {figure}, budget {budget}", finding.row, finding.measure.title);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_line_up() {
        let grid = [vec!["", "a", "bb"], vec!["long", "100", "é"]].map(|row| row.into_iter().map(str::to_owned).collect());
        assert_eq!(aligned(&grid), "        a  bb\nlong  100   é\n");
    }

    #[test]
    fn fault_shows_changed_places_first() {
        let measure = MEASURES.iter().find(|measure| measure.key == "one_word_types").unwrap();
        let place = |path: &str, line| Offender::new(path, line, "the name `Run` is one word");
        let mut offenders: Vec<_> = (1..=12).map(|line| place("old.rs", line)).collect();
        offenders.push(place("new.rs", 7));
        let tally = Tally { offenders, of: 26 };
        let finding = Finding { row: "kernel", measure, tally: &tally, figure: 500, budget: 401, verdict: Verdict::Worse };
        let fault = worse(&finding, &ChangedLines::parse("+++ b/new.rs\n@@ -0,0 +1,9 @@\n"));
        let lines: Vec<_> = fault.lines().collect();
        assert_eq!(lines[0], "kernel: type names of one word: 50.0 %, budget 40.1 % (13 of 26)");
        assert_eq!(lines[1], "  on lines changed since tidy.toml:");
        assert_eq!(lines[2], "    new.rs:7: the name `Run` is one word");
        assert_eq!(lines[3..5], ["  before:", "    old.rs:1: the name `Run` is one word"]);
        assert_eq!(lines.last(), Some(&"    and 3 more"));
    }
}
