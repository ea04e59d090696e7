//! Steadfast's benchmarks. `cargo xtask bench` lists them; `--json` prints one object per line, `--quick` ends within 30 seconds.
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod cpu;
mod http;
mod keys;
mod limit;
mod load;
mod memory;
mod messages;
mod plans;
mod postgres;
mod report;
mod restart;
mod runs;
mod timers;

use anyhow::{Result, bail};
use report::Report;

const HELP: &str = "\
cargo xtask bench runs [SCENARIO] [--json] [--quick]
    one-step, ten-steps                    runs per second, side by side, and what the disk could have done
    retry-once, retry-three-times          the same with steps that fail so often before they succeed
    commits-one-step, commits-ten-steps    durable commits per lone run
    fdatasync                              how long the disk takes to make a few bytes durable
    policy-unused                          what a retry policy costs that is not needed
    retry-lateness                         how long after its due time a retry begins
    timers-memory, timers-fired            what a pending timer takes, and how quickly those that are due are fired
    restart                                how soon a process that was killed works again, and with how much memory
cargo xtask bench http [SCENARIO] [--json] [--quick]
    start-and-wait                         runs per second over HTTP, 64 clients; the limit is the same workflow without HTTP
    feed-readers                           the same while 1,000 follow the change feed; the limit is without them
    start-up                               from the start of the process to its first answer
    rss-idle                               memory of a server that nobody asks for anything
cargo xtask bench keys [SCENARIO] [--json] [--quick]
    expire                                 keys that are due at once, each with a callback in the process, and what the disk could have done
    expire-lateness                        how late 5,000 a second are told
    memory                                 what a key of the near future takes beyond its value
    sick-target                            what a target that is down does to another one
    idle-cpu                               what keys that end tomorrow cost
cargo xtask bench plans [SCENARIO] [--json] [--quick]
    bookkeeping                            what lies between two stages of a task, beyond one durable commit, with 1,000 tasks at once
    restart-and-retry                      from the start after a crash until every interrupted task is listed and retried
cargo xtask bench messages [SCENARIO] [--json] [--quick]
    inbox                                  how many messages the memory inbox takes with little and with much in it, and what each leaves behind
    echo                                   packets of 250 bytes there and back over a bare link, and as a call of gRPC each
    call-http2                             calls of 200 bytes over HTTP/2; the limit is the bare link, and unary gRPC is beside it
    unary-grpc                             the unary calls of gRPC alone
    loss-1, loss-3                         calls over a network of 5 ms that loses 1 or 3 packets of a hundred
    remote-worker                          runs of one step that a worker hosts; the limit is the same workflow in the process with the store
cargo xtask bench postgres [SCENARIO] [--json] [--quick]
    steps, transactions-per-step           steps per second of 256 runs on PostgreSQL, with a transaction for each step beside it, and how many there are
    idle-queries                           what runs that sleep ask of the database
    three-instances                        steps per second of three instances, beside one alone on the same machine; with drawn ids and with given ones
    take-over                              how soon the runs of a killed instance go on at another one
docs/performance.md says how to read them.
";

/// Benchmarks of the engine have no network, and no driver for one: whoever waits for it wakes up by a call of the system, which would be measured with the rest.
fn main() -> Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let words: Vec<String> = std::env::args().skip(1).take(2).collect();
    let has_sockets = match &*words {
        [child, kind] if child == restart::CHILD => kind == "instance",
        [bench, ..] => ["http", "plans", "messages", "postgres"].contains(&bench.as_str()),
        [] => false,
    };
    let runtime = if has_sockets { runtime.enable_all() } else { runtime.enable_time() };
    runtime.build()?.block_on(Box::pin(bench()))
}

async fn bench() -> Result<()> {
    let (mut words, mut json, mut quick) = (Vec::new(), false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            "--quick" => quick = true,
            _ => words.push(argument),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            print!("{HELP}");
            Ok(())
        }
        ["runs"] => runs::run(&Report::new("runs", json), None, quick).await,
        ["runs", scenario] if runs::SCENARIOS.contains(&scenario) => runs::run(&Report::new("runs", json), Some(scenario), quick).await,
        ["http"] => http::run(&Report::new("http", json), None, quick).await,
        ["http", scenario] if http::SCENARIOS.contains(&scenario) => http::run(&Report::new("http", json), Some(scenario), quick).await,
        ["keys"] => keys::run(&Report::new("keys", json), None, quick).await,
        ["keys", scenario] if keys::SCENARIOS.contains(&scenario) => keys::run(&Report::new("keys", json), Some(scenario), quick).await,
        ["plans"] => plans::run(&Report::new("plans", json), None, quick).await,
        ["plans", scenario] if plans::SCENARIOS.contains(&scenario) => plans::run(&Report::new("plans", json), Some(scenario), quick).await,
        ["messages"] => messages::run(&Report::new("messages", json), None, quick).await,
        ["messages", scenario] if messages::SCENARIOS.contains(&scenario) => {
            messages::run(&Report::new("messages", json), Some(scenario), quick).await
        }
        ["messages", "call-quic"] => bail!("{}", messages::NO_QUIC),
        ["postgres"] => postgres::run(&Report::new("postgres", json), None, quick).await,
        ["postgres", scenario] if postgres::SCENARIOS.contains(&scenario) => {
            postgres::run(&Report::new("postgres", json), Some(scenario), quick).await
        }
        [restart::CHILD, ref arguments @ ..] => restart::child(arguments).await,
        _ => bail!("there is no benchmark {:?}\n\n{HELP}", words.join(" ")),
    }
}
