//! A timer of a key is due, other than that of its end.
//! any --FireTimer--> same: the next attempt of a callback begins | all is forgotten · replaced, gone or too early: unchanged

use super::Key;
use crate::machine::Decision;
use crate::{Answer, Effect, EntityId, FireTimer, Timer, TimerName, Timestamp};

pub(super) fn decide(key: &Key, fire: &FireTimer, now: Timestamp) -> Decision {
    let only = |effect| Decision { entries: Vec::new(), effects: vec![effect] };
    match &fire.name {
        TimerName::Callback(revision) => match key.callbacks.get(revision).and_then(|callback| Some((callback, callback.failed.as_ref()?)))
        {
            Some((_, failed)) if failed.seq == fire.revision && failed.due_at > now => {
                let entity = EntityId::Key(key.name.clone());
                only(Effect::Arm(Timer { entity, name: fire.name.clone(), due: failed.due_at, revision: failed.seq })) // the clock was set back
            }
            Some((callback, failed)) if failed.seq == fire.revision => {
                only(Effect::CallBack { revision: *revision, attempt: callback.attempt })
            }
            _ => Decision::answer(Answer::Superseded),
        },
        TimerName::Forget if key.is_spent() && key.seq == fire.revision => only(Effect::Forget),
        _ => Decision::answer(Answer::Superseded),
    }
}
