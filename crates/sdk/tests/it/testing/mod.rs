//! `steadfast::testing` itself: what it promises to the tests of others, and that it finds what it is there to find.

mod everywhere;
mod journals;
mod lab;
mod plans;

use std::cell::Cell;
use steadfast::{Ctx, Failure, HOUR, Policy, SECOND, workflow};

thread_local! {
    /// What a service that cannot tell a repeated request from a new one has taken.
    static TAKEN: Cell<u32> = const { Cell::new(0) };
}

/// Charges, waits for a word, ships by a child, and takes the charge back if the word is no.
#[workflow]
async fn order(ctx: Ctx, amount: u32) -> Result<String, Failure> {
    let receipt: u32 = ctx
        .step("charge", || async {
            TAKEN.set(TAKEN.get() + amount);
            Ok::<_, Failure>(amount)
        })
        .retry(Policy::constant(SECOND).max_attempts(3))
        .undo(|amount: u32| async move {
            TAKEN.set(TAKEN.get() - amount);
            Ok::<_, Failure>(())
        })
        .await?;
    if !ctx.signal::<bool>("word").await? {
        return Err(Failure::permanent("they said no"));
    }
    ctx.sleep(24 * HOUR).await?;
    let parcel: String = ctx.start_and_wait("ship", &receipt).await?;
    Ok(format!("{parcel} {}", ctx.random()))
}

#[workflow]
async fn ship(ctx: Ctx, receipt: u32) -> Result<String, Failure> {
    ctx.step("pack", || async { Ok::<_, Failure>(()) }).await?;
    Ok(format!("parcel of {receipt}"))
}
