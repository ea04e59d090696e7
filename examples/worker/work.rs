//! The worker itself: its workflow, and how it connects, works and drains.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use steadfast::worker::{Parted, Worker};
use steadfast::{Ctx, Failure, Policy, SECOND, workflow};

#[derive(Serialize, Deserialize)]
pub(crate) struct Parcel {
    pub(crate) order: String,
    /// How long it takes to pack.
    pub(crate) pack_ms: u64,
}

/// Reserve, pack, send: if a worker is killed in the middle of packing, another one packs again, and nothing else is done twice.
#[workflow]
pub(crate) async fn parcel(ctx: Ctx, parcel: Parcel) -> Result<String, Failure> {
    let order = &parcel.order;
    let shelf: u32 = ctx
        .step("reserve", || async {
            say("reserves", order, &ctx);
            Ok::<_, Failure>(17)
        })
        .await?;
    let weight: u32 = ctx
        .step("pack", || async {
            say("packs", order, &ctx);
            pack(Duration::from_millis(parcel.pack_ms)).await;
            Ok::<_, Failure>(order.len() as u32)
        })
        .retry(Policy::exponential(SECOND))
        .await?;
    ctx.sleep(SECOND / 10).await?; // the van comes; nobody has to be there meanwhile
    ctx.step("send", || async {
        say("sends", order, &ctx);
        Ok::<_, Failure>(())
    })
    .await?;
    Ok(format!("{order} from shelf {shelf}, {weight} kg"))
}

/// A single step, for workflows that others have: `start: { workflow: weigh, input: … }` in a definition of the server.
async fn weigh(ctx: Ctx, it: Parcel) -> Result<usize, Failure> {
    say("weighs", &it.order, &ctx);
    pack(Duration::from_millis(it.pack_ms)).await;
    Ok(it.order.len())
}

/// Says what is done; `again` if it may have been begun before, by a worker that is gone.
fn say(verb: &str, order: &str, ctx: &Ctx) {
    println!("{verb} {order}{}", if ctx.redelivered() { " again" } else { "" });
}

#[allow(clippy::disallowed_methods, reason = "it stands for work that takes its time")]
async fn pack(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Works for the server at that address, or at the first of several (`http://a:7373,http://b:7373`) that answers, until the process is told to end, and then drains: what is in flight ends and is recorded, and all else goes on at
/// other workers.
pub(crate) async fn work(server: &str, name: &str) -> Result<Parted, Failure> {
    let mut worker = Worker::of_any(server.split(','))
        .name(name)
        .heartbeat(5 * SECOND)
        .register(parcel)
        .step("weigh", weigh);
    if let Ok(token) = std::env::var("STEADFAST_TOKEN") {
        worker = worker.token(token.trim());
    }
    let worker = worker.start().await?;
    println!("works");
    let parted = worker.until(told_to_end()).await;
    println!("{parted}");
    Ok(parted)
}

/// Ends with SIGTERM or Ctrl-C.
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
