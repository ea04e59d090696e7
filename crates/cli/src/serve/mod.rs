//! `steadfast serve`: the store, the engine, the definitions and the HTTP server in one process.

mod catalogue;
mod cluster;
mod definitions;
mod herald;
mod limits;
mod logs;
mod measure;
mod messages;
mod sharing;
mod signals;
mod traces;

use crate::args::{Common, Serve};
use crate::config::{Config, Origin, of_postgres, settings};
use crate::demo::Demo;
use crate::error::{Error, chain};
use definitions::Definitions;
use herald::Herald;
use signals::Signals;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::code;
use steadfast_messaging::Node;
use steadfast_runtime::{Builder, Engine};
use steadfast_server::{Links, Parts, Server, Socket};
use steadfast_store::Store;
use steadfast_store_embedded::Embedded;
use steadfast_store_postgres::Postgres;
use traces::Traces;

pub(crate) fn run(common: &Common, args: &Serve) -> Result<(), Error> {
    let mut config = Config::load(&args.settings.given(common))?;
    logs::install(&config)?;
    steadfast_tls::install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::failed("cannot start", &error))?;
    runtime.block_on(Box::pin(async {
        let demo = if args.demo { Some(Demo::bring(&mut config).await?) } else { None };
        serve(&config, demo).await
    }))
}

async fn serve(config: &Config, demo: Option<Demo>) -> Result<(), Error> {
    limits::raise_open_files();
    let herald = Herald::new(config);
    let caller = Arc::new(limits::of_caller(config)?);
    let mut signals = Signals::new().map_err(|error| Error::failed("cannot listen for signals", &error))?;
    let data = config.path(settings::DATA).unwrap_or_else(|| settings::DATA.default.into());
    let server = limits::of_server(config)?;
    let socket = Socket::bind(&server).await.map_err(|error| with_code(&error, error.code()))?;
    let Kept { store, name, database } = store(config, &data).await?;
    let folder = folder(config)?;
    let post = steadfast::messages::Post::default();
    let node = messages::node(config, name, post.clone())?;
    let mut definitions = Definitions::open(&folder, vars(config), Arc::clone(&store), node.clone()).await?;
    let metrics = measure::install(); // before the engine, which counts for whoever is there when it starts
    let traces = Traces::start(config)?;
    let mut builder = Builder::new(store);
    builder.observer = traces.as_ref().map(Traces::observer);
    builder.config = limits::of_engine(config)?;
    builder.caller = Some(caller);
    builder.redeliver = Some(Arc::new(post.clone()));
    builder.registry = definitions.registry();
    let mirrored_as = match (&database, config.text(settings::REDIS_URL)) {
        (Some(database), Some(_)) => Some(messages::kept(&data, Some(database)).await?),
        _ => None,
    };
    builder.sharing = sharing::of_sharing(config, &data, mirrored_as.as_deref())?;
    if let Some(database) = &database {
        builder.cluster = Some(cluster::of_cluster(config, database, socket.addr()).await?);
    }
    let member = builder.cluster.as_ref().map(|cluster| cluster.member.clone());
    let shared = builder.sharing.as_ref().map(|sharing| (sharing.instance.clone(), sharing.mirror_only));
    let engine = builder.start().await.map_err(|error| with_code(&error, error.code()))?;
    post.connect(&engine, &node);
    definitions.answer(&engine);
    cluster::answer(&node, &engine);
    if config.text(settings::WORKERS_ACCEPT) == Some("yes") {
        steadfast::worker::take_workers_if(&node, &engine, messages::may_host);
    }
    let parts = Parts { catalogue: Some(Arc::new(definitions.catalogue())), metrics, node: Some(node.clone()) };
    let server = Server::on(socket, server, engine.clone(), parts);
    let own_port = match messages::listen(config, &node).await {
        Ok(own_port) => own_port,
        Err(error) => {
            engine.shutdown().await;
            return Err(error);
        }
    };
    let (addr, links) = (server.addr(), server.links());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move { drop(stopped.await) }));
    herald.ready(config, addr, &data, (&folder, definitions.count()));
    herald.takes_messages(&own_port.unwrap_or_else(|| format!("http://{addr}")), node.name());
    if let Some(member) = &member {
        cluster::warn_if_near(member);
        herald.takes_part(member);
    }
    if let Some((instance, mirror_only)) = &shared {
        herald.shares(config, instance, *mirror_only);
    }
    if let Some(demo) = &demo {
        demo.begin(&engine, addr).await?;
    }
    signals.until_stop(&mut definitions, &engine).await;
    herald.say("stopping: what is in flight is let end; once more to stop at once");
    let ended = async {
        engine.stops_soon().await; // before its address is free
        drop(stop);
        ended(serving, engine, (node, links), traces).await;
    };
    tokio::select! {
        biased;
        () = signals.stop() => {
            herald.say("stopped at once; what was in flight is done again after the next start");
            Err(Error::Said(130))
        }
        () = ended => {
            herald.say("stopped; everything is kept");
            Ok(())
        }
    }
}

