//! Runs that start runs.

use super::{Asks, MS, Retry, Shape, work};
use crate::log;
use steadfast::{Ctx, EngineBuilder, Failure, Settings, workflow};

pub(super) const SHAPES: &[Shape] = &[
    Shape::new("family", "family", |n| Ok((4 * n + 2).to_string()))
        .children(&[("/member.1", |n| Ok((2 * n).to_string())), ("/member.2", |n| Ok((2 * n + 2).to_string()))]),
    Shape::new("consoles", "consoles", |n| Ok(n.to_string())).children(&[("/misfit.1", |_| Err("FAILED_PRECONDITION"))]),
    Shape::new("leaves", "leaves", |n| Ok((n + 1).to_string())).children(&[("-child", |n| Ok((2 * n).to_string()))]),
    Shape::new("guards", "guards", |_| Err("CANCELLED"))
        .asks(Asks::Cancel)
        .children(&[("/endless.1", |_| Err("CANCELLED"))]),
    Shape::new("abandons", "guards", |_| Err("CANCELLED"))
        .asks(Asks::Terminate)
        .children(&[("/endless.1", |_| Err("CANCELLED"))]),
    Shape::new("teaches", "teaches", |n| Ok(n.to_string())).asks(Asks::Retry(Retry::Failed)).children(&[
        ("/member.1", |n| Ok((2 * n).to_string())),
        ("/pupil.1", |_| Err("FAILED_PRECONDITION")),
        ("/pupil.1.again-1", |n| Ok(n.to_string())),
    ]),
];

pub(super) fn register(engine: EngineBuilder) -> EngineBuilder {
    engine
        .register(family)
        .register(consoles)
        .register(leaves)
        .register(guards)
        .register(teaches)
        .register(misfit)
        .register(pupil)
        .register_with(member, Settings::new().limit(3))
}

#[workflow]
async fn member(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let n = ctx.step("double", || work(&ctx, "double#1", 2 * n)).await?;
    ctx.sleep(5 * MS).await?;
    Ok(n)
}

/// Two children: one is waited for at once, the other after it.
#[workflow]
async fn family(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let first = ctx.start("member", &n).await?;
    let second: u32 = ctx.start_and_wait("member", &(n + 1)).await?;
    Ok(first.result::<u32>().await? + second)
}

#[workflow]
async fn misfit(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.step("fit", || async {
        work(&ctx, "fit#1", n).await?;
        Err::<u32, _>(Failure::permanent("does not fit"))
    })
    .await
}

#[workflow]
async fn consoles(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    match ctx.start_and_wait::<_, u32>("misfit", &n).await {
        Ok(_) => Err(Failure::permanent("it fits")),
        Err(_) => ctx.step("console", || work(&ctx, "console#1", n)).await,
    }
}

/// Its child goes on without it.
#[workflow]
async fn leaves(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.start("member", &n).detached().id(&format!("{}-child", ctx.run_id())).await?;
    ctx.step("leave", || work(&ctx, "leave#1", n + 1)).await
}

/// Its child ends with it.
#[workflow]
async fn guards(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.start_and_wait("endless", &n).await
}

/// Fails until its parent is repaired.
#[workflow]
async fn pupil(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let parent = ctx.run_id().as_str().split('/').next().unwrap_or_default();
    ctx.step("learn", || async {
        work(&ctx, "learn#1", ()).await?;
        if log::is_repaired(parent) { Ok(n) } else { Err(Failure::permanent("too hard")) }
    })
    .await
}

/// In its second life one child is kept, and another one is started in the place of the one that failed.
#[workflow]
async fn teaches(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let _kept: u32 = ctx.start_and_wait("member", &n).await?;
    ctx.start_and_wait("pupil", &n).await
}
