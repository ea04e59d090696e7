//! What the process is told from outside: to stop, or to look at the definitions again.

use super::definitions::Definitions;
use crate::output::time;
use std::time::Duration;
use steadfast_runtime::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often the folder of the definitions is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Signals of the operating system.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        let [interrupt, terminate, hang_up] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Signals { interrupt: interrupt?, terminate: terminate?, hang_up: hang_up? })
    }

    /// Ends when the process is to stop.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Looks after the definitions until the process is to stop.
    pub(super) async fn until_stop(&mut self, definitions: &mut Definitions, engine: &Engine) {
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hang_up.recv() => {
                    tracing::info!("reading the definitions again");
                    definitions.reload(engine).await;
                }
                () = time::pass(LOOK_EVERY) => definitions.reload_if_changed(engine).await,
            }
        }
    }
}
