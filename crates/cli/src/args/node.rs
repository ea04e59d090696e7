//! `steadfast node …`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes that are connected, with where they are and what they are known by
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast node list
  steadfast node list --json"
    )]
    List,
    /// Show the server's own node: its routes, what is under way, its inbox, and what it has done
    #[command(after_help = "\
Examples:
  steadfast node show")]
    Show,
}
