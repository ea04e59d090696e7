//! `steadfast cluster …`.

use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the instances that share the store, and whether every shard has a holder
    #[command(after_help = "\
Examples:
  steadfast cluster show
  steadfast cluster show --shards                   and who has each shard
  steadfast cluster show --json")]
    Show(ClusterShow),
    /// Have an instance give its shards to the others, and wait until it has none left
    #[command(after_help = "\
Examples:
  steadfast cluster drain 10.0.0.7:7373 --reason 'it gets a new disk'
  steadfast cluster drain 3f2a --no-wait
  steadfast cluster drain 3f2a --undo               it takes shards again

Exit codes: 0 it has no shard left, 1 it still has some when the time is over.")]
    Drain(Drain),
}

#[derive(Args, Debug)]
pub(crate) struct ClusterShow {
    /// List the leases too: who has each shard, and how often it has changed hands
    #[arg(long)]
    pub(crate) shards: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Drain {
    /// The instance: its address, its id, or the beginning of its id
    #[arg(value_parser = named)]
    pub(crate) instance: String,
    /// Take it back: the instance takes shards again
    #[arg(long, conflicts_with_all = ["wait", "timeout"])]
    pub(crate) undo: bool,
    /// Wait until it has no shard left; this is so unless --no-wait is given
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) wait: bool,
    /// Only ask for it
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How long to wait [default: 5m]
    #[arg(long, value_name = "DURATION", conflicts_with = "no_wait", value_parser = crate::duration::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Why, for the log of the server
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Do not ask whether it is meant, where no other instance would take its shards
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Nothing is the beginning of every id.
fn named(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("it is empty; `steadfast cluster show` lists the instances".into()) } else { Ok(text.into()) }
}
