//! `steadfast key …`.

use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Give a key a value and a time to live; prints its revision
    #[command(after_help = "\
Examples:
  steadfast key put sessions/ada '{\"user\":\"ada\"}' --ttl 30m --call https://example.com/out
  steadfast key put files/17 17.tmp --ttl 24h --start remove-file --input '\"17.tmp\"'
  steadfast key put leader node-1 --ttl 15s --owner node-1 --if-absent
  steadfast key put carts/7 @cart.json --ttl 1h --if-revision 4711")]
    Put(Put),
    /// Show a key with its value and the time that it has left
    #[command(after_help = "\
Examples:
  steadfast key get sessions/ada
  steadfast key get sessions/ada --value             only its value, as JSON
  steadfast key get sessions/ada --json")]
    Get {
        #[command(flatten)]
        key: KeyRef,
        /// Print only the value, as JSON
        #[arg(long, conflicts_with = "json")]
        value: bool,
    },
    /// Give a key another time to live, from now on; prints its revision
    #[command(after_help = "\
Examples:
  steadfast key renew sessions/ada --ttl 30m
  steadfast key renew leader --ttl 15s --owner node-1")]
    Renew(Renew),
    /// Remove a key; nobody is called back for that
    #[command(
        visible_alias = "rm",
        after_help = "\
Examples:
  steadfast key delete sessions/ada
  steadfast key delete leader --owner node-1"
    )]
    Delete(Delete),
    /// List keys by name, with the time that each has left
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast key list
  steadfast key list sessions/ --all --json"
    )]
    List(KeyList),
    /// Follow what happens to keys: a line per change, until you stop it
    #[command(after_help = "\
Examples:
  steadfast key watch
  steadfast key watch sessions/ --json               a JSON document per line")]
    Watch {
        /// What their names begin with [default: all keys]
        #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
        prefix: String,
    },
    /// List expiries that are still to be told, those that have waited for longest first
    #[command(after_help = "\
Examples:
  steadfast key callbacks
  steadfast key callbacks sessions/ --json")]
    Callbacks(KeyList),
}

/// Which key.
#[derive(Args, Debug)]
pub(crate) struct KeyRef {
    /// The name of the key
    #[arg(value_parser = key_name)]
    pub(crate) key: String,
}

/// Under what condition a key is changed.
#[derive(Args, Debug)]
pub(crate) struct Condition {
    /// Who you are: a key that has an owner is changed by nobody else
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Only if that is its revision
    #[arg(long, value_name = "N")]
    pub(crate) if_revision: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Put {
    #[command(flatten)]
    pub(crate) key: KeyRef,
    /// Its value: JSON, @FILE, or - for stdin; what is no JSON is a text
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: String,
    /// For how long it lives, like 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, allow_hyphen_values = true)]
    pub(crate) ttl: Duration,
    /// Keys below KEY/ end with it
    #[arg(long)]
    pub(crate) directory: bool,
    /// Call that address when it expires
    #[arg(long, value_name = "URL", conflicts_with = "start")]
    pub(crate) call: Option<String>,
    /// Start a run of that workflow when it expires
    #[arg(long, value_name = "WORKFLOW")]
    pub(crate) start: Option<String>,
    /// What that run is given: JSON, @FILE, or - for stdin [default: null]
    #[arg(long, short, value_name = "JSON", requires = "start")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) condition: Condition,
    /// Only if there is no such key
    #[arg(long, conflicts_with = "if_revision")]
    pub(crate) if_absent: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Renew {
    #[command(flatten)]
    pub(crate) key: KeyRef,
    /// For how long it lives from now on, like 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, allow_hyphen_values = true)]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) condition: Condition,
}

#[derive(Args, Debug)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) key: KeyRef,
    #[command(flatten)]
    pub(crate) condition: Condition,
}

/// Which part of a list.
#[derive(Args, Debug)]
pub(crate) struct KeyList {
    /// What the names of the keys begin with [default: all keys]
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
    pub(crate) prefix: String,
    /// How many at the most [default: 50]; with --all, how many at once
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: Option<u32>,
    /// Go on where an earlier list ended
    #[arg(long, conflicts_with = "all")]
    pub(crate) cursor: Option<String>,
    /// All of them, page by page
    #[arg(long)]
    pub(crate) all: bool,
}

fn key_name(text: &str) -> Result<String, String> {
    steadfast_kernel::KeyName::new(text).map(|key| key.to_string()).map_err(|error| error.to_string())
}

fn prefix(text: &str) -> Result<String, String> {
    steadfast_kernel::check_prefix(text).map(|()| text.into()).map_err(|error| error.to_string())
}
