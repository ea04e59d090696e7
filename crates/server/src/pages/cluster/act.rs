//! An instance is drained, or taken back.

use crate::app::App;
use crate::ask::{Command, Form, Nothing, Query};
use crate::pages::deed::{self, Deed};
use crate::pages::run::quoted;
use crate::problem::Problem;
use crate::shapes::{Cluster, Instance};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;

/// What can be done with an instance, if anything can.
pub(super) fn offered(cluster: &Cluster, instance: &Instance) -> Option<Deed> {
    let about = vec![("instance", instance.id.clone())];
    let id = quoted(&instance.id);
    if instance.draining {
        let what = "It takes shards again, as many as are its share.";
        return Some(Deed { about, ..Deed::new("undrain", "Take back", what, format!("steadfast cluster drain {id} --undo")) });
    }
    let what = "It gives its shards to the others and takes no more, until this is taken back. What it works on goes on there; then it can be ended.";
    let deed = Deed { about, ..Deed::new("drain", "Drain", what, format!("steadfast cluster drain {id}")) };
    let sure = "Yes, though no other instance takes its shards: what is in them waits until one comes, or this is taken back";
    let deed = if is_last(cluster, &instance.id) { deed.grave(sure.into()) } else { deed };
    instance.lives.then_some(deed)
}

/// Whether nobody would take the shards of that instance.
fn is_last(cluster: &Cluster, id: &str) -> bool {
    !cluster.instances.iter().any(|other| other.id != id && other.takes_shards())
}

/// What the form sends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Sent {
    verb: Verb,
    instance: String,
    reason: Option<String>,
    sure: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Drain,
    Undrain,
}

/// Does what the form says.
pub(in crate::pages) async fn change(
    State(app): State<Arc<App>>,
    _: Query<Nothing>,
    command: Command,
    Form(Sent { verb, instance, reason, sure }): Form<Sent>,
) -> Result<Response, Problem> {
    let draining = matches!(verb, Verb::Drain);
    if draining && is_last(&app.cluster().await?, &instance) {
        deed::is_sure(sure.as_deref())?;
    }
    app.drain(&instance, draining, &deed::origin(command, reason)?).await?;
    Ok(deed::see("/cluster"))
}
