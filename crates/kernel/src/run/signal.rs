//! Tell the code something: kept until it asks for it, once.
//! open --SendSignal--> open: SIGNAL_RECEIVED, unless its id is known

use super::{Decision, Phase, Run};
use crate::{Answer, Completion, Effect, Event, Refusal, SendSignal, Timestamp};

/// How many signals may wait to be taken.
pub const SIGNALS_MAX: usize = 1000;

pub(super) fn decide(run: &Run, command: SendSignal, now: Timestamp) -> Result<Decision, Refusal> {
    let Phase::Open(open) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let SendSignal { name, payload, id } = command;
    if id.as_ref().is_some_and(|id| open.signal_ids.contains(id)) {
        return Ok(Decision { entries: Vec::new(), effects: vec![Effect::Answer(Answer::SignalKnown)] });
    }
    let answers_a_question = name.contains(':'); // an operator's word on what is in doubt is never kept out by what nobody takes
    if open.signals.len() >= SIGNALS_MAX && !answers_a_question {
        return Err(Refusal::TooManySignals { run: run.id.clone(), max: SIGNALS_MAX });
    }
    let entry = run.entry(0, now, None, Event::SignalReceived { name: name.clone(), id, payload: payload.clone() });
    let arrived = Completion::SignalReceived { signal: entry.seq, name, payload };
    Ok(Decision { entries: vec![entry], effects: vec![Effect::Deliver(arrived), Effect::Answer(Answer::SignalReceived)] })
}
