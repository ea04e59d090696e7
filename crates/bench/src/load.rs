//! Clients that do the same over and over, side by side, for a slice of time.

use crate::cpu;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use steadfast::{Clock, SystemClock, Timestamp};

/// How long a slice lasts. What begins in its first part, while the clients get into step, is not counted.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) warm_up: Duration,
    pub(crate) counted: Duration,
}

/// Where a slice stands.
const WARMING_UP: u8 = 0;
const COUNTED: u8 = 1;
const OVER: u8 = 2;

/// What was seen in a slice of time.
pub(crate) struct Seen {
    /// How long each took.
    pub(crate) took: Vec<Duration>,
    /// How many were done in that time; parts count.
    done: f64,
    time: Duration,
    /// Processor time of the whole process.
    cpu: Duration,
}

impl Seen {
    pub(crate) fn per_s(&self) -> f64 {
        self.done / self.time.as_secs_f64()
    }

    /// Microseconds of processor time for each.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.done
    }
}

/// The median over slices, so that those in which others were busy with the machine do not count.
pub(crate) fn median(slices: &[Seen], of: impl Fn(&Seen) -> f64) -> f64 {
    let mut values: Vec<f64> = slices.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let middle = [values.len().saturating_sub(1) / 2, values.len() / 2];
    middle.iter().filter_map(|place| values.get(*place)).sum::<f64>() / 2.0
}

/// One slice: so many clients, each of which begins again as soon as it is done.
///
/// The rate is the sum of the clients' own rates, each from the first thing it began in time to the end of the last. Clients in a group commit move in
/// step, so whatever counted the ends within a window would count one more or one less of all of them.
pub(crate) async fn slice<F, Fut>(clients: usize, span: Span, work: F) -> Result<Seen>
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let phase = Arc::new(AtomicU8::new(WARMING_UP));
    let client = |_| tokio::spawn(client(work.clone(), Arc::clone(&phase)));
    let clients: Vec<_> = (0..clients).map(client).collect();
    SystemClock.sleep(span.warm_up).await;
    phase.store(COUNTED, Ordering::Relaxed);
    let (from, cpu_before) = (SystemClock.now(), cpu::used());
    SystemClock.sleep(span.counted).await;
    phase.store(OVER, Ordering::Relaxed);
    let (time, cpu) = (SystemClock.now().saturating_since(from), cpu::used() - cpu_before);
    let mut seen = Seen { took: Vec::new(), done: 0.0, time, cpu };
    for client in clients {
        let done = client.await??;
        if let (Some((begun, _)), Some((_, ended))) = (done.first(), done.last()) {
            seen.done += done.len() as f64 / ended.saturating_since(*begun).as_secs_f64() * time.as_secs_f64();
        }
        seen.took.extend(done.into_iter().map(|(begun, ended)| ended.saturating_since(begun)));
    }
    Ok(seen)
}

/// When each began and ended that counts; at least one does.
async fn client<F, Fut>(work: F, phase: Arc<AtomicU8>) -> Result<Vec<(Timestamp, Timestamp)>>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let mut done = Vec::new();
    loop {
        let counts = phase.load(Ordering::Relaxed) != WARMING_UP;
        let begun = SystemClock.now();
        work().await?;
        if counts {
            done.push((begun, SystemClock.now()));
        }
        if phase.load(Ordering::Relaxed) == OVER && !done.is_empty() {
            return Ok(done);
        }
    }
}
