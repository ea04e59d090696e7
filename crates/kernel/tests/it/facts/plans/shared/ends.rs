//! What must hold between two instances, and that all of it comes to an end once both are there and people see to what waits for them.

use super::*;

/// So many things are seen to at the most.
const ROUNDS: usize = 3_000;

impl Pair {
    pub(super) fn holds(&self) -> TestCaseResult {
        self.of.iter().try_for_each(Rollouts::holds)?;
        if self.unfilled == [false; 2] {
            TENANTS.iter().try_for_each(|name| self.one_holder(&tenant(name)))?;
        }
        Ok(())
    }

    /// Whoever believes to have a lock either has it, as the commons say, or has a lower fence than who has it, or than who had it last: then whatever
    /// it writes is refused. No two holdings have the same fence.
    fn one_holder(&self, tenant: &TenantId) -> TestCaseResult {
        let (there, last) = (self.commons.holding(tenant, self.now()), self.commons.fence(tenant));
        let mut fences = BTreeSet::new();
        for (who, one) in self.of.iter().enumerate() {
            let gives_it_back = |task: &RunId| one.run(task).is_some_and(Run::is_handed_over);
            let held = one.lock(tenant).and_then(Lock::held);
            let Some(lease) = held.filter(|lease| !gives_it_back(&lease.task)) else { continue };
            prop_assert!(lease.fence <= last, "{} of {} was never given to {}", lease.fence, tenant, who);
            prop_assert!(fences.insert(lease.fence), "fence {} of {} was given twice", lease.fence, tenant);
            if let Some(there) = there.filter(|there| lease.fence >= there.fence) {
                let is_it = (there.instance, &there.task, there.fence) == (who, &lease.task, lease.fence);
                prop_assert!(is_it, "{} and {:?} both have {}", lease.task, there, tenant);
            }
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> TestCaseResult {
        [0, 1].into_iter().try_for_each(|who| self.comes_back(who))?;
        for round in 0.. {
            prop_assert!(round < ROUNDS, "they never come to an end");
            let now = self.now().saturating_add(Duration::from_millis(1));
            self.of.iter_mut().for_each(|one| one.now = now);
            self.settles()?;
            if !self.goes_on()? {
                break;
            }
            self.holds()?;
        }
        self.has_ended()
    }

    /// Everything that was said is heard, and every claim is settled.
    fn settles(&mut self) -> TestCaseResult {
        while let Some(said) = self.late.pop() {
            self.hears(said)?;
        }
        for who in [0, 1, 0] {
            self.of[who].heal()?; // the first hears last what the second has taken back
            self.leases_end(who)?;
            self.of[who].heal()?;
            self.sync(who)?;
            self.of[who].heal()?;
            self.sync(who)?;
            self.of[who].holds_when_healed()?;
        }
        for who in [0, 1] {
            for tenant in self.wanted(who) {
                self.claim(who, &tenant, Comes::Now)?;
            }
            self.of[who].heal()?;
            self.of[who].holds_when_healed()?;
        }
        Ok(())
    }

    /// Leases that are due are renewed, or are over.
    fn leases_end(&mut self, who: Who) -> TestCaseResult {
        let is_due = |timer: &&Timer| timer.name == TimerName::Lease && timer.due <= self.of[who].now;
        let due: Vec<Timer> = self.of[who].armed.values().filter(is_due).cloned().collect();
        due.iter().try_for_each(|timer| self.of[who].fire(timer).map(drop))
    }

    /// A person or a host does the next thing, if there is one.
    fn goes_on(&mut self) -> Result<bool, TestCaseError> {
        for who in [0, 1] {
            let Some((id, command)) = self.of[who].to_be_seen_to() else { continue };
            if let (Command::TakeTurn(_), Some(run)) = (&command, id.run().and_then(|run| self.of[who].run(run))) {
                prop_assert!(self.has_its_lock(who, run), "{} is under way, and the commons do not say so", run.id);
            }
            self.ask(who, &id, command)?;
            let all_is_known = self.of[who].runs().map(|run| (who, run.id.clone())).collect::<Vec<_>>();
            self.discarded.extend(all_is_known);
            return Ok(true);
        }
        for who in [0, 1] {
            if let Some(task) = self.adoptable(who).into_iter().next() {
                self.adopt(who, &task, true)?;
                return Ok(true);
            }
        }
        self.clears_the_way()
    }

    /// Whoever has a lock that somebody of the same or the other instance waits for is called off.
    fn clears_the_way(&mut self) -> Result<bool, TestCaseError> {
        for who in [0, 1] {
            let mut blocked = self.wanted(who).into_iter().filter_map(|tenant| self.commons.holding(&tenant, self.now()).cloned());
            if let Some(Holding { instance, task, .. }) = blocked.next() {
                self.ask(instance, &(&task).into(), cancel())?;
                return Ok(true);
            }
            if !self.wanted(who).is_empty() {
                return Ok(true); // it is free, and claimed next
            }
            if let Some((id, command)) = self.of[who].in_the_way() {
                self.ask(who, &id, command)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_ended(&mut self) -> TestCaseResult {
        for who in [0, 1] {
            for plan in self.of[who].plans() {
                prop_assert!(matches!(plan.phase, steadfast_kernel::plan::Phase::Ended { .. }), "{} does not end: {:?}", plan.id, plan);
            }
            let open = self.of[who].runs().find(|run| run.open().is_some());
            prop_assert!(open.is_none(), "{:?} does not end", open);
            let kept: Vec<RunId> = self.of[who].locks().filter_map(|lock| self.of[who].owner(&lock.tenant)).collect();
            for task in kept {
                self.ask(who, &task.into(), cancel())?;
            }
        }
        self.settles()?;
        for who in [0, 1] {
            let left = self.of[who].locks().find(|lock| lock.holder.is_some() || !lock.line.is_empty());
            prop_assert!(left.is_none(), "{:?} is left", left);
            self.of[who].journals_hold()?;
        }
        let left: Vec<_> = self.commons.held().collect();
        prop_assert!(left.is_empty(), "the commons keep {:?}", left);
        self.each_task_has_one_owner()
    }

    /// Every task is over at one instance, and handed over at the other if that knows of it.
    fn each_task_has_one_owner(&self) -> TestCaseResult {
        for (task, there) in &self.commons.tasks {
            let here = [0, 1].map(|who| self.of[who].run(task).is_some_and(|run| !run.is_handed_over()));
            prop_assert!(here != [true; 2], "{} is of both", task);
            if let Some(owner) = there.owner {
                prop_assert!(here[owner], "{} is of {}, which does not know", task, owner);
            }
        }
        Ok(())
    }
}
