//! `steadfast cluster drain`: an instance gives its shards to the others, or is taken back.

use super::find::find;
use super::shards;
use crate::args::Drain;
use crate::client::{Ask, Body, Client, encoded, fresh_key};
use crate::error::Error;
use crate::{duration, output};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use steadfast_server::shapes::{Cluster, Instance};

/// How long it is waited for if nobody says: much longer than the attempts that are under way take to be given up.
const WITHIN: Duration = Duration::from_secs(300);

/// How often to look.
const POLL: Duration = Duration::from_millis(500);

pub(super) async fn drain(client: &Client, json: bool, args: &Drain) -> Result<(), Error> {
    let cluster = look(client).await?;
    let instance = find(&cluster, &args.instance)?;
    let who = format!("{} ({})", cluster.short(&instance.id), instance.address);
    let is_last = !cluster.instances.iter().any(|other| other.id != instance.id && other.takes_shards());
    if !args.undo && is_last {
        output::say(format_args!(
            "no other instance takes shards: what is in those of {who} waits until one comes, or this one is taken back"
        ));
        if !args.yes && std::io::stdin().is_terminal() && !is_meant(&who) {
            return Err(Error::Failed(format!("{who} keeps its shards")));
        }
    }
    let verb = if args.undo { "undrain" } else { "drain" };
    let body = Some(Body::default().with("reason", args.reason.as_ref()));
    let ask = Ask { body, key: Some(fresh_key()?), ..Ask::default() };
    let answer = client.post(&format!("/v1/cluster/instances/{}/{verb}", encoded(&instance.id)), ask).await?;
    let asked: Instance = answer.read()?;
    let waits = args.wait || !(args.undo || args.no_wait);
    let after = if waits { emptied(client, asked, args.timeout.unwrap_or(WITHIN), &who).await? } else { asked };
    if json {
        output::data(serde_json::to_string(&after).unwrap_or_default());
    } else {
        output::say(told(&who, &after, args.undo));
    }
    Ok(())
}

async fn look(client: &Client) -> Result<Cluster, Error> {
    client.get("/v1/cluster", Vec::new()).await?.read()
}

/// Waits until it has no shard left. One that has gone has none.
async fn emptied(client: &Client, mut instance: Instance, within: Duration, who: &str) -> Result<Instance, Error> {
    let (mut line, began) = (Progress::default(), output::time::now());
    while instance.shards > 0 {
        line.show(instance.shards);
        if output::time::now().saturating_since(began) >= within {
            line.end();
            let (left, time) = (shards(instance.shards), duration::exact(within));
            return Err(Error::Failed(format!("{who} still has {left} after {time}; it goes on, see: steadfast cluster show")));
        }
        output::time::pass(POLL).await;
        let now = look(client).await?.instances.into_iter().find(|now| now.id == instance.id);
        instance = now.unwrap_or(Instance { shards: 0, lives: false, ..instance });
    }
    line.end();
    Ok(instance)
}

/// How many are left: one line that is written again and again on a terminal, and a line for each change elsewhere.
#[derive(Default)]
struct Progress {
    shown: Option<u64>,
}

impl Progress {
    fn show(&mut self, left: u64) {
        if self.shown.replace(left) == Some(left) {
            return;
        }
        let text = format!("{} left", shards(left));
        if !std::io::stderr().is_terminal() {
            return output::say(text);
        }
        let mut stderr = std::io::stderr().lock();
        let _unheard = write!(stderr, "\r\x1b[K{text}");
        let _unheard = stderr.flush();
    }

    fn end(&self) {
        if self.shown.is_some() && std::io::stderr().is_terminal() {
            let _unheard = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn told(who: &str, instance: &Instance, undo: bool) -> String {
    match instance {
        Instance { lives: false, .. } => format!("{who} is not heard of any more; the others take what it had"),
        _ if undo => format!("{who} takes shards again"),
        Instance { shards: 0, .. } => {
            format!(
                "{who} has no shard left and takes none: it can be ended, or taken back with: steadfast cluster drain {} --undo",
                instance.id
            )
        }
        Instance { shards: left, .. } => format!("{who} gives its shards away, {} are left; see: steadfast cluster show", shards(*left)),
    }
}

/// Asks whether it is to be drained all the same. What is not a clear yes is a no.
fn is_meant(who: &str) -> bool {
    output::say(format_args!("Drain {who}? [y/N]"));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
