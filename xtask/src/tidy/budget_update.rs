//! Lowers budgets in the text of `tidy.toml` and keeps its comments.

use super::budget::{Finding, Verdict};

/// The text with lower budgets, with figures that had none, and without tables of crates that are
/// gone. No budget rises.
pub(crate) fn updated_text(text: &str, findings: &[Finding<'_>], stale: &[String]) -> String {
    let mut lines = TomlLines(text.lines().map(str::to_owned).collect());
    stale.iter().for_each(|row| lines.remove_table(row));
    for finding in findings.iter().filter(|finding| finding.verdict == Verdict::New || finding.figure < finding.budget) {
        lines.set(finding.row, finding.measure.key, &finding.measure.unit.shown(finding.figure));
    }
    lines.0.join("\n") + "\n"
}

struct TomlLines(Vec<String>);

impl TomlLines {
    /// Replaces or adds `key = number` in the table of a row.
    fn set(&mut self, row: &str, key: &str, number: &str) {
        let (start, end) = self.table(row).unwrap_or_else(|| self.add_table(row));
        let known = self.0[start..end]
            .iter()
            .position(|line| line.split('=').next().is_some_and(|name| name.trim() == key));
        match known {
            Some(at) => {
                let line = &mut self.0[start + at];
                let comment = line.find('#').map_or(String::new(), |at| format!(" {}", &line[at..]));
                *line = format!("{key} = {number}{comment}");
            }
            None => {
                let blank = self.0[start..end].iter().rev().take_while(|line| line.trim().is_empty()).count();
                self.0.insert(end - blank, format!("{key} = {number}"));
            }
        }
    }

    /// The lines from the header of a table up to the next table.
    fn table(&self, row: &str) -> Option<(usize, usize)> {
        let header = format!("[budget.{row}]");
        let start = self.0.iter().position(|line| line.trim() == header)?;
        let next = self.0[start + 1..].iter().position(|line| line.starts_with('['));
        Some((start, next.map_or(self.0.len(), |next| start + 1 + next)))
    }

    fn add_table(&mut self, row: &str) -> (usize, usize) {
        self.0.extend([String::new(), format!("[budget.{row}]")]);
        (self.0.len() - 1, self.0.len())
    }

    fn remove_table(&mut self, row: &str) {
        if let Some((start, end)) = self.table(row) {
            self.0.drain(start..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measures::MEASURES;
    use super::super::tally::Tally;
    use super::*;

    fn finding<'r>(tally: &'r Tally, row: &'r str, key: &str, figure: usize, budget: Option<usize>) -> Finding<'r> {
        let measure = MEASURES.iter().find(|measure| measure.key == key).unwrap();
        let verdict = if budget.is_some() { Verdict::Holds } else { Verdict::New };
        Finding { row, measure, tally, figure, budget: budget.unwrap_or(figure), verdict }
    }

    #[test]
    fn update_lowers_but_never_raises() {
        let text =
            "# why\n[budget.a]\none_word_types = 10.0 # low\ndead_links = 50 # high\n\n[budget.gone]\nx = 1\n[other]\ndead_links = 9\n";
        let tally = Tally::default();
        let findings = [
            finding(&tally, "a", "one_word_types", 400, Some(100)),
            finding(&tally, "a", "dead_links", 400, Some(500)),
            finding(&tally, "a", "who_in_pages", 7, None),
            finding(&tally, "b", "one_word_types", 334, None),
            finding(&tally, "b", "dead_links", 10, None),
        ];
        let expected = "# why\n[budget.a]\none_word_types = 10.0 # low\ndead_links = 40 # high\nwho_in_pages = 0.7\n\n[other]\ndead_links = 9\n\n[budget.b]\none_word_types = 33.4\ndead_links = 1\n";
        assert_eq!(updated_text(text, &findings, &["gone".to_owned()]), expected);
    }

    #[test]
    fn current_text_stays_as_it_is() {
        let text = "[budget.a]\ndead_links  =  5\n";
        assert_eq!(updated_text(text, &[finding(&Tally::default(), "a", "dead_links", 50, Some(50))], &[]), text);
    }
}