/// How long other nodes may take to read what they were answered before the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Lets requests and then attempts end, has the calls of other nodes answered that end with them, and sends what is left of traces.
async fn ended(serving: tokio::task::JoinHandle<()>, engine: Engine, (node, links): (Node, Links), traces: Option<Traces>) {
    let patience = engine.config().shutdown_grace * 2;
    let attempts = async {
        let _it_has_ended = serving.await;
        engine.shutdown().await;
    };
    node.close_after(attempts, patience).await; // workers say what became of their attempts over its streams
    if tokio::time::timeout(LAST_WORDS, links.closed()).await.is_err() {
        tracing::warn!(links = links.count(), "nodes have not read what they were answered");
    }
    if let Some(traces) = traces {
        traces.finish().await;
    }
}

fn with_code(error: &(dyn std::error::Error + 'static), code: &str) -> Error {
    Error::Failed(format!("{} [{code}]\n  about this error: docs/errors/{code}.md", chain(error)))
}

fn unusable(why: impl fmt::Display) -> Error {
    let code = code::NODE_UNUSABLE;
    Error::Failed(format!("the server cannot take messages: {why} [{code}]\n  about this error: docs/errors/{code}.md"))
}

/// Where everything is kept.
struct Kept {
    store: Arc<dyn Store>,
    /// What the node is called.
    name: String,
    /// The same if it is a database, which may be shared.
    database: Option<Postgres>,
}

/// Where everything is kept: the database if there is one, and the data folder otherwise.
async fn store(config: &Config, data: &Path) -> Result<Kept, Error> {
    let told = |error: steadfast_store::Error| with_code(&error, error.code());
    let Some(settings) = of_postgres(config) else {
        let store = Embedded::open(data).map_err(told)?;
        return Ok(Kept { store: Arc::new(store), name: messages::name(config, data, None).await?, database: None });
    };
    let store = Postgres::open(settings).await.map_err(told)?;
    let name = messages::name(config, data, Some(&store)).await?;
    Ok(Kept { store: Arc::new(store.clone()), name, database: Some(store) })
}

/// The folder of the definitions. The usual one is made if it is not there, so that files can be put into it while the server runs.
fn folder(config: &Config) -> Result<PathBuf, Error> {
    let folder = config.path(settings::DEFINITIONS).unwrap_or_else(|| settings::DEFINITIONS.default.into());
    if folder.is_dir() {
        return Ok(folder);
    }
    let name = folder.display();
    match config.origin(settings::DEFINITIONS) {
        Origin::Default => match std::fs::create_dir_all(&folder) {
            Ok(()) => Ok(folder),
            Err(error) => Err(Error::Failed(format!("cannot make the folder {name}: {error}"))),
        },
        origin => Err(Error::Usage(format!("there is no folder {name} ({origin}); make it, or name another with --definitions"))),
    }
}

fn vars(config: &Config) -> serde_json::Map<String, serde_json::Value> {
    config.vars.iter().map(|(name, set)| (name.clone(), set.value.clone())).collect()
}
