#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: Ctx, order: u32, customer: u32) -> Result<u32, Failure> {
    Ok(order + customer)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
