//! The bare wire: packets there and back over a link on the loopback, which a call of a node cannot outdo.

use super::unary;
use crate::load::Span;
use crate::report::{Measured, Report};
use anyhow::{Result, bail};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::Failure;
use steadfast_messaging::wire::http2::{Http2, ListenSettings, Settings, listen};
use steadfast_messaging::wire::{Link, Wire};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

/// How many bytes a packet has.
const BYTES: usize = 250;

/// How many packets are on their way at once.
const IN_FLIGHT: usize = 256;

/// Packets over a link, and what a call of gRPC for each of them gives.
pub(super) async fn measure(report: &Report, quick: bool) -> Result<()> {
    let (packet, time) = (Bytes::from(vec![7; BYTES]), Duration::from_secs(if quick { 1 } else { 5 }));
    let link = echo(packet.clone(), IN_FLIGHT, time).await?;
    report.say(&Measured::rate("echo", link).concurrency(IN_FLIGHT))?;
    let calls = unary::echo(packet, IN_FLIGHT, Span { warm_up: time / 4, counted: time }).await?;
    report.say(&Measured::rate("echo-unary", calls).concurrency(IN_FLIGHT))?;
    report.say(&Measured::value("echo-ratio", link / calls, "packets over a link for each call of gRPC"))
}

/// Sends a packet again and again, so that always so many are on their way; gives how many come back per second.
pub(crate) async fn echo(packet: Bytes, in_flight: usize, time: Duration) -> Result<f64> {
    let (sender, mut links) = mpsc::channel(1);
    let listening = listen("127.0.0.1:0", ListenSettings::default(), sender).await.map_err(Failure::into_error)?;
    let connect = Http2::new(Settings::default()).connect(&format!("http://{}", listening.addr()));
    let mut near = connect.await.map_err(Failure::into_error)?;
    if let Some(far) = links.recv().await {
        drop(tokio::spawn(answer(far)));
    }
    let places = Arc::new(Semaphore::new(in_flight));
    let (outgoing, taken) = (near.outgoing.clone(), Arc::clone(&places));
    let sends = tokio::spawn(async move {
        while let Ok(place) = taken.acquire().await {
            place.forget();
            if outgoing.send(packet.clone()).await.is_err() {
                return;
            }
        }
    });
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        for _ in 0..100 {
            let Some(Ok(_)) = near.incoming.recv().await else { bail!("the link has ended") };
            places.add_permits(1);
        }
        count += 100;
    }
    sends.abort();
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

async fn answer(mut link: Link) {
    while let Some(Ok(packet)) = link.incoming.recv().await {
        if link.outgoing.send(packet).await.is_err() {
            return;
        }
    }
}
