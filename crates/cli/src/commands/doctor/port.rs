//! The port: is it free for a server, or has a Steadfast server it already?

use super::Finding;
use super::server::Asked;
use crate::config::{Config, settings};
use std::io::ErrorKind;
use std::net::SocketAddr;

pub(super) async fn check(config: &Config, server: &Asked) -> Finding {
    let Some(listen) = config.text(settings::LISTEN).and_then(|listen| listen.parse::<SocketAddr>().ok()) else {
        return Finding::fail("port", "there is no address to listen on", "set listen");
    };
    if !listen.ip().is_loopback() && config.text(settings::TOKEN_FILE).is_none() {
        let found = format!("{listen} can be reached from other machines, and there is no token");
        return Finding::fail("port", found, "name a token file with --token-file, or listen on 127.0.0.1");
    }
    match tokio::net::TcpListener::bind(listen).await {
        Ok(_) => Finding::ok("port", format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => match super::server::at(config, listen).await {
            true => Finding::ok("port", format!("{listen} is held by a Steadfast server")),
            false if server.is_at(listen) => Finding::ok("port", format!("{listen} is held by the server that is asked")),
            false => Finding::fail("port", format!("{listen} is taken by another program"), "choose another with --listen"),
        },
        Err(error) => Finding::fail("port", format!("{listen}: {error}"), "choose another address with --listen"),
    }
}

/// The port of their own for nodes, if there is to be one. While the server runs it is the server's.
pub(super) async fn messages(config: &Config) -> Option<Finding> {
    let listen = config.text(settings::MESSAGES_LISTEN)?.parse::<SocketAddr>().ok()?;
    let asks_who_connects = [settings::TOKEN_FILE, settings::MESSAGES_CLIENT_CA_FILE]
        .iter()
        .any(|file| config.text(file).is_some());
    if !listen.ip().is_loopback() && !asks_who_connects {
        let found = format!("{listen} can be reached from other machines, and there is no token and no messages.client_ca_file");
        return Some(Finding::fail("messages", found, "name a token file with --token-file, or have messages.listen on 127.0.0.1"));
    }
    Some(match tokio::net::TcpListener::bind(listen).await {
        Ok(_) => Finding::ok("messages", format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Finding::warn("messages", format!("{listen} is taken"), "if that is not this server, choose another as messages.listen")
        }
        Err(error) => Finding::fail("messages", format!("{listen}: {error}"), "choose another address as messages.listen"),
    })
}
