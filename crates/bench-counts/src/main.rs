//! Runs one scenario with a fixed number of operations, for `cargo xtask bench counts`.
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod http;
mod keys;
mod plans;
mod postgres;
mod region;
mod runs;
mod wire;

use anyhow::{Context, Result, bail};

/// A path through the product whose instructions are counted.
struct Scenario {
    name: &'static str,
    /// The number of operations in the counted region.
    operations: u32,
    run: fn(u32) -> Result<()>,
}

const SCENARIOS: [Scenario; 8] = [
    Scenario { name: "one-step", operations: 1_500, run: runs::one_step },
    Scenario { name: "ten-steps", operations: 300, run: runs::ten_steps },
    Scenario { name: "retry", operations: 1_000, run: runs::retry },
    Scenario { name: "key-expiry", operations: 1_500, run: keys::put_and_expiry },
    Scenario { name: "plan-stage", operations: 1_000, run: plans::stage },
    Scenario { name: "wire-call", operations: 5_000, run: wire::call },
    Scenario { name: "postgres-commit", operations: 4_000, run: postgres::commit },
    Scenario { name: "http-start", operations: 500, run: http::start },
];

/// Without arguments: lists the scenarios, each with its number of operations.
fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => {
            SCENARIOS.iter().for_each(|scenario| println!("{} {}", scenario.name, scenario.operations));
            Ok(())
        }
        [name, ref rest @ ..] => {
            let known = SCENARIOS.iter().find(|scenario| scenario.name == name);
            let scenario = known.with_context(|| format!("unknown scenario: {name}"))?;
            (scenario.run)(operations(scenario, rest)?)
        }
    }
}

fn operations(scenario: &Scenario, rest: &[&str]) -> Result<u32> {
    match rest {
        [] => Ok(scenario.operations),
        ["--operations", number] => number.parse().with_context(|| format!("`--operations` must be a number; got {number}")),
        _ => bail!("usage: steadfast-bench-counts SCENARIO [--operations NUMBER]"),
    }
}
