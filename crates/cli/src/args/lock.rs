//! `steadfast lock …`.

use super::tenant::TenantRef;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// List the locks of tenants by name, with who has each
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast lock list
  steadfast lock list --all --json"
    )]
    List {
        /// How many at the most [default: 50]; with --all, how many at once
        #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: Option<u32>,
        /// Go on where an earlier list ended
        #[arg(long, conflicts_with = "all")]
        cursor: Option<String>,
        /// All of them, page by page
        #[arg(long)]
        all: bool,
    },
    /// Take a tenant's lock away from who has it; a task that is under way is interrupted
    #[command(after_help = "\
Examples:
  steadfast lock break acme --reason 'the machine is gone for good'
  steadfast lock break acme --reason 'the machine is gone for good' --yes")]
    Break(Break),
}

#[derive(Args, Debug)]
pub(crate) struct Break {
    #[command(flatten)]
    pub(crate) tenant: TenantRef,
    /// Why, for the record
    #[arg(long, short, value_name = "TEXT", value_parser = said)]
    pub(crate) reason: String,
    /// Do not ask whether it is meant
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// The same key again is the same request [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

fn said(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("say why".into()) } else { Ok(text.into()) }
}
