//! What the server says of itself: what runs where, and that it stops. For programs it is in the log, so that every line is JSON.

use crate::config::{Config, settings, without_user};
use crate::output::{self, style};
use std::fmt::Arguments;
use std::net::SocketAddr;
use std::path::Path;
use steadfast_kernel::InstanceId;
use steadfast_store::Member;

pub(super) struct Herald {
    json: bool,
}

impl Herald {
    pub(super) fn new(config: &Config) -> Self {
        Herald { json: config.text(settings::LOG_FORMAT) == Some("json") }
    }

    /// It answers from here on.
    pub(super) fn ready(&self, config: &Config, addr: SocketAddr, data: &Path, (folder, workflows): (&Path, usize)) {
        let address = format!("http://{addr}");
        let (data, definitions, version) = (data.display(), folder.display(), env!("CARGO_PKG_VERSION"));
        let postgres = config.text(settings::POSTGRES_URL).map(without_user);
        if self.json {
            tracing::info!(address, postgres, %data, %definitions, workflows, version, "ready");
            return;
        }
        output::say(format_args!("{} {version} is ready", style::paint(style::BOLD, "steadfast")));
        line("address", format_args!("{address}"));
        match postgres {
            Some(postgres) => line("postgres", format_args!("{postgres}")),
            None => line("data", format_args!("{data}")),
        }
        line("definitions", format_args!("{definitions} ({workflows} in use)"));
    }

    /// Other nodes connect there.
    pub(super) fn takes_messages(&self, address: &str, name: &str) {
        if self.json {
            tracing::info!(address, name, "takes messages");
            return;
        }
        line("messages", format_args!("{address}, as node {name}"));
        line("stop", format_args!("Ctrl-C"));
    }

    /// It shares the database with others.
    pub(super) fn takes_part(&self, member: &Member) {
        let Member { id, address, .. } = member;
        if self.json {
            tracing::info!(instance = id, address, "shares the database with other instances");
            return;
        }
        line("instance", format_args!("{id}, reached at {address}"));
    }

    /// It shares tenants with others, or mirrors what it has.
    pub(super) fn shares(&self, config: &Config, instance: &InstanceId, mirror_only: bool) {
        let redis = without_user(config.text(settings::REDIS_URL).unwrap_or_default());
        if mirror_only && self.json {
            tracing::info!(redis, %instance, "mirrors plans, tasks and locks");
            return;
        }
        if mirror_only {
            return line("redis", format_args!("{redis}, a mirror only, as instance {instance}"));
        }
        if self.json {
            tracing::info!(redis, %instance, "shares tenants with other instances");
            return;
        }
        line("redis", format_args!("{redis}, as instance {instance}"));
    }

    pub(super) fn say(&self, text: &str) {
        if self.json { tracing::info!("{text}") } else { output::say(text) }
    }
}

fn line(name: &str, text: Arguments<'_>) {
    output::say(format_args!("  {}{text}", style::paint(style::FAINT, format_args!("{name:<13}"))));
}
