//! `steadfast call` and `steadfast tell`.

use clap::Args;
use std::time::Duration;

/// A request to another node.
#[derive(Args, Debug)]
pub(crate) struct Message {
    /// The address of the node, for example http://127.0.0.1:7373
    pub(crate) peer: String,
    /// What it is asked for: the name of a workflow with `answers: true`, or of another route
    pub(crate) route: String,
    /// The input: JSON, @FILE, or - for stdin [default: null]
    pub(crate) input: Option<String>,
    /// How long it may take in all: connecting, sending again, the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::duration::parse)]
    pub(crate) timeout: Duration,
    /// What tells the request from all others: one that is sent again under its id is executed once [default: made for it]
    #[arg(long)]
    pub(crate) id: Option<String>,
}
