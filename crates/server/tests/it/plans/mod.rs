//! Plans, tasks and locks over HTTP.

mod create;
mod feed;
mod locks;
mod operate;
mod tenants;
mod world;

pub(crate) use world::{How, World};

use crate::support::{Got, Site, until};
use reqwest::Method;
use serde_json::{Value, json};

impl Site {
    /// Creates a plan of `switch`.
    pub(crate) async fn create(&self, id: &str, tenants: &[&str]) -> Value {
        let got = self.post("/v1/plans", json!({"definition": "switch", "id": id, "tenants": tenants})).await;
        assert_eq!(got.status, 201, "{}", got.text);
        got.json()
    }

    /// Creates a plan of `switch` and starts it.
    pub(crate) async fn switch(&self, id: &str, tenants: &[&str]) -> Value {
        self.create(id, tenants).await;
        self.verb(&format!("/v1/plans/{id}/start"), "tonight").await
    }

    /// Has something done for a reason.
    pub(crate) async fn verb(&self, path: &str, reason: &str) -> Value {
        let got = self.post(path, json!({"reason": reason})).await;
        assert_eq!(got.status, 200, "{path}: {}", got.text);
        got.json()
    }

    /// Waits until a plan is so.
    pub(crate) async fn plan_is(&self, id: &str, status: &str) -> Value {
        self.is(&format!("/v1/plans/{id}"), status).await
    }

    /// Waits until the task of a tenant is so.
    pub(crate) async fn task_is(&self, tenant: &str, status: &str) -> Value {
        self.is(&format!("/v1/tenants/{tenant}/task"), status).await
    }

    async fn is(&self, path: &str, status: &str) -> Value {
        let mut seen = Value::Null;
        until(&format!("{path} is {status}"), async || {
            seen = self.get(path).await.json();
            seen["status"] == status
        })
        .await;
        seen
    }

    /// Waits until a lock is somebody's, or nobody's.
    pub(crate) async fn lock_is(&self, tenant: &str, holder: Option<&str>) {
        until(&format!("the lock of {tenant} is {holder:?}"), async || {
            let locks = self.get("/v1/locks?limit=1000").await.json();
            let lock = locks["items"].as_array().unwrap().iter().find(|lock| lock["tenantId"] == tenant).cloned();
            lock.map(|lock| lock["holder"].clone()) == holder.map(Value::from)
        })
        .await;
    }

    /// Posts with an `Idempotency-Key`.
    pub(crate) async fn keyed(&self, path: &str, key: &str, body: Value) -> Got {
        self.send(self.request(Method::POST, path).header("idempotency-key", key).json(&body)).await
    }
}

/// The types of the events of a journal.
pub(crate) fn types(events: &Value) -> Vec<&str> {
    let events = events.as_array().unwrap_or_else(|| panic!("{events}")).iter();
    events.map(|event| event["eventType"].as_str().unwrap()).collect()
}

/// One event of a journal.
pub(crate) fn one<'a>(events: &'a Value, kind: &str) -> &'a Value {
    events
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["eventType"] == kind)
        .unwrap_or_else(|| panic!("no {kind} in {events}"))
}
