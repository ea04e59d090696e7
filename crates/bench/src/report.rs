//! What a benchmark says: a table for people, or an object per line for programs.

use serde::Serialize;
use std::cell::Cell;
use std::time::Duration;

/// Says the measurements of one benchmark.
pub(crate) struct Report {
    bench: &'static str,
    json: bool,
    begun: Cell<bool>,
}

/// One measurement. What does not apply is left out.
#[derive(Default, Serialize)]
pub(crate) struct Measured {
    pub(crate) scenario: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p95_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<String>,
}

impl Report {
    pub(crate) fn new(bench: &'static str, json: bool) -> Self {
        Report { bench, json, begun: Cell::new(false) }
    }

    pub(crate) fn say(&self, measured: &Measured) -> anyhow::Result<()> {
        if self.json {
            let mut object = serde_json::to_value(measured)?;
            object["bench"] = self.bench.into();
            println!("{object}");
            return Ok(());
        }
        if !self.begun.replace(true) {
            let head = ["scenario", "at once", "per s", "p50 ms", "p95 ms", "p99 ms", "limit per s", "ratio", "value"];
            println!("{}", row(head.map(String::from)));
        }
        println!("{}", measured.row().trim_end());
        Ok(())
    }
}

/// A line of the table.
fn row([scenario, concurrency, per_s, p50, p95, p99, limit, ratio, value]: [String; 9]) -> String {
    format!("{scenario:<18} {concurrency:>7} {per_s:>9} {p50:>9} {p95:>9} {p99:>9} {limit:>11} {ratio:>6}   {value}")
}

impl Measured {
    /// A count.
    pub(crate) fn value(scenario: &'static str, value: f64, unit: impl Into<String>) -> Self {
        Measured { scenario, value: Some(rounded(value)), unit: Some(unit.into()), ..Measured::default() }
    }

    /// A rate.
    pub(crate) fn rate(scenario: &'static str, per_s: f64) -> Self {
        Measured { scenario, per_s: Some(rounded(per_s)), ..Measured::default() }
    }

    pub(crate) fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Adds what the disk could have done, in the unit of the rate.
    pub(crate) fn limit(mut self, per_s: f64) -> Self {
        self.limit_per_s = Some(rounded(per_s));
        self.ratio = self.per_s.map(|mine| (mine / per_s * 1e3).round() / 1e3);
        self
    }

    /// Adds the percentiles of these durations.
    pub(crate) fn percentiles(mut self, mut durations: Vec<Duration>) -> Self {
        durations.sort();
        let at = |part: f64| {
            let index = ((durations.len().saturating_sub(1)) as f64 * part).round() as usize;
            durations.get(index).map(|duration| (duration.as_secs_f64() * 1e6).round() / 1e3)
        };
        (self.p50_ms, self.p95_ms, self.p99_ms) = (at(0.50), at(0.95), at(0.99));
        self
    }

    fn row(&self) -> String {
        let shown = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
        let concurrency = self.concurrency.map(|concurrency| concurrency.to_string()).unwrap_or_default();
        let value = format!("{} {}", shown(self.value), self.unit.as_deref().unwrap_or_default());
        let [per_s, p50, p95, p99, limit, ratio] =
            [self.per_s, self.p50_ms, self.p95_ms, self.p99_ms, self.limit_per_s, self.ratio].map(shown);
        row([self.scenario.into(), concurrency, per_s, p50, p95, p99, limit, ratio, value])
    }
}

/// Three digits that count are enough.
fn rounded(number: f64) -> f64 {
    match number.abs() {
        size if size < 10.0 => (number * 100.0).round() / 100.0,
        size if size < 100.0 => (number * 10.0).round() / 10.0,
        _ => number.round(),
    }
}
