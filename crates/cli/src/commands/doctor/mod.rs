//! `steadfast doctor`: one line per check, with what to do about it.

mod clock;
mod definitions;
mod disk;
mod messages;
mod port;
mod postgres;
mod redis;
mod server;
mod store;

use crate::args::{Common, Settings};
use crate::config::{Config, settings};
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self};
use serde::Serialize;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// What a check has found.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    level: Level,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Finding { check, level: Level::Ok, found: found.into(), help: None }
    }

    pub(super) fn warn(check: &'static str, found: impl Into<String>, help: impl Into<String>) -> Self {
        Finding { check, level: Level::Warn, found: found.into(), help: Some(help.into()) }
    }

    pub(super) fn fail(check: &'static str, found: impl Into<String>, help: impl Into<String>) -> Self {
        Finding { check, level: Level::Fail, found: found.into(), help: Some(help.into()) }
    }
}

pub(crate) async fn run(common: &Common, args: &Settings) -> Result<(), Error> {
    let findings = match Config::load(&args.given(common)) {
        Ok(config) => all(&config).await,
        Err(error) => vec![Finding::fail("configuration", error.to_string(), "mend it; the other checks need it")],
    };
    if common.json {
        output::data(serde_json::json!({ "items": findings }));
    } else {
        output::data(table(&findings).to_text());
    }
    match findings.iter().filter(|finding| finding.level == Level::Fail).count() {
        0 => Ok(()),
        _ if common.json => Err(Error::Said(1)),
        1 => Err(Error::Failed("one check has failed".into())),
        count => Err(Error::Failed(format!("{count} checks have failed"))),
    }
}

async fn all(config: &Config) -> Vec<Finding> {
    let data = config.path(settings::DATA).unwrap_or_else(|| "data".into());
    let mut findings = vec![versions(), configuration(config)];
    findings.push(postgres::check(config).await.unwrap_or_else(|| store::check(&data)));
    findings.push(disk::check(&data));
    findings.push(clock::check().await);
    findings.extend(definitions::check(config));
    findings.extend(redis::check(config, &data).await);
    let server = server::ask(config).await;
    findings.push(port::check(config, &server).await);
    findings.extend(port::messages(config).await);
    findings.extend(messages::check(config));
    findings.extend(server::check(&server));
    findings
}

fn versions() -> Finding {
    Finding::ok("versions", format!("steadfast {}, store format {}", env!("CARGO_PKG_VERSION"), steadfast_store_embedded::FORMAT))
}

fn configuration(config: &Config) -> Finding {
    match &config.file {
        Some(file) => Finding::ok("configuration", format!("{} and the environment can be used", file.display())),
        None => Finding::ok("configuration", "no file; defaults and the environment are used"),
    }
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new(vec![Column::whole(""), Column::whole("CHECK"), Column::wrap("FOUND"), Column::wrap("WHAT TO DO")]);
    for finding in findings {
        table.row(vec![
            Cell::status(finding.level.as_str()),
            finding.check.into(),
            finding.found.clone().into(),
            finding.help.clone().unwrap_or_default().into(),
        ]);
    }
    table
}
