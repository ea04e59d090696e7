#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

struct Receipt {
    id: u32,
}

#[workflow]
async fn work(ctx: Ctx, input: u32) -> Result<Receipt, Failure> {
    Ok(Receipt { id: input })
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
