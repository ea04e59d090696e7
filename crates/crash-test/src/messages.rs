//! A process that answers calls and tells by runs: the durable inbox. It is killed while requests are under way.

use crate::log;
use anyhow::Result;
use steadfast::messages::Node;
use steadfast::{Ctx, Engine, Failure, SECOND, workflow};
use steadfast_store_embedded::Embedded;

/// Books a transfer: the receipt is drawn, so that a second execution would give another one.
#[workflow]
async fn transfer(ctx: Ctx, number: u32) -> Result<String, Failure> {
    let receipt = ctx.uuid();
    ctx.step("book", || async { log::note(&ctx, "book").map_err(Failure::from) }).await?;
    ctx.sleep(SECOND / 100).await?;
    ctx.step("confirm", || async { log::note(&ctx, "confirm").map_err(Failure::from) }).await?;
    Ok(format!("{number} {receipt}"))
}

/// Answers on that port until it is killed.
///
/// # Errors
/// If the port or the store cannot be had.
pub async fn live(data: &str, port: &str) -> Result<()> {
    let store = Embedded::open(data)?;
    let engine = Engine::on(store)
        .register(transfer)
        .messages(Node::builder().name("bank"))
        .answer("transfer")
        .start()
        .await?;
    let node = engine.node().ok_or_else(|| anyhow::anyhow!("the engine has a node"))?;
    node.listen(&format!("127.0.0.1:{port}"), Default::default()).await.map_err(Failure::into_error)?;
    std::future::pending().await
}
