//! Adds up the coverage of each crate.

use super::line_hits::LineHits;
use crate::tidy::ProductFile;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Lines of a crate that hold executable code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LineCount {
    lines: usize,
    covered: usize,
}

impl LineCount {
    /// Tenths of a per cent, rounded down: 100.0 means every line.
    fn tenths_of_percent(self) -> usize {
        self.covered * 1000 / self.lines.max(1)
    }

    fn table_row(self, name: &str) -> String {
        let tenths = self.tenths_of_percent();
        format!("{name:16} {:>7} {:>8} {:>6}.{}\n", self.lines, self.covered, tenths / 10, tenths % 10)
    }
}

/// A row for each measured crate, the lowest percentage first, and their sum.
pub(super) fn crate_table(files: &[ProductFile], measured: &BTreeSet<String>, hits: &LineHits) -> String {
    let counts = line_counts(files, measured, hits);
    let mut rows: Vec<_> = counts.iter().map(|(name, count)| (count.tenths_of_percent(), *name, *count)).collect();
    rows.sort_by_key(|(tenths, name, _)| (*tenths, *name));
    let mut table = format!("{:16} {:>7} {:>8} {:>8}\n", "crate", "lines", "covered", "percent");
    let mut total = LineCount::default();
    for (_, name, count) in rows {
        let _ = table.write_str(&count.table_row(name));
        total = LineCount { lines: total.lines + count.lines, covered: total.covered + count.covered };
    }
    table + &total.table_row("all")
}

fn line_counts<'f>(files: &'f [ProductFile], measured: &BTreeSet<String>, hits: &LineHits) -> BTreeMap<&'f str, LineCount> {
    let mut counts: BTreeMap<&str, LineCount> = BTreeMap::new();
    for file in files.iter().filter(|file| measured.contains(&file.crate_folder)) {
        let count = counts.entry(&file.crate_folder).or_default();
        let lines = hits.get(&file.path).into_iter().flatten().filter(|(line, _)| file.lines.contains(line));
        for (_, hits) in lines {
            count.lines += 1;
            count.covered += usize::from(*hits > 0);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(crate_folder: &str, lines: impl IntoIterator<Item = usize>) -> ProductFile {
        let path = format!("crates/{crate_folder}/src/lib.rs");
        ProductFile { path, crate_folder: crate_folder.into(), lines: lines.into_iter().collect() }
    }

    fn hits(crate_folder: &str, lines: &[(usize, u64)]) -> (String, BTreeMap<usize, u64>) {
        (format!("crates/{crate_folder}/src/lib.rs"), lines.iter().copied().collect())
    }

    #[test]
    fn lowest_coverage_comes_first() {
        let files = [file("full", [1, 2]), file("low", [1, 2, 3]), file("unmeasured", [1])];
        let hits = LineHits::from([
            hits("full", &[(1, 1), (2, 9)]),
            hits("low", &[(1, 0), (2, 4), (3, 4), (7, 4)]), // line 7 belongs to a test
            hits("unmeasured", &[(1, 0)]),
        ]);
        let measured = BTreeSet::from(["full".to_owned(), "low".to_owned()]);
        let table = crate_table(&files, &measured, &hits);
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows, [["low", "3", "2", "66.6"], ["full", "2", "2", "100.0"], ["all", "5", "4", "80.0"]]);
    }
}
