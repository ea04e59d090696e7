//! A payment that waits for a person, for as long as it takes and across restarts.
//!
//! `cargo run --example approval` asks for approval and waits; `cargo run --example approval -- ada` starts it too if need be, and approves it. The wait
//! is on record: stop the first call while it waits, and the second one goes on from there.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

use std::time::Duration;
use steadfast::{Code, Ctx, Engine, Error, Failure, workflow};

/// For the demonstration, nobody has more than three seconds.
const PATIENCE: Duration = Duration::from_secs(3);

#[workflow]
async fn pay(ctx: Ctx, cents: u64) -> Result<String, Failure> {
    match ctx.signal::<String>("approve").within(PATIENCE).await {
        Ok(who) => ctx.step("transfer", || bank::transfer(cents, &who)).await,
        Err(failure) if failure.code == Code::DeadlineExceeded => Ok("nobody approved it in time".into()),
        Err(failure) => Err(failure),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let engine = Engine::open("data")?.register(pay).start().await?;
    let run = engine.start("pay", &4200).id("payment-7").await?;
    match std::env::args().nth(1) {
        Some(who) => match run.signal("approve", &who).id("the-approval").await {
            Ok(_) => println!("{who} approves"),
            Err(error) => println!("{who} comes too late: {error}"),
        },
        None => println!("{} waits for somebody to approve it", run.id()),
    }
    println!("{}", run.result::<String>().await?);
    engine.shutdown().await;
    Ok(())
}

mod bank {
    use super::Failure;

    pub(super) async fn transfer(cents: u64, who: &str) -> Result<String, Failure> {
        Ok(format!("{cents} transferred, approved by {who}"))
    }
}
