//! The command line: what can be asked, with help and an example for each.

mod cluster;
mod key;
mod letter;
mod lock;
mod message;
mod node;
mod plan;
mod run;
mod serve;
mod tenant;
mod worker;

pub(crate) use cluster::{ClusterCommand, ClusterShow, Drain};
pub(crate) use key::{Condition, Delete, KeyCommand, KeyList, Put, Renew};
pub(crate) use letter::{LetterCommand, LetterId, Redrive, Which};
pub(crate) use lock::{Break, LockCommand};
pub(crate) use message::Message;
pub(crate) use node::NodeCommand;
pub(crate) use plan::{Apply, PlanCommand, PlanList, PlanShow, PlanVerb};
pub(crate) use run::{Cancel, Events, List, Retry, RunCommand, Signal, Start, Verb, Why};
pub(crate) use serve::Serve;
pub(crate) use tenant::{TenantCommand, TenantRetry, TenantVerb};
pub(crate) use worker::WorkerCommand;

use crate::config::{Given, settings};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Work that survives failure: durable workflows in one binary.
#[derive(Debug, Parser)]
#[command(
    name = "steadfast",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Examples:
  steadfast serve                                   start a server on ./data and ./definitions
  steadfast run start checkout --input '{\"order\":17}' --wait
  steadfast run why ID                              why does it not move?

Exit codes: 0 done, 1 the work failed, 2 wrong use, 3 no server answers."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What goes for every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Print JSON: what the API answered, to the letter
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// The server to ask [default: http://127.0.0.1:7373, or STEADFAST_SERVER]
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    pub(crate) server: Option<String>,
    /// A file with the token of the server [or STEADFAST_TOKEN, the token itself]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) token_file: Option<String>,
    /// The configuration file [default: steadfast.toml if it is there, or STEADFAST_CONFIG]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
}

impl Common {
    /// What was said of the configuration.
    pub(crate) fn given(&self) -> Given {
        let flags = vec![(settings::SERVER, self.server.clone()), (settings::TOKEN_FILE, self.token_file.clone())];
        Given { file: self.config.clone(), flags, ..Given::default() }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a server: the engine, its store, the HTTP API and the pages
    Serve(Serve),
    /// Start runs, look at them, and steer them
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast run start checkout --input @order.json --wait
  steadfast run list --status FAILED
  steadfast run retry ID --reason 'the gateway is back'"
    )]
    Run(RunCommand),
    /// Take tenants through the stages of a plan, and look at how it goes
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast plan apply switch --tenants-file tenants.txt --start --watch
  steadfast plan show switch-17
  steadfast plan pause switch-17 --reason 'the gateway is slow'"
    )]
    Plan(PlanCommand),
    /// Look at a tenant's task, retry it, and steer it
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast tenant show acme                        where does it stand, and what next?
  steadfast tenant retry acme --reason 'the disk has room again'"
    )]
    Tenant(TenantCommand),
    /// Look at the locks of tenants, or break one
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast lock list
  steadfast lock break acme --reason 'the machine is gone for good'"
    )]
    Lock(LockCommand),
    /// Put keys that expire, look at them, renew and delete them
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast key put sessions/ada '{\"user\":\"ada\"}' --ttl 30m --call https://example.com/out
  steadfast key list sessions/
  steadfast key callbacks                           whose expiry is still to be told?"
    )]
    Key(KeyCommand),
    /// Look at dead letters, redrive them, or drop them
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast letter list
  steadfast letter redrive checkout.17 --reason 'the template is mended'"
    )]
    Letter(LetterCommand),
    /// Look at the workers that are connected: processes that host runs for the server
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast worker list"
    )]
    Worker(WorkerCommand),
    /// Look at the nodes that are connected, and at the server's own: calls, tells and its inbox
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast node list
  steadfast node show"
    )]
    Node(NodeCommand),
    /// Look at the instances that share the store, and drain one
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Examples:
  steadfast cluster show
  steadfast cluster drain 10.0.0.7:7373             before its machine is taken down"
    )]
    Cluster(ClusterCommand),
    /// Call a node, and print its answer
    #[command(after_help = "\
