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
  steadfast letter list --kind message --code UNAVAILABLE
  steadfast letter list --all --json"
    )]
    List {
        #[command(flatten)]
        which: Which,
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
    /// Show a dead letter with its failure and its input, value or bytes
    #[command(after_help = "\
Examples:
  steadfast letter show checkout.17
  steadfast letter show key:sessions/ada.5
  steadfast letter show route:mail/send.3")]
    Show {
        /// The id of the letter
        id: String,
    },
    /// Try again what a letter is about, or what all letters are about that fit: runs begin another life at that step, expiries are told again, messages are sent or handled again
    #[command(after_help = "\
Examples:
  steadfast letter redrive checkout.17 --reason 'the template is mended'
  steadfast letter redrive key:sessions/ada.5 --reason 'the address answers again'
  steadfast letter redrive --workflow checkout --code UNAVAILABLE --dry-run
  steadfast letter redrive --kind message --route mail/send --rate 10 --reason 'the peer is back'")]
    Redrive(Redrive),
    /// Forget a dead letter; its run stays as it is, an expiry is told to nobody, and a message is lost
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

/// Which letters; all that is given has to fit.
#[derive(Args, Debug, Default, Clone)]
pub(crate) struct Which {
    /// Of steps of that workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// Of messages of that route
    #[arg(long, value_name = "NAME", conflicts_with = "workflow")]
    pub(crate) route: Option<String>,
    /// Of expiries of that key
    #[arg(long, value_name = "KEY", conflicts_with_all = ["workflow", "route"])]
    pub(crate) key: Option<String>,
    /// Of expiries of keys that begin so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) key_prefix: Option<String>,
    /// About such things
    #[arg(long, value_enum)]
    pub(crate) kind: Option<Kind>,
    /// Of that tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// With a failure of that class: transient, permanent or poison
    #[arg(long)]
    pub(crate) class: Option<String>,
    /// With a failure of that code, for example UNAVAILABLE
    #[arg(long)]
    pub(crate) code: Option<String>,
    /// There since that time or later, for example 2026-11-15T08:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) added_after: Option<String>,
    /// There since before that time
    #[arg(long, value_name = "TIME")]
    pub(crate) added_before: Option<String>,
}

/// What a letter is about.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A step of a run
    Step,
    /// The expiry of a key
    #[value(alias = "callback")]
    Expiry,
    /// A message
    Message,
}

impl Which {
    /// What is asked for, as the server calls it.
    pub(crate) fn parts(&self) -> Vec<(&'static str, String)> {
        let kind = self.kind.map(|kind| match kind {
            Kind::Step => "step".to_string(),
            Kind::Expiry => "expiry".to_string(),
            Kind::Message => "message".to_string(),
        });
        let parts = [
            ("workflow", &self.workflow),
            ("route", &self.route),
            ("key", &self.key),
            ("keyPrefix", &self.key_prefix),
            ("kind", &kind),
            ("tenant", &self.tenant),
            ("class", &self.class),
            ("code", &self.code),
            ("addedAfter", &self.added_after),
            ("addedBefore", &self.added_before),
        ];
        parts.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }
}

/// One letter, or all that fit.
#[derive(Args, Debug)]
pub(crate) struct Redrive {
    /// The id of the letter; without it, all that fit what is asked for
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Every dead letter there is
    #[arg(long)]
    pub(crate) all: bool,
    /// At most so many in a second [default: as fast as it goes]
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: Option<u32>,
    /// At most so many in all
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Only say how many there are
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask whether it is meant
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) why: Why,
}
