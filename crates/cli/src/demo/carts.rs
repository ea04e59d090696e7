//! Carts that somebody has left: keys that expire, and what happens then.

use crate::error::Error;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use steadfast_kernel::{KeyName, Payload, Target, WorkflowName};
use steadfast_runtime::{Engine, Put};

/// A key that is put, and what there is to see of it.
pub(super) struct Cart {
    pub(super) key: &'static str,
    ttl: Duration,
    then: Then,
    pub(super) shows: &'static str,
}

/// What happens when it expires.
enum Then {
    /// A run of that workflow is started.
    Start(&'static str),
    /// That path of the shop is called.
    Call(&'static str),
}

pub(super) const CARTS: [Cart; 4] = [
    Cart {
        key: "demo/carts/ada",
        ttl: Duration::from_secs(20),
        then: Then::Start("left-cart"),
        shows: "expires after 20 s, which starts a run that sends a mail",
    },
    Cart {
        key: "demo/carts/ben",
        ttl: Duration::from_secs(30),
        then: Then::Call("cart-left"),
        shows: "expires after 30 s; the shop is told, and does not listen for two calls",
    },
    Cart {
        key: "demo/carts/cleo",
        ttl: Duration::from_secs(600),
        then: Then::Call("cart-left"),
        shows: "expires after ten minutes; renew it, or delete it",
    },
    Cart {
        key: "demo/carts/dan",
        ttl: Duration::from_secs(10),
        then: Then::Call("cart-moved"),
        shows: "expires after 10 s, but nobody wants to know: a dead letter",
    },
];

/// Puts the carts that are not there.
///
/// # Errors
/// If one cannot be put.
pub(super) async fn put(engine: &Engine, shop: SocketAddr) -> Result<(), Error> {
    for cart in &CARTS {
        let cannot = |error: &(dyn std::error::Error + 'static)| Error::failed("cannot put a key of the demonstration", error);
        let key = KeyName::new(cart.key).map_err(|error| cannot(&error))?;
        if engine.key(&key).await.map_err(|error| cannot(&error))?.is_some() {
            continue;
        }
        let who = cart.key.rsplit('/').next().unwrap_or_default();
        let on_expire = match cart.then {
            Then::Call(path) => Target::Url(format!("http://{shop}/{path}")),
            Then::Start(workflow) => Target::StartRun {
                workflow: WorkflowName::new(workflow).map_err(|error| cannot(&error))?,
                input: Payload::json(json!({ "to": format!("{who}@example.com") }).to_string()),
            },
        };
        let put = Put {
            value: Payload::json(json!({ "items": ["tea", "biscuits"] }).to_string()),
            ttl: cart.ttl,
            owner: None,
            directory: false,
            on_expire: Some(on_expire),
            if_revision: None,
        };
        engine.put_key(&key, put).await.map_err(|error| cannot(&error))?;
    }
    Ok(())
}
