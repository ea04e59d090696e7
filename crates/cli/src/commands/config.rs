//! `steadfast config`.

use crate::args::{Common, Show};
use crate::config::{self, Config, settings};
use crate::error::Error;
use crate::output;

pub(crate) fn run(common: &Common, show: &Show) -> Result<(), Error> {
    if show.template {
        output::data(config::template().trim_end());
        return Ok(());
    }
    let mut config = Config::load(&show.settings.given(common))?;
    let data = config.path(settings::DATA).unwrap_or_else(|| settings::DATA.default.into());
    if let Some((instance, origin)) = config::instance_in(&data) {
        config.set_if_unset(settings::REDIS_INSTANCE, instance, origin);
    }
    if common.json {
        output::data(config::as_json(&config));
        return Ok(());
    }
    output::data(config::as_table(&config).to_text());
    match &config.file {
        Some(file) => output::hint(format_args!("\nfile: {}", file.display())),
        None => output::hint("\nno configuration file; `steadfast config --template > steadfast.toml` makes one"),
    }
    Ok(())
}
