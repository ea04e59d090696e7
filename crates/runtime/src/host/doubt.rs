//! An attempt that may have happened: its probe is asked, then a person.
//!
//! Tested by `crates/sdk/tests/it/doubt.rs`.

use super::answer::{self, OnDoubt};
use super::board::Board;
use super::signal::SignalCall;
use super::step::{Probe, panicked};
use futures_util::future::BoxFuture;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use steadfast_kernel::{Failure, Payload, StepId};

/// What somebody who knows says.
pub(super) enum Word {
    /// It happened, and this came of it.
    Happened(Result<Payload, Failure>),
    /// It did not happen: make the attempt again.
    Repeat,
}

/// Finds out what became of an attempt.
pub(super) struct Doubt<'a> {
    board: Arc<Board>,
    step: StepId,
    probe: Option<Probe<'a>>,
    probing: Option<BoxFuture<'a, Result<Option<Payload>, Failure>>>,
    asking: Option<SignalCall>,
    asked: u32,
}

impl<'a> Doubt<'a> {
    pub(super) fn new(board: Arc<Board>, step: StepId) -> Self {
        Doubt { board, step, probe: None, probing: None, asking: None, asked: 0 }
    }

    pub(super) fn set_probe(&mut self, probe: Probe<'a>) {
        self.probe = Some(probe);
    }

    /// True if only a person can tell any more.
    pub(super) fn is_with_a_person(&self) -> bool {
        self.asking.is_some()
    }

    /// Asks the probe, once; if that does not help, or a person was asked before, a person.
    pub(super) fn poll(&mut self, ask_a_person: bool, cx: &mut TaskContext<'_>) -> Poll<Word> {
        if !ask_a_person
            && self.asking.is_none()
            && let Some(probe) = &mut self.probe
        {
            let probing = &mut self.probing;
            let polled = catch_unwind(AssertUnwindSafe(|| probing.get_or_insert_with(probe).as_mut().poll(cx)));
            if !matches!(polled, Ok(Poll::Pending)) {
                self.probing = None; // there may be another doubt
            }
            match polled {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(Ok(Some(output)))) => return Poll::Ready(Word::Happened(Ok(output))),
                Ok(Poll::Ready(Ok(None))) => return Poll::Ready(Word::Repeat),
                Ok(Poll::Ready(Err(failure))) => {
                    tracing::warn!(step = %self.step, code = %failure.code, "the probe of a step in doubt failed")
                }
                Err(panic) => {
                    tracing::warn!(step = %self.step, code = %panicked("", &*panic).code, "the probe of a step in doubt panicked")
                }
            }
        }
        self.poll_person(cx)
    }

    fn poll_person(&mut self, cx: &mut TaskContext<'_>) -> Poll<Word> {
        loop {
            let asking = self.asking.get_or_insert_with(|| {
                self.asked += 1;
                SignalCall::new(Arc::clone(&self.board), self.step.in_doubt(self.asked), format!("in-doubt:{}", self.step))
            });
            let Poll::Ready(said) = Pin::new(asking).poll(cx) else { return Poll::Pending };
            self.asking = None;
            match said.ok().and_then(|payload| answer::read(&payload)) {
                Some(OnDoubt::Completed(output)) => {
                    return Poll::Ready(Word::Happened(Ok(Payload::json(output.get().as_bytes().to_vec()))));
                }
                Some(OnDoubt::Failed(why)) => return Poll::Ready(Word::Happened(Err(Failure::permanent(why)))),
                Some(OnDoubt::Repeat) => return Poll::Ready(Word::Repeat),
                None => {} // not an answer: the question stands
            }
        }
    }
}
