//! `steadfast key list`.

use super::{Context, left, told};
use crate::args::KeyList;
use crate::commands::pages::{self, Part};
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Key, OnExpire};

pub(super) async fn run(context: &Context, args: KeyList) -> Result<(), Error> {
    let KeyList { prefix, limit, cursor, all } = args;
    let filter = if prefix.is_empty() { Vec::new() } else { vec![("prefix", prefix)] };
    let whole = pages::read(&context.client, "/v1/keys", filter, Part { limit, cursor, all }).await?;
    if context.json {
        output::data(whole.to_json());
        return Ok(());
    }
    let keys: Vec<Key> = whole.each()?;
    if keys.is_empty() {
        output::say("no keys");
    } else {
        output::data(table(&keys, time::now()).to_text());
    }
    whole.hint_at_more();
    Ok(())
}

fn table(keys: &[Key], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::whole("KEY"),
        Column::whole("LEFT"),
        Column::whole("REVISION"),
        Column::cut("OWNER"),
        Column::spare("KIND"),
        Column::cut("ON EXPIRY"),
        Column::cut("VALUE"),
    ]);
    for key in keys {
        table.row(vec![
            Cell::styled(key.key.clone(), style::BOLD),
            left(key.expires_at.0, now).into(),
            key.revision.to_string().into(),
            key.owner.clone().unwrap_or_default().into(),
            if key.directory { "directory" } else { "" }.into(),
            key.on_expire.as_ref().map(briefly).unwrap_or_default().into(),
            key.value.as_str().into(),
        ]);
    }
    table
}

/// Who is told, without the query of an address, which may be long or a secret.
fn briefly(on_expire: &OnExpire) -> String {
    told(on_expire).split('?').next().unwrap_or_default().into()
}
