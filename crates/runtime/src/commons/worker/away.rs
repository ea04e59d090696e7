//! The commons are away, or are back: who has to know, which stages may begin, and how it stands.
//!
//! Tested by `crates/sdk/tests/it/instances/outages/blips.rs`.
//! Tested by `crates/sdk/tests/it/instances/outages/measured.rs`.
//! Tested by `crates/sdk/tests/it/instances/outages/seen.rs`.

use super::{Away, BLIP, RETRY, TWIN, Worker, locks};
use crate::commons::gate::Lets;
use crate::commons::{SharingHealth, SharingState};
use steadfast_kernel::{Command, EntityId};
use steadfast_store::CommonsError;

impl Worker {
    /// The commons answer.
    pub(super) fn are_back(&mut self) {
        self.doubts = false;
        if let Some(Away { since, .. }) = self.away.take() {
            let away_for = self.clock.now().saturating_since(since);
            tracing::info!(?away_for, "Redis is back: what has changed meanwhile was written, and the locks were compared");
        }
        self.metrics.up.set(1.0);
        if self.walk.is_done() {
            let why = "Redis is back, and knows what has changed meanwhile";
            for plan in std::mem::take(&mut self.alerted) {
                self.tell(EntityId::Plan(plan), Command::AlertPlan { degraded: false, why: why.into() }, None);
            }
        }
        if !self.mirror.owes() && !self.locks.owes() {
            for waiting in self.waiting.drain(..) {
                let _nobody_waits_any_more = waiting.send(());
            }
        }
    }

    /// The commons do not answer.
    pub(super) fn are_away(&mut self, error: &CommonsError) {
        let now = self.clock.now();
        self.metrics.failures.increment(1);
        self.metrics.up.set(0.0);
        let (since, pause) = match &self.away {
            Some(away) => (away.since, (away.pause * 2).min(RETRY.1)),
            None => {
                tracing::warn!(%error, "Redis cannot be used");
                self.mirror.lingers = true;
                (now, RETRY.0)
            }
        };
        self.locks.doubt(); // what is found there later may be another's
        self.away = Some(Away { since, why: error.to_string(), pause, at: now.saturating_add(pause) });
        if now.saturating_since(since) < BLIP {
            return;
        }
        let alone = self.others.may_go_on_alone(now);
        if alone.is_ok() {
            for granted in self.locks.grant_all() {
                if let locks::Then::Granted(tenant, waiter, fence) = granted {
                    self.granted(tenant, waiter, fence);
                }
            }
        }
        let what = match &alone {
            Ok(()) => "there is nobody else, so tasks go on by themselves".to_string(),
            Err(why) => format!("no stage begins, because {why}"),
        };
        for plan in self.mirror.open_plans() {
            if self.alerted.insert(plan.clone()) {
                let why = format!("Redis cannot be used: {error}; {what}");
                self.tell(EntityId::Plan(plan), Command::AlertPlan { degraded: true, why }, None);
            }
        }
    }

    /// Says which stages may begin.
    pub(super) fn open_gate(&self) {
        let now = self.clock.now();
        let lets = match (&self.away, self.beaten) {
            (None, _) if self.doubts && self.twin.is_none() => return,
            (Some(away), _) if now.saturating_since(away.since) < BLIP => return,
            (Some(away), _) => match self.others.may_go_on_alone(now) {
                Ok(()) => Lets::Everybody,
                Err(refuses) => Lets::Nobody { why: format!("{}; {refuses}", away.why) },
            },
            (None, _) if self.twin.is_some() => Lets::Nobody { why: TWIN.into() },
            (None, Some(beaten)) if self.walk.is_done() => {
                let until = beaten.saturating_add(self.sharing.gone_after - self.sharing.gone_after / 10);
                Lets::Shared { from: beaten, until, change: self.changes }
            }
            (None, _) => return,
        };
        self.gate.lets.send_if_modified(|before| {
            let changed = *before != lets;
            *before = lets;
            changed
        });
    }

    /// Shows how it stands.
    pub(super) fn show(&self) {
        let (pending, behind_since) = self.mirror.lag();
        let now = self.clock.now();
        self.metrics.pending.set(pending as f64);
        self.metrics.lag.set(behind_since.map_or(0.0, |since| now.saturating_since(since).as_secs_f64()));
        let state = match (&self.away, self.twin) {
            (Some(Away { since, why, .. }), _) => {
                let refuses = self.others.may_go_on_alone(now).err();
                SharingState::Away { since: *since, why: why.clone(), refuses }
            }
            (None, Some(since)) => {
                let refuses = Some("it is not known which of the two has what".into());
                SharingState::Away { since, why: TWIN.into(), refuses }
            }
            (None, None) if self.beaten.is_none() || !self.walk.is_done() => SharingState::Starting,
            (None, None) => SharingState::Up,
        };
        let foreign = self.foreign.keys().cloned().collect();
        let health = SharingHealth {
            instance: self.sharing.instance.clone(),
            mirror_only: false,
            state,
            seen: self.others.seen().cloned(),
            pending,
            behind_since,
            foreign,
        };
        self.health.send_if_modified(|before| {
            let changed = *before != health;
            *before = health;
            changed
        });
    }
}
