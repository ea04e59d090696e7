#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

struct Order {
    id: String,
}

#[workflow]
async fn work(ctx: Ctx, order: Order) -> Result<String, Failure> {
    Ok(order.id)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
