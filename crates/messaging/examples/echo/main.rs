//! How fast the bare wire is: packets of 250 bytes there and back on the loopback, over a link and as a gRPC call each.
//!
//! `cargo run --release -p steadfast-messaging --example echo -- [seconds]`
#![allow(clippy::print_stdout, reason = "this is a program")]

mod stream;
mod unary;

use bytes::Bytes;
use std::time::Duration;

/// How many bytes a packet has.
const BYTES: usize = 250;

/// How many packets are on their way at once.
const IN_FLIGHT: usize = 256;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(3), |seconds| seconds.parse())?;
    let (packet, time) = (Bytes::from(vec![7; BYTES]), Duration::from_secs(seconds));
    let rate = stream::echo(packet.clone(), IN_FLIGHT, time).await?;
    println!("link: {rate:.0} packets of {BYTES} bytes/s there and back, {IN_FLIGHT} on their way");
    let rate = unary::echo(packet, IN_FLIGHT, time).await?;
    println!("call: {rate:.0} calls of {BYTES} bytes/s, {IN_FLIGHT} on their way");
    Ok(())
}
