//! Steps, retries, timers, branches, undo and signals.

use super::{Asks, MS, Shape, sometimes, undo, work};
use steadfast::{Code, Ctx, EngineBuilder, Failure, Policy, workflow};

/// The most attempts of a step that fails now and then. Kills add none: an attempt without a record repeats its number.
pub const FLAKY_MAX: u32 = 40;

pub(super) const SHAPES: &[Shape] = &[
    Shape::new("one_step", "one_step", |n| Ok((n + 1).to_string())),
    Shape::new("ten_steps", "ten_steps", |n| Ok((10 * n + 45).to_string())),
    Shape::new("flaky", "flaky", |n| Ok(n.to_string())),
    Shape::new("exhausted", "exhausted", |_| Err("UNAVAILABLE")),
    Shape::new("sleeper", "sleeper", |n| Ok((n + 2).to_string())),
    Shape::new("long", "long", |n| Ok((n + 6).to_string())),
    Shape::new("stuck", "stuck", |_| Err("DEADLINE_EXCEEDED")).deadline(MS.saturating_mul(400)),
    Shape::new("hangs_once", "hangs_once", |n| Ok(format!("\"sorry {n}\""))),
    Shape::new("branches", "branches", |n| Ok((6 * n + 6).to_string())),
    Shape::new("raced", "raced", |n| Ok(n.to_string())),
    Shape::new("saga", "saga", |_| Err("FAILED_PRECONDITION")),
    Shape::new("signalled", "signalled", |n| Ok((n + 1).to_string())).asks(Asks::Signal),
];

pub(super) fn register(engine: EngineBuilder) -> EngineBuilder {
    engine
        .register(one_step)
        .register(ten_steps)
        .register(flaky)
        .register(exhausted)
        .register(sleeper)
        .register(long)
        .register(stuck)
        .register(hangs_once)
        .register(branches)
        .register(raced)
        .register(saga)
        .register(signalled)
}

#[workflow]
async fn one_step(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.step("only", || work(&ctx, "only#1", n + 1)).await
}

#[workflow]
async fn ten_steps(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    for i in 0..10 {
        let name = format!("add#{}", i + 1);
        sum += ctx.step("add", || work(&ctx, &name, n + i)).await?;
    }
    Ok(sum)
}

#[workflow]
async fn flaky(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    ctx.step("flaky", || sometimes(&ctx, "flaky#1", n))
        .retry(Policy::exponential(5 * MS).max_delay(20 * MS).max_attempts(FLAKY_MAX))
        .await
}

#[workflow]
async fn exhausted(ctx: Ctx, _n: u32) -> Result<u32, Failure> {
    ctx.step("down", || async {
        work(&ctx, "down#1", ()).await?;
        Err::<u32, _>(Failure::transient("down"))
    })
    .retry(Policy::constant(10 * MS).max_attempts(3))
    .await
}

#[workflow]
async fn sleeper(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let n = ctx.step("before", || work(&ctx, "before#1", n + 1)).await?;
    ctx.sleep(100 * MS).await?;
    ctx.step("after", || work(&ctx, "after#1", n + 1)).await
}

#[workflow]
async fn long(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let mut sum = n;
    for round in 1..=3 {
        let (steady, shaky) = (format!("steady#{round}"), format!("shaky#{round}"));
        sum = ctx.step("steady", || work(&ctx, &steady, sum + 1)).await?;
        ctx.sleep(30 * MS).await?;
        sum = ctx
            .step("shaky", || sometimes(&ctx, &shaky, sum + 1))
            .retry(Policy::constant(5 * MS).max_attempts(FLAKY_MAX))
            .await?;
    }
    Ok(sum)
}

#[workflow]
async fn stuck(ctx: Ctx, _n: u32) -> Result<u32, Failure> {
    ctx.step("stuck", || async {
        work(&ctx, "stuck#1", ()).await?;
        std::future::pending::<Result<u32, Failure>>().await
    })
    .await
}

#[workflow]
async fn hangs_once(ctx: Ctx, n: u32) -> Result<String, Failure> {
    let hung: Result<(), Failure> = ctx
        .step("hang", || async {
            work(&ctx, "hang#1", ()).await?;
            std::future::pending::<Result<(), Failure>>().await
        })
        .timeout(20 * MS)
        .retry(Policy::once())
        .await;
    match hung {
        Ok(()) => Ok("it came back".into()),
        Err(failure) if failure.code == Code::DeadlineExceeded => {
            ctx.step("apologise", || work(&ctx, "apologise#1", format!("sorry {n}"))).await
        }
        Err(failure) => Err(failure),
    }
}

#[workflow]
async fn branches(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let walk = |branch: u32| {
        let ctx = &ctx;
        async move {
            let mut sum = 0;
            for round in 1..=3 {
                let name = format!("join#1.{branch}/walk#{round}");
                sum += ctx.step("walk", || work(ctx, &name, n + round - 1)).await?;
                ctx.sleep(5 * (branch + 1) * MS).await?;
            }
            Ok::<_, Failure>(sum)
        }
    };
    let (left, right) = ctx.join((walk(0), walk(1))).await;
    Ok(left? + right?)
}

#[workflow]
async fn raced(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let limit = async { ctx.sleep(3600 * 1000 * MS).await.map(|()| 0) };
    let down = async {
        ctx.step("down", || async { Err::<u32, _>(Failure::transient("down")) })
            .retry(Policy::constant(3600 * 1000 * MS))
            .await
    };
    let fast = async {
        ctx.sleep(20 * MS).await?;
        ctx.step("fast", || work(&ctx, "race#1.2/fast#1", n)).await
    };
    let (_, winner) = ctx.race((limit, down, fast)).await;
    let winner = winner?;
    ctx.sleep(20 * MS).await?;
    Ok(winner)
}

#[workflow]
async fn saga(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    for name in ["reserve", "charge"] {
        let step = format!("{name}#1");
        ctx.step(name, || work(&ctx, &step, n)).undo(undo(&ctx, &step)).await?;
    }
    Err(Failure::permanent("changed my mind"))
}

#[workflow]
async fn signalled(ctx: Ctx, _n: u32) -> Result<u32, Failure> {
    let told: u32 = ctx.signal("go").await?;
    ctx.step("tell", || work(&ctx, "tell#1", told + 1)).await
}
