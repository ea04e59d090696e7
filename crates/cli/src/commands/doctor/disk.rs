//! The disk: is there room for the store?

use super::Finding;
use std::path::Path;

/// Below this the store soon cannot write any more.
const FAIL_BELOW: u64 = 100 << 20;
/// Below this somebody should look after it.
const WARN_BELOW: u64 = 1 << 30;

pub(super) fn check(data: &Path) -> Finding {
    let folder = nearest(data);
    match rustix::fs::statvfs(folder) {
        Ok(disk) => of(disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)),
        Err(error) => Finding::warn("disk", format!("{}: {error}", folder.display()), "look at it with: df -h"),
    }
}

/// The folder itself, or the nearest one above it that is there.
pub(super) fn nearest(data: &Path) -> &Path {
    data.ancestors().find(|folder| folder.is_dir()).unwrap_or_else(|| Path::new("."))
}

fn of(free: u64, whole: u64) -> Finding {
    let found = format!("{} free of {}", size(free), size(whole));
    let help = "free some space, or set retention.completed so that old runs go";
    match free {
        free if free < FAIL_BELOW => Finding::fail("disk", found, help),
        free if free < WARN_BELOW => Finding::warn("disk", found, help),
        _ => Finding::ok("disk", found),
    }
}

/// A size for people.
pub(super) fn size(bytes: u64) -> String {
    let units = [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn little_room_is_told_before_it_is_too_late() {
        assert_eq!(of(50 << 20, 1 << 40).level, Level::Fail);
        assert_eq!(of(500 << 20, 1 << 40).level, Level::Warn);
        assert_eq!(of(5 << 30, 1 << 40).found, "5.0 GiB free of 1.0 TiB");
    }
}
