//! What the node of a server is given in files: can all of it be used, and does it fit together?

use super::Finding;
use crate::config::settings::Setting;
use crate::config::{Config, settings};
use crate::wires::{self, Wires};

/// Every setting that names a file for messages.
const FILES: [&Setting; 5] = [
    settings::MESSAGES_TOKEN_FILE,
    settings::MESSAGES_CERT_FILE,
    settings::MESSAGES_KEY_FILE,
    settings::MESSAGES_CLIENT_CA_FILE,
    settings::MESSAGES_CA_FILE,
];

/// Nothing if there are no such files.
pub(super) fn check(config: &Config) -> Option<Finding> {
    let named: Vec<&str> = FILES.iter().filter(|file| config.path(file).is_some()).map(|file| file.key).collect();
    if named.is_empty() && config.list(settings::MESSAGES_TOKEN_HOSTS).is_empty() {
        return None;
    }
    let wrong = Wires::of(config).map(drop).and_then(|()| wires::of_port(config).map(drop)).err();
    Some(match wrong {
        Some(wrong) => Finding::fail("messages' files", wrong, "mend the file or the setting; docs/errors/SF0142.md says more"),
        None => Finding::ok("messages' files", format!("{} can be used", named.join(", "))),
    })
}
