//! The workflows of the golden journals. They must fit what is on record for ever.

use crate::support::call;
use steadfast::{Code, Ctx, EngineBuilder, Failure, HOUR, MINUTE, Policy, SECOND, Settings, workflow};

/// The limits and letter boxes that the stories have.
pub(super) const OTHERS: [&str; 4] = ["limit:key/shop", "limit:key/till", "limit:workflow/queued", "letters:parse"];

pub(super) fn register(builder: EngineBuilder) -> EngineBuilder {
    builder
        .register(order)
        .register(upload)
        .register(hand_in)
        .register(parse)
        .register(trip)
        .register(errand)
        .register(family)
        .register(count)
        .register(pay)
        .register_with(rollout, Settings::new().manual_recovery())
        .register_with(queued, Settings::new().limit(1))
}

async fn say(ctx: &Ctx, name: &str, what: &str) -> Result<String, Failure> {
    ctx.step(name, || async move { Ok::<_, Failure>(what.to_string()) }).await
}

/// A bit of everything that code can ask for.
#[workflow]
pub(super) async fn order(ctx: Ctx, item: String) -> Result<String, Failure> {
    ctx.note(format!("{item} was ordered"));
    let packing = if ctx.version("packing", 1..=2) == 1 { "box" } else { "bag" };
    let charge = ctx
        .step("charge", || {
            let attempt = ctx.attempt();
            async move { if attempt == 1 { Err(Failure::transient("the bank is busy")) } else { Ok(attempt) } }
        })
        .retry(Policy::exponential(SECOND).max_attempts(3));
    let (attempts, packed) = ctx.join((charge, say(&ctx, "pack", packing))).await;
    ctx.sleep(HOUR).await?;
    let who = ctx.signal::<String>("approve").within(24 * HOUR).await?;
    let (winner, slept) = ctx.race((ctx.sleep(24 * HOUR), ctx.sleep(MINUTE))).await;
    slept?;
    Ok(format!("{} after {} attempts, approved by {who}, {winner}, {} {}", packed?, attempts?, ctx.random(), ctx.uuid()))
}

/// Says how far it has come; the first attempt is cut off.
#[workflow]
pub(super) async fn upload(ctx: Ctx, parts: u32) -> Result<u32, Failure> {
    ctx.step("upload", || {
        let ctx = ctx.clone();
        async move {
            let from = ctx.last_heartbeat::<u32>()?.unwrap_or_default();
            if ctx.attempt() == 1 {
                ctx.heartbeat().beat(&(from + 1))?;
                tokio::time::sleep(SECOND / 10).await;
                ctx.heartbeat().beat(&(from + 2))?;
                return Err(Failure::transient("cut off").code(Code::ResourceExhausted).retry_after(2 * HOUR).cause("too many"));
            }
            Ok(parts * 100 + from)
        }
    })
    .retry(Policy::constant(HOUR).max_attempts(5))
    .await
}

/// Waits for two words, of which one may be missing.
#[workflow]
pub(super) async fn hand_in(ctx: Ctx, (): ()) -> Result<(String, bool), Failure> {
    let first = ctx.signal::<String>("word").await?;
    let second = ctx.signal::<String>("other").within(MINUTE).await;
    Ok((first, second.is_ok()))
}

#[workflow]
pub(super) async fn parse(ctx: Ctx, text: String) -> Result<u32, Failure> {
    ctx.step("parse", || {
        let (call, text) = (call(&ctx, "parse"), text.clone());
        async move { if call > 1 { Ok(7) } else { text.parse::<u32>().map_err(|_| Failure::poison("not a number")) } }
    })
    .await
}

