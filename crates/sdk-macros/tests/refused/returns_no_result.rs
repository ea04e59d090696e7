#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: Ctx, input: u32) -> String {
    input.to_string()
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
