//! More runs than slots: of a workflow, and of keys.

use super::{Asks, MS, Retry, Shape, work};
use steadfast::{Ctx, EngineBuilder, Failure, Settings, workflow};

pub(super) const SHAPES: &[Shape] = &[
    Shape::new("queued", "queued", |n| Ok((n + 2).to_string())),
    Shape::new("seated", "queued", |n| Ok((n + 2).to_string())).limit("desk", 2),
    Shape::new("again_in_line", "trip", |n| Ok((3 * n + 6).to_string()))
        .limit("desk", 2)
        .asks(Asks::Retry(Retry::Failed)),
    Shape::new("crowded_out", "endless", |_| Err("CANCELLED")).limit("crowd", 2).asks(Asks::Cancel),
];

pub(super) fn register(engine: EngineBuilder) -> EngineBuilder {
    engine.register_with(queued, Settings::new().limit(2))
}

#[workflow]
async fn queued(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let n = ctx.step("sit", || work(&ctx, "sit#1", n + 1)).await?;
    ctx.sleep(3 * MS).await?;
    ctx.step("rise", || work(&ctx, "rise#1", n + 1)).await
}
