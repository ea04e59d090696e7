//! Compares figures with the budgets in `tidy.toml`.

use super::measures::{FigureRow, Measure, PRODUCT};
use super::tally::{Tally, Unit};
use std::collections::BTreeSet;
use toml::{Table, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The figure has no budget yet.
    New,
    Worse,
    Holds,
    /// Better by more than the tolerance.
    Better,
}

/// A figure beside its budget, both in tenths.
pub(crate) struct Finding<'r> {
    pub(crate) row: &'r str,
    pub(crate) measure: &'static Measure,
    pub(crate) tally: &'r Tally,
    pub(crate) figure: usize,
    pub(crate) budget: usize,
    pub(crate) verdict: Verdict,
}

/// Compares every figure that has something to count. `skipped` names a measure that is only
/// reported.
pub(crate) fn compare<'r>(rows: &'r [FigureRow], document: &Table, skipped: Option<&str>) -> Vec<Finding<'r>> {
    let mut findings = Vec::new();
    for row in rows.iter().filter(|row| row.parts == 1 || row.name == PRODUCT) {
        for (measure, tally) in row.figures() {
            let applies = tally.of > 0 && skipped != Some(measure.key) && (row.parts == 1 || measure.unit.is_rate());
            if applies {
                let budget = entry(document, &row.name, measure);
                let verdict = budget.map_or(Verdict::New, |budget| judge(measure.unit, tally, budget, row.parts));
                let figure = measure.unit.tenths(tally);
                findings.push(Finding { row: &row.name, measure, tally, figure, budget: budget.unwrap_or(figure), verdict });
            }
        }
    }
    findings
}

/// A rate may exceed its budget by one offender per crate, so that the removal of a good name does
/// not fail. A budget of 0 has no tolerance, nor has a count.
fn judge(unit: Unit, tally: &Tally, budget: usize, parts: usize) -> Verdict {
    let tolerance = if unit.is_rate() && budget > 0 { parts } else { 0 };
    let affordable = unit.affordable(budget, tally.of);
    if tally.offenders.len() > affordable + tolerance {
        Verdict::Worse
    } else if unit.tenths(tally) < budget && tally.offenders.len() + tolerance < affordable {
        Verdict::Better
    } else {
        Verdict::Holds
    }
}

/// The budget in tenths. A count that a crate's table does not mention has a budget of 0.
fn entry(document: &Table, row: &str, measure: &Measure) -> Option<usize> {
    let table = document.get("budget")?.get(row)?;
    let Some(entry) = table.get(measure.key) else { return (!measure.unit.is_rate()).then_some(0) };
    let number = entry.as_float().or_else(|| entry.as_integer().map(|number| number as f64))?;
    Some((number * 10.0).round() as usize)
}

/// Budgets of crates that are gone.
pub(crate) fn stale(rows: &[FigureRow], document: &Table) -> Vec<String> {
    let known: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let tables = document.get("budget").and_then(Value::as_table);
    let names = tables.into_iter().flat_map(|tables| tables.keys());
    names.filter(|name| !known.contains(name.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::measures::MEASURES;
    use super::super::tally::Offender;
    use super::*;

    fn row(name: &str, parts: usize, offenders: usize, of: usize) -> FigureRow {
        let tally = Tally { offenders: vec![Offender::new("a.rs", 1, "x"); offenders], of };
        let used = |measure: &Measure| ["one_word_types", "dead_links"].contains(&measure.key);
        let tallies = MEASURES
            .iter()
            .map(|measure| if used(measure) { tally.clone() } else { Tally::default() })
            .collect();
        FigureRow { name: name.to_owned(), tallies, files: 1, lines: 1, parts }
    }

    fn verdicts(row: FigureRow, document: &str) -> Vec<Verdict> {
        compare(&[row], &document.parse().unwrap(), None).iter().map(|finding| finding.verdict).collect()
    }

    const DOCUMENT: &str = "[budget.a]\none_word_types = 50.0\ndead_links = 50\n[budget.product]\none_word_types = 50\n";

    #[test]
    fn count_above_budget_is_worse() {
        assert_eq!(verdicts(row("a", 1, 51, 200), DOCUMENT)[1], Verdict::Worse);
        assert_eq!(verdicts(row("a", 1, 50, 200), DOCUMENT)[1], Verdict::Holds);
        assert_eq!(verdicts(row("a", 1, 49, 200), DOCUMENT)[1], Verdict::Better);
    }

    #[test]
    fn rate_tolerates_one_offender() {
        let verdict = |offenders| verdicts(row("a", 1, offenders, 100), DOCUMENT)[0];
        assert_eq!([48, 49, 50, 51, 52].map(verdict), [Verdict::Better, Verdict::Holds, Verdict::Holds, Verdict::Holds, Verdict::Worse]);
    }

    #[test]
    fn sum_tolerates_one_per_crate() {
        let verdict = |offenders| verdicts(row("product", 3, offenders, 100), DOCUMENT);
        assert_eq!([53, 54].map(verdict), [[Verdict::Holds], [Verdict::Worse]]);
    }

    #[test]
    fn zero_budget_tolerates_nothing() {
        let document = "[budget.a]\none_word_types = 0.0\ndead_links = 0\n";
        assert_eq!(verdicts(row("a", 1, 1, 1000), document), [Verdict::Worse, Verdict::Worse]);
    }

    #[test]
    fn crate_without_budget_is_new() {
        assert_eq!(verdicts(row("b", 1, 1, 10), DOCUMENT), [Verdict::New, Verdict::New]);
        assert!(verdicts(row("b", 1, 0, 0), DOCUMENT).is_empty());
    }

    #[test]
    fn missing_count_means_zero() {
        let document = "[budget.a]\none_word_types = 100.0\n";
        assert_eq!(verdicts(row("a", 1, 1, 1), document), [Verdict::Holds, Verdict::Worse]);
        assert_eq!(verdicts(row("a", 1, 0, 1), document)[1], Verdict::Holds);
    }
}
