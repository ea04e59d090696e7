//! The server: does it answer, is it ready, and do its clock and ours agree?

use super::Finding;
use crate::client::{Answer, Client};
use crate::config::{self, Config, settings};
use crate::duration::rough;
use crate::error::Error;
use crate::output::time;
use std::net::SocketAddr;
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// How far two clocks may be apart; the server tells whole seconds.
const SKEW_MAX: Duration = Duration::from_secs(3);

/// What asking the configured server has brought.
pub(super) struct Asked {
    server: String,
    ready: Result<Answer, Error>,
    /// When it was asked.
    at: Timestamp,
}

impl Asked {
    /// Whether that is the address of the server that was asked, and it answered.
    pub(super) fn is_at(&self, listen: SocketAddr) -> bool {
        self.ready.is_ok() && self.server.ends_with(&format!(":{}", listen.port()))
    }
}

pub(super) async fn ask(config: &Config) -> Asked {
    let server = config.text(settings::SERVER).unwrap_or_default().to_owned();
    let ready = match Client::new(config) {
        Ok(client) => client.get("/readyz", Vec::new()).await,
        Err(error) => Err(error),
    };
    Asked { server, ready, at: time::now() }
}

pub(super) fn check(asked: &Asked) -> Vec<Finding> {
    let server = config::without_user(&asked.server);
    match &asked.ready {
        Ok(answer) => vec![Finding::ok("server", format!("{server} is ready")), skew(answer, asked.at)],
        Err(Error::Unreachable(_)) => {
            vec![Finding::warn(
                "server",
                format!("nobody answers at {server}"),
                "start one with `steadfast serve`, or name another with --server",
            )]
        }
        Err(error) => vec![Finding::fail("server", format!("{server}: {}", first_line(error)), "look at its log")],
    }
}

/// Whether a Steadfast server listens there.
pub(super) async fn at(config: &Config, listen: SocketAddr) -> bool {
    let Ok(mut client) = Client::new(config) else { return false };
    client.server = format!("http://{listen}");
    match client.get("/healthz", Vec::new()).await {
        Ok(answer) => answer.read::<serde_json::Value>().is_ok_and(|alive| alive["status"] == "ok"),
        Err(_) => false,
    }
}

fn skew(answer: &Answer, at: Timestamp) -> Finding {
    let told = answer.date.as_deref().and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let Some(told) = told.map(|time| Timestamp::from_micros(time.timestamp().as_microsecond())) else {
        return Finding::ok("skew", "the server does not tell its time");
    };
    let apart = told.saturating_since(at).max(at.saturating_since(told));
    if apart > SKEW_MAX {
        return Finding::warn(
            "skew",
            format!("the server's clock and this one are {} apart", rough(apart)),
            "let NTP look after both clocks",
        );
    }
    Finding::ok("skew", "the server's clock agrees with this one")
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn clocks_that_differ_are_told() {
        let answer = |date: &str| Answer { status: reqwest::StatusCode::OK, text: String::new(), date: Some(date.into()) };
        let now = time::parse("2026-01-01T12:00:00.5Z").unwrap();
        assert_eq!(skew(&answer("Thu, 01 Jan 2026 12:00:00 GMT"), now).level, Level::Ok);
        let late = skew(&answer("Thu, 01 Jan 2026 11:58:00 GMT"), now);
        assert_eq!((late.level, late.found.as_str()), (Level::Warn, "the server's clock and this one are 2 min apart"));
    }
}
