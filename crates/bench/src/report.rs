//! What a benchmark says: a line for people, or an object per line for programs.

use serde::Serialize;
use std::time::Duration;

/// Says the measurements of one benchmark.
pub(crate) struct Report {
    bench: &'static str,
    json: bool,
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
    pub(crate) value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<&'static str>,
}

impl Report {
    pub(crate) fn new(bench: &'static str, json: bool) -> Self {
        Report { bench, json }
    }

    pub(crate) fn say(&self, measured: &Measured) -> anyhow::Result<()> {
        let mut object = serde_json::to_value(measured)?;
        if self.json {
            object["bench"] = self.bench.into();
            println!("{object}");
            return Ok(());
        }
        let fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "scenario");
        let fields: Vec<String> = fields.map(|(name, value)| format!("{name} {}", shown(value))).collect();
        println!("{:<20} {}", measured.scenario, fields.join("   "));
        Ok(())
    }
}

fn shown(value: &serde_json::Value) -> String {
    match value.as_f64() {
        Some(number) if number.fract() != 0.0 => format!("{number:.3}"),
        Some(number) => format!("{number}"),
        None => value.as_str().unwrap_or_default().to_string(),
    }
}

impl Measured {
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
}
