//! `steadfast call` and `steadfast tell`: a node for one request.

use crate::args::{Common, Message};
use crate::client::{fresh_key, json_argument, token};
use crate::commands::run::pretty;
use crate::config::{Config, settings};
use crate::error::Error;
use crate::output;
use crate::wires::http2;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steadfast_kernel::{Class, Code, Failure, code};
use steadfast_messaging::wire::http2::Http2;
use steadfast_messaging::wire::{Link, Wire};
use steadfast_messaging::{Node, Peer};

/// On whose behalf the command line sends. It is always the same, so that a request is known again by its id; the node itself has another name each time, so that several are connected at once.
const BEHALF: &str = "cli";

pub(crate) async fn call(common: &Common, args: Message) -> Result<(), Error> {
    let Errand { node, peer, payload, was_linked } = Errand::of(common, &args)?;
    let mut call = node.call(Peer::at(&peer), &*args.route, payload).timeout(args.timeout).on_behalf_of(BEHALF);
    if let Some(id) = &args.id {
        call = call.id(id);
    }
    let answer = call.await.map_err(|failure| explained(&failure, &was_linked))?;
    let answer = String::from_utf8_lossy(&answer);
    output::data(if common.json { answer.into_owned() } else { pretty(&answer) });
    Ok(())
}

pub(crate) async fn tell(common: &Common, args: Message) -> Result<(), Error> {
    let Errand { node, peer, payload, was_linked } = Errand::of(common, &args)?;
    let mut tell = node
        .tell(Peer::at(&peer), &*args.route, payload)
        .timeout(args.timeout)
        .on_behalf_of(BEHALF)
        .unposted();
    if let Some(id) = &args.id {
        tell = tell.id(id);
    }
    tell.await.map_err(|failure| explained(&failure, &was_linked))?;
    output::hint(format_args!("{peer} has taken it"));
    Ok(())
}

/// What a request is sent with.
struct Errand {
    node: Node,
    peer: String,
    payload: String,
    was_linked: Arc<AtomicBool>,
}

impl Errand {
    fn of(common: &Common, args: &Message) -> Result<Self, Error> {
        let config = Config::load(&common.given())?;
        let payload = match &args.input {
            Some(input) => json_argument("INPUT", input)?.get().to_owned(),
            None => "null".into(),
        };
        let peer = if args.peer.contains("://") { args.peer.clone() } else { format!("http://{}", args.peer) };
        let peer = peer.trim_end_matches('/').to_owned();
        if peer.contains('@') {
            return Err(Error::Usage("the address names a user; a node is shown a token by --token-file".into())); // it may be a password: it is not repeated
        }
        let is_server = config.text(settings::SERVER).is_some_and(|server| server.trim_end_matches('/') == peer);
        let mut wire = http2(&config).map_err(Error::Usage)?;
        if let Some(token) = token(&config)?.filter(|_| is_server || common.token_file.is_some()) {
            wire = wire.token(&token).map_err(|failure| Error::Usage(failure.message))?;
        }
        let was_linked = Arc::new(AtomicBool::new(false));
        let wire = Noted { wire, was_linked: Arc::clone(&was_linked) };
        let node = Node::builder().name(format!("{BEHALF}-{}", fresh_key()?)).wire(Arc::new(wire)).build();
        Ok(Errand { node: node.map_err(|failure| Error::Failed(failure.message))?, peer, payload, was_linked })
    }
}

/// A wire that notes whether somebody was reached.
struct Noted {
    wire: Http2,
    was_linked: Arc<AtomicBool>,
}

impl Wire for Noted {
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>> {
        let (link, was_linked) = (self.wire.connect(address), Arc::clone(&self.was_linked));
        link.inspect_ok(move |_| was_linked.store(true, Ordering::Relaxed)).boxed()
    }
}

/// What is said of a node that speaks with us and does not let us in. What TLS does not let through is said otherwise.
const REFUSED: &str = "refuses the link";

/// What the command ends with.
fn explained(failure: &Failure, was_linked: &AtomicBool) -> Error {
    let was_linked = was_linked.load(Ordering::Relaxed);
    let code = if was_linked { code::MESSAGE_FAILED } else { code::PEER_UNREACHABLE };
    let message = output::plain(&failure.message);
    if !was_linked && failure.code == Code::InvalidArgument {
        return Error::Usage(message);
    }
    // That no attempt is left does not mean that it will not work later.
    let class = if failure.max_attempts.is_some() { Class::Transient } else { failure.class };
    let mut text = format!("{message} ({}, {}) [{code}]\n  about this error: docs/errors/{code}.md", class.as_str(), failure.code.as_str());
    for cause in failure.causes.iter().take(5) {
        text += &format!("\n  caused by: {}", output::plain(cause));
    }
    match (was_linked, failure.code) {
        (false, Code::PermissionDenied) if failure.message.contains(REFUSED) => {
            Error::Failed(format!("{text}\n  show the token of the node by --token-file, or by STEADFAST_TOKEN if it is the server's"))
        }
        (false, Code::PermissionDenied) => Error::Failed(format!(
            "{text}\n  messages.ca_file says whom to trust at https:// addresses, messages.cert_file what this side shows (STEADFAST_MESSAGES_CA_FILE, STEADFAST_MESSAGES_CERT_FILE)"
        )),
        (false, _) => Error::Unreachable(text),
        (true, _) => Error::Failed(text),
    }
}