/// Books two things at once and a third, all of which can be taken back, and then does as it is told.
#[workflow]
pub(super) async fn trip(ctx: Ctx, then: String) -> Result<String, Failure> {
    let book = |what: &'static str| {
        let (ctx, then) = (&ctx, then.clone());
        async move {
            let booked = ctx.step(what, || async move { Ok::<_, Failure>(format!("{what} booked")) });
            let undo = ctx.clone();
            booked
                .undo(move |_: String| {
                    let fails = what == "car" && then == "cannot be undone" && call(&undo, "undo") == 1;
                    async move { if fails { Err(Failure::permanent("the car is gone")) } else { Ok(()) } }
                })
                .await
        }
    };
    let (flight, hotel) = ctx.join((book("flight"), book("hotel"))).await;
    let (flight, hotel, car) = (flight?, hotel?, book("car").await?);
    match then.as_str() {
        "waits" => ctx.signal::<String>("go").await,
        "out of time" => ctx.sleep(24 * HOUR).await.map(|()| "slept".into()),
        "refused" | "cannot be undone" => {
            ctx.step("pay", || {
                let call = call(&ctx, "pay");
                let refused = Failure::permanent("the card is refused").code(Code::PermissionDenied);
                async move { if call == 1 { Err(refused) } else { Ok("paid".to_string()) } }
            })
            .await
        }
        _ => Ok(format!("{flight}, {hotel}, {car}")),
    }
}

#[workflow]
pub(super) async fn errand(ctx: Ctx, what: String) -> Result<String, Failure> {
    match what.as_str() {
        "fails" => Err(Failure::permanent("closed").code(Code::NotFound)),
        "waits" => ctx.signal("done").await,
        "is hopeless" => queue_up(&ctx, Policy::constant(SECOND).max_attempts(2)).await,
        "takes too long" => {
            let (winner, tired) = ctx
                .race((queue_up(&ctx, Policy::constant(HOUR)), async { ctx.sleep(MINUTE).await.map(|()| "tired".into()) }))
                .await;
            tired.map(|how: String| format!("{how} {winner}"))
        }
        _ => say(&ctx, "run", &what).await,
    }
}

async fn queue_up(ctx: &Ctx, policy: Policy) -> Result<String, Failure> {
    ctx.step("queue", || async { Err(Failure::transient("it is full")) }).retry(policy).await
}

/// Has others run errands.
#[workflow]
pub(super) async fn family(ctx: Ctx, last: String) -> Result<Vec<String>, Failure> {
    let bread = ctx.start("errand", "bread").tenant("bakers").limit("shop", 1).deadline(HOUR).await?;
    ctx.start("errand", "stamps").detached().id(&format!("{}-stamps", ctx.run_id())).await?;
    let failed = ctx.start_and_wait::<_, String>("errand", "fails").await;
    let bread: String = bread.result().await?;
    let last: String = ctx.start_and_wait("errand", &last).await?;
    Ok(vec![bread, failed.unwrap_err().message, last])
}

/// Counts to three, each time without a past.
#[workflow]
pub(super) async fn count(ctx: Ctx, number: u32) -> Result<u32, Failure> {
    let next = ctx.step("add", || async move { Ok::<_, Failure>(number + 1) }).await?;
    if next < 3 {
        return ctx.continue_as_new(&next);
    }
    ctx.signal::<u32>("more").await.map(|more| next + more)
}

/// Never pays twice.
#[workflow]
pub(super) async fn pay(ctx: Ctx, (): ()) -> Result<String, Failure> {
    ctx.step("pay", || async { Ok::<_, Failure>("paid".to_string()) }).not_repeatable().await
}

/// Stages that a person sees to; the second takes long when it is called for the first time.
#[workflow]
pub(super) async fn rollout(ctx: Ctx, to: String) -> Result<String, Failure> {
    let drained = say(&ctx, "drain", "drained").await?;
    let switched = ctx
        .step("switch", || {
            let (call, to) = (call(&ctx, "switch"), to.clone());
            async move {
                if call == 1 && hangs(&to) {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Failure>(format!("switched to {to}"))
            }
        })
        .await?;
    let verified = say(&ctx, "verify", "verified").await?;
    Ok([drained, switched, verified].join(", "))
}

/// Whether the process is to die while it switches.
fn hangs(to: &str) -> bool {
    to.starts_with("hangs") && super::text::is_adding()
}

#[workflow]
pub(super) async fn queued(ctx: Ctx, (): ()) -> Result<String, Failure> {
    ctx.signal("next").await
}
