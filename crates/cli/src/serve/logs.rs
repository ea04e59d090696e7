//! Logs: to stderr, for people or for programs. Payloads and secrets are never in them.

use crate::config::{Config, settings};
use crate::error::Error;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The driver of PostgreSQL shows what it is asked, with its values, in its finest levels; those are not to be had.
const QUIET: &str = "tokio_postgres=info";

/// From here on what is logged is written.
///
/// # Errors
/// If the level is none.
pub(super) fn install(config: &Config) -> Result<(), Error> {
    let filter = filter(config.text(settings::LOG_LEVEL).unwrap_or(settings::LOG_LEVEL.default))
        .map_err(|why| Error::Usage(format!("{}: {why}", config.origin(settings::LOG_LEVEL))))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.text(settings::LOG_FORMAT) {
        Some("json") => logs.json().flatten_event(true).init(),
        _ => logs.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
    }
    Ok(())
}

/// A level, or filters by target. A word that is no level would be taken for a target, and nothing would be logged.
fn filter(text: &str) -> Result<EnvFilter, String> {
    for part in text.split(',').map(str::trim) {
        let level = part.rsplit('=').next().unwrap_or(part).to_lowercase();
        if !LEVELS.contains(&level.as_str()) {
            let meant = settings::nearest(&level, LEVELS.into_iter())
                .map(|meant| format!("; did you mean {meant}?"))
                .unwrap_or_default();
            return Err(format!("{part:?} is no level{meant} (levels: {}; or TARGET=LEVEL)", LEVELS.join(", ")));
        }
    }
    let filter = EnvFilter::try_new(text).map_err(|error| error.to_string())?;
    let quiet = QUIET.parse().map_err(|_| format!("{QUIET} is no filter"))?;
    Ok(filter.add_directive(quiet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_filters_are_taken_and_words_are_not() {
        for good in ["info", "WARN", "info,steadfast_runtime=debug"] {
            filter(good).unwrap();
        }
        for level in ["trace", "debug,tokio_postgres=trace"] {
            let filter = filter(level).unwrap().to_string();
            assert!(filter.contains("tokio_postgres=info") && !filter.contains("tokio_postgres=trace"), "{filter}");
        }
        assert!(filter("inf").unwrap_err().contains("did you mean info?"));
        assert!(filter("steadfast_runtime").unwrap_err().contains("is no level"));
    }
}
