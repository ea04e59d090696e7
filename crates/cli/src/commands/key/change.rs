//! `steadfast key renew|delete`.

use super::{Context, in_doubt, left, millis, path};
use crate::args::{Condition, Delete, Renew};
use crate::client::{Answer, Ask, Body};
use crate::error::Error;
use crate::output::{self, time};
use steadfast_server::shapes::KeyKept;

pub(super) async fn renew(context: &Context, args: &Renew) -> Result<(), Error> {
    let Condition { owner, if_revision } = &args.condition;
    let body = Body::default()
        .with("ttlMs", Some(millis(args.ttl)))
        .with("owner", owner.as_ref())
        .with("ifRevision", if_revision.as_ref());
    let ask = Ask { body: Some(body), once: if_revision.is_some(), ..Ask::default() };
    let key = &args.key.key;
    let answer = context.client.post(&path(key, "/renew"), ask).await.map_err(|error| in_doubt(error, key))?;
    told(context, &answer)
}

pub(super) async fn delete(context: &Context, args: &Delete) -> Result<(), Error> {
    let Condition { owner, if_revision } = &args.condition;
    let mut query = Vec::new();
    query.extend(owner.clone().map(|owner| ("owner", owner)));
    query.extend(if_revision.map(|revision| ("ifRevision", revision.to_string())));
    let key = &args.key.key;
    let ask = Ask { query, once: true, ..Ask::default() };
    let answer = context.client.delete(&path(key, ""), ask).await.map_err(|error| in_doubt(error, key))?;
    if context.json {
        output::data(&answer.text);
    } else {
        output::say(format_args!("{key} is deleted"));
    }
    Ok(())
}

/// Says which revision a key has now, or what the server answered.
pub(super) fn told(context: &Context, answer: &Answer) -> Result<(), Error> {
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    let kept: KeyKept = answer.read()?;
    output::data(kept.revision);
    output::hint(format_args!(
        "{} has {} left; look at it with: steadfast key get {}",
        kept.key,
        left(kept.expires_at.0, time::now()),
        kept.key
    ));
    Ok(())
}
