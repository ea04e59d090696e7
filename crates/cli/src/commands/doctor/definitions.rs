//! The definitions folder: can all of it be used?

use super::Finding;
use crate::commands::check::{self, Checked};
use crate::config::{Config, Origin, settings};

pub(super) fn check(config: &Config) -> Option<Finding> {
    let folder = config.path(settings::DEFINITIONS)?;
    let name = folder.display();
    if !folder.is_dir() {
        let found = format!("there is no folder {name}");
        return Some(match config.origin(settings::DEFINITIONS) {
            Origin::Default => Finding::warn("definitions", found, "make it and put workflow definitions into it"),
            origin => Finding::fail("definitions", format!("{found} ({origin})"), "make it, or name another with --definitions"),
        });
    }
    Some(match check::problems_of(std::slice::from_ref(&folder)) {
        Ok(Checked { files, problems, .. }) if problems.is_empty() => {
            Finding::ok("definitions", format!("{name}: {files} file{}, nothing wrong", if files == 1 { "" } else { "s" }))
        }
        Ok(Checked { problems, .. }) => {
            let found = format!("{name}: {} problem{}", problems.len(), if problems.len() == 1 { "" } else { "s" });
            Finding::fail("definitions", found, format!("see them with: steadfast check {name}"))
        }
        Err(error) => Finding::fail("definitions", error.to_string(), "see that it can be read"),
    })
}
