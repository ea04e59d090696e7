//! A trip that is booked side by side and taken back when one part of it cannot be had.
//!
//! `cargo run --example saga`: flight and hotel are booked at the same time, then the car. There is no car, so the run fails, and what was booked is
//! taken back, the newest booking first. A second call finds that it has happened.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

use steadfast::{Ctx, Engine, Error, Failure, Policy, SECOND, workflow};

#[workflow]
async fn book_trip(ctx: Ctx, who: String) -> Result<Vec<String>, Failure> {
    let (flight, hotel) = ctx.join((book(&ctx, "flight", &who), book(&ctx, "hotel", &who))).await;
    let car = book(&ctx, "car", &who).await?;
    Ok(vec![flight?, hotel?, car])
}

/// Books one part; if the trip fails later on, the booking is cancelled.
async fn book(ctx: &Ctx, what: &str, who: &str) -> Result<String, Failure> {
    ctx.step(what, || agency::book(what, who))
        .retry(Policy::exponential(SECOND / 10).max_attempts(3))
        .undo(|booking: String| async move { agency::cancel(&booking).await })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let engine = Engine::open("data")?.register(book_trip).start().await?;
    let run = engine.start("book_trip", &"Ada").id("trip-of-ada").await?;
    match run.result::<Vec<String>>().await {
        Ok(bookings) => println!("booked: {}", bookings.join(", ")),
        Err(Error::Failed { failure, .. }) => println!("not booked: {}", failure.message),
        Err(error) => return Err(error),
    }
    for entry in run.journal().await? {
        let subject = entry.event.subject().map(|subject| format!(" {subject}")).unwrap_or_default();
        println!("  {:>2} {}{subject}", entry.seq, entry.event.kind());
    }
    engine.shutdown().await;
    Ok(())
}

mod agency {
    use super::Failure;

    pub(super) async fn book(what: &str, who: &str) -> Result<String, Failure> {
        if what == "car" {
            return Err(Failure::permanent("there are no cars"));
        }
        println!("  {what} booked for {who}");
        Ok(format!("{what} of {who}"))
    }

    pub(super) async fn cancel(booking: &str) -> Result<(), Failure> {
        println!("  {booking} cancelled");
        Ok(())
    }
}
