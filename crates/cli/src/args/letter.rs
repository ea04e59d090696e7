//! `steadfast letter …`.

use super::run::Why;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum LetterCommand {
    /// List dead letters, the newest first
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast letter list
  steadfast letter list --all --json"
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
    /// Show a dead letter with its failure and its input
    #[command(after_help = "\
Examples:
  steadfast letter show checkout.17
  steadfast letter show key:sessions/ada.5")]
    Show {
        /// The id of the letter
        id: String,
    },
    /// Try again what the letter is about: its run begins another life at that step, or an expiry is told again
    #[command(after_help = "\
Examples:
  steadfast letter redrive checkout.17 --reason 'the template is mended'
  steadfast letter redrive key:sessions/ada.5 --reason 'the address answers again'")]
    Redrive(LetterId),
    /// Forget a dead letter; its run stays as it is, and an expiry is told to nobody
    #[command(after_help = "\
Examples:
  steadfast letter drop checkout.17 --reason 'the order is void'")]
    Drop(LetterId),
}

/// Which letter, and why.
#[derive(Args, Debug)]
pub(crate) struct LetterId {
    /// The id of the letter
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) why: Why,
}
