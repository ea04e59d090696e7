#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: Ctx) -> Result<u32, Failure> {
    Ok(ctx.attempt())
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
