//! The real binary, serving an empty store.

use super::client::Client;
use anyhow::{Context, Result, ensure};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use steadfast::{Clock, SystemClock};
use tempfile::TempDir;

/// How long it is given to answer at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is asked whether it is there.
const ASK_EVERY: Duration = Duration::from_micros(500);

/// A server; it is killed when this is dropped.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    /// From the start of the process to its first answer.
    pub(crate) took: Duration,
    process: Child,
    _folder: TempDir,
}

impl Served {
    /// Starts one, with these definitions.
    pub(crate) async fn start(binary: &Path, definitions: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let definitions_folder = folder.path().join("definitions");
        std::fs::create_dir(&definitions_folder)?;
        for (name, text) in definitions {
            std::fs::write(definitions_folder.join(name), text)?;
        }
        let addr = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?; // free a moment ago
        let began = SystemClock.now();
        let process = Command::new(binary)
            .args(["serve", "--log", "error", "--listen", &addr.to_string(), "--data"])
            .arg(folder.path().join("data"))
            .arg("--definitions")
            .arg(&definitions_folder)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", binary.display()))?;
        let mut served = Served { addr, took: Duration::ZERO, process, _folder: folder };
        while !is_there(addr).await {
            ensure!(SystemClock.now().saturating_since(began) < PATIENCE, "the server does not answer");
            SystemClock.sleep(ASK_EVERY).await;
        }
        served.took = SystemClock.now().saturating_since(began);
        Ok(served)
    }

    /// The memory that it has in use.
    pub(crate) fn rss_mib(&self) -> Result<f64> {
        crate::memory::status_of(&self.process.id().to_string(), "VmRSS")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _it_is_gone = self.process.kill();
        let _it_is_gone = self.process.wait();
    }
}

async fn is_there(addr: SocketAddr) -> bool {
    match Client::connect(addr).await {
        Ok(mut client) => client.get("/healthz").await.is_ok_and(|status| status == 200),
        Err(_) => false,
    }
}
