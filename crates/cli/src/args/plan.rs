//! `steadfast plan …`.

use super::run::Why;
use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Create a plan for some tenants, and perhaps start it; prints its id
    #[command(after_help = "\
Examples:
  steadfast plan apply switch --tenant acme --tenant blue --id switch-17
  steadfast plan apply switch --tenants-file tenants.txt --var gateway=https://gate.example.com --start
  list-tenants | steadfast plan apply switch --tenants-file - --start --watch --reason 'gate 2 is here'")]
    Apply(Apply),
    /// List plans, the newest first
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  steadfast plan list
  steadfast plan list --status PAUSED --definition switch
  steadfast plan list --all --json"
    )]
    List(PlanList),
    /// Show a plan as a grid: tenants down, stages across
    #[command(after_help = "\
Examples:
  steadfast plan show switch-17
  steadfast plan show switch-17 --watch              follow it to its end
  steadfast plan show switch-17 --all                also what does not fit the terminal")]
    Show(PlanShow),
    /// Have the tasks of a plan begin
    #[command(after_help = "\
Examples:
  steadfast plan start switch-17 --reason 'the night has begun'
  steadfast plan start switch-17 --watch")]
    Start(PlanStart),
    /// Have no other task begin; those under way pause at the end of their stage
    #[command(after_help = "\
Examples:
  steadfast plan pause switch-17 --reason 'the gateway is slow'")]
    Pause(PlanVerb),
    /// Have a paused plan go on, with the tasks that it paused
    #[command(after_help = "\
Examples:
  steadfast plan resume switch-17 --reason 'the gateway is well again'")]
    Resume(PlanVerb),
    /// Call a plan off: its tasks end and give their locks back; nothing is undone
    #[command(after_help = "\
Examples:
  steadfast plan cancel switch-17 --reason 'not tonight'")]
    Cancel(PlanVerb),
    /// Undo what the tasks of a plan did, the newest stage first
    #[command(after_help = "\
Examples:
  steadfast plan rollback switch-17 --reason 'the new gateway loses calls'")]
    Rollback(PlanVerb),
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("whom").required(true).multiple(true).args(["tenants", "tenants_file"])))]
pub(crate) struct Apply {
    /// The definition of the plan
    pub(crate) definition: String,
    /// A tenant; may be repeated
    #[arg(long = "tenant", short, value_name = "TENANT", value_parser = tenant_id)]
    pub(crate) tenants: Vec<String>,
    /// A file with a tenant per line, or - for stdin; blank lines and what follows # are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) tenants_file: Option<String>,
    /// The id of the plan; the same id, tenants and vars again are the same plan [default: a new one]
    #[arg(long, value_parser = plan_id)]
    pub(crate) id: Option<String>,
    /// What templates see as vars.NAME: JSON, or else a text; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub(crate) vars: Vec<String>,
    /// A file with a JSON object of vars, or - for stdin; --var goes before it
    #[arg(long, value_name = "FILE")]
    pub(crate) vars_file: Option<String>,
    /// How many tasks may be under way at once [default: what the definition says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_concurrency: Option<u32>,
    /// Start it
    #[arg(long)]
    pub(crate) start: bool,
    /// Follow it to its end; it ends with 0 only if the plan completes
    #[arg(long, short)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct PlanList {
    /// Only those of a status: CREATED, READY, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED
    #[arg(long, short, ignore_case = true, hide_possible_values = true, value_parser = [
        "CREATED", "READY", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED",
    ])]
    pub(crate) status: Option<String>,
    /// Only those of a definition
    #[arg(long, short)]
    pub(crate) definition: Option<String>,
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

/// Which plan.
#[derive(Args, Debug)]
pub(crate) struct PlanRef {
    /// The id of the plan
    #[arg(value_parser = plan_id)]
    pub(crate) plan: String,
}

#[derive(Args, Debug)]
pub(crate) struct PlanShow {
    #[command(flatten)]
    pub(crate) plan: PlanRef,
    /// Follow it to its end; it ends with 0 only if the plan completes
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Every tenant, also those that do not fit the terminal; with --watch, at the end
    #[arg(long, short)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PlanVerb {
    #[command(flatten)]
    pub(crate) plan: PlanRef,
    #[command(flatten)]
    pub(crate) why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct PlanStart {
    #[command(flatten)]
    pub(crate) verb: PlanVerb,
    /// Follow it to its end; it ends with 0 only if the plan completes
    #[arg(long, short)]
    pub(crate) watch: bool,
}

fn plan_id(text: &str) -> Result<String, String> {
    steadfast_kernel::PlanId::new(text).map(|id| id.to_string()).map_err(|error| error.to_string())
}

/// A tenant by its name.
pub(super) fn tenant_id(text: &str) -> Result<String, String> {
    steadfast_kernel::TenantId::new(text).map(|id| id.to_string()).map_err(|error| error.to_string())
}
