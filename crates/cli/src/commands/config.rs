//! `steadfast config`.

use crate::args::{Common, Show};
use crate::config::{self, Config};
use crate::error::Error;
use crate::output;

pub(crate) fn run(common: &Common, show: &Show) -> Result<(), Error> {
    if show.template {
        output::data(config::template().trim_end());
        return Ok(());
    }
    let config = Config::load(&show.settings.given(common))?;
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
