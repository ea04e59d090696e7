//! `steadfast key get`.

use super::{Context, left, path, told};
use crate::duration;
use crate::error::Error;
use crate::output::{self, style, time};
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::Key;

pub(super) async fn run(context: &Context, key: &str, only_value: bool) -> Result<(), Error> {
    let answer = context.client.get(&path(key, ""), Vec::new()).await?;
    if context.json {
        output::data(answer.text);
        return Ok(());
    }
    let key: Key = answer.read()?;
    output::data(if only_value { key.value.as_str().into() } else { page(&key, time::now()) });
    Ok(())
}

fn page(key: &Key, now: Timestamp) -> String {
    let name = style::paint(style::BOLD, &key.key);
    let mut lines = vec![format!("{name}  revision {}  {} left", key.revision, left(key.expires_at.0, now)), String::new()];
    let facts = [
        ("value", Some(output::plain(key.value.as_str()))),
        ("expires", Some(key.expires_at.to_string())),
        ("ttl", Some(duration::exact(Duration::from_millis(key.ttl_ms)))),
        ("put", Some(format!("{} ({})", key.put_at, time::relative(key.put_at.0, now)))),
        ("owner", key.owner.as_deref().map(output::plain)),
        ("directory", key.directory.then(|| format!("the keys below {}/ end with it", key.key))),
        ("on expiry", key.on_expire.as_ref().map(told)),
    ];
    let shown = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    lines.extend(shown.map(|(name, value)| format!("{}{value}", style::paint(style::FAINT, format_args!("{name:<10}")))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_with_the_time_that_it_has_left() {
        let key: Key = serde_json::from_value(serde_json::json!({
            "key": "carts/7", "value": {"items": 3}, "ttlMs": 90_000, "expiresAt": "2026-01-01T12:00:30Z", "owner": "ada", "revision": 17,
            "directory": true, "onExpire": {"startRun": {"workflow": "remind", "input": null}}, "putAt": "2026-01-01T11:59:00Z",
        }))
        .unwrap();
        let now = time::parse("2026-01-01T12:00:00Z").unwrap();
        let text = anstream::adapter::strip_str(&page(&key, now)).to_string();
        let expected = "carts/7  revision 17  30 s left\n\nvalue     {\"items\":3}\nexpires   2026-01-01T12:00:30Z\nttl       1m30s\n\
                        put       2026-01-01T11:59:00Z (60 s ago)\nowner     ada\ndirectory the keys below carts/7/ end with it\non expiry start remind";
        assert_eq!(text, expected);
    }
}
