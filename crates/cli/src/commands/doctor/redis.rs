//! Redis: can it be reached, does it let us in, and who else is there?

use super::{Finding, Level};
use crate::config::{self, Config, of_redis, settings};
use std::path::Path;
use steadfast_kernel::InstanceId;
use steadfast_store::{Commons, CommonsError};
use steadfast_store_redis::Redis;

/// How many pieces of a search are looked at before the rest is left out.
const PIECES_MAX: usize = 100;

pub(super) async fn check(config: &Config, data: &Path) -> Vec<Finding> {
    let Some(settings) = of_redis(config) else { return Vec::new() };
    let (url, prefix) = (config::without_user(&settings.url), settings.prefix.clone());
    let redis = match Redis::open(settings) {
        Ok(redis) => redis,
        Err(error) => return vec![Finding::fail("redis", format!("redis.{error}"), "mend the setting")],
    };
    let reached = reached(&redis, &url, &prefix).await;
    match config.text(settings::POSTGRES_URL) {
        Some(_) => vec![mirror(reached)], // its name is that of the database
        None => vec![instance(config, data), reached],
    }
}

/// Beside a database, nothing depends on Redis.
fn mirror(reached: Finding) -> Finding {
    let found = format!("{}; beside PostgreSQL it is a mirror only", reached.found);
    match reached.level {
        Level::Fail => Finding::warn("redis", format!("{found}, and nothing waits for it"), reached.help.unwrap_or_default()),
        level => Finding { level, found, ..reached },
    }
}

/// Who this instance is.
fn instance(config: &Config, data: &Path) -> Finding {
    let kept = config::instance_in(data);
    let is_usable = |id: &String| InstanceId::new(id).is_ok();
    match (config.text(settings::REDIS_INSTANCE), kept) {
        (Some(name), _) => Finding::ok("instance", format!("{name} ({})", config.origin(settings::REDIS_INSTANCE))),
        (None, Some((id, origin))) if is_usable(&id) => Finding::ok("instance", format!("{id} ({origin})")),
        (None, Some((_, origin))) => Finding::fail(
            "instance",
            format!("{origin} should hold the id of the instance"),
            "restore it from a backup, or name one with --instance",
        ),
        (None, None) => Finding::ok("instance", "none yet; the first start makes one and keeps it in the data folder"),
    }
}

/// One pass over the heartbeats needs the connection, the login, the scripts and the rights.
async fn reached(redis: &Redis, url: &str, prefix: &str) -> Finding {
    let (mut from, mut others) = (0, Vec::new());
    for _ in 0..PIECES_MAX {
        match redis.instances(from).await {
            Ok((next, found)) => {
                others.extend(found);
                from = next;
            }
            Err(error) => return failed(url, &error),
        }
        if from == 0 {
            break;
        }
    }
    others.sort_unstable();
    others.dedup();
    let names: Vec<&str> = others.iter().map(InstanceId::as_str).collect();
    let who = match names.as_slice() {
        [] => "no instance lives there now".into(),
        names => format!("instances that live: {}", names.join(", ")),
    };
    let tls = if url.starts_with("rediss") { ", with TLS" } else { "" };
    Finding::ok("redis", format!("{url} answers{tls}, keys begin with {prefix}; {who}"))
}

fn failed(url: &str, error: &CommonsError) -> Finding {
    let help = match error {
        CommonsError::Away { .. } => "start it, or check host, port and network; docs/operate/redis.md says what goes on without it",
        CommonsError::Refused { .. } => "mend what it says; docs/operate/redis.md has the settings and the ACL line",
        CommonsError::Foreign { .. } => "look who has put that there, or choose another redis.prefix",
    };
    Finding::fail("redis", format!("{url}: {error}"), help)
}
