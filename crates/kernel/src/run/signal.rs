//! Tell the code something: kept until it asks for it, once.
//! open --SendSignal--> open: SIGNAL_RECEIVED, unless its id is known (also when it has ended), or it answers a question that is not open

use super::{Decision, Phase, Run};
use crate::{Answer, Completion, Effect, Event, Refusal, SendSignal, Timestamp};

/// How many signals may wait to be taken.
pub const SIGNALS_MAX: usize = 1000;

pub(super) fn decide(run: &Run, command: SendSignal, now: Timestamp) -> Result<Decision, Refusal> {
    let SendSignal { name, payload, id, by, why } = command;
    let ids = match &run.phase {
        Phase::Open(open) => &open.signal_ids,
        Phase::Ended(_, left) => &left.signal_ids, // it may be what ended the run
    };
    if id.as_ref().is_some_and(|id| ids.contains_key(id)) {
        return Ok(Decision::answer(Answer::SignalKnown));
    }
    let Phase::Open(open) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    if answers_a_question(&name) {
        // never kept out by what nobody takes, and never kept for a question that is yet to come
        let asked = open.open_awaits().filter(|(_, awaited)| awaited.name == name).count();
        let answered = open.signals.values().filter(|there| **there == name).count();
        if answered >= asked {
            return Err(Refusal::NotAsked { run: run.id.clone(), name });
        }
    } else if open.signals.len() >= SIGNALS_MAX {
        return Err(Refusal::TooManySignals { run: run.id.clone(), max: SIGNALS_MAX });
    }
    let entry = run.entry(0, now, None, Event::SignalReceived { name: name.clone(), id, payload: payload.clone(), by, why });
    let arrived = Completion::SignalReceived { signal: entry.seq, name, payload };
    Ok(Decision { entries: vec![entry], effects: vec![Effect::Deliver(arrived), Effect::Answer(Answer::SignalReceived)] })
}

/// True for a person's word on what is in doubt, or on an undo that has failed. No code can ask for a signal of such a name.
pub(super) fn answers_a_question(name: &str) -> bool {
    name.contains(':')
}
