//! The letter box machine: what nobody will try again by itself, kept until a person redrives or drops it.
//!
//! ```text
//!   –, open --PostLetter---> open    LETTER_ADDED
//!   open    --SettleLetter-> open    LETTER_REDRIVEN for every letter of that step
//!   open    --DropLetter---> open    LETTER_DROPPED | (known: answered, no event)
//!   any     --anything else, or heard before--> unchanged
//! ```
//!
//! To redrive a letter is to retry its run from its step: the run decides, and tells the box.
//!
//! Tested by `crates/sdk/tests/it/dead_letters.rs`.

use crate::machine::{Decision, IllegalTransition, illegal};
use crate::{
    Answer, Command, DropLetter, Effect, EntityId, Entry, Envelope, Event, Heard, LetterAbout, LetterHome, LetterId, Message, Origin,
    Refusal, RunId, Seq, StepId, Timestamp, WorkflowName,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The dead letters of a workflow: the fold of their journal. The bytes stay in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LetterBox {
    /// The workflow.
    pub workflow: WorkflowName,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// Every letter that is here, by the sequence of its arrival: the run, the step, and the number of the message that it came with.
    pub letters: BTreeMap<Seq, (RunId, StepId, u64)>,
    /// The last message of each sender that was heard.
    pub heard: BTreeMap<EntityId, u64>,
    /// The ids of commands that were carried out.
    pub commands: BTreeSet<String>,
}

/// Decides on a command.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(workflow: &WorkflowName, state: Option<&LetterBox>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match command {
        Command::Hear(envelope) => Ok(hear(state, *envelope, now)),
        Command::DropLetter(command) => throw_away(workflow, state, command, now),
        _ => Ok(Decision::answer(Answer::Heard)),
    }
}

fn hear(state: Option<&LetterBox>, envelope: Envelope, now: Timestamp) -> Decision {
    let Envelope { from, seq, message, .. } = envelope;
    if state.and_then(|letters| letters.heard.get(&from)).is_some_and(|last| *last >= seq) {
        return Decision::answer(Answer::Heard);
    }
    let events: Vec<Event> = match message {
        Message::PostLetter(letter) => vec![Event::LetterAdded(Box::new(letter))],
        Message::SettleLetter { step, after } => {
            let of_it = |(_, (run, of, number)): &(&Seq, &(RunId, StepId, u64))| from.run() == Some(run) && *of == step && *number > after;
            let letters = state.iter().flat_map(|letters| &letters.letters).filter(of_it);
            letters
                .map(|(letter, _)| Event::LetterRedriven { letter: *letter, origin: Origin::default() })
                .collect()
        }
        _ => Vec::new(),
    };
    let heard = Heard { from, seq };
    let first = state.map_or(0, |letters| letters.seq) + 1;
    let entry = |(seq, event)| Entry { heard: Some(heard.clone()), ..Entry::new(seq, 1, now, event) };
    Decision { entries: (first..).zip(events).map(entry).collect(), effects: vec![Effect::Answer(Answer::Heard)] }
}

fn throw_away(workflow: &WorkflowName, state: Option<&LetterBox>, command: DropLetter, now: Timestamp) -> Result<Decision, Refusal> {
    let DropLetter { letter, origin } = command;
    let not_found = || Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Workflow(workflow.clone()), seq: letter } };
    let letters = state.ok_or_else(not_found)?;
    if !letters.letters.contains_key(&letter) {
        let known = origin.command.as_ref().is_some_and(|id| letters.commands.contains(id));
        return if known { Ok(Decision::answer(Answer::Dropped)) } else { Err(not_found()) };
    }
    let entry = Entry::new(letters.seq + 1, 1, now, Event::LetterDropped { letter, origin });
    Ok(Decision { entries: vec![entry], effects: vec![Effect::Answer(Answer::Dropped)] })
}

/// Folds one entry into the state.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn evolve(workflow: &WorkflowName, state: Option<LetterBox>, entry: &Entry) -> Result<LetterBox, IllegalTransition> {
    let wrong = |why: &str| illegal(&EntityId::Letters(workflow.clone()), entry, why);
    let mut letters = state.unwrap_or_else(|| LetterBox {
        workflow: workflow.clone(),
        seq: 0,
        letters: BTreeMap::new(),
        heard: BTreeMap::new(),
        commands: BTreeSet::new(),
    });
    if entry.seq != letters.seq + 1 {
        return Err(wrong("an event is missing"));
    }
    match &entry.event {
        Event::LetterAdded(letter) => {
            let number = entry.heard.as_ref().map_or(0, |heard| heard.seq);
            let LetterAbout::Step { run, step } = &letter.about else { return Err(wrong("the letter belongs to something else")) };
            letters.letters.insert(entry.seq, (run.clone(), step.clone(), number));
        }
        Event::LetterRedriven { letter, .. } => drop(letters.letters.remove(letter).ok_or_else(|| wrong("there is no such letter"))?),
        Event::LetterDropped { letter, origin } => {
            letters.letters.remove(letter).ok_or_else(|| wrong("there is no such letter"))?;
            letters.commands.extend(origin.command.clone());
        }
        _ => return Err(wrong("no such event can happen to a letter box")),
    }
    if let Some(Heard { from, seq }) = &entry.heard {
        letters.heard.insert(from.clone(), *seq);
    }
    letters.seq = entry.seq;
    Ok(letters)
}
