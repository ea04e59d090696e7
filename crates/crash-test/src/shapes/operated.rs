//! Runs that need somebody: to retry, pause, terminate or cancel them, or to look at their dead letters.

use super::{Asks, EDITED_BY, FLAKY_MAX, MS, Retry, SUPPLIED, Shape, repaired, sometimes, undo, work};
use steadfast::{Ctx, EngineBuilder, Failure, HOUR, Policy, Settings, workflow};

pub(super) const SHAPES: &[Shape] = &[
    Shape::new("retried", "trip", |n| Ok((3 * n + 6).to_string())).asks(Asks::Retry(Retry::Failed)),
    Shape::new("from_step", "trip", |n| Ok((3 * n + 6).to_string())).asks(Asks::Retry(Retry::Step("pack"))),
    Shape::new("edited", "trip", |n| Ok((3 * (n + EDITED_BY) + 6).to_string())).asks(Asks::Retry(Retry::Input)),
    Shape::new("supplied", "trip", |n| Ok((2 * n + 4 + SUPPLIED).to_string())).asks(Asks::Retry(Retry::Output)),
    Shape::new("undone", "booked", |n| Ok((2 * n).to_string())).asks(Asks::Retry(Retry::Failed)),
    Shape::new("paused", "halted", |n| Ok((n + 3).to_string())).asks(Asks::Pause),
    Shape::new("terminated", "endless", |_| Err("CANCELLED")).asks(Asks::Terminate),
    Shape::new("cancelled", "endless", |_| Err("CANCELLED")).asks(Asks::Cancel),
    Shape::new("interrupted", "stages", |n| Ok((n + 4).to_string())).asks(Asks::RetryInterrupted),
    Shape::new("redriven", "parsed", |n| Ok(n.to_string())).asks(Asks::Redrive),
    Shape::new("dropped", "parsed", |_| Err("DECODE_FAILURE")).asks(Asks::Drop),
];

pub(super) fn register(engine: EngineBuilder) -> EngineBuilder {
    engine
        .register(trip)
        .register(booked)
        .register(halted)
        .register(endless)
        .register(parsed)
        .register_with(stages, Settings::new().manual_recovery())
}

#[workflow]
async fn trip(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let pack = ctx.step("pack", || work(&ctx, "pack#1", n + 1)).await?;
    ctx.sleep(5 * MS).await?;
    let fly = ctx.step("fly", || repaired(&ctx, "fly#1", Failure::permanent("no flight"), n + 2)).await?;
    let land = ctx.step("land", || work(&ctx, "land#1", n + 3)).await?;
    Ok(pack + fly + land)
}

/// What was booked is taken back when it fails, and booked again in its next life.
#[workflow]
async fn booked(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let room = ctx.step("book", || work(&ctx, "book#1", n)).undo(undo(&ctx, "book#1")).await?;
    let paid = ctx.step("pay", || repaired(&ctx, "pay#1", Failure::permanent("no money"), n)).await?;
    Ok(room + paid)
}

#[workflow]
async fn halted(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let n = ctx.step("first", || work(&ctx, "first#1", n + 1)).await?;
    ctx.sleep(40 * MS).await?;
    let n = ctx
        .step("shaky", || sometimes(&ctx, "shaky#1", n + 1))
        .retry(Policy::constant(15 * MS).max_attempts(FLAKY_MAX))
        .await?;
    ctx.sleep(20 * MS).await?;
    ctx.step("last", || work(&ctx, "last#1", n + 1)).await
}

/// Nobody waits for its end.
#[workflow]
pub(super) async fn endless(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let n = ctx.step("hold", || work(&ctx, "hold#1", n)).undo(undo(&ctx, "hold#1")).await?;
    ctx.sleep(HOUR).await?;
    Ok(n)
}

/// With manual recovery: in flight, in backoff, asleep, in flight again.
#[workflow]
async fn stages(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let n = ctx.step("drain", || work(&ctx, "drain#1", n + 1)).await?;
    let n = ctx
        .step("switch", || sometimes(&ctx, "switch#1", n + 1))
        .retry(Policy::constant(10 * MS).max_attempts(FLAKY_MAX))
        .await?;
    ctx.sleep(30 * MS).await?;
    let n = ctx.step("verify", || work(&ctx, "verify#1", n + 1)).await?;
    ctx.step("report", || work(&ctx, "report#1", n + 1)).await
}

#[workflow]
async fn parsed(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.step("parse", || repaired(&ctx, "parse#1", Failure::poison("not a number"), n)).await
}
