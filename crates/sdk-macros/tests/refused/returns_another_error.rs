#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: Ctx, input: String) -> Result<u32, std::num::ParseIntError> {
    Ok(input.parse()?)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
