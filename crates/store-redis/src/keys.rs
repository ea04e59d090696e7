//! The names of keys, and of the fields in them.

use std::fmt::Display;
use steadfast_kernel::{InstanceId, PlanId, RunId, TenantId};
use steadfast_store::{PlanField, TaskField};

/// Makes the names of keys: all begin with the prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Keys { prefix: prefix.to_owned() }
    }

    fn name(&self, kind: &str, id: impl Display) -> String {
        format!("{}{kind}:{id}", self.prefix)
    }

    pub(crate) fn plan(&self, plan: &PlanId) -> String {
        self.name("plan", plan)
    }

    pub(crate) fn task(&self, task: &RunId) -> String {
        self.name("task", task)
    }

    pub(crate) fn index(&self, tenant: &TenantId) -> String {
        self.name("index:tenant", tenant)
    }

    pub(crate) fn lock(&self, tenant: &TenantId) -> String {
        self.name("lock:tenant", tenant)
    }

    pub(crate) fn fence(&self, tenant: &TenantId) -> String {
        self.name("fence:tenant", tenant)
    }

    pub(crate) fn checkpoint(&self, task: &RunId) -> String {
        self.name("ckpt", task)
    }

    pub(crate) fn instance(&self, instance: &InstanceId) -> String {
        self.name("instance", instance)
    }

    /// The instance whose key that is; nothing if it is another key.
    pub(crate) fn instance_of(&self, key: &str) -> Option<InstanceId> {
        InstanceId::new(key.strip_prefix(&self.prefix)?.strip_prefix("instance:")?).ok()
    }

    /// The pattern that the keys of all instances match.
    pub(crate) fn instances(&self) -> String {
        let mut pattern = String::with_capacity(self.prefix.len() + 16);
        for character in self.prefix.chars() {
            if "*?[]^\\".contains(character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern + "instance:*"
    }
}

/// All fields of a plan but the owner.
pub(crate) const PLAN_FIELDS: [PlanField; 9] = [
    PlanField::PlanId,
    PlanField::Status,
    PlanField::TaskIds,
    PlanField::MaxConcurrency,
    PlanField::CreatedAt,
    PlanField::StartedAt,
    PlanField::Definition,
    PlanField::DefinitionHash,
    PlanField::Vars,
];

/// All fields of a task but owner and fence.
pub(crate) const TASK_FIELDS: [TaskField; 9] = [
    TaskField::TaskId,
    TaskField::TenantId,
    TaskField::PlanId,
    TaskField::Status,
    TaskField::PauseRequested,
    TaskField::CreatedAt,
    TaskField::StartedAt,
    TaskField::Definition,
    TaskField::DefinitionHash,
];

pub(crate) fn plan_field(field: PlanField) -> &'static str {
    match field {
        PlanField::PlanId => "planId",
        PlanField::Status => "status",
        PlanField::TaskIds => "taskIds",
        PlanField::MaxConcurrency => "maxConcurrency",
        PlanField::CreatedAt => "createdAt",
        PlanField::StartedAt => "startedAt",
        PlanField::Definition => "definition",
        PlanField::DefinitionHash => "definitionHash",
        PlanField::Vars => "vars",
    }
}

pub(crate) fn task_field(field: TaskField) -> &'static str {
    match field {
        TaskField::TaskId => "taskId",
        TaskField::TenantId => "tenantId",
        TaskField::PlanId => "planId",
        TaskField::Status => "status",
        TaskField::PauseRequested => "pauseRequested",
        TaskField::CreatedAt => "createdAt",
        TaskField::StartedAt => "startedAt",
        TaskField::Definition => "definition",
        TaskField::DefinitionHash => "definitionHash",
    }
}

pub(crate) const OWNER: &str = "owner";
pub(crate) const FENCE: &str = "fence";
pub(crate) const AS_OF: &str = "asOf";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_patterns_in_the_prefix_stand_for_themselves() {
        assert_eq!(Keys::new(r"a*[b]?^\:").instances(), r"a\*\[b\]\?\^\\:instance:*");
    }

    #[test]
    fn a_key_of_something_else_is_no_instance() {
        let keys = Keys::new("x:");
        assert_eq!(keys.instance_of("x:instance:a").unwrap().as_str(), "a");
        for other in ["y:instance:a", "x:plan:a", "x:instance:", "x:instance:a b"] {
            assert_eq!(keys.instance_of(other), None, "{other}");
        }
    }
}
