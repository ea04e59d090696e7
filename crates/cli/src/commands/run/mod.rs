//! `steadfast run …`: a file per command.

mod events;
mod list;
mod retry;
mod show;
mod signal;
mod start;
mod verbs;
mod why;

pub(crate) use start::pretty;
pub(crate) use why::{bare, sentence, told, waiting};

use crate::args::{Common, RunCommand, Why};
use crate::client::{Answer, Ask, Body, Client, encoded, fresh_key};
use crate::config::Config;
use crate::error::Error;
use steadfast_server::shapes::Run;

pub(crate) async fn run(common: &Common, command: RunCommand) -> Result<(), Error> {
    let context = Context { client: Client::new(&Config::load(&common.given())?)?, json: common.json };
    match command {
        RunCommand::Start(args) => start::run(&context, args).await,
        RunCommand::List(args) => list::run(&context, args).await,
        RunCommand::Show(args) => show::run(&context, &args.run).await,
        RunCommand::Events(args) => events::run(&context, &args).await,
        RunCommand::Why(args) => why::run(&context, &args.run).await,
        RunCommand::Pause(args) => verbs::run(&context, "pause", &args).await,
        RunCommand::Resume(args) => verbs::run(&context, "resume", &args).await,
        RunCommand::Cancel(args) => verbs::cancel(&context, &args).await,
        RunCommand::Retry(args) => retry::run(&context, args).await,
        RunCommand::Signal(args) => signal::run(&context, args).await,
        RunCommand::Replay(args) => verbs::replay(&context, &args.run).await,
    }
}

/// Who is asked, and how the answer is shown.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) json: bool,
}

impl Context {
    /// A run as it is now.
    pub(crate) async fn look(&self, run: &str) -> Result<(Answer, Run), Error> {
        let answer = self.client.get(&path(run, ""), Vec::new()).await?;
        let run = answer.read()?;
        Ok((answer, run))
    }

    /// Asks for something to be done to a run.
    pub(crate) async fn verb(&self, run: &str, verb: &str, body: Body, why: &Why) -> Result<Answer, Error> {
        let body = body.with("reason", why.reason.as_ref());
        self.client
            .post(&path(run, verb), Ask { body: Some(body), key: Some(key(why)?), ..Ask::default() })
            .await
    }
}

/// The key that makes a repeated request the same request.
pub(crate) fn key(why: &Why) -> Result<String, Error> {
    why.idempotency_key.clone().map_or_else(fresh_key, Ok)
}

/// The path of a run, or of something of it.
pub(crate) fn path(run: &str, rest: &str) -> String {
    let slash = if rest.is_empty() { "" } else { "/" };
    format!("/v1/runs/{}{slash}{rest}", encoded(run))
}
