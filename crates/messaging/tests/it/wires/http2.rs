//! The wire over HTTP/2 on real sockets: the contract, and what is its own.

use super::contract::{LONGEST, Links, contract};
use steadfast_messaging::wire::http2::{Http2, ListenSettings, Listening, Settings, listen};
use steadfast_messaging::wire::{Link, Wire};
use tokio::sync::mpsc;

pub(super) struct Port {
    pub(super) wire: Http2,
    pub(super) address: String,
    pub(super) links: mpsc::Receiver<Link>,
    pub(super) _listening: Listening,
}

impl Links for Port {
    async fn link(&mut self) -> (Link, Link) {
        let near = self.wire.connect(&self.address).await.unwrap();
        (near, self.links.recv().await.unwrap())
    }
}

pub(super) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.packet_bytes_max = LONGEST;
    settings
}

async fn port() -> Port {
    let (sender, links) = mpsc::channel(4);
    let mut listens = ListenSettings::default();
    listens.link = settings();
    let listening = listen("127.0.0.1:0", listens, sender).await.unwrap();
    Port { wire: Http2::new(settings()), address: format!("http://{}", listening.addr()), links, _listening: listening }
}

contract!(port(), tokio::test);
