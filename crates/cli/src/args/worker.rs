//! `steadfast worker …`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// List the workers that are connected, with what they bring and how many runs they host
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast worker list
  steadfast worker list --json"
    )]
    List,
}
