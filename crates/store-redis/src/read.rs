//! What is read from Redis, checked: anything that does not fit is something that none of us has put there.

use crate::fault;
use crate::keys::{FENCE, OWNER, plan_field, task_field};
use redis::Value;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use steadfast_kernel::{InstanceId, Payload, PlanId, PlanStatus, RunId, TaskStatus, TenantId, Timestamp};
use steadfast_store::{CommonsError, PlanField, SharedPlan, SharedTask, TaskField};

/// An answer, and which key of which server it is about.
pub(crate) struct Found<'a> {
    pub(crate) key: &'a str,
    pub(crate) place: &'a str,
    pub(crate) value: Value,
}

impl Found<'_> {
    pub(crate) fn foreign(&self) -> CommonsError {
        CommonsError::Foreign { key: self.key.to_owned() }
    }

    fn failed(&self) -> CommonsError {
        match &self.value {
            Value::ServerError(error) if error.code() != "WRONGTYPE" => fault::of_answer(error, self.place),
            _ => self.foreign(),
        }
    }

    /// The text of a string; nothing if there is none.
    pub(crate) fn text(&self) -> Result<Option<&[u8]>, CommonsError> {
        match &self.value {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes)),
            _ => Err(self.failed()),
        }
    }

    /// The text of a string as what it should be; nothing if there is none.
    pub(crate) fn as_a<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, CommonsError> {
        let Some(bytes) = self.text()? else { return Ok(None) };
        let text = std::str::from_utf8(bytes).map_err(|_| self.foreign())?;
        parse(text).map(Some).ok_or_else(|| self.foreign())
    }

    /// A number.
    pub(crate) fn number(&self) -> Result<i64, CommonsError> {
        match &self.value {
            Value::Int(number) => Ok(*number),
            _ => Err(self.failed()),
        }
    }

    /// A piece of a search: where to go on, and those keys that are what is looked for. Others are passed over: a search finds what it finds.
    pub(crate) fn scanned<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<(u64, Vec<T>), CommonsError> {
        let Value::Array(parts) = &self.value else { return Err(self.failed()) };
        let [next, Value::Array(keys)] = parts.as_slice() else { return Err(self.foreign()) };
        let next = utf8(next).and_then(|next| next.parse().ok()).ok_or_else(|| self.foreign())?;
        Ok((next, keys.iter().filter_map(utf8).filter_map(parse).collect()))
    }

    /// The fields of a hash; nothing if there is none. Fields that are not text are left out.
    pub(crate) fn fields(&self) -> Result<Option<Fields<'_>>, CommonsError> {
        let Value::Array(parts) = &self.value else { return Err(self.failed()) };
        let fields: Fields<'_> = Fields(parts.chunks_exact(2).filter_map(|pair| Some((utf8(&pair[0])?, utf8(&pair[1])?))).collect());
        Ok((!parts.is_empty()).then_some(fields))
    }
}

fn utf8(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The fields of a hash by their names.
pub(crate) struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// A time that need not be there; nothing at all if it is no time.
    fn time(&self, name: &str) -> Option<Option<Timestamp>> {
        match self.get(name) {
            Some(text) => timestamp(text).map(Some),
            None => Some(None),
        }
    }

    pub(crate) fn plan(&self, id: &PlanId) -> Option<SharedPlan> {
        let get = |field| self.get(plan_field(field));
        let vars = get(PlanField::Vars)?;
        serde_json::from_str::<IgnoredAny>(vars).ok()?;
        let tasks: Vec<String> = serde_json::from_str(get(PlanField::TaskIds)?).ok()?;
        Some(SharedPlan {
            plan: (get(PlanField::PlanId)? == id.as_str()).then(|| id.clone())?,
            status: PlanStatus::parse(get(PlanField::Status)?)?,
            tasks: tasks.into_iter().map(|task| RunId::new(task).ok()).collect::<Option<_>>()?,
            max_concurrency: get(PlanField::MaxConcurrency)?.parse().ok()?,
            created_at: timestamp(get(PlanField::CreatedAt)?)?,
            started_at: self.time(plan_field(PlanField::StartedAt))?,
            definition: get(PlanField::Definition)?.to_owned(),
            definition_hash: get(PlanField::DefinitionHash)?.to_owned(),
            vars: Payload::json(vars.to_owned()),
            owner: InstanceId::new(self.get(OWNER)?).ok()?,
        })
    }

    pub(crate) fn task(&self, id: &RunId) -> Option<SharedTask> {
        let get = |field| self.get(task_field(field));
        Some(SharedTask {
            task: (get(TaskField::TaskId)? == id.as_str()).then(|| id.clone())?,
            tenant: TenantId::new(get(TaskField::TenantId)?).ok()?,
            plan: PlanId::new(get(TaskField::PlanId)?).ok()?,
            status: TaskStatus::parse(get(TaskField::Status)?)?,
            pause_requested: get(TaskField::PauseRequested)?.parse().ok()?,
            created_at: timestamp(get(TaskField::CreatedAt)?)?,
            started_at: self.time(task_field(TaskField::StartedAt))?,
            definition: get(TaskField::Definition)?.to_owned(),
            definition_hash: get(TaskField::DefinitionHash)?.to_owned(),
            owner: owner(self.get(OWNER)?)?,
            fence: self.get(FENCE)?.parse().ok()?,
        })
    }
}

/// Nobody is the empty text.
fn owner(text: &str) -> Option<Option<InstanceId>> {
    if text.is_empty() { Some(None) } else { InstanceId::new(text).ok().map(Some) }
}

/// A time of RFC 3339; nothing if it is something else.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    (time >= jiff::Timestamp::UNIX_EPOCH).then(|| Timestamp::from_micros(time.as_microsecond()))
}
