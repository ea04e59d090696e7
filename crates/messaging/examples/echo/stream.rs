//! Packets there and back over a link.

use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::FailureError;
use steadfast_messaging::wire::http2::{Http2, ListenSettings, Settings, listen};
use steadfast_messaging::wire::{Link, Wire};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Sends a packet again and again, so that always so many are on their way; gives how many come back per second.
pub(crate) async fn echo(packet: Bytes, in_flight: usize, time: Duration) -> Result<f64, FailureError> {
    let (sender, mut links) = mpsc::channel(1);
    let listening = listen("127.0.0.1:0", ListenSettings::default(), sender)
        .await
        .map_err(|failure| failure.into_error())?;
    let connect = Http2::new(Settings::default()).connect(&format!("http://{}", listening.addr()));
    let mut near = connect.await.map_err(|failure| failure.into_error())?;
    if let Some(far) = links.recv().await {
        drop(tokio::spawn(answer(far)));
    }
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(in_flight));
    let (outgoing, taken) = (near.outgoing.clone(), places.clone());
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
            let Some(Ok(_)) = near.incoming.recv().await else { return Ok(0.0) };
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
