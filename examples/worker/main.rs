//! A worker: a process with the code of a workflow that hosts runs for a server.
//!
//! `cargo run --example worker -- http://127.0.0.1:7373 w1` works for that `steadfast serve`; see README.md beside this file. Without an address it shows by itself what happens when
//! a worker is killed: it is the server, and starts two workers as processes of their own.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

mod work;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use steadfast::messages::Node;
use steadfast::messages::wire::http2::ListenSettings;
use steadfast::worker::Parted;
use steadfast::{Engine, Run};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use work::{Parcel, work};

type AnyError = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let mut args = std::env::args().skip(1);
    match (args.next(), args.next()) {
        (Some(server), name) => {
            let name = name.unwrap_or_else(|| format!("worker-{}", std::process::id()));
            match work(&server, &name).await.map_err(|failure| failure.to_string())? {
                Parted::Drained => Ok(()),
                parted => Err(parted.to_string().into()),
            }
        }
        (None, _) => show().await,
    }
}

/// A server without any code, and two workers, of which one is killed.
async fn show() -> Result<(), AnyError> {
    let engine = Engine::in_memory()
        .messages(Node::builder().name("server"))
        .workers()
        .brought_by_workers("parcel") // so that runs can be started before the first worker comes
        .start()
        .await?;
    let node = engine.node().ok_or("an engine with messages has a node")?;
    let listens = node.listen("127.0.0.1:0", ListenSettings::default()).await.map_err(|failure| failure.to_string())?;
    let server = format!("http://{listens}");

    let early = start(&engine, "early").await?;
    until(&early, "NO_WORKER").await?;
    println!("server: nobody has the code, so the run waits");

    let (said, mut says) = unbounded_channel();
    let mut workers = vec![Process::start(&server, "w1", &said)?];
    println!("server: {}", early.result::<String>().await?);

    let run = start(&engine, "late").await?;
    hear(&mut says, "w1: packs late").await?;
    workers.push(Process::start(&server, "w2", &said)?);
    hear(&mut says, "w2: works").await?;
    workers[0].kill()?;
    println!("server: w1 is dead, in the middle of a step");
    hear(&mut says, "w2: packs late again").await?;
    println!("server: {}", run.result::<String>().await?);
    engine.shutdown().await;
    Ok(())
}

async fn start(engine: &Engine, order: &str) -> Result<Run, AnyError> {
    Ok(engine.start("parcel", &Parcel { order: order.into(), pack_ms: 500 }).await?)
}

/// Waits until the run waits for that reason.
async fn until(run: &Run, reason: &str) -> Result<(), AnyError> {
    while !run.view().await?.waits.iter().any(|wait| wait.reason() == reason) {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Passes on what the workers say, up to that line.
async fn hear(says: &mut UnboundedReceiver<String>, expected: &str) -> Result<(), AnyError> {
    while let Some(line) = says.recv().await {
        println!("{line}");
        if line == expected {
            return Ok(());
        }
    }
    Err(format!("nobody said: {expected}").into())
}

/// A worker that is a process of its own, ended when it is dropped.
struct Process(Child);

impl Process {
    fn start(server: &str, name: &str, said: &UnboundedSender<String>) -> Result<Self, AnyError> {
        let mut child = Command::new(std::env::current_exe()?).args([server, name]).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("it has a pipe")?).lines();
        let (said, name) = (said.clone(), name.to_owned());
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| said.send(format!("{name}: {line}"))));
        Ok(Process(child))
    }

    fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _it_has_ended_already = self.kill();
    }
}
