//! Reads the file of measured results.

use super::numbers::{Number, numbers};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The file: machines and measurements by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Results {
    machine: BTreeMap<String, String>,
    measurement: BTreeMap<String, Measurement>,
}

/// One run of one command at one commit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measurement {
    commit: String,
    date: String,
    machine: String,
    command: String,
    results: BTreeMap<String, Vec<Figure>>,
}

/// Values of one unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    values: Vec<f64>,
    unit: String,
    /// The load or size that the values belong to; its numbers may be stated with them.
    #[serde(default)]
    at: String,
}

impl Results {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let results: Results = toml::from_str(text)?;
        for (name, measurement) in &results.measurement {
            measurement.validate(&results.machine).with_context(|| format!("measurement `{name}`"))?;
        }
        Ok(results)
    }

    /// The results of several references by name, or the reference that is unknown.
    pub(super) fn find_all<'a>(&'a self, references: &[&'a str]) -> Result<BTreeMap<&'a str, &'a [Figure]>, &'a str> {
        let mut found = BTreeMap::new();
        for reference in references {
            found.extend(self.find(reference).ok_or(*reference)?);
        }
        Ok(found)
    }

    /// All results of a measurement (`runs`), or one of them (`runs/one-step: runs per second`).
    fn find<'a>(&'a self, reference: &str) -> Option<Vec<(&'a str, &'a [Figure])>> {
        let (measurement, result) = reference.split_once('/').unwrap_or((reference, ""));
        let results = &self.measurement.get(measurement)?.results;
        let wanted = results.iter().filter(|(name, _)| result.is_empty() || *name == result);
        let wanted: Vec<_> = wanted.map(|(name, figures)| (name.as_str(), figures.as_slice())).collect();
        (!wanted.is_empty()).then_some(wanted)
    }
}

impl Figure {
    /// Whether the number is a value, or belongs to the load that the values were measured at.
    pub(super) fn covers(&self, number: &Number) -> bool {
        self.values.iter().any(|value| number.states(*value)) || numbers(&self.at).iter().any(|load| load.value() == number.value())
    }
}

impl Measurement {
    fn validate(&self, machines: &BTreeMap<String, String>) -> Result<()> {
        let Self { commit, date, machine, command, results } = self;
        let is_hash = (7..=40).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(is_hash, "`commit` must be 7 to 40 hexadecimal digits; got {commit:?}");
        ensure!(is_date(date), "`date` must be YYYY-MM-DD; got {date:?}");
        ensure!(machines.contains_key(machine), "`machine` must be an entry of [machine]; got {machine:?}");
        ensure!(!command.is_empty(), "`command` must not be empty");
        for (name, figures) in results {
            let is_complete = |figure: &Figure| !figure.values.is_empty() && !figure.unit.is_empty();
            ensure!(!figures.is_empty() && figures.iter().all(is_complete), "result `{name}` needs values and a unit");
        }
        Ok(())
    }
}

fn is_date(text: &str) -> bool {
    let is_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').filter(is_digits).collect();
    parts.iter().map(|part| part.len()).eq([4, 2, 2]) && text.len() == 10
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[machine]
quiet = "two cores"
[measurement.runs]
commit = "f734745"
date = "2026-11-15"
machine = "quiet"
command = "cargo xtask bench runs"
[measurement.runs.results]
"one-step" = [{ values = [1969, 0.5], unit = "runs/s", at = "64 clients" }]
"#;

    #[test]
    fn results_are_found_by_name() {
        let results = Results::parse(FILE).unwrap();
        let found = |reference| results.find_all(&[reference]).map(|found| found.into_keys().collect::<Vec<_>>());
        assert_eq!(found("runs"), Ok(vec!["one-step"]));
        assert_eq!(found("runs/one-step"), Ok(vec!["one-step"]));
        assert_eq!(found("runs/two-steps"), Err("runs/two-steps"));
        assert_eq!(found("keys"), Err("keys"));
    }

    #[test]
    fn values_and_load_cover_numbers() {
        let results = Results::parse(FILE).unwrap();
        let figure = &results.find_all(&["runs"]).unwrap()["one-step"][0];
        let covered: Vec<_> = numbers("1,969 0.5 64 1968 65").iter().map(|number| figure.covers(number)).collect();
        assert_eq!(covered, [true, true, true, false, false]);
    }

    #[test]
    fn incomplete_origin_is_refused() {
        for (from, to, field) in [
            ("f734745", "f73474", "commit"),
            ("f734745", "release", "commit"),
            ("2026-11-15", "15.11.2026", "date"),
            ("machine = \"quiet\"", "machine = \"loud\"", "machine"),
            ("cargo xtask bench runs", "", "command"),
            ("[1969, 0.5]", "[]", "values"),
            ("runs/s", "", "unit"),
        ] {
            let error = Results::parse(&FILE.replacen(from, to, 1)).map(drop).unwrap_err();
            assert!(format!("{error:#}").contains(field), "{field}: {error:#}");
        }
    }
}
