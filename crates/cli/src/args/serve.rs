//! `steadfast serve`.

use super::Settings;
use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  steadfast serve                                   on ./data and ./definitions, at 127.0.0.1:7373
  steadfast serve --data /var/lib/steadfast --definitions /etc/steadfast/definitions
  steadfast serve --listen 0.0.0.0:7373 --token-file /etc/steadfast/token --allowed-host steadfast.example.com
  steadfast serve --postgres postgresql://steadfast@127.0.0.1/steadfast    keeps everything in that database
  steadfast serve --redis redis://127.0.0.1:6379    shares tenants with other instances at that Redis
  steadfast serve --demo                            with example workflows and a flaky service

Ctrl-C or SIGTERM lets attempts in flight end and stops; a second one stops at once. Nothing is lost either way.
Definitions that change become new versions within two seconds, or at once with SIGHUP.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Bring example workflows and a flaky service along, and start some runs and a plan
    #[arg(long)]
    pub(crate) demo: bool,
}
