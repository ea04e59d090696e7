//! `steadfast run signal`.

use super::Context;
use crate::args::Signal;
use crate::client::{Body, encoded, fresh_key, json_argument};
use crate::error::Error;
use crate::output;
use steadfast_server::shapes::SignalReceived;

pub(super) async fn run(context: &Context, args: Signal) -> Result<(), Error> {
    let payload = args.payload.map(|payload| json_argument("--payload", &payload)).transpose()?;
    let id = args.id.map_or_else(fresh_key, Ok)?; // a repetition after a lost answer is the same signal
    let body = Body::default().with("payload", payload).with("signalId", Some(id));
    let answer = context.verb(&args.run.run, &format!("signals/{}", encoded(&args.name)), body, &args.why).await?;
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    let SignalReceived { received } = answer.read()?;
    let what = if received { "was told" } else { "was told before; nothing has changed:" };
    output::say(format_args!("{} {what} {}", args.run.run, args.name));
    Ok(())
}
