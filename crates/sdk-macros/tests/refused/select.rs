#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: Ctx, input: u32) -> Result<u32, Failure> {
    tokio::select! {
        slept = ctx.sleep(steadfast::HOUR) => slept?,
        word = ctx.signal::<()>("word") => word?,
    }
    Ok(input)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
