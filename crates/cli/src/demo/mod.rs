//! `steadfast serve --demo`: example workflows against a flaky service that it brings along.

use crate::config::Config;
use crate::error::Error;
use std::net::SocketAddr;
use steadfast_runtime::Engine;

/// What the demonstration brings along; it ends when this is dropped.
pub(crate) struct Demo {}

impl Demo {
    /// Before anything is opened: starts the flaky service, and sets folders and variables that nobody has set.
    ///
    /// # Errors
    /// If it cannot be brought along.
    pub(crate) async fn bring(_config: &mut Config) -> Result<Self, Error> {
        Err(Error::Usage("there is no demonstration in this build".into()))
    }

    /// Once the server answers: starts some runs, and says what to look at.
    ///
    /// # Errors
    /// If a run cannot be started.
    pub(crate) async fn begin(&self, _engine: &Engine, _addr: SocketAddr) -> Result<(), Error> {
        Ok(())
    }
}
