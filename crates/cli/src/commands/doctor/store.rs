//! The store: is it there, is it ours, is it whole, who uses it?

use super::Finding;
use std::path::Path;
use steadfast_store_embedded::Look;

pub(super) fn check(data: &Path) -> Finding {
    let name = data.display();
    match steadfast_store_embedded::look(data) {
        Ok(Some(Look { format, bytes, in_use })) => {
            let size = super::disk::size(bytes);
            let used = if in_use { "in use by a server" } else { "not in use" };
            Finding::ok("store", format!("{name}: {size}, whole, format {format}, {used}"))
        }
        Ok(None) if data.exists() && !data.is_dir() => {
            Finding::fail("store", format!("{name} is no folder"), "choose another data folder with --data")
        }
        Ok(None) => empty(data),
        Err(error) => Finding::fail("store", error.to_string(), format!("see docs/errors/{}.md", error.code())),
    }
}

/// Nothing is there yet: can it be made?
fn empty(data: &Path) -> Finding {
    let nearest = super::disk::nearest(data);
    let writable = rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK).is_ok();
    if writable {
        Finding::ok("store", format!("{}: nothing there yet; the first start makes it", data.display()))
    } else {
        let found = format!("{}: nothing there yet, and {} cannot be written", data.display(), nearest.display());
        Finding::fail("store", found, "make it writable for this user, or choose another data folder with --data")
    }
}
