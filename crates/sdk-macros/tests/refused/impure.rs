#![allow(unused)]
use steadfast::{Ctx, Failure, workflow};

#[workflow]
async fn work(ctx: Ctx, input: u32) -> Result<u32, Failure> {
    let begun = std::time::Instant::now();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let late = begun.elapsed().as_secs() > 1;
    tokio::spawn(async move { late });
    let home = std::env::var("HOME");
    ctx.step("fine", || async { Ok::<_, Failure>(std::time::SystemTime::now()) }).await?;
    Ok(input)
}

fn main() {
    let _ = steadfast::Engine::in_memory().register(work);
}
