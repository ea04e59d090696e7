//! A crash before and after every commit.

use super::crash::Crash;
use super::lab::{Lab, LabBuilder};
use super::meddler::{Call, is_meant};
use crate::Workflow;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use steadfast_kernel::Failure;

/// What came of crashes everywhere.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report<T> {
    /// What the scenario returned, in every play.
    pub outcome: T,
    /// The calls of steps when nothing went wrong.
    pub undisturbed: Vec<Call>,
    /// One for every crash: two for every commit.
    pub plays: Vec<Play>,
}

/// One time that the scenario was played with a crash.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Play {
    /// Where the process died.
    pub crash: Crash,
    /// The calls of steps, in the processes before and after.
    pub calls: Vec<Call>,
}

impl Play {
    /// The calls of one step.
    pub fn calls(&self, step: &str) -> Vec<&Call> {
        self.calls.iter().filter(|call| is_meant(&call.step, step)).collect()
    }
}

impl<T> Report<T> {
    /// Checks that the closure of a step was called at most so often, wherever the process died.
    ///
    /// # Panics
    /// If it was called more often, or never.
    #[track_caller]
    pub fn called_at_most(&self, step: &str, times: usize) -> &Self {
        if !self.undisturbed.iter().any(|call| is_meant(&call.step, step)) {
            let steps: BTreeSet<_> = self.undisturbed.iter().map(|call| &call.step).collect();
            panic!("step {step} is never called; these are: {steps:?}");
        }
        for play in &self.plays {
            let calls = play.calls(step);
            if calls.len() > times {
                panic!("step {step} was called {} times, not {times} at the most, with {}: {calls:#?}", calls.len(), play.crash);
            }
        }
        self
    }
}

/// Plays a run of the workflow once undisturbed and then once for every crash before or after one of its commits. See
/// [`LabBuilder::crash_everywhere`] for workflows that need signals, children or settings.
///
/// # Panics
/// If a crash changes the outcome, or leaves a journal that does not fit the code.
pub async fn crash_everywhere<W, T>(workflow: W, input: &(impl Serialize + ?Sized)) -> Report<Result<T, Failure>>
where
    W: Workflow<Returned = Result<T, Failure>>,
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let play = async |lab: &Lab| {
        lab.start_named(W::NAME, W::NAME, input).await;
        lab.result::<T>(W::NAME).await
    };
    Lab::new().register(workflow).crash_everywhere(play).await
}

impl LabBuilder {
    /// Plays a scenario once undisturbed, and then once for every commit that it made with a crash just before it, and once with a crash just after it. Each
    /// time in a new lab; what it returns has to be the same each time, and the journals have to fit the code.
    ///
    /// ```
    /// # use steadfast::testing::Lab;
    /// # use steadfast::{Ctx, Failure, workflow};
    /// # #[workflow]
    /// # async fn approval(ctx: Ctx, _amount: u32) -> Result<bool, Failure> { ctx.signal("decision").await }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let report = Lab::new()
    ///     .register(approval)
    ///     .crash_everywhere(async |lab| {
    ///         lab.start(approval, "a-1", &100).await;
    ///         lab.signal("a-1", "decision", &true).await;
    ///         lab.result::<bool>("a-1").await
    ///     })
    ///     .await;
    /// assert_eq!(report.outcome, Ok(true));
    /// # }
    /// ```
    ///
    /// # Panics
    /// If a crash changes what the scenario returns, or leaves a journal that does not fit the code.
    pub async fn crash_everywhere<T: PartialEq + Debug>(&self, scenario: impl AsyncFn(&Lab) -> T) -> Report<T> {
        let lab = self.open().await;
        let outcome = scenario(&lab).await;
        let (undisturbed, commits) = (lab.all_calls(), lab.commits());
        assert!(commits > 0, "the scenario does nothing that is on record");
        drop(lab);
        let mut report = Report { outcome, undisturbed, plays: Vec::new() };
        for crash in (1..=commits).flat_map(|nth| [Crash::BeforeCommit(nth), Crash::AfterCommit(nth)]) {
            let lab = self.open().await;
            lab.crash_at(crash.clone());
            let outcome = scenario(&lab).await;
            let wrong = match misfit(&lab).await {
                None if outcome == report.outcome => None,
                None => Some(format!("the outcome was {outcome:?}, not {:?} as without it", report.outcome)),
                misfit => misfit,
            };
            if let Some(wrong) = wrong {
                panic!("with {crash}, {wrong}\n{}", everything(&lab).await);
            }
            report.plays.push(Play { crash, calls: lab.all_calls() });
        }
        report
    }
}

/// A journal that does not fit the code, or has a gap.
async fn misfit(lab: &Lab) -> Option<String> {
    for id in lab.runs().await {
        match lab.ask(async |engine| engine.replay(&id).await).await {
            Ok(replayed) => {
                if let Some(mismatch) = replayed.mismatch {
                    return Some(format!("run {id} cannot be replayed: {mismatch}"));
                }
            }
            Err(error) => return Some(format!("run {id} cannot be replayed: {error:?}")),
        }
        let journal = lab.journal(&id).await;
        if !journal.entries().iter().map(|entry| entry.seq).eq(1..=journal.entries().len() as u64) {
            return Some(format!("the journal of run {id} has a gap"));
        }
    }
    None
}

/// All journals and calls, for one who has to find out what happened.
async fn everything(lab: &Lab) -> String {
    let mut text = String::new();
    for id in lab.runs().await {
        let _fits = writeln!(text, "{}", lab.journal(&id).await);
    }
    let calls = lab
        .all_calls()
        .into_iter()
        .map(|call| format!("{} {} attempt {}", call.run, call.step, call.attempt));
    let _fits = write!(text, "calls: {}", calls.collect::<Vec<_>>().join("; "));
    text
}
