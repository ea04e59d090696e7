//! The script of a run: what of its journal still counts. Code is replayed against it.

use super::Run;
use super::evolve::{is_verb, next_seed, opens_an_epoch};
use super::order::is_of_the_code;
use super::signal::answers_a_question;
use crate::{Entry, Event, Retried, Seq, TaskEvent, TimerName};
use std::collections::{BTreeMap, BTreeSet};

/// What of a journal still counts in the last life of its run, in order: its beginning, what was carried over, and what has happened since.
pub fn script(journal: Vec<Entry>) -> Vec<Entry> {
    let (mut script, mut moved): (Vec<Entry>, Moved) = (Vec::with_capacity(journal.len()), Moved::new());
    for entry in journal {
        match &entry.event {
            Event::RunRetried(retried) => carry_over(&mut script, &mut moved, retried),
            Event::RunContinued { .. } => begin_anew(&mut script, &entry),
            _ => {}
        }
        if !opens_an_epoch(&entry.event) {
            script.push(entry);
        }
    }
    begin_in_time(&mut script);
    script
}

/// The code begins when its run has all it waits for, not when the run was made: that is the first time that it knows.
fn begin_in_time(script: &mut [Entry]) {
    let Some((first, rest)) = script.split_first_mut() else { return };
    let before = rest.iter().take_while(|entry| !is_of_the_code(&entry.event));
    for entry in before.filter(|entry| lets_begin(&entry.event)) {
        first.at = first.at.max(entry.at);
    }
}

fn lets_begin(event: &Event) -> bool {
    matches!(event, Event::SlotAcquired { .. }) || matches!(event, Event::Task(event) if **event == TaskEvent::Started)
}

/// The same, from what [`Run::past`] says has to be read of it: the entries that were kept, and all from the one by which the run went on.
pub fn script_from(run: &Run, entries: Vec<Entry>) -> Vec<Entry> {
    let mut script = script(entries);
    if let Some(Entry { event: Event::RunStarted { seed, .. }, .. }) = script.first_mut() {
        *seed = run.seed; // what became of it in the lives that were not read
    }
    script
}

/// Where it was that something was abandoned, if the entry that said so is discarded and the one at that place before it says so now.
type Moved = BTreeMap<(Seq, TimerName), Seq>;

fn carry_over(script: &mut Vec<Entry>, moved: &mut Moved, retried: &Retried) {
    begin_in_time(script);
    let discards = |entry: &Entry| retried.discards(&entry.event, entry.seq);
    let spent: BTreeSet<Seq> = script.iter().filter(|entry| discards(entry)).filter_map(taken).collect();
    let kept: BTreeSet<Seq> = script.iter().filter(|entry| !discards(entry)).filter_map(taken).collect();
    for mut entry in std::mem::take(script) {
        let seq = entry.seq;
        let place = |name: &TimerName| moved.get(&(seq, name.clone())).copied().unwrap_or(seq);
        entry
            .abandoned
            .retain(|name| name.step().is_none_or(|step| step.undone().is_none() && !retried.cuts_off(step, place(name))));
        let keeps = match &entry.event {
            Event::SignalReceived { name, .. } => kept.contains(&entry.seq) || !(answers_a_question(name) || spent.contains(&entry.seq)),
            event => !is_of_a_life(event) && !discards(&entry),
        };
        if keeps {
            script.push(entry);
        } else if let Some(before) = script.last_mut() {
            // It followed from what the code was told before.
            let places: Vec<_> = entry.abandoned.iter().map(|name| ((before.seq, name.clone()), place(name))).collect();
            moved.extend(places);
            before.abandoned.extend(entry.abandoned);
        }
    }
    if let (Some(Entry { event: Event::RunStarted { input, .. }, .. }), Some(edited)) = (script.first_mut(), &retried.input) {
        *input = edited.clone();
    }
}

fn begin_anew(script: &mut Vec<Entry>, continued: &Entry) {
    let taken: BTreeSet<Seq> = script.iter().filter_map(taken).collect();
    script.retain(|entry| match &entry.event {
        Event::RunStarted { .. } => true,
        event if is_verb(event) => true,
        Event::SignalReceived { name, .. } => !answers_a_question(name) && !taken.contains(&entry.seq),
        _ => false,
    });
    script.iter_mut().for_each(|entry| entry.abandoned.clear()); // whatever the code no longer waited for, it did not ask for now
    if let (Some(first), Event::RunContinued { input: next }) = (script.first_mut(), &continued.event)
        && let Event::RunStarted { input, seed, .. } = &mut first.event
    {
        (*input, *seed, first.at) = (next.clone(), next_seed(seed), continued.at);
    }
}

/// The signal that was taken.
fn taken(entry: &Entry) -> Option<Seq> {
    if let Event::SignalTaken { signal, .. } = entry.event { Some(signal) } else { None }
}

/// What is over with the life that it happened in.
fn is_of_a_life(event: &Event) -> bool {
    event.is_end()
        || matches!(
            event,
            Event::RunPaused { .. }
                | Event::RunResumed { .. }
                | Event::RunInterrupted
                | Event::RunCancelRequested { .. }
                | Event::RunCompensating { .. }
                | Event::UndoCompleted { .. }
                | Event::UndoFailed { .. }
                | Event::SlotAcquired { .. }
        )
        || matches!(event, Event::Task(event) if event.stage().is_none())
}
