//! Keys: values with a time to live, and who is told when it is over.

use super::time::millis;
use super::{Data, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, InvalidId, WorkflowName};
use steadfast_store::KeyRow;
use utoipa::ToSchema;

/// A key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Key)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Its name.
    #[schema(examples("session:42"))]
    pub key: String,
    /// Its value.
    pub value: Data,
    /// How long it was to live when it was put, or renewed last.
    pub ttl_ms: u64,
    /// Until when it lives.
    pub expires_at: Time,
    /// Who may change it; everybody if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Which change of it: higher than that of any change before, and never the same again.
    pub revision: u64,
    /// The keys below it end with it.
    pub directory: bool,
    /// Who is told of its expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expire: Option<OnExpire>,
    /// When it got its value.
    pub put_at: Time,
}

impl From<&KeyRow> for Key {
    fn from(row: &KeyRow) -> Self {
        Key {
            key: row.key.to_string(),
            value: (&row.held.value).into(),
            ttl_ms: millis(row.held.ttl),
            expires_at: Time(row.held.expires_at),
            owner: row.held.owner.clone(),
            revision: row.held.revision,
            directory: row.held.directory,
            on_expire: row.held.on_expire.as_ref().map(OnExpire::from),
            put_at: Time(row.held.put_at),
        }
    }
}

/// Who is told of an expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = OnExpire)]
#[serde(rename_all = "camelCase")]
pub enum OnExpire {
    /// Whoever answers at that address: `POST`, until an answer is a 2xx. At most 2,048 characters, `http` or `https`, without a user or password.
    Url(String),
    /// A run that is started for it.
    StartRun(ExpiryRun),
    /// A handler of the server's own process; always `true`.
    Handler(bool),
}

/// The run that an expiry starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExpiryRun)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpiryRun {
    /// The workflow to execute.
    #[schema(examples("log-out"), pattern = r"^[A-Za-z0-9._/-]{1,128}$")]
    pub workflow: String,
    /// What the code is given; `null` if it is left out.
    #[serde(default = "Data::null")]
    pub input: Data,
}

impl From<&kernel::Target> for OnExpire {
    fn from(target: &kernel::Target) -> Self {
        match target {
            kernel::Target::Url(url) => OnExpire::Url(url.clone()),
            kernel::Target::StartRun { workflow, input } => {
                OnExpire::StartRun(ExpiryRun { workflow: workflow.to_string(), input: input.into() })
            }
            kernel::Target::Handler => OnExpire::Handler(true),
        }
    }
}

impl OnExpire {
    /// As the engine keeps it; nobody for `{"handler": false}`.
    ///
    /// # Errors
    /// If no workflow can have that name.
    pub fn into_target(self) -> Result<Option<kernel::Target>, InvalidId> {
        Ok(match self {
            OnExpire::Url(url) => Some(kernel::Target::Url(url)),
            OnExpire::StartRun(ExpiryRun { workflow, input }) => {
                Some(kernel::Target::StartRun { workflow: WorkflowName::new(workflow)?, input: input.into_payload() })
            }
            OnExpire::Handler(handled) => handled.then_some(kernel::Target::Handler),
        })
    }
}

/// Give a key a value and a time to live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PutKey)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutKey {
    /// Its value.
    pub value: Data,
    /// For how long it lives from now on.
    #[schema(minimum = 1)]
    pub ttl_ms: i64,
    /// Who may change it from here on; everybody if it is left out. A key that belongs to somebody can only be put by its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub owner: Option<String>,
    /// Who is told of its expiry; if it is left out, a handler of the server's own process if there is one for such keys, else only the change feed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expire: Option<OnExpire>,
    /// The keys below it, whose names begin with its name and a slash, end with it.
    #[serde(default)]
    pub directory: bool,
    /// Only if that is its revision now; 0 if there is to be no such key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_revision: Option<u64>,
}

/// Give a key another time to live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RenewKey)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewKey {
    /// For how long it lives from now on.
    #[schema(minimum = 1)]
    pub ttl_ms: i64,
    /// Who renews it; needed if it belongs to somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub owner: Option<String>,
    /// Only if that is its revision now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_revision: Option<u64>,
}

/// A key was put or renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = KeyKept)]
#[serde(rename_all = "camelCase")]
pub struct KeyKept {
    /// Its name.
    pub key: String,
    /// Its revision from here on.
    pub revision: u64,
    /// Until when it lives.
    pub expires_at: Time,
}

/// A key was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = KeyDeleted)]
#[serde(rename_all = "camelCase")]
pub struct KeyDeleted {
    /// Its name.
    pub key: String,
    /// The revision that is gone.
    pub revision: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_reads_as_it_is_promised() {
        for text in [
            r#"{"url":"https://example.com/gone?a=b"}"#,
            r#"{"startRun":{"workflow":"log-out","input":{"user":1.10}}}"#,
            r#"{"handler":true}"#,
        ] {
            let told: OnExpire = serde_json::from_str(text).unwrap();
            let target = told.clone().into_target().unwrap().unwrap();
            assert_eq!(OnExpire::from(&target), told);
            assert_eq!(serde_json::to_string(&told).unwrap(), text);
        }
        let put = |on_expire: &str| serde_json::from_str::<PutKey>(&format!(r#"{{"value":1,"ttlMs":1,"onExpire":{on_expire}}}"#));
        assert!(put("null").is_ok());
        for wrong in [r#"{"uri":"x"}"#, r#"{}"#, r#"{"url":"x","handler":true}"#, r#"{"startRun":{"workflow":"w","imput":1}}"#] {
            assert!(put(wrong).is_err(), "{wrong}");
        }
    }
}
