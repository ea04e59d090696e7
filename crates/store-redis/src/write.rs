//! Writes as commands, one for each, and what the answers mean.

use crate::checkpoint;
use crate::fault;
use crate::keys::{AS_OF, FENCE, Keys, OWNER, PLAN_FIELDS, TASK_FIELDS, plan_field, task_field};
use crate::scripts::{self, Lua};
use crate::settings::Settings;
use redis::{Cmd, Value};
use std::time::Duration;
use steadfast_kernel::InstanceId;
use steadfast_store::{AsOf, CommonsError, LockHolder, PlanField, SharedCheckpoint, TaskField, Write, Wrote};

/// A write, ready to be sent.
pub(crate) struct Command {
    pub(crate) cmd: Cmd,
    key: String,
    means: Means,
}

/// How the answer is to be read.
enum Means {
    /// As the outcome of a script.
    Outcome,
    /// As the outcome of a script that looks at what one instance says.
    Life(InstanceId),
    /// As what was there before.
    Before,
    /// Nothing is sent: this cannot be stored.
    Nothing,
}

/// What an answer means.
pub(crate) enum Answer {
    /// That became of it.
    Wrote(Wrote),
    /// The server has lost the script.
    NoScript,
}

/// The longest that something lives: a hundred years, so that no sum in the server overflows.
const LONGEST: u64 = 100 * 365 * 24 * 60 * 60 * 1000;

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(LONGEST).clamp(1, LONGEST)
}

/// A call of a script on one key, to which its arguments are added.
struct Call {
    cmd: Cmd,
    key: String,
}

impl Call {
    fn of(script: &Lua, key: String) -> Self {
        let mut cmd = Cmd::new();
        cmd.arg("EVALSHA").arg(script.hash.as_str()).arg(1).arg(&key);
        Call { cmd, key }
    }

    fn arg(mut self, arg: impl redis::ToRedisArgs) -> Self {
        self.cmd.arg(arg);
        self
    }

    /// Those that are no longer there, then those that are.
    fn fields<'a>(self, gone: &[&'static str], there: impl Iterator<Item = (&'static str, &'a str)>) -> Self {
        let call = gone.iter().fold(self.arg(gone.len()), |call, field| call.arg(field));
        there.fold(call, |call, (field, value)| call.arg(field).arg(value))
    }

    fn done(self) -> Command {
        Command { cmd: self.cmd, key: self.key, means: Means::Outcome }
    }
}

/// Makes commands of writes.
pub(crate) struct Maker<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) settings: &'a Settings,
}

impl Maker<'_> {
    fn ttl(&self) -> u64 {
        millis(self.settings.ttl)
    }

    pub(crate) fn command(&self, write: &Write) -> Command {
        match write {
            Write::Beat { instance, says } => self.beat(instance, says),
            Write::Leave { instance, says } => {
                let call = Call::of(&scripts::LEAVE, self.keys.instance(instance)).arg(says);
                Command { means: Means::Life(instance.clone()), ..call.done() }
            }
            Write::Plan { plan, owner, fields, whole, as_of } => self.plan(self.keys.plan(plan), owner, fields, (*whole, *as_of)),
            Write::Task { task, owner, fence, fields, whole, as_of } => {
                self.task(self.keys.task(task), (owner, *fence), fields, (*whole, *as_of))
            }
            Write::Adopt { task, from, to, fence } => Call::of(&scripts::ADOPT, self.keys.task(task))
                .arg(text(from.0.as_ref()))
                .arg(self.ttl())
                .arg(from.1)
                .arg(text(to.as_ref()))
                .arg(from.1.max(*fence))
                .done(),
            Write::Index { tenant, task, unless_there } => {
                let call = Call::of(&scripts::INDEX, self.keys.index(tenant));
                call.arg(task.as_str()).arg(self.ttl()).arg(u8::from(*unless_there)).done()
            }
            Write::Checkpoint { task, checkpoint } => self.checkpoint(self.keys.checkpoint(task), checkpoint),
            Write::DropCheckpoint { task, fence } => Call::of(&scripts::DROP_CHECKPOINT, self.keys.checkpoint(task)).arg(fence).done(),
            Write::NextFence { tenant, above } => Call::of(&scripts::NEXT_FENCE, self.keys.fence(tenant)).arg(above).done(),
            Write::RaiseFence { tenant, to } => Call::of(&scripts::RAISE_FENCE, self.keys.fence(tenant)).arg(to).done(),
            Write::TakeLock { tenant, holder, lease, instead_of } => lock(&scripts::TAKE_LOCK, self.keys.lock(tenant), holder)
                .arg(millis(*lease))
                .arg(instead_of.as_ref().map(LockHolder::to_string).unwrap_or_default())
                .done(),
            Write::RenewLock { tenant, holder, lease } => {
                lock(&scripts::RENEW_LOCK, self.keys.lock(tenant), holder).arg(millis(*lease)).done()
            }
            Write::ReleaseLock { tenant, holder } => lock(&scripts::RELEASE_LOCK, self.keys.lock(tenant), holder).done(),
        }
    }

    fn beat(&self, instance: &InstanceId, says: &str) -> Command {
        let key = self.keys.instance(instance);
        let mut cmd = Cmd::new();
        cmd.arg("SET").arg(&key).arg(says).arg("PX").arg(millis(self.settings.heartbeat_ttl)).arg("GET");
        Command { cmd, key, means: Means::Before }
    }

    fn plan(&self, key: String, owner: &InstanceId, fields: &[(PlanField, String)], (whole, as_of): (bool, Option<AsOf>)) -> Command {
        let gone = PLAN_FIELDS
            .into_iter()
            .filter(|field| whole && fields.iter().all(|(given, _)| given != field))
            .map(plan_field);
        let there = fields.iter().map(|(field, value)| (plan_field(*field), value.as_str()));
        let as_of = as_of.map(|as_of| as_of.to_string());
        Call::of(&scripts::PLAN, key)
            .arg(owner.as_str())
            .arg(self.ttl())
            .arg(u8::from(whole))
            .arg(as_of.as_deref().unwrap_or_default())
            .fields(
                &gone.collect::<Vec<_>>(),
                there.chain([(OWNER, owner.as_str())]).chain(as_of.iter().map(|text| (AS_OF, text.as_str()))),
            )
            .done()
    }

    fn task(
        &self,
        key: String,
        (owner, fence): (&InstanceId, u64),
        fields: &[(TaskField, String)],
        (whole, as_of): (bool, Option<AsOf>),
    ) -> Command {
        let gone = TASK_FIELDS
            .into_iter()
            .filter(|field| whole && fields.iter().all(|(given, _)| given != field))
            .map(task_field);
        let there = fields.iter().map(|(field, value)| (task_field(*field), value.as_str()));
        let (fence, as_of) = (fence.to_string(), as_of.map(|as_of| as_of.to_string()));
        let ours = [(OWNER, owner.as_str()), (FENCE, fence.as_str())];
        Call::of(&scripts::TASK, key)
            .arg(owner.as_str())
            .arg(self.ttl())
            .arg(u8::from(whole))
            .arg(&fence)
            .arg(as_of.as_deref().unwrap_or_default())
            .fields(&gone.collect::<Vec<_>>(), there.chain(ours).chain(as_of.iter().map(|text| (AS_OF, text.as_str()))))
            .done()
    }

    fn checkpoint(&self, key: String, found: &SharedCheckpoint) -> Command {
        let Some(text) = checkpoint::write(found) else { return nothing(key) };
        Call::of(&scripts::CHECKPOINT, key)
            .arg(text)
            .arg(self.ttl())
            .arg(found.fence)
            .arg(found.version)
            .done()
    }
}

