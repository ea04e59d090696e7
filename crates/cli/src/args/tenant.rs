//! `steadfast tenant …`: what is asked of a tenant's latest task.

use super::plan::tenant_id;
use super::run::Why;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Show a tenant's task: where it stands, its checkpoint and its lock, and what to do next
    #[command(after_help = "\
Examples:
  steadfast tenant show acme
  steadfast tenant show acme --json")]
    Show(TenantRef),
    /// Have a task that failed or was interrupted go on after the last stage that is done; one of an instance that is gone goes on here
    #[command(after_help = "\
Examples:
  steadfast tenant retry acme --reason 'the disk has room again'
  steadfast tenant retry acme --from-start           do all stages again")]
    Retry(TenantRetry),
    /// Have a task pause at the end of its stage
    #[command(after_help = "\
Examples:
  steadfast tenant pause acme --reason 'they are on air'")]
    Pause(TenantVerb),
    /// Have a paused task go on
    #[command(after_help = "\
Examples:
  steadfast tenant resume acme --reason 'they are off the air'")]
    Resume(TenantVerb),
    /// Call a task off: it ends at once and gives its lock back; nothing is undone
    #[command(after_help = "\
Examples:
  steadfast tenant cancel acme --reason 'they have left us'")]
    Cancel(TenantVerb),
    /// Undo what a task did, the newest stage first
    #[command(after_help = "\
Examples:
  steadfast tenant rollback acme --reason 'they want the old one back'")]
    Rollback(TenantVerb),
    /// Give a task up that is not under way, so that another instance can go on with it
    #[command(
        visible_alias = "hand-over",
        after_help = "\
Examples:
  steadfast tenant handover acme --reason 'this machine is taken down'
  steadfast --server http://other:7373 tenant retry acme    go on with it there"
    )]
    Handover(TenantVerb),
}

/// Which tenant.
#[derive(Args, Debug)]
pub(crate) struct TenantRef {
    /// The tenant
    #[arg(value_parser = tenant_id)]
    pub(crate) tenant: String,
}

#[derive(Args, Debug)]
pub(crate) struct TenantVerb {
    #[command(flatten)]
    pub(crate) tenant: TenantRef,
    #[command(flatten)]
    pub(crate) why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct TenantRetry {
    #[command(flatten)]
    pub(crate) verb: TenantVerb,
    /// Do all stages again [default: those after the checkpoint]
    #[arg(long)]
    pub(crate) from_start: bool,
}
