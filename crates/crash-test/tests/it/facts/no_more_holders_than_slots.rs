//! Never more runs hold a slot than there are, by the journal of the limit and by those of the runs; a run that is under way is a member; no slot is lost.
//!
//! Subject: `crates/kernel/src/limit/mod.rs`.

use crate::world::World;
use std::collections::BTreeMap;
use steadfast_kernel::{Entity, Event, LimitKey, Timestamp};

pub(super) fn holds(now: &World, _before: &World) {
    for (limit, history) in now.limits() {
        let states = history.before.iter().flatten().chain([&history.state]);
        for state in states {
            let Entity::Limit(limit) = state else { panic!("{} is no limit", limit.key) };
            assert!(limit.held() <= limit.slots as usize, "{limit:?}");
        }
        let most = limit.slots as usize;
        assert!(limit.line.is_empty() || limit.held() == most, "somebody waits, and a slot is free: {limit:?}");
    }
    for (key, times) in slot_times(now) {
        let slots = now.limits().find(|(limit, _)| limit.key == key).map_or(0, |(limit, _)| limit.slots);
        let mut changes: Vec<(Timestamp, i64)> = times.into_iter().flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
        changes.sort_unstable(); // who goes at that moment goes before who comes
        let mut held = 0;
        for (at, change) in changes {
            held += change;
            assert!(held <= i64::from(slots), "{held} runs hold one of {slots} slots of {key} at {at}");
        }
    }
    for (run, _) in now.runs().filter(|(run, _)| run.ended().is_none()) {
        for limiting in run.options.limits.iter().take(run.slots.held) {
            let member = now
                .limits()
                .find(|(limit, _)| limit.key == limiting.key)
                .and_then(|(limit, _)| limit.members.get(&run.id));
            let holds = member.is_some_and(|member| member.place.is_none() && member.epoch == run.slots.epoch);
            assert!(holds, "{} is under way without its slot of {}: {member:?}", run.id, limiting.key);
        }
    }
}

/// From when to when runs have had a slot of each limit, by their own journals.
fn slot_times(now: &World) -> BTreeMap<LimitKey, Vec<(Timestamp, Timestamp)>> {
    let mut times: BTreeMap<LimitKey, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    for (_, history) in now.runs() {
        let mut since: BTreeMap<LimitKey, Timestamp> = BTreeMap::new();
        for entry in &history.journal {
            match &entry.event {
                Event::SlotAcquired { key } => drop(since.insert(key.clone(), entry.at)),
                event if event.is_end() => {
                    for (key, from) in std::mem::take(&mut since) {
                        times.entry(key).or_default().push((from, entry.at));
                    }
                }
                _ => {}
            }
        }
        for (key, from) in since {
            times.entry(key).or_default().push((from, Timestamp::MAX));
        }
    }
    times
}

pub(super) fn holds_at_the_end(world: &World) {
    for (limit, _) in world.limits() {
        assert!(limit.members.is_empty(), "every run has ended, and {limit:?}");
    }
    assert!(world.limits().count() >= 4, "there were limits");
}
