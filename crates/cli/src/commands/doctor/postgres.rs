//! PostgreSQL: can it be reached, does it let us in, and is the schema ours?

use super::Finding;
use crate::config::{self, Config, of_postgres};
use crate::error::chain;
use steadfast_store::Error;
use steadfast_store_postgres::{Look, look};

pub(super) async fn check(config: &Config) -> Option<Finding> {
    let settings = of_postgres(config)?;
    let url = config::without_user(&settings.url);
    Some(match look(settings).await {
        Ok(Some(Look { schema, shards })) => Finding::ok("store", format!("{url}: schema version {schema}, {shards} shards")),
        Ok(None) => Finding::ok("store", format!("{url}: nothing there yet; the first start makes the tables")),
        Err(error) => Finding::fail("store", config::without_user(&chain(&error)), help(&error)),
    })
}

fn help(error: &Error) -> String {
    format!("see docs/errors/{}.md; docs/operate/postgres.md has the settings and the rights", error.code())
}
