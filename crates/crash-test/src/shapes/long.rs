//! Long steps and long loops: heartbeats, notes, and lives without a past.

use super::{Asks, MS, Shape, moment, work};
use crate::log;
use steadfast::{Ctx, EngineBuilder, Failure, Policy, workflow};

pub(super) const SHAPES: &[Shape] = &[
    Shape::new("copies", "copies", |n| Ok((n + ROWS).to_string())),
    Shape::new("noted", "noted", |n| Ok((n + 3).to_string())),
    Shape::new("rounds", "rounds", |n| Ok((2 * n).to_string())).asks(Asks::Signal),
];

pub(super) fn register(engine: EngineBuilder) -> EngineBuilder {
    engine.register(copies).register(noted).register(rounds)
}

/// How many rows are copied.
const ROWS: u32 = 12;

/// Says after every row how far it has come; the first attempt fails in the middle.
#[workflow]
async fn copies(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let rows = ctx
        .step("copy", || async {
            let (read, heartbeat, attempt) = (ctx.last_heartbeat::<u32>()?, ctx.heartbeat(), ctx.attempt());
            log::note_reading(&ctx, "copy#1", read)?;
            for row in read.unwrap_or_default() + 1..=ROWS {
                if attempt == 1 && row > ROWS / 2 {
                    return Err(Failure::transient("cut off"));
                }
                moment(2 * MS).await;
                heartbeat.beat(&row)?;
            }
            Ok(ROWS)
        })
        .retry(Policy::constant(5 * MS).max_attempts(2))
        .await?;
    Ok(n + rows)
}

#[workflow]
async fn noted(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let mut sum = n;
    for part in 1..=3 {
        ctx.note(format!("{part} of 3"));
        let name = format!("part#{part}");
        sum = ctx.step("part", || work(&ctx, &name, sum + 1)).await?;
    }
    Ok(sum)
}

/// A thousand more in every life; what it was told in the first is taken in the last.
#[workflow]
async fn rounds(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.step("count", || work(&ctx, "count#1", n)).await?;
    ctx.sleep(5 * MS).await?;
    if n < 4000 {
        return ctx.continue_as_new(&(n + 1000));
    }
    let told: u32 = ctx.signal("go").await?;
    Ok(n % 1000 + told)
}
