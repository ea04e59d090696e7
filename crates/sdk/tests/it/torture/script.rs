//! What a random workflow does, one thing after the other, and what must come of it.

use super::world;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use steadfast::{Ctx, Failure, Policy, workflow};
use steadfast_kernel::random::{Seed, Stream};

const MS: Duration = Duration::from_millis(1);

/// How long an attempt that hangs is waited for.
const TIMEOUT: Duration = Duration::from_millis(10);

pub(super) struct Chance(Stream);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Chance(Stream::new(&Seed(key), "", "torture"))
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Script {
    pub(super) acts: Vec<Act>,
    deadline_ms: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Act {
    Sleep { ms: u64 },
    Step { does: Does, max_attempts: u32, delay_ms: u64 },
}

/// What the attempts of a step do. None depends on how often a crash made one repeat.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Does {
    Succeed {
        in_ms: u64,
    },
    /// Fails with every call but the last that is allowed, or before.
    FailAtFirst {
        calls: u32,
    },
    HangAtFirst,
    PanicAtFirst,
    AlwaysFail,
    AlwaysHang,
    Refuse,
}

impl Script {
    pub(super) fn draw(chance: &mut Chance) -> Self {
        let acts = (0..chance.below(7)).map(|_| Act::draw(chance)).collect();
        let deadline_ms = (chance.below(6) == 0).then(|| chance.below(150));
        Script { acts, deadline_ms }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline_ms.map(Duration::from_millis)
    }

    /// True if its deadline may come before its end.
    pub(super) fn is_hurried(&self) -> bool {
        self.deadline_ms.is_some()
    }

    /// The result, if there is time for it.
    pub(super) fn expected(&self) -> u64 {
        let acts = self.acts.iter().enumerate();
        acts.map(|(place, act)| act.worth(place, matches!(act, Act::Step { does, .. } if does.succeeds())))
            .sum()
    }
}

impl Act {
    fn draw(chance: &mut Chance) -> Self {
        if chance.below(4) == 0 {
            return Act::Sleep { ms: chance.below(30) };
        }
        let max_attempts = 1 + chance.below(4) as u32;
        let does = match chance.below(8) {
            0 => Does::FailAtFirst { calls: max_attempts - 1 },
            1 if max_attempts > 1 => Does::HangAtFirst,
            2 if max_attempts > 1 => Does::PanicAtFirst,
            3 => Does::AlwaysFail,
            4 => Does::AlwaysHang,
            5 => Does::Refuse,
            _ => Does::Succeed { in_ms: chance.below(5) },
        };
        Act::Step { does, max_attempts, delay_ms: chance.below(3) * 10 }
    }

    /// What it adds to the result.
    fn worth(&self, place: usize, succeeded: bool) -> u64 {
        match self {
            Act::Sleep { .. } => 1,
            Act::Step { .. } if succeeded => 10 * (place as u64 + 1),
            Act::Step { .. } => 1000 * (place as u64 + 1),
        }
    }
}

impl Does {
    pub(super) fn succeeds(self) -> bool {
        !matches!(self, Does::AlwaysFail | Does::AlwaysHang | Does::Refuse)
    }

    async fn attempt(self, call: u32) -> Result<(), Failure> {
        match self {
            Does::FailAtFirst { calls } if call <= calls => Err(Failure::transient("not yet")),
            Does::PanicAtFirst if call == 1 => panic!("at first"),
            Does::HangAtFirst if call == 1 => std::future::pending().await,
            Does::AlwaysHang => std::future::pending().await,
            Does::AlwaysFail => Err(Failure::transient("down")),
            Does::Refuse => Err(Failure::permanent("no")),
            Does::Succeed { in_ms: 1.. } => {
                tokio::time::sleep(MS).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[workflow]
pub(super) async fn played(ctx: Ctx, script: Script) -> Result<u64, Failure> {
    let mut sum = 0;
    for (place, act) in script.acts.iter().enumerate() {
        let succeeded = match act {
            Act::Sleep { ms } => ctx.sleep(Duration::from_millis(*ms)).await.is_ok(),
            Act::Step { does, max_attempts, delay_ms } => {
                let policy = Policy::constant(Duration::from_millis(*delay_ms)).max_attempts(*max_attempts);
                let attempt = || does.attempt(world::call(&ctx, place));
                ctx.step(&format!("act-{place}"), attempt).retry(policy).timeout(TIMEOUT).await.is_ok()
            }
        };
        sum += act.worth(place, succeeded);
    }
    Ok(sum)
}
