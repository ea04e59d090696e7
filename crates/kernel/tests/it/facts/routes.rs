//! The letters of a route, whatever is asked of it and in whatever order: they are those of a plain model, no message has two, and nothing is lost.

use super::journal::sequences_have_no_gap;
use super::saved::a_snapshot_restores_the_state;
use crate::support::routes::{add, dropped, fail, mail, redriven};
use crate::support::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use steadfast_kernel::machine::{advance, decide};
use steadfast_kernel::{Answer, Attempt, Origin};
use steadfast_kernel::{Command, Effect, Entity, EntityId, Entry, Record, Seq};

/// What happens to a route.
#[derive(Clone, Debug)]
enum Op {
    Add(u8),
    Fail(Seq),
    Redrive(Seq, Option<u8>),
    Drop(Seq, Option<u8>),
}

fn plot() -> impl Strategy<Value = Vec<Op>> {
    let letter = || 1..20_u64;
    let command = || proptest::option::of(0..3_u8);
    let op = prop_oneof![
        4 => (0..6_u8).prop_map(Op::Add),
        1 => letter().prop_map(Op::Fail),
        2 => (letter(), command()).prop_map(|(letter, command)| Op::Redrive(letter, command)),
        2 => (letter(), command()).prop_map(|(letter, command)| Op::Drop(letter, command)),
    ];
    proptest::collection::vec(op, 1..40)
}

fn origin(command: Option<u8>) -> Origin {
    Origin { command: command.map(|command| format!("c-{command}")), ..ada() }
}

fn asked(op: &Op) -> Command {
    match op {
        Op::Add(request) => add(&format!("r-{request}")),
        Op::Fail(letter) => fail(*letter, timeout()),
        Op::Redrive(letter, command) => redriven(*letter, origin(*command)),
        Op::Drop(letter, command) => dropped(*letter, origin(*command)),
    }
}

/// The letters that there should be: the request, and how many attempts there were.
type Model = BTreeMap<Seq, (u8, Attempt)>;

proptest! {
    #[test]
    fn the_letters_of_a_route_are_those_that_nobody_dealt_with(plot in plot()) {
        let id = EntityId::Route(mail());
        let (mut state, mut journal, mut model, mut settled): (Option<Entity>, Vec<Entry>, Model, Vec<_>) = Default::default();
        for op in &plot {
            let decided = decide(&id, state.as_ref(), asked(op), at(70));
            let known = |request: &u8| model.iter().find(|(_, (of, _))| of == request).map(|(letter, _)| *letter);
            match op {
                Op::Add(request) => {
                    let letter = known(request).unwrap_or(journal.len() as u64 + 1);
                    let decision = decided.clone().expect("there is room");
                    prop_assert_eq!(decision.effects, [Effect::Answer(Answer::Kept { letter })]);
                    model.entry(letter).or_insert((*request, 0)).1 += 1;
                }
                Op::Fail(letter) => {
                    prop_assert_eq!(decided.is_ok(), model.contains_key(letter));
                    model.entry(*letter).and_modify(|(_, attempts)| *attempts += 1);
                }
                Op::Redrive(letter, command) | Op::Drop(letter, command) => {
                    let done = (matches!(op, Op::Drop(..)), *letter, *command);
                    let again = command.is_some() && settled.contains(&done);
                    let was_there = model.remove(letter).is_some();
                    prop_assert_eq!(decided.is_ok(), was_there || again);
                    let entries = decided.as_ref().map_or(0, |decision| decision.entries.len());
                    prop_assert_eq!(entries, usize::from(was_there), "it is settled once");
                    settled.extend(was_there.then_some(done));
                }
            }
            for entry in decided.map(|decision| decision.entries).unwrap_or_default() {
                let (next, said) = advance(&id, state.take(), &entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
                prop_assert!(said.is_empty());
                state = Some(next);
                journal.push(entry);
            }
            let Some(Entity::Route(letters)) = &state else { continue };
            prop_assert_eq!(letters.letters.iter().map(|(seq, kept)| (*seq, kept.attempts)).collect::<Vec<_>>(),
                model.iter().map(|(seq, (_, attempts))| (*seq, *attempts)).collect::<Vec<_>>());
            prop_assert_eq!(letters.messages.values().copied().collect::<std::collections::BTreeSet<_>>(), model.keys().copied().collect());
        }
        sequences_have_no_gap(&journal)?;
        let stored: Vec<Entry> = journal.iter().map(|entry| Entry::try_from(&Record::from(entry)).expect("it can be read")).collect();
        prop_assert_eq!(&stored, &journal, "the store keeps every entry as it is");
        let fold = |state, entry: &Entry| Some(advance(&id, state, entry).expect("a good journal").0);
        prop_assert_eq!(&stored.iter().fold(None, fold), &state, "state is the fold of its entries");
        if let Some(state) = &state {
            a_snapshot_restores_the_state(&id, state)?;
        }
    }
}
