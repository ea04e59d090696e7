//! `steadfast node …`.

use crate::args::{Common, NodeCommand};
use crate::client::Client;
use crate::config::Config;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{ConnectedNode, Messages};

pub(crate) async fn run(common: &Common, command: NodeCommand) -> Result<(), Error> {
    let client = Client::new(&Config::load(&common.given())?)?;
    let answer = client.get("/v1/messages", Vec::new()).await?;
    if common.json {
        output::data(answer.text);
        return Ok(());
    }
    let messages = answer.read::<Messages>()?;
    match command {
        NodeCommand::List if messages.connections.is_empty() => {
            output::say("no nodes are connected; docs/guide/messages.md says how they do");
        }
        NodeCommand::List => output::data(list(&messages.connections, time::now()).to_text()),
        NodeCommand::Show => output::data(show(&messages).to_text()),
    }
    Ok(())
}

fn list(connections: &[ConnectedNode], now: Timestamp) -> Table {
    let mut table = Table::new(vec![Column::whole("NODE"), Column::whole("ADDRESS"), Column::whole("SINCE"), Column::spare("KNOWN BY")]);
    for node in connections {
        table.row(vec![
            Cell::styled(node.name.clone(), style::BOLD),
            node.address.clone().into(),
            time::relative(node.since.0, now).into(),
            node.known_by().into(),
        ]);
    }
    table
}

fn show(messages: &Messages) -> Table {
    let Messages { inbox, totals, .. } = messages;
    let both = |calls: u64, tells: u64| format!("{calls} calls, {tells} tells");
    let routes = if messages.routes.is_empty() { "none".into() } else { messages.routes.join(", ") };
    let facts = [
        ("node", messages.node.clone().unwrap_or_else(|| "none: this server takes no messages".into())),
        ("routes", routes),
        ("connected", format!("{} nodes", messages.connections.len())),
        ("under way here", format!("{} requests, {} streams", messages.requests, messages.streams)),
        ("wait for an answer", format!("{} requests", messages.calls)),
        ("wait to be written", format!("{} bytes", messages.outgoing_bytes)),
        ("inbox", format!("{} run, {} finished, {} bytes", inbox.running, inbox.finished, inbox.bytes)),
        ("forgotten early", inbox.forgotten_early.to_string()),
        ("received", both(totals.calls_received, totals.tells_received)),
        ("sent", both(totals.calls_sent, totals.tells_sent)),
        ("sent once more", totals.retried.to_string()),
        ("failed for good", both(totals.calls_failed, totals.tells_failed)),
        ("dead letters", format!("{} since the start, {} could not be kept", totals.letters, totals.letters_lost)),
    ];
    let mut table = Table::new(vec![Column::whole("WHAT"), Column::spare("HOW MUCH")]);
    facts.into_iter().for_each(|(what, much)| table.row(vec![what.into(), much.into()]));
    table
}
