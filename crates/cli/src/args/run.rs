//! `steadfast run …`.

use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Start a run, and perhaps wait for its result
    #[command(after_help = "\
Examples:
  steadfast run start checkout --input '{\"order\":17}'
  steadfast run start checkout --input @order.json --id order-17 --wait
  echo '{\"order\":17}' | steadfast run start checkout --input - --wait=5m --json")]
    Start(Start),
    /// List runs, the newest first
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast run list --status FAILED --workflow checkout
  steadfast run list --wait APPROVAL
  steadfast run list --all --json"
    )]
    List(List),
    /// Show a run: where it stands and why, its steps and attempts
    #[command(after_help = "\
Examples:
  steadfast run show order-17
  steadfast run show order-17 --json")]
    Show(RunRef),
    /// Show the journal of a run
    #[command(after_help = "\
Examples:
  steadfast run events order-17
  steadfast run events order-17 --attempt 2
  steadfast run events order-17 --follow")]
    Events(Events),
    /// Say in one sentence why a run does not move, or how it ended
    #[command(after_help = "\
Examples:
  steadfast run why order-17")]
    Why(RunRef),
    /// Have a run begin nothing new; what is in flight ends
    #[command(after_help = "\
Examples:
  steadfast run pause order-17 --reason 'the gateway is being moved'")]
    Pause(Verb),
    /// Have a paused run go on
    #[command(after_help = "\
Examples:
  steadfast run resume order-17 --reason 'the gateway has moved'")]
    Resume(Verb),
    /// Call a run off: what it did is undone
    #[command(after_help = "\
Examples:
  steadfast run cancel order-17 --reason 'the customer changed their mind'
  steadfast run cancel order-17 --now                end it at once; nothing is undone")]
    Cancel(Cancel),
    /// Begin another life of a run: what was done is kept, what failed is done again
    #[command(after_help = "\
Examples:
  steadfast run retry order-17 --reason 'the gateway is back'
  steadfast run retry order-17 --dry-run             what would be done again?
  steadfast run retry order-17 --from charge         from that step on
  steadfast run retry order-17 --input @mended.json  from the start, with another input
  steadfast run retry order-17 --output 'charge={\"id\":5}'   it was done by hand")]
    Retry(Retry),
    /// Tell a run something: a signal, or an approval
    #[command(after_help = "\
Examples:
  steadfast run signal order-17 paid --payload '{\"amount\":99}'
  steadfast run signal order-17 ok --payload '{\"approved\":true}' --reason 'looks right'")]
    Signal(Signal),
    /// Replay the journal against the definition that is registered now; nothing is carried out
    #[command(after_help = "\
Examples:
  steadfast run replay order-17")]
    Replay(RunRef),
}

#[derive(Args, Debug)]
pub(crate) struct Start {
    /// The workflow
    pub(crate) workflow: String,
    /// What it is given: JSON, @FILE, or - for stdin [default: null]
    #[arg(long, short, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The id of the run; the same id and input again are the same run [default: a new one]
    #[arg(long, value_parser = run_id)]
    pub(crate) id: Option<String>,
    /// Whose work it is
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// How long the run may take in all, like 2h
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub(crate) deadline: Option<Duration>,
    /// Wait for the result, for ever or that long, and show how it goes
    #[arg(long, short, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "36500d", value_parser = crate::duration::parse)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only those of a status: READY, RUNNING, WAITING, PAUSED, COMPENSATING, COMPLETED, FAILED, CANCELLED, INTERRUPTED
    #[arg(long, short, ignore_case = true, hide_possible_values = true, value_parser = [
        "READY", "RUNNING", "WAITING", "PAUSED", "COMPENSATING", "COMPLETED", "FAILED", "CANCELLED", "INTERRUPTED",
    ])]
    pub(crate) status: Option<String>,
    /// Only those of a workflow
    #[arg(long, short)]
    pub(crate) workflow: Option<String>,
    /// Only those of a tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Only those that wait for that reason: BACKOFF, TIMER, SIGNAL, APPROVAL, CHILD, SLOT, …
    #[arg(long, value_name = "REASON")]
    pub(crate) wait: Option<String>,
    /// Only those whose id, workflow, tenant, failure or note has this text, in whatever case
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) q: Option<String>,
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

/// Which run.
#[derive(Args, Debug)]
pub(crate) struct RunRef {
    /// The id of the run
    #[arg(value_parser = run_id)]
    pub(crate) run: String,
}

#[derive(Args, Debug)]
pub(crate) struct Events {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// Only events of that attempt
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Only events after that sequence number
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub(crate) after: u64,
    /// Go on until the run has ended
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// What every verb takes.
#[derive(Args, Debug)]
pub(crate) struct Why {
    /// Why, for the record
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// The same key again is the same request [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Verb {
    #[command(flatten)]
    pub(crate) run: RunRef,
    #[command(flatten)]
    pub(crate) why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) verb: Verb,
    /// End it at once: nothing is undone
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(crate) verb: Verb,
    /// Begin at that step [default: at the step that failed]
    #[arg(long = "from", value_name = "STEP")]
    pub(crate) from: Option<String>,
    /// Begin from the start
    #[arg(long, conflicts_with = "from")]
    pub(crate) from_start: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Another input, from the start: JSON, @FILE, or - for stdin
    #[arg(long, short, value_name = "JSON", conflicts_with = "from")]
    pub(crate) input: Option<String>,
    /// What a step is to have returned: it is not executed; may be repeated
    #[arg(long = "output", value_name = "STEP=JSON")]
    pub(crate) outputs: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Signal {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// The name of the signal; an approval has that of its step
    pub(crate) name: String,
    /// What it says: JSON, @FILE, or - for stdin [default: null]
    #[arg(long, short, value_name = "JSON")]
    pub(crate) payload: Option<String>,
    /// A signal of the same id is taken once [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) why: Why,
}

fn run_id(text: &str) -> Result<String, String> {
    steadfast_kernel::RunId::new(text).map(|id| id.to_string()).map_err(|error| error.to_string())
}
