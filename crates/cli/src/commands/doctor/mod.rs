//! `steadfast doctor`.
use crate::args::{Common, Settings};
use crate::error::Error;
pub(crate) async fn run(_common: &Common, _settings: &Settings) -> Result<(), Error> {
    Ok(())
}
