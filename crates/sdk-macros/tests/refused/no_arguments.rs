#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work() -> Result<u32, Failure> {
    Ok(1)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
