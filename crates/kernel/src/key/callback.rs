//! An attempt to tell of an end is over.
//! any --ReportCallback--> same: CALLBACK_SETTLED | CALLBACK_FAILED, and another attempt by policy | LETTER_ADDED · not the attempt to come: unchanged

use super::{Callback, Key, not_found};
use crate::machine::Decision;
use crate::random::{Seed, Stream};
use crate::{
    Answer, Effect, EntityId, Event, Failure, Letter, LetterAbout, Policy, ReportCallback, RunId, Timer, TimerName, Timestamp, Verdict,
};

/// Retries spread by the name of the key and its revision; there is nothing to be guessed.
const SEED: Seed = Seed([0; 32]);

pub(super) fn decide(key: &Key, command: ReportCallback, now: Timestamp) -> Decision {
    let ReportCallback { revision, attempt, outcome, policy } = command;
    match key.callbacks.get(&revision) {
        None => not_found(),
        Some(callback) if callback.attempt != attempt => Decision::answer(Answer::Mismatch),
        Some(callback) => match outcome {
            Ok(run) => settle(key, callback, run, now),
            Err(failure) => fail(key, callback, failure, &policy, now),
        },
    }
}

fn settle(key: &Key, callback: &Callback, run: Option<RunId>, now: Timestamp) -> Decision {
    let (revision, attempt) = (callback.revision, callback.attempt);
    let entry = key.entry(0, now, Event::CallbackSettled { revision, attempt, run });
    let spent = key.held.is_none() && key.callbacks.len() == 1 && key.letters.is_empty();
    let mut effects = disarm(callback);
    effects.extend(spent.then_some(Effect::Retire(entry.seq)));
    effects.push(Effect::Answer(Answer::Reported));
    Decision { entries: vec![entry], effects }
}

fn fail(key: &Key, callback: &Callback, failure: Failure, policy: &Policy, now: Timestamp) -> Decision {
    let (revision, attempt) = (callback.revision, callback.attempt);
    let draw = Stream::new(&SEED, key.name.as_str(), &format!("callback/{revision}")).at(u64::from(attempt));
    match policy.after(attempt, &failure, now, policy.deadline_at(callback.ended_at), draw) {
        Verdict::RetryIn { delay, of } => {
            let due_at = now.saturating_add(delay);
            let entry = key.entry(0, now, Event::CallbackFailed { revision, attempt, of, delay, due_at, failure });
            let entity = EntityId::Key(key.name.clone());
            let timer = Timer { entity, name: TimerName::Callback(revision), due: due_at, revision: entry.seq };
            Decision { entries: vec![entry], effects: vec![Effect::Arm(timer), Effect::Answer(Answer::Reported)] }
        }
        Verdict::GiveUp(why) => {
            let about = LetterAbout::Expiry { key: key.name.clone(), revision };
            let (failure, payload) = (why.failure(failure, attempt), callback.value.clone());
            let letter = Letter { about, attempt, tenant: None, failure, payload };
            let mut effects = disarm(callback);
            effects.push(Effect::Answer(Answer::Reported));
            Decision { entries: vec![key.entry(0, now, Event::LetterAdded(Box::new(letter)))], effects }
        }
    }
}

/// The timer of an attempt stays until it is over, so that a restart finds it.
fn disarm(callback: &Callback) -> Vec<Effect> {
    let timer = callback.failed.as_ref().map(|_| Effect::Disarm(TimerName::Callback(callback.revision)));
    timer.into_iter().collect()
}
