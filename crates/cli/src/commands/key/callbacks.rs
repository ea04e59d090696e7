//! `steadfast key callbacks`: expiries that are still to be told.

use super::Context;
use crate::args::KeyList;
use crate::commands::pages::{self, Part};
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Callback, Failure};

pub(super) async fn run(context: &Context, args: KeyList) -> Result<(), Error> {
    let KeyList { prefix, limit, cursor, all } = args;
    let filter = if prefix.is_empty() { Vec::new() } else { vec![("prefix", prefix)] };
    let whole = pages::read(&context.client, "/v1/callbacks", filter, Part { limit, cursor, all }).await?;
    if context.json {
        output::data(whole.to_json());
        return Ok(());
    }
    let callbacks: Vec<Callback> = whole.each()?;
    if callbacks.is_empty() {
        output::say("all is told");
    } else {
        output::data(table(&callbacks, time::now()).to_text());
    }
    whole.hint_at_more();
    Ok(())
}

fn table(callbacks: &[Callback], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::whole("KEY"),
        Column::whole("REVISION"),
        Column::whole("ENDED"),
        Column::cut("TARGET"),
        Column::whole("ATTEMPT"),
        Column::whole("NEXT"),
        Column::cut("WHY"),
    ]);
    for callback in callbacks {
        let of = callback.of.map(|of| format!(" of {of}")).unwrap_or_default();
        table.row(vec![
            Cell::styled(callback.key.clone(), style::BOLD),
            callback.revision.to_string().into(),
            time::relative(callback.ended_at.0, now).into(),
            callback.target.clone().into(),
            format!("{}{of}", callback.attempt).into(),
            callback.next_attempt_at.map_or_else(|| "now".into(), |at| time::relative(at.0, now)).into(),
            callback.failure.as_ref().map(why).unwrap_or_default().into(),
        ]);
    }
    table
}

/// Why an attempt has failed. The last cause is the one that people know: "Connection refused".
fn why(failure: &Failure) -> String {
    let cause = failure.causes.last().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{}{cause} [{}]", failure.message, failure.code)
}
