//! Two processes that talk, of which one is killed in the middle of a transfer: it is made once all the same.
//!
//! `cargo run --example messages` is the shop. It starts the bank as another process, kills it, and starts it again.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use steadfast::messages::Node;
use steadfast::messages::wire::http2::{Http2, ListenSettings, Settings};
use steadfast::{Ctx, Engine, Failure, Policy, SECOND, workflow};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

type AnyError = Box<dyn std::error::Error>;

#[derive(Serialize, Deserialize)]
struct Order {
    /// Where the bank is.
    bank: String,
    amount: u64,
}

/// In the shop: a call is a step. It is recorded, made again while the bank is away, and has the same request id each time.
#[workflow]
async fn order(ctx: Ctx, order: Order) -> Result<String, Failure> {
    ctx.call(order.bank, "transfer", &order.amount)
        .retry(Policy::exponential(SECOND / 10).max_delay(SECOND).max_attempts(100))
        .timeout(5 * SECOND)
        .await
}

/// In the bank: the answer to a call is a run. It is executed once, whatever becomes of the bank in between.
#[workflow]
async fn transfer(ctx: Ctx, amount: u64) -> Result<String, Failure> {
    let run = ctx.run_id().to_string();
    ctx.step("book", || async { Ok::<_, Failure>(ledger::write(&run, amount)?) }).await?;
    ctx.step("announce", || announce(amount)).await?; // what was booked is on record by now
    ctx.sleep(SECOND / 2).await?;
    Ok(format!("{amount} booked"))
}

async fn announce(amount: u64) -> Result<(), Failure> {
    println!("booked {amount}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    match std::env::args().nth(1) {
        Some(address) => bank(&address).await,
        None => shop().await,
    }
}

/// The bank, until it is killed.
async fn bank(address: &str) -> Result<(), AnyError> {
    let engine = Engine::open("bank")?
        .register(transfer)
        .messages(Node::builder().name("bank"))
        .answer("transfer")
        .start()
        .await?;
    let node = engine.node().ok_or("an engine with messages has a node")?;
    node.listen(address, ListenSettings::default()).await.map_err(|failure| failure.to_string())?;
    node.closed().await;
    Ok(())
}

async fn shop() -> Result<(), AnyError> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string(); // a port that is free
    let (said, mut says) = unbounded_channel();
    let mut bank = Bank::start(&address, &said)?;

    let wire = Arc::new(Http2::new(Settings::default()));
    let engine = Engine::open("shop")?
        .register(order)
        .messages(Node::builder().name("shop").wire(wire))
        .start()
        .await?;
    let run = engine.start("order", &Order { bank: format!("http://{address}"), amount: 7 }).await?;

    bank.said(&mut says, "booked 7").await;
    bank.kill()?;
    println!("shop: the bank is dead, in the middle of the transfer");
    let _bank = Bank::start(&address, &said)?;
    let receipt: String = run.result().await?;
    println!("shop: {receipt}");

    let bookings = ledger::last_run()?;
    println!("shop: the ledger has it {bookings} time(s)");
    assert_eq!(bookings, 1, "a transfer is made once");
    engine.shutdown().await;
    Ok(())
}

/// The other process.
struct Bank(Child);

impl Bank {
    fn start(address: &str, said: &UnboundedSender<String>) -> Result<Self, AnyError> {
        let mut bank = Command::new(std::env::current_exe()?).arg(address).stdout(Stdio::piped()).spawn()?;
        let (lines, said) = (BufReader::new(bank.stdout.take().ok_or("it has a pipe")?).lines(), said.clone());
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| said.send(line)));
        Ok(Bank(bank))
    }

    async fn said(&self, says: &mut UnboundedReceiver<String>, expected: &str) {
        while let Some(line) = says.recv().await {
            println!("bank: {line}");
            if line == expected {
                return;
            }
        }
    }

    fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        let _it_has_ended_already = self.kill();
    }
}

/// The books of the bank: a line per booking, and nothing that would keep one from being made twice.
mod ledger {
    use super::Write;
    use std::fs::{File, read_to_string};
    use std::io;

    const FILE: &str = "ledger.txt";

    pub(crate) fn write(run: &str, amount: u64) -> io::Result<()> {
        writeln!(File::options().append(true).create(true).open(FILE)?, "{run} {amount}")
    }

    /// How often the booking was made that was made last.
    pub(crate) fn last_run() -> io::Result<usize> {
        let text = read_to_string(FILE)?;
        let last = text.lines().last().unwrap_or_default();
        Ok(text.lines().filter(|line| *line == last).count())
    }
}
