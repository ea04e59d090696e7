//! A checkout that survives anything: run it, press Ctrl-C in the middle, run it again.
//!
//! `cargo run --example checkout [ORDER]` charges a card (the payment service fails twice), waits a day, and sends a receipt. Everything is kept
//! in the folder `data`; the order's id makes the start idempotent, so that a second call goes on with the same run or shows its result.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

use serde::{Deserialize, Serialize};
use std::time::Duration;
use steadfast::{Ctx, Engine, Error, Failure, Policy, SECOND, workflow};

/// For the demonstration, an hour is a tenth of a second.
const HOUR: Duration = Duration::from_millis(100);

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    order: String,
    charge: String,
}

// README: begin
#[workflow]
async fn checkout(ctx: Ctx, order: Order) -> Result<Receipt, Failure> {
    let charge = ctx
        .step("charge", || payments::charge(&order))
        .retry(Policy::exponential(SECOND).max_attempts(5))
        .timeout(10 * SECOND)
        .await?;
    ctx.sleep(24 * HOUR).await?;
    ctx.step("receipt", || mail::send_receipt(&order, &charge)).await
}

async fn serve(order: Order) -> Result<Receipt, Error> {
    let engine = Engine::open("data")?.register(checkout).start().await?;
    let run = engine.start("checkout", &order).id(&order.id).await?; // the id makes it idempotent
    show(&run).await?;
    run.result().await
}
// README: end

/// Says where the run comes from.
async fn show(run: &steadfast::Run) -> Result<(), Error> {
    let view = run.view().await?;
    match (run.is_new(), view.ended.is_some()) {
        (true, _) => println!("{} has begun", run.id()),
        (false, false) => println!("{} goes on from event {} of its journal", run.id(), view.seq),
        (false, true) => println!("{} has ended before; this is what it came to", run.id()),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let id = std::env::args().nth(1).unwrap_or_else(|| "order-17".into());
    let receipt = serve(Order { id, cents: 4200 }).await?;
    println!("receipt for {}: {}", receipt.order, receipt.charge);
    Ok(())
}

mod payments {
    use super::{Failure, Order};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A payment service that is down for the first two calls.
    pub(super) async fn charge(order: &Order) -> Result<String, Failure> {
        static CALLS: AtomicU32 = AtomicU32::new(1);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        println!("  charging {} for {} (call {call})", order.cents, order.id);
        if call <= 2 {
            return Err(Failure::transient("the payment service does not answer"));
        }
        Ok(format!("charge-{}", order.id))
    }
}

mod mail {
    use super::{Failure, Order, Receipt};

    pub(super) async fn send_receipt(order: &Order, charge: &str) -> Result<Receipt, Failure> {
        println!("  sending the receipt for {}", order.id);
        Ok(Receipt { order: order.id.clone(), charge: charge.into() })
    }
}
