#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: &Ctx, input: u32) -> Result<u32, Failure> {
    Ok(input)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
