//! `steadfast key put`.

use super::{Context, in_doubt, millis, path};
use crate::args::{Condition, Put};
use crate::client::{Ask, Body, json_argument, value_argument};
use crate::error::Error;

pub(super) async fn run(context: &Context, args: &Put) -> Result<(), Error> {
    if args.value == "-" && args.input.as_deref() == Some("-") {
        return Err(Error::Usage("VALUE and --input cannot both come from stdin; name a file with @FILE".into()));
    }
    let Condition { owner, if_revision } = &args.condition;
    let if_revision = if args.if_absent { Some(0) } else { *if_revision };
    let body = Body::default()
        .with("value", Some(value_argument("VALUE", &args.value)?))
        .with("ttlMs", Some(millis(args.ttl)))
        .with("owner", owner.as_ref())
        .with("directory", args.directory.then_some(true))
        .with("onExpire", on_expire(args)?)
        .with("ifRevision", if_revision);
    // The same value again is the same value; but what is to be done under a condition is not done twice.
    let ask = Ask { body: Some(body), once: if_revision.is_some(), ..Ask::default() };
    let key = &args.key.key;
    let answer = context.client.put(&path(key, ""), ask).await.map_err(|error| in_doubt(error, key))?;
    super::change::told(context, &answer)
}

/// Who is told of its expiry, if somebody is.
fn on_expire(args: &Put) -> Result<Option<Body>, Error> {
    if let Some(url) = &args.call {
        return Ok(Some(Body::default().with("url", Some(url))));
    }
    let Some(workflow) = &args.start else { return Ok(None) };
    let input = args.input.as_ref().map(|input| json_argument("--input", input)).transpose()?;
    let start = Body::default().with("workflow", Some(workflow)).with("input", input);
    Ok(Some(Body::default().with("startRun", Some(start))))
}
