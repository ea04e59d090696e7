//! Things that a run does again and again, at fixed times.

use crate::Ctx;
use std::time::Duration;
use steadfast_kernel::{Failure, Period, Timestamp};

/// Durable ticks with a fixed phase. Ask for the next one with [`tick`](Every::tick).
///
/// The times are whole periods after the beginning: a tick that comes late, because its predecessor's work took long or the process was down, does not
/// move those after it. Ticks whose time has passed meanwhile are not made up for; [`Tick::missed`] counts them. A pause of the run delays the tick that is waited for by as
/// long as it lasts, as it does with every sleep, and moves none after it.
#[must_use = "nothing ticks unless `tick` is awaited"]
pub struct Every {
    ctx: Ctx,
    every: Duration,
    period: Option<Period>,
    /// The number of the last tick.
    last: u64,
}

/// One tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// When it was due: a whole number of periods after the beginning.
    pub due: Timestamp,
    /// Which one it is, the first after the beginning being number 1; those that were missed count.
    pub number: u64,
    /// How many before it were due since the last one and are left out.
    pub missed: u64,
}

impl Every {
    pub(crate) fn new(ctx: &Ctx, every: Duration) -> Self {
        Every { ctx: ctx.clone(), every, period: Period::new(ctx.now(), every), last: 0 }
    }

    /// Counts from that time instead of now. A run that goes on as new can take the beginning along in its input, so that its ticks keep their phase.
    pub fn since(mut self, origin: Timestamp) -> Self {
        self.period = Period::new(origin, self.every);
        self.last = self.period.map_or(0, |period| period.number(self.ctx.now()));
        self
    }

    /// Waits for the next tick.
    ///
    /// # Errors
    /// If the period is less than a microsecond, or it is asked for outside of the workflow's own future.
    pub async fn tick(&mut self) -> Result<Tick, Failure> {
        let period = self
            .period
            .ok_or_else(|| Failure::permanent("the period of Ctx::every is zero; make it at least a microsecond"))?;
        let next = self.last + 1;
        let number = period.number(self.ctx.now()).max(next); // one whose time has come is not waited for
        self.ctx.sleep_until(period.at(number)).await?;
        self.last = number;
        Ok(Tick { due: period.at(number), number, missed: number - next })
    }
}
