//! The memory inbox by itself: how many tells it takes in a second with little and with much in it, and what each of them leaves behind.

use crate::cpu;
use crate::memory;
use crate::report::{Measured, Report};
use anyhow::{Result, bail};
use std::hint::black_box;
use steadfast_kernel::random::{Seed, Stream};
use steadfast_messaging::inbox::{Finish, Inbox, Kind, Settings, Verdict};
use tokio::time::Instant;

/// How many are known.
const ENTRIES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// The median of so many slices is reported.
const SLICES: usize = 9;

/// Who waits: a node has about as much of a connection and a request.
type Waiter = (u64, u64, u32);

pub(super) async fn measure(report: &Report, quick: bool) -> Result<()> {
    let messages = if quick { 100_000 } else { 1_000_000 };
    let mut rates = Vec::new();
    for entries in ENTRIES {
        let mut filled = Filled::new(entries);
        let (bytes, outcome) = memory::count(async { filled.take(entries) }).await;
        outcome?;
        let (new, again) = filled.rates(messages)?;
        report.say(&Measured::rate("inbox", new).concurrency(entries as usize))?;
        report.say(&Measured::rate("inbox-duplicates", again).concurrency(entries as usize))?;
        report.say(&Measured::value("inbox-memory", bytes as f64 / entries as f64, "bytes per tell").concurrency(entries as usize))?;
        rates.push(new);
    }
    let [first, .., last] = rates[..] else { bail!("there is nothing to compare") };
    report.say(&Measured::value("inbox-ratio", last / first, "of the rate with 1,000 entries is left with 1,000,000"))
}

/// An inbox that is always full: each tell that is new forgets the oldest.
struct Filled {
    inbox: Inbox<Waiter>,
    entries: u64,
    /// How many tells came so far.
    told: u64,
    now: Instant,
    id: Id,
}

impl Filled {
    fn new(entries: u64) -> Self {
        let settings = Settings { entries_max: entries as usize, ..Settings::default() };
        Filled { inbox: Inbox::new(settings), entries, told: 0, now: Instant::now(), id: Id(*b"01K9ZZZZZZ0000000000000000") }
    }

    /// So many new ones, one after another, each of which has run before the next one comes.
    fn take(&mut self, count: u64) -> Result<()> {
        for number in self.told..self.told + count {
            match self
                .inbox
                .check("payments-1", self.id.set(number)?, Kind::Tell, number, (number, number, 1), self.now)
            {
                Verdict::New(ticket, _) => {
                    let waiters = self.inbox.finish(ticket, Finish::Keep(Ok(Default::default())), self.now);
                    waiters.into_iter().for_each(|waiter| {
                        black_box(waiter);
                    });
                }
                other => bail!("{number} was to be new: {other:?}"),
            }
        }
        self.told += count;
        Ok(())
    }

    /// So many that are known, one here, one there.
    fn repeat(&mut self, count: u64, chance: &mut Stream) -> Result<()> {
        for _ in 0..count {
            let number = self.told - 1 - chance.next_u64() % self.entries;
            match self
                .inbox
                .check("payments-1", self.id.set(number)?, Kind::Tell, number, (number, number, 2), self.now)
            {
                Verdict::Dropped(waiter) => {
                    black_box(waiter);
                }
                other => bail!("{number} was to be known: {other:?}"),
            }
        }
        Ok(())
    }

    /// New ones and known ones per second, once all places have been used more than once.
    fn rates(&mut self, messages: u64) -> Result<(f64, f64)> {
        self.take(self.entries)?;
        let mut chance = Stream::new(&Seed([7; 32]), "", "messages");
        let (mut new, mut again) = (Vec::new(), Vec::new());
        for _ in 0..SLICES {
            new.push(per_second(messages, || self.take(messages))?);
            again.push(per_second(messages, || self.repeat(messages, &mut chance))?);
        }
        Ok((median(new), median(again)))
    }
}

/// By processor time: nothing here waits, and who else uses the machine does not count.
fn per_second(messages: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = cpu::used();
    work()?;
    Ok(messages as f64 / cpu::used().saturating_sub(begun).as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// An id as most have it: 26 characters, of which the last 13 differ.
struct Id([u8; 26]);

impl Id {
    fn set(&mut self, number: u64) -> Result<&str> {
        let mut rest = number.wrapping_mul(0x9e37_79b9_7f4a_7c15); // neighbours have nothing in common
        for digit in &mut self.0[13..] {
            *digit = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[(rest & 31) as usize];
            rest >>= 5;
        }
        Ok(std::str::from_utf8(&self.0)?)
    }
}
