#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work<T>(ctx: Ctx, input: T) -> Result<T, Failure> {
    Ok(input)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
