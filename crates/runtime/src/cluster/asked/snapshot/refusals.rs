//! Lists every refusal that an instance sends to another one.

use super::*;
use steadfast_kernel::{LetterHome, LetterId, PlanStatus, RouteName, Status, TaskStatus};

labels!(Refusals of Refusal {
    Refusal::RunExists { .. } => "refused: run exists",
    Refusal::RunNotFound { .. } => "refused: no such run",
    Refusal::Ended { .. } => "refused: run ended",
    Refusal::TooManySignals { .. } => "refused: too many signals",
    Refusal::NotAsked { .. } => "refused: no open question",
    Refusal::WrongStatus { .. } => "refused: status of the run",
    Refusal::TaskStatus { .. } => "refused: status of the task",
    Refusal::StepNotFound { .. } => "refused: no such step",
    Refusal::LetterNotFound { .. } => "refused: no such letter",
    Refusal::TooManyLetters { .. } => "refused: too many letters",
    Refusal::LettersTooLong { .. } => "refused: letters too long",
    Refusal::KeyNotFound { .. } => "refused: no such key",
    Refusal::KeyOwned { .. } => "refused: another owner",
    Refusal::KeyChanged { .. } => "refused: another revision",
    Refusal::TooManyEnds { .. } => "refused: too many callbacks",
    Refusal::PlanExists { .. } => "refused: plan exists",
    Refusal::PlanNotFound { .. } => "refused: no such plan",
    Refusal::PlanStatus { .. } => "refused: status of the plan",
    Refusal::TenantsLocked { .. } => "refused: locked tenants",
    Refusal::LockNotFound { .. } => "refused: no such lock",
    Refusal::Stale { .. } => "refused: stale",
});

/// The label of a refusal, noted as covered.
pub(super) fn cover(refusal: &Refusal, page: &mut Page) -> &'static str {
    page.cover(Refusals::of(refusal));
    Refusals::of(refusal)
}

pub(super) fn assert_covered(page: &Page) {
    page.assert_covers(Refusals::ALL);
}

pub(super) fn refusals() -> Vec<Refusal> {
    let what_to_do = || "wait".into();
    let route = || RouteName::new("mail/send.v2").unwrap();
    let letter = LetterId { home: LetterHome::Key(key()), seq: 17 };
    vec![
        Refusal::RunExists { run: run() },
        Refusal::RunNotFound { run: run() },
        Refusal::Ended { run: run() },
        Refusal::TooManySignals { run: run(), max: 1_000 },
        Refusal::NotAsked { run: run(), name: "ok".into() },
        Refusal::WrongStatus { run: run(), status: Status::Compensating, what_to_do: what_to_do() },
        Refusal::TaskStatus { task: run(), status: TaskStatus::RollingBack, what_to_do: what_to_do() },
        Refusal::StepNotFound { run: run(), step: step() },
        Refusal::LetterNotFound { letter },
        Refusal::TooManyLetters { route: route(), max: 1_000 },
        Refusal::LettersTooLong { route: route(), max: LARGE },
        Refusal::KeyNotFound { key: key() },
        Refusal::KeyOwned { key: key() },
        Refusal::KeyChanged { key: key(), revision: Some(LARGE) },
        Refusal::TooManyEnds { key: key(), max: 100, bytes_max: 1 << 20 },
        Refusal::PlanExists { plan: plan() },
        Refusal::PlanNotFound { plan: plan() },
        Refusal::PlanStatus { plan: plan(), status: PlanStatus::Running, what_to_do: what_to_do() },
        Refusal::TenantsLocked { plan: plan(), locked: vec![(tenant(), "switch-16:switch-16/acme".into())] },
        Refusal::LockNotFound { tenant: tenant() },
        Refusal::Stale { run: run(), why: "another epoch".into() },
    ]
}
