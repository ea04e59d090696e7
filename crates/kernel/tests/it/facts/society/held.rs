//! What must always hold among entities that talk.

use super::*;

impl Society {
    pub(super) fn holds(&self) -> TestCaseResult {
        for (id, entity) in &self.entities {
            a_snapshot_restores_the_state(id, entity)?;
        }
        for limit in self.limits() {
            let journal = &self.journals[&EntityId::Limit(limit.key.clone())];
            first_come_first_served(journal)?;
            let most = journal
                .iter()
                .filter_map(|entry| if let Event::SlotRequested { slots, .. } = entry.event { Some(slots) } else { None });
            prop_assert!(limit.held() <= most.max().unwrap_or_default() as usize, "{} holders of {}", limit.held(), limit.key);
        }
        for run in self.runs() {
            for limit in run.options.limits.iter().take(run.slots.held) {
                let Some(Entity::Limit(limit)) = self.entities.get(&EntityId::Limit(limit.key.clone())) else {
                    return Err(TestCaseError::fail("a slot of a limit that is not there"));
                };
                let member = limit.members.get(&run.id).map(|member| (member.epoch, member.place));
                prop_assert_eq!(member, Some((run.slots.epoch, None)), "{} has no slot of {}", run.id, limit.key);
            }
        }
        Ok(())
    }

    /// When everything was heard, nobody waits for what cannot come.
    pub(super) fn holds_when_healed(&self) -> TestCaseResult {
        for run in self.runs().filter(|run| run.is_ready()) {
            let limit = self.limits().find(|limit| Some(&limit.key) == run.wanted()).expect("a limit that was asked");
            prop_assert!(limit.position(&run.id).is_some(), "{} is not in line", run.id);
            prop_assert!(limit.held() >= limit.slots as usize, "{} waits and {} has a slot", run.id, limit.key);
        }
        for run in self.runs() {
            let children = run.open().into_iter().flat_map(|open| open.children.values());
            for child in children.filter(|child| !child.detached && !child.ended) {
                let is_open = self.run(&child.run).is_some_and(|child| child.open().is_some());
                prop_assert!(is_open, "{} waits for {}, of which nothing can come", run.id, child.run);
            }
        }
        for run in self.runs() {
            let Phase::Ended(ended, left) = &run.phase else { continue };
            for child in left.children.values().filter(|child| ended.outcome.is_err() && !child.detached && !child.ended) {
                let is_mine = |of: &&Run| of.options.parent.as_ref().is_some_and(|parent| parent.run == run.id);
                let by_itself = |child: &&Run| !self.was_retried(child); // a person may have it go on
                let child = self.run(&child.run).filter(is_mine).filter(by_itself);
                prop_assert!(child.is_none_or(|child| child.ended().is_some() || child.is_called_off()), "a child of {} goes on", run.id);
            }
        }
        self.letters_are_where_they_belong()
    }

    fn was_retried(&self, run: &Run) -> bool {
        self.journals[&EntityId::from(&run.id)]
            .iter()
            .any(|entry| matches!(entry.event, Event::RunRetried(_)))
    }

    /// A letter is in the box as long as its step has failed, unless a person threw it away, or the code began again without a past.
    fn letters_are_where_they_belong(&self) -> TestCaseResult {
        let there: BTreeSet<_> = self.letters().into_values().collect();
        let failed: BTreeSet<_> = self.runs().flat_map(|run| run.letters.iter().map(|step| (run.id.clone(), step.clone()))).collect();
        for (run, step) in there.difference(&failed) {
            let journal = &self.journals[&EntityId::from(run)];
            let begun_anew = journal.iter().any(|entry| matches!(entry.event, Event::RunContinued { .. }));
            prop_assert!(begun_anew, "the letter of {} of {} is not settled", step, run);
        }
        let dropped = |entry: &&Entry| matches!(entry.event, Event::LetterDropped { .. });
        let dropped = self.journals.get(&letter_box()).into_iter().flatten().filter(dropped).count();
        let begun_anew = self.journals.values().flatten().any(|entry| matches!(entry.event, Event::RunContinued { .. }));
        prop_assert!(begun_anew || there.len() == self.letters().len(), "a letter is there twice");
        let missing = failed.difference(&there).count();
        prop_assert!(missing <= dropped || begun_anew, "{} letters are missing, {} were thrown away", missing, dropped);
        Ok(())
    }
}

/// Who has a slot has asked for it before everybody who still waits.
fn first_come_first_served(journal: &[Entry]) -> TestCaseResult {
    let mut line = Vec::new();
    for entry in journal {
        match &entry.event {
            Event::SlotRequested { run, .. } => line.push(run),
            Event::SlotGranted { run } => {
                prop_assert_eq!(line.first(), Some(&run), "it is not its turn");
                line.remove(0);
            }
            Event::SlotReleased { run } => line.retain(|other| *other != run),
            other => prop_assert!(false, "{} happens to a limit", other.kind()),
        }
    }
    Ok(())
}