/// Something that cannot be stored is not sent, and does not keep others from being sent; in its place goes a command that changes nothing.
fn nothing(key: String) -> Command {
    tracing::error!(key, "the data of a checkpoint is not JSON; it is not shared");
    let mut cmd = Cmd::new();
    cmd.arg("PING");
    Command { cmd, key, means: Means::Nothing }
}

fn lock(script: &Lua, key: String, holder: &LockHolder) -> Call {
    let LockHolder { plan, task, instance, fence } = holder;
    Call::of(script, key).arg(format!("{plan}:{task}:{instance}")).arg(fence)
}

/// Nobody is the empty text.
fn text(instance: Option<&InstanceId>) -> &str {
    instance.map_or("", InstanceId::as_str)
}

impl Command {
    /// True if it is sent again together with what comes before it, after the server has lost its scripts.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self.means, Means::Outcome | Means::Life(_))
    }

    /// What the answer means; `place` says which server gave it.
    pub(crate) fn answer(&self, value: &Value, place: &str) -> Result<Answer, CommonsError> {
        if let Value::ServerError(error) = value {
            return match error.code() {
                "NOSCRIPT" => Ok(Answer::NoScript),
                "WRONGTYPE" => Ok(Answer::Wrote(self.foreign())),
                _ => Err(fault::of_answer(error, place)),
            };
        }
        Ok(Answer::Wrote(match &self.means {
            Means::Nothing => self.foreign(),
            Means::Before => self.before(value),
            Means::Outcome => self.outcome(value),
            Means::Life(instance) => match self.outcome(value) {
                Wrote::NotYours { .. } => Wrote::NotYours { owner: Some(instance.clone()), fence: 0 },
                other => other,
            },
        }))
    }

    fn foreign(&self) -> Wrote {
        Wrote::Foreign { key: self.key.clone() }
    }

    fn before(&self, value: &Value) -> Wrote {
        match value {
            Value::Nil => Wrote::Before(None),
            Value::BulkString(bytes) => Wrote::Before(Some(String::from_utf8_lossy(bytes).into_owned())),
            _ => self.foreign(),
        }
    }

    fn outcome(&self, value: &Value) -> Wrote {
        let Value::Array(parts) = value else { return self.foreign() };
        let words: Vec<&str> = parts.iter().filter_map(word).collect();
        match words.as_slice() {
            ["done"] => Some(Wrote::Done),
            ["missing"] => Some(Wrote::Missing),
            ["fence", number] => number.parse().ok().map(Wrote::Fence),
            ["held", holder] => LockHolder::parse(holder).map(Wrote::Held),
            ["not", owner, fence] => not_yours(owner, fence),
            _ => None,
        }
        .unwrap_or_else(|| self.foreign())
    }
}

fn word(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn not_yours(owner: &str, fence: &str) -> Option<Wrote> {
    let owner = if owner.is_empty() { None } else { Some(InstanceId::new(owner).ok()?) };
    Some(Wrote::NotYours { owner, fence: fence.parse().ok()? })
}
