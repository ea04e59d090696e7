//! Redis as the place that instances share.

use crate::checkpoint;
use crate::fault::away;
use crate::keys::Keys;
use crate::link::{Answers, Link};
use crate::read::Found;
use crate::settings::{Settings, SettingsError};
use crate::write::{Answer, Command, Maker};
use async_trait::async_trait;
use redis::{Cmd, Pipeline, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use steadfast_kernel::{InstanceId, PlanId, RunId, TenantId};
use steadfast_store::{Commons, CommonsError, LockHolder, SharedCheckpoint, SharedLock, SharedPlan, SharedTask, Write, Wrote};

/// How many commands go in one round trip at most, so that neither side has to keep too many answers at once.
const AT_ONCE: usize = 20_000;
/// How many keys one step of a search looks at, about.
const LOOK_AT: u32 = 1000;

/// Redis as the place that instances share.
///
/// It is connected when it is needed and not before, and again after the connection was lost. After a try that failed the next one is made 100 milliseconds to
/// 5 seconds later; until then every call fails at once, with what was found.
pub struct Redis {
    keys: Keys,
    settings: Settings,
    link: Link,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Redis {
    /// Takes the settings. Nothing is connected yet, so that an instance can begin while Redis is away.
    ///
    /// # Errors
    /// If a setting cannot be.
    pub fn open(settings: Settings) -> Result<Self, SettingsError> {
        let address = settings.address()?;
        steadfast_tls::install_default();
        Ok(Redis { keys: Keys::new(&settings.prefix), link: Link::new(settings.clone(), address), settings })
    }

    /// Sends commands, in as many round trips as they need, and gives each answer to one of the keys.
    async fn read<T>(
        &self,
        keys: &[String],
        commands: Vec<Cmd>,
        take: impl Fn(Found<'_>) -> Result<T, CommonsError>,
    ) -> Result<Vec<T>, CommonsError> {
        let per_key = commands.len() / keys.len().max(1);
        let mut taken = Vec::with_capacity(commands.len());
        for (part, commands) in commands.chunks(AT_ONCE).enumerate() {
            let Answers { values, place } = self.link.ask(&pipeline(commands.iter())).await?;
            for (index, value) in values.into_iter().enumerate() {
                let key = &keys[(part * AT_ONCE + index) / per_key];
                taken.push(take(Found { key, place: &place, value })?);
            }
        }
        Ok(taken)
    }

    /// Reads one key.
    async fn read_one<T>(
        &self,
        command: &str,
        key: String,
        take: impl Fn(Found<'_>) -> Result<T, CommonsError>,
    ) -> Result<T, CommonsError> {
        let commands = vec![of_key(command, &key)];
        let mut taken = self.read(&[key], commands, take).await?;
        taken.pop().ok_or_else(|| away("Redis gave no answer"))
    }

    /// Sends commands in one round trip; those whose scripts the server has lost, and all scripts after them, once more.
    async fn write(&self, commands: &[Command]) -> Result<Vec<Wrote>, CommonsError> {
        let mut wrote: Vec<Option<Wrote>> = Vec::new();
        wrote.resize_with(commands.len(), || None);
        let mut from = 0;
        for _ in 0..2 {
            let sent: Vec<usize> = (from..commands.len()).filter(|at| wrote[*at].is_none() || commands[*at].is_script()).collect();
            match self.write_these(commands, &sent, &mut wrote).await? {
                Some(lost) => from = lost,
                None => return Ok(wrote.into_iter().flatten().collect()),
            }
            self.link.reload().await?;
        }
        Err(away("Redis loses its scripts again and again"))
    }

    /// Where the first one is whose script was lost.
    async fn write_these(&self, commands: &[Command], sent: &[usize], wrote: &mut [Option<Wrote>]) -> Result<Option<usize>, CommonsError> {
        let Answers { values, place } = self.link.ask(&pipeline(sent.iter().map(|at| &commands[*at].cmd))).await?;
        let mut lost = None;
        for (at, value) in sent.iter().zip(&values) {
            match commands[*at].answer(value, &place)? {
                Answer::Wrote(outcome) => wrote[*at] = Some(outcome),
                Answer::NoScript => lost = lost.or(Some(*at)),
            }
        }
        Ok(lost)
    }
}

fn pipeline<'a>(commands: impl ExactSizeIterator<Item = &'a Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(commands.len());
    for command in commands {
        pipeline.add_command(command.clone());
    }
    pipeline
}

fn of_key(command: &str, key: &str) -> Cmd {
    let mut cmd = redis::cmd(command);
    cmd.arg(key);
    cmd
}

#[async_trait]
impl Commons for Redis {
    async fn send(&self, writes: Vec<Write>) -> Result<Vec<Wrote>, CommonsError> {
        let maker = Maker { keys: &self.keys, settings: &self.settings };
        let mut wrote = Vec::with_capacity(writes.len());
        for writes in writes.chunks(AT_ONCE) {
            let commands: Vec<Command> = writes.iter().map(|write| maker.command(write)).collect();
            wrote.extend(self.write(&commands).await?);
        }
        Ok(wrote)
    }

    async fn plan(&self, plan: &PlanId) -> Result<Option<SharedPlan>, CommonsError> {
        let take = |found: Found<'_>| match found.fields()? {
            Some(fields) => fields.plan(plan).map(Some).ok_or_else(|| found.foreign()),
            None => Ok(None),
        };
        self.read_one("HGETALL", self.keys.plan(plan), take).await
    }

    async fn tasks(&self, tasks: &[RunId]) -> Result<Vec<SharedTask>, CommonsError> {
        let keys: Vec<String> = tasks.iter().map(|task| self.keys.task(task)).collect();
        let commands = keys.iter().map(|key| of_key("HGETALL", key)).collect();
        let ids: BTreeMap<&str, &RunId> = keys.iter().map(String::as_str).zip(tasks).collect();
        let take = |found: Found<'_>| match (found.fields()?, ids.get(found.key)) {
            (Some(fields), Some(task)) => fields.task(task).map(Some).ok_or_else(|| found.foreign()),
            _ => Ok(None),
        };
        Ok(self.read(&keys, commands, take).await?.into_iter().flatten().collect())
    }

    async fn task_of(&self, tenant: &TenantId) -> Result<Option<RunId>, CommonsError> {
        self.read_one("GET", self.keys.index(tenant), |found| found.as_a(|text| RunId::new(text).ok()))
            .await
    }

    async fn checkpoint(&self, task: &RunId) -> Result<Option<SharedCheckpoint>, CommonsError> {
        let take = |found: Found<'_>| found.as_a(|text| checkpoint::read(text.as_bytes()));
        self.read_one("GET", self.keys.checkpoint(task), take).await
    }

    async fn locks(&self, tenants: &[TenantId]) -> Result<Vec<SharedLock>, CommonsError> {
        let keys: Vec<String> = tenants.iter().map(|tenant| self.keys.lock(tenant)).collect();
        let commands = keys.iter().flat_map(|key| [of_key("GET", key), of_key("PTTL", key)]).collect();
        let read = self.read(&keys, commands, |found| match found.value {
            Value::Int(_) => found.number().map(Lock::Left),
            _ => found.as_a(LockHolder::parse).map(Lock::Holder),
        });
        let read = read.await?;
        Ok(tenants.iter().zip(read.chunks_exact(2)).filter_map(|(tenant, pair)| lock(tenant, pair)).collect())
    }

    async fn holders(&self, tenants: &[TenantId]) -> Result<Vec<Option<LockHolder>>, CommonsError> {
        if tenants.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = redis::cmd("MGET");
        for tenant in tenants {
            all.arg(self.keys.lock(tenant));
        }
        let Answers { values, place } = self.link.ask(&pipeline([&all].into_iter())).await?;
        match values.into_iter().next() {
            Some(Value::Array(values)) if values.len() == tenants.len() => Ok(values.iter().map(held).collect()),
            Some(Value::ServerError(error)) => Err(crate::fault::of_answer(&error, &place)),
            _ => Err(away(format!("Redis at {place} gave another answer than it should"))),
        }
    }

    async fn fence(&self, tenant: &TenantId) -> Result<u64, CommonsError> {
        let read = self.read_one("GET", self.keys.fence(tenant), |found| found.as_a(|text| text.parse().ok()));
        Ok(read.await?.unwrap_or(0))
    }

    async fn alive(&self, instances: &[InstanceId]) -> Result<Vec<InstanceId>, CommonsError> {
        let keys: Vec<String> = instances.iter().map(|instance| self.keys.instance(instance)).collect();
        let commands = keys.iter().map(|key| of_key("GET", key)).collect();
        let lives = self.read(&keys, commands, |found| Ok(found.text()?.is_some())).await?;
        Ok(instances
            .iter()
            .zip(lives)
            .filter(|(_, lives)| *lives)
            .map(|(instance, _)| instance.clone())
            .collect())
    }

    async fn instances(&self, from: u64) -> Result<(u64, Vec<InstanceId>), CommonsError> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(self.keys.instances()).arg("COUNT").arg(LOOK_AT);
        let mut found = self
            .read(&[self.keys.instances()], vec![scan], |found| found.scanned(|key| self.keys.instance_of(key)))
            .await?;
        found.pop().ok_or_else(|| away("Redis gave no answer"))
    }
}

/// Who has a lock, if that can be read.
fn held(value: &Value) -> Option<LockHolder> {
    match value {
        Value::BulkString(bytes) => LockHolder::parse(std::str::from_utf8(bytes).ok()?),
        _ => None,
    }
}

/// What is read of a lock.
enum Lock {
    Holder(Option<LockHolder>),
    /// In milliseconds; negative if it has no end, or is gone.
    Left(i64),
}

fn lock(tenant: &TenantId, pair: &[Lock]) -> Option<SharedLock> {
    let [Lock::Holder(Some(holder)), Lock::Left(left)] = pair else { return None };
    let left = match *left {
        -1 => Duration::MAX,
        left => Duration::from_millis(u64::try_from(left).ok()?),
    };
    Some(SharedLock { tenant: tenant.clone(), holder: holder.clone(), left })
}
