//! The `steadfast` binary: the server and its command line.

mod args;
mod client;
mod commands;
mod config;
mod demo;
mod duration;
mod error;
mod live;
mod output;
mod serve;
mod wires;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use error::Error;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, Error::Said(_)) {
                output::say(format_args!("{} {error}", output::style::paint(output::style::BAD.bold(), "error:")));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<(), Error> {
    let Cli { command, common } = cli;
    match command {
        Command::Serve(args) => serve::run(&common, &args),
        Command::Run(command) => in_client(commands::run::run(&common, command)),
        Command::Plan(command) => in_client(commands::plan::run(&common, command)),
        Command::Tenant(command) => in_client(commands::tenant::run(&common, command)),
        Command::Lock(command) => in_client(commands::lock::run(&common, command)),
        Command::Cluster(command) => in_client(commands::cluster::run(&common, command)),
        Command::Worker(command) => in_client(commands::worker::run(&common, command)),
        Command::Node(command) => in_client(commands::node::run(&common, command)),
        Command::Key(command) => in_client(commands::key::run(&common, command)),
        Command::Letter(command) => in_client(commands::letter::run(&common, command)),
        Command::Call(args) => in_client(commands::message::call(&common, args)),
        Command::Tell(args) => in_client(commands::message::tell(&common, args)),
        Command::Check(args) => commands::check::run(&common, &args),
        Command::Config(args) => commands::config::run(&common, &args),
        Command::Doctor(settings) => in_client(commands::doctor::run(&common, &settings)),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "steadfast", &mut std::io::stdout());
            Ok(())
        }
    }
}

/// Commands that ask a server need one thread.
fn in_client(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    steadfast_tls::install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::failed("cannot start", &error))?;
    runtime.block_on(work)
}
