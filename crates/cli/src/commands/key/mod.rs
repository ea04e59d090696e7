//! `steadfast key …`: a file per command.

mod callbacks;
mod change;
mod get;
mod list;
mod put;
mod watch;

use crate::args::{Common, KeyCommand};
use crate::client::{Client, encoded};
use crate::config::Config;
use crate::error::Error;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::OnExpire;

pub(crate) async fn run(common: &Common, command: KeyCommand) -> Result<(), Error> {
    let context = Context { client: Client::new(&Config::load(&common.given())?)?, json: common.json };
    match command {
        KeyCommand::Put(args) => put::run(&context, &args).await,
        KeyCommand::Get { key, value } => get::run(&context, &key.key, value).await,
        KeyCommand::Renew(args) => change::renew(&context, &args).await,
        KeyCommand::Delete(args) => change::delete(&context, &args).await,
        KeyCommand::List(args) => list::run(&context, args).await,
        KeyCommand::Watch { prefix } => watch::run(&context, &prefix).await,
        KeyCommand::Callbacks(args) => callbacks::run(&context, args).await,
    }
}

/// Who is asked, and how the answer is shown.
struct Context {
    client: Client,
    json: bool,
}

/// The path of a key, or of something of it.
fn path(key: &str, rest: &str) -> String {
    format!("/v1/keys/{}{rest}", encoded(key))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What to look at if nobody knows whether a change was made.
fn in_doubt(error: Error, key: &str) -> Error {
    match error {
        Error::Unreachable(text) => Error::Unreachable(format!("{text}\n  whether it was done can be seen with: steadfast key get {key}")),
        other => other,
    }
}

/// How long something has left.
fn left(until: Timestamp, now: Timestamp) -> String {
    let left = until.saturating_since(now);
    if left.is_zero() { "over".into() } else { crate::duration::rough(left) }
}

/// Who is told of an expiry.
fn told(on_expire: &OnExpire) -> String {
    match on_expire {
        OnExpire::Url(url) => format!("call {url}"),
        OnExpire::StartRun(start) => format!("start {}", start.workflow),
        OnExpire::Handler(_) => "handler".into(),
    }
}