Examples:
  steadfast call http://127.0.0.1:7373 transfer '{\"amount\":7}'
  steadfast call http://bank:7373 transfer @order.json --timeout 5m --id order-17 --token-file token

A token that is set is shown to the node if its address is that of the server, or if --token-file names it.
Exit codes: 0 answered, 1 it has failed there, 2 wrong use, 3 no node answers.")]
    Call(Message),
    /// Tell a node something: done when it was taken
    #[command(after_help = "\
Examples:
  steadfast tell http://127.0.0.1:7373 paid '{\"order\":17}'
  steadfast tell http://127.0.0.1:7373 paid - --id order-17 < order.json")]
    Tell(Message),
    /// Check workflow definitions, and explain every mistake
    #[command(after_help = "\
Examples:
  steadfast check definitions                       every file of a folder
  steadfast check checkout.yaml --json")]
    Check(Check),
    /// Show the effective configuration, and where each value came from
    #[command(after_help = "\
Examples:
  steadfast config
  STEADFAST_LISTEN=127.0.0.1:8000 steadfast config --json
  steadfast config --template > steadfast.toml")]
    Config(Show),
    /// Look for trouble: store, disk, clock, port, versions, definitions, Redis, server
    #[command(after_help = "\
Examples:
  steadfast doctor
  steadfast doctor --data /var/lib/steadfast --json")]
    Doctor(Settings),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  steadfast completions bash > ~/.local/share/bash-completion/completions/steadfast
  steadfast completions zsh > \"${fpath[1]}/_steadfast\"
  steadfast completions fish > ~/.config/fish/completions/steadfast.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Files, or folders with .yaml and .yml files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Print a commented file with every setting at its default instead
    #[arg(long, visible_alias = "example")]
    pub(crate) template: bool,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// Settings that have flags of their own.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    /// The folder of the store [default: data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// Where to listen [default: 127.0.0.1:7373]; any other than a loopback address needs --token-file
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The folder of the workflow definitions [default: definitions]
    #[arg(long, value_name = "DIR")]
    pub(crate) definitions: Option<String>,
    /// The PostgreSQL database that is the store, for example postgresql://steadfast@127.0.0.1:5432/steadfast [or STEADFAST_POSTGRES]
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<String>,
    /// The Redis through which instances share tenants, for example redis://127.0.0.1:6379 [or STEADFAST_REDIS]
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Who this instance is for the others [default: an id that the data folder keeps]
    #[arg(long, value_name = "NAME")]
    pub(crate) instance: Option<String>,
    /// A name under which the server may be asked, beside its own address; may be repeated
    #[arg(long = "allowed-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,
    /// A web origin whose pages may ask the server; may be repeated
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    pub(crate) cors_origins: Vec<String>,
    /// What is logged: error, warn, info, debug, trace, or filters [default: info, or STEADFAST_LOG]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// How the log is written: human or json
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// What templates see as vars.NAME; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub(crate) vars: Vec<String>,
    /// Any setting by its key, as `steadfast config` shows it; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

impl Settings {
    /// What was said of the configuration, together with what goes for every command.
    pub(crate) fn given(&self, common: &Common) -> Given {
        let list = |parts: &[String]| (!parts.is_empty()).then(|| parts.join(","));
        let mut given = common.given();
        given.flags.extend([
            (settings::DATA, self.data.clone()),
            (settings::LISTEN, self.listen.clone()),
            (settings::DEFINITIONS, self.definitions.clone()),
            (settings::POSTGRES_URL, self.postgres.clone()),
            (settings::REDIS_URL, self.redis.clone()),
            (settings::REDIS_INSTANCE, self.instance.clone()),
            (settings::ALLOWED_HOSTS, list(&self.allowed_hosts)),
            (settings::CORS_ORIGINS, list(&self.cors_origins)),
            (settings::LOG_LEVEL, self.log.clone()),
            (settings::LOG_FORMAT, self.log_format.clone()),
        ]);
        given.set = self.set.clone();
        given.vars = self.vars.clone();
        given
    }
}
