//! `steadfast serve --demo`: example workflows against a flaky shop that it brings along.

mod carts;
mod shop;
mod tills;

use crate::config::{Config, Origin, settings};
use crate::error::Error;
use crate::output::{self, style};
use carts::{CARTS, Cart};
use serde_json::json;
use shop::Shop;
use std::net::SocketAddr;
use std::path::Path;
use steadfast_kernel::{Answer, Payload};
use steadfast_runtime::{Engine, Start};

/// Where values came from that the demonstration has set.
const FROM: Origin = Origin::Flag("--demo");

/// The folder of everything, unless somebody has said otherwise.
const FOLDER: &str = "demo-data";

/// The definitions, which are written into the folder where they are not there already: they may be changed while the server runs.
const DEFINITIONS: [(&str, &str); 7] = [
    ("checkout.yaml", include_str!("definitions/checkout.yaml")),
    ("newsletter.yaml", include_str!("definitions/newsletter.yaml")),
    ("bundle.yaml", include_str!("definitions/bundle.yaml")),
    ("report.yaml", include_str!("definitions/report.yaml")),
    ("reminder.yaml", include_str!("definitions/reminder.yaml")),
    ("left-cart.yaml", include_str!("definitions/left-cart.yaml")),
    ("switch.yaml", include_str!("definitions/switch.yaml")),
];

/// What the demonstration brings along; it ends when this is dropped.
pub(crate) struct Demo {
    shop: Shop,
}

/// A run that is started, and what there is to see of it.
struct Example {
    id: &'static str,
    workflow: &'static str,
    input: serde_json::Value,
    shows: &'static str,
}

impl Demo {
    /// Before anything is opened: opens the shop, and sets folders and variables that nobody has set.
    ///
    /// # Errors
    /// If the shop cannot be opened, or the definitions cannot be written.
    pub(crate) async fn bring(config: &mut Config) -> Result<Self, Error> {
        let shop = Shop::open()
            .await
            .map_err(|error| Error::failed("cannot open the shop of the demonstration", &error))?;
        config.set_if_unset(settings::DATA, FOLDER.into(), FROM);
        config.set_if_unset(settings::DEFINITIONS, format!("{FOLDER}/definitions"), FROM);
        config.set_var("shop", json!(format!("http://{}", shop.addr)), FROM);
        if let Some(folder) = config.path(settings::DEFINITIONS) {
            write(&folder).map_err(|error| Error::Failed(format!("cannot write the definitions into {}: {error}", folder.display())))?;
        }
        Ok(Demo { shop })
    }

    /// Once the server answers: starts the runs and the plan and puts the keys that are not there yet, and says what to look at.
    ///
    /// # Errors
    /// If a run or the plan cannot be started, or a key cannot be put.
    pub(crate) async fn begin(&self, engine: &Engine, addr: SocketAddr) -> Result<(), Error> {
        let mut found = 0;
        let examples = examples();
        for example in &examples {
            let start = Start {
                workflow: example.workflow.into(),
                input: Payload::json(example.input.to_string()),
                id: Some(example.id.into()),
                deadline: None,
                tenant: Some("demo".into()),
                limits: Vec::new(),
            };
            let started = engine.start(start).await;
            let (_, answer) = started.map_err(|error| Error::failed("cannot start a run of the demonstration", &error))?;
            found += usize::from(answer != Answer::Created);
        }
        carts::put(engine, self.shop.addr).await?;
        tills::begin(engine).await?;
        tell(&examples, found, addr);
        Ok(())
    }
}

fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in DEFINITIONS {
        let path = folder.join(name);
        if !path.exists() {
            std::fs::write(path, text)?;
        }
    }
    Ok(())
}

fn examples() -> Vec<Example> {
    let readers: Vec<String> = ["ada", "ben", "cleo", "dan", "eva", "finn", "gil"]
        .iter()
        .map(|name| format!("{name}@example.com"))
        .collect();
    vec![
        Example {
            id: "demo/order-1",
            workflow: "checkout",
            input: json!({ "order": "order-1", "amount": 40 }),
            shows: "the payment service is down for two calls; then all goes well",
        },
        Example {
            id: "demo/order-2",
            workflow: "checkout",
            input: json!({ "order": "order-2", "amount": 250 }),
            shows: "a large order waits for a person",
        },
        Example {
            id: "demo/order-3",
            workflow: "checkout",
            input: json!({ "order": "order-3", "amount": 70, "card": "stolen" }),
            shows: "the card is refused, and what was reserved is released",
        },
        Example {
            id: "demo/newsletter",
            workflow: "newsletter",
            input: json!({ "readers": readers }),
            shows: "a step per reader, three at a time; every third call fails",
        },
        Example {
            id: "demo/bundle",
            workflow: "bundle",
            input: json!({ "orders": ["order-4", "order-5"] }),
            shows: "two checkouts as runs of their own",
        },
        Example { id: "demo/report", workflow: "report", input: json!(null), shows: "an answer that cannot be read: a dead letter" },
        Example {
            id: "demo/reminder",
            workflow: "reminder",
            input: json!({ "to": "ada@example.com" }),
            shows: "sleeps for ten minutes, also while the server is stopped",
        },
    ]
}

/// Says what to look at.
fn tell(examples: &[Example], found: usize, addr: SocketAddr) {
    let program = std::env::args().next().unwrap_or_else(|| "steadfast".into());
    let page = style::paint(style::BOLD, format!("http://{addr}/"));
    match found {
        0 => output::say(format_args!("\n{} runs were started:", examples.len())),
        found => output::say(format_args!("\n{found} runs are here from the last time, and have gone on where they were:")),
    }
    for Example { id, shows, .. } in examples {
        output::say(format_args!("  {id:<16} {}", style::paint(style::FAINT, shows)));
    }
    output::say("\nand these keys are put, which expire:");
    for Cart { key, shows, .. } in &CARTS {
        output::say(format_args!("  {key:<16} {}", style::paint(style::FAINT, shows)));
    }
    output::say("\nand a plan is under way, or is paused if the server was started again:");
    output::say(format_args!("  {:<16} {}", tills::PLAN, style::paint(style::FAINT, tills::SHOWS)));
    output::say(format_args!("\nLook at them, live: {page}\nor in another terminal:"));
    let server = if addr.port() == 7373 { String::new() } else { format!(" --server http://{addr}") };
    for command in [
        "run list",
        "run show demo/order-1",
        "run why demo/order-2",
        "run signal demo/order-2 ok --payload '{\"approved\":true}'",
        "letter list",
        "key list demo/",
        "key watch demo/",
        "plan show demo/switch --watch",
        "tenant retry oslo --reason 'counted again'",
        "run start checkout --input '{\"order\":\"mine\",\"amount\":12}' --wait",
    ] {
        output::say(format_args!("  {program} {command}{server}"));
    }
    output::say("\nStop it with Ctrl-C, or kill it, in the middle of everything, and start it again: nothing is lost.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_right() {
        for (file, text) in DEFINITIONS {
            let checked = steadfast_definitions::check(file, text);
            assert!(checked.is_ok(), "{:#?}", checked.err());
        }
    }
}
