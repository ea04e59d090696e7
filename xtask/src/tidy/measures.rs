//! Lists the measures and takes them for every crate.

use super::tally::{Tally, Unit};
use super::workspace::Workspace;
use super::{
    ambiguous_types, dead_links, line_width, long_sentences, module_cycles, module_headers, one_word_names, pronouns, test_subjects,
};

pub(crate) struct Measure {
    /// The name in `tidy.toml`.
    pub(crate) key: &'static str,
    /// The name in messages.
    pub(crate) title: &'static str,
    /// The name in the table, on two lines.
    pub(crate) heading: [&'static str; 2],
    pub(crate) unit: Unit,
    pub(crate) find: fn(&Workspace<'_>, &str) -> Tally,
}

pub(crate) const WIDE_CODE: &str = "wide_code";

pub(crate) static MEASURES: [Measure; 17] = [
    measure("one_word_files", "file names of one word", ["1-word", "files %"], Unit::Percent, one_word_names::file_names),
    measure("one_word_types", "type names of one word", ["1-word", "types %"], Unit::Percent, one_word_names::type_names),
    measure("one_word_functions", "function names of one word", ["1-word", "fns %"], Unit::Percent, one_word_names::function_names),
    measure(
        "ambiguous_types",
        "type names with several meanings in the crate",
        ["ambig.", "types %"],
        Unit::Percent,
        ambiguous_types::within_crate,
    ),
    measure(
        "types_of_others",
        "type names that another product crate has too",
        ["types of", "others"],
        Unit::Count,
        ambiguous_types::across_crates,
    ),
    measure("who_in_comments", "\"who\" per 1,000 words of comments", ["who ‰", "code"], Unit::PerThousand, pronouns::who_in_comments),
    measure("what_in_comments", "\"what\" per 1,000 words of comments", ["what ‰", "code"], Unit::PerThousand, pronouns::what_in_comments),
    measure("who_in_pages", "\"who\" per 1,000 words of Markdown", ["who ‰", "pages"], Unit::PerThousand, pronouns::who_in_pages),
    measure("what_in_pages", "\"what\" per 1,000 words of Markdown", ["what ‰", "pages"], Unit::PerThousand, pronouns::what_in_pages),
    measure("long_sentences", "sentences over 28 words in Markdown", ["long", "sentences"], Unit::Count, long_sentences::long_sentences),
    measure(
        "missing_headers",
        "files that do not begin with a `//!` line",
        ["without", "header"],
        Unit::Count,
        module_headers::missing_headers,
    ),
    measure("long_headers", "headers with a first line over 15 words", ["long", "headers"], Unit::Count, module_headers::long_headers),
    measure("dead_links", "dead links in Markdown", ["dead", "links"], Unit::Count, dead_links::dead_links),
    measure(
        "wide_comments",
        "lines that a comment makes wider than 100 columns",
        ["wide", "comments"],
        Unit::Count,
        line_width::wide_comments,
    ),
    measure(WIDE_CODE, "lines that code makes wider than 100 columns", ["wide", "code"], Unit::Count, line_width::wide_code),
    measure("modules_in_cycles", "top-level modules in cycles", ["in", "cycles"], Unit::Count, module_cycles::modules_in_cycles),
    measure(
        "one_sided_subjects",
        "tests and subjects that do not name each other",
        ["one-sided", "subjects"],
        Unit::Count,
        test_subjects::one_sided_subjects,
    ),
];

const fn measure(
    key: &'static str,
    title: &'static str,
    heading: [&'static str; 2],
    unit: Unit,
    find: fn(&Workspace<'_>, &str) -> Tally,
) -> Measure {
    Measure { key, title, heading, unit, find }
}

/// A line of the table.
pub(crate) struct FigureRow {
    pub(crate) name: String,
    /// In the order of `MEASURES`.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) files: usize,
    pub(crate) lines: usize,
    /// The rows that were added up: 1 for a crate.
    pub(crate) parts: usize,
}

impl FigureRow {
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&'static Measure, &Tally)> {
        MEASURES.iter().zip(&self.tallies)
    }

    fn add(&mut self, other: &Self) {
        for (tally, other) in self.tallies.iter_mut().zip(&other.tallies) {
            tally.add(other);
        }
        self.files += other.files;
        self.lines += other.lines;
        self.parts += other.parts;
    }
}

/// The sum of all product crates.
pub(crate) const PRODUCT: &str = "product";
/// The sum of everything.
pub(crate) const ALL: &str = "all";

/// A row per crate, then the sums.
pub(crate) fn rows(workspace: &Workspace<'_>) -> Vec<FigureRow> {
    let mut rows: Vec<FigureRow> = workspace.homes().iter().map(|home| row(workspace, home)).collect();
    let product = sum(PRODUCT, rows.iter().filter(|row| workspace.product.contains(&row.name)));
    let all = sum(ALL, rows.iter());
    rows.extend([product, all]);
    rows
}

fn row(workspace: &Workspace<'_>, home: &str) -> FigureRow {
    let tallies = MEASURES.iter().map(|measure| (measure.find)(workspace, home)).collect();
    let lines = workspace.rust(home).map(|file| file.source.text.lines().count()).sum();
    FigureRow { name: home.to_owned(), tallies, files: workspace.rust(home).count(), lines, parts: 1 }
}

fn sum<'r>(name: &str, rows: impl Iterator<Item = &'r FigureRow>) -> FigureRow {
    let mut sum = FigureRow { name: name.to_owned(), tallies: vec![Tally::default(); MEASURES.len()], files: 0, lines: 0, parts: 0 };
    rows.for_each(|row| sum.add(row));
    sum
}
