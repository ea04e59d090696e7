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

/// So many come in a packet when much is on its way, and a node has the inbox fetch what it needs for all of them at once.
const PACKET: usize = 16;

/// The median of so many slices is reported.
const SLICES: usize = 9;

const CALLER: &str = "payments-1";

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
        filled.packet = Packet::of(1);
        let (alone, _) = filled.rates(messages)?;
        report.say(&Measured::rate("inbox-one-by-one", alone).concurrency(entries as usize))?;
        report.say(&Measured::value("inbox-memory", bytes as f64 / entries as f64, "bytes per tell").concurrency(entries as usize))?;
        rates.push((new, again, alone));
    }
    let [first, .., last] = rates[..] else { bail!("there is nothing to compare") };
    report.say(&Measured::value("inbox-ratio", last.0 / first.0, "of the rate with 1,000 entries is left with 1,000,000"))?;
    report.say(&Measured::value("inbox-ratio-duplicates", last.1 / first.1, "of it is left where all of them are known"))?;
    report.say(&Measured::value("inbox-ratio-one-by-one", last.2 / first.2, "of it is left where each comes in a packet of its own"))
}

/// An inbox that is always full: each tell that is new forgets the oldest.
struct Filled {
    inbox: Inbox<Waiter>,
    entries: u64,
    /// How many tells came so far.
    told: u64,
    now: Instant,
    packet: Packet,
}

impl Filled {
    fn new(entries: u64) -> Self {
        let settings = Settings { entries_max: entries as usize, ..Settings::default() };
        Filled { inbox: Inbox::new(settings), entries, told: 0, now: Instant::now(), packet: Packet::of(PACKET) }
    }

    /// So many new ones, one after another, each of which has run before the next one is looked at.
    fn take(&mut self, count: u64) -> Result<()> {
        let Filled { inbox, told, now, packet, .. } = self;
        let end = *told + count;
        while *told < end {
            for &(number, ref id) in packet.deliver(inbox, *told..end) {
                match inbox.check(CALLER, id, Kind::Tell, number, (number, number, 1), *now) {
                    Verdict::New(ticket, _) => {
                        let waiters = inbox.finish(ticket, Finish::Keep(Ok(Default::default())), *now);
                        waiters.into_iter().for_each(|waiter| _ = black_box(waiter));
                    }
                    other => bail!("{number} was to be new: {other:?}"),
                }
                *told += 1;
            }
        }
        Ok(())
    }

    /// So many that are known, one here, one there.
    fn repeat(&mut self, count: u64, chance: &mut Stream) -> Result<()> {
        let Filled { inbox, entries, told, now, packet } = self;
        let mut left = count;
        while left > 0 {
            let numbers = std::iter::repeat_with(|| *told - 1 - chance.next_u64() % *entries);
            for &(number, ref id) in packet.deliver(inbox, numbers) {
                match inbox.check(CALLER, id, Kind::Tell, number, (number, number, 2), *now) {
                    Verdict::Dropped(waiter) => _ = black_box(waiter),
                    other => bail!("{number} was to be known: {other:?}"),
                }
                left = left.saturating_sub(1);
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

/// Numbers of tells and their ids, as most have them: 26 characters, of which the last 13 differ.
struct Packet(Vec<(u64, String)>);

impl Packet {
    fn of(size: usize) -> Self {
        Packet(vec![Default::default(); size])
    }

    /// Tells of these numbers have come, as many as there is room for: as a node does, it says so to the inbox before the first of them is checked.
    fn deliver(&mut self, inbox: &Inbox<Waiter>, numbers: impl Iterator<Item = u64>) -> &[(u64, String)] {
        let mut count = 0;
        for (tell, number) in self.0.iter_mut().zip(numbers) {
            tell.0 = number;
            write_id(&mut tell.1, number);
            count += 1;
        }
        let tells = &self.0[..count];
        inbox.fetch(tells.iter().map(|(_, id)| (CALLER, &**id)));
        tells
    }
}

fn write_id(id: &mut String, number: u64) {
    id.clear();
    id.push_str("01K9ZZZZZZ000");
    let mut rest = number.wrapping_mul(0x9e37_79b9_7f4a_7c15); // neighbours have nothing in common
    for _ in 0..13 {
        id.push(char::from(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[(rest & 31) as usize]));
        rest >>= 5;
    }
}
