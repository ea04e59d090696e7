//! The console: pages for people, rendered here and kept up to date in the browser.
//!
//! Every page is complete without a script. `assets/` has the one stylesheet and the modules: they follow the change feed and, when something has happened,
//! ask for the same page again and put what differs in its place. So there is one way to render anything, and it is in Rust.
//!
//! Nothing on a page is trusted: ids, messages and payloads are the users' own. They are escaped where they are written, and the content security policy
//! lets nothing run that is not an asset of ours.
//!
//! Tested by `crates/cli/tests/it/console.rs`.

mod assets;
mod cluster;
mod data;
mod deed;
mod keys;
mod layout;
mod letters;
mod list;
mod mark;
mod messages;
mod plans;
mod problem;
mod run;
mod shared;
mod tenants;
mod words;
mod workers;
mod workflows;

pub(crate) use problem::{Reader, problem, reader};

use crate::app::App;
use axum::Router;
use axum::routing::get;
use std::sync::Arc;

/// Where assets are. They say nothing about the server, and are given to everybody: the page that asks for a token has a style, too.
pub(crate) const ASSETS: &str = "/assets/";

/// Every page.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(list::page))
        .route("/runs/{*id}", get(run::page))
        .route("/plans", get(plans::list))
        .route("/plans/{*id}", get(plans::show).post(plans::change))
        .route("/tenants/{*tenant}", get(tenants::show).post(tenants::change))
        .route("/locks", get(plans::locks).post(plans::change_lock))
        .route("/keys", get(keys::list))
        .route("/keys/{*key}", get(keys::show))
        .route("/callbacks", get(keys::callbacks))
        .route("/letters", get(letters::page).post(letters::change))
        .route("/messages", get(messages::page))
        .route("/workers", get(workers::page))
        .route("/workflows", get(workflows::page))
        .route("/cluster", get(cluster::page).post(cluster::change))
        .route("/assets/{version}/{name}", get(assets::asset))
}
