//! What several instances of Steadfast share in Redis: who has a tenant's lock, who owns a task, and how far it has come.
//!
//! # What is stored
//! All keys begin with the prefix of the settings, `executor:` by default. All but locks, fences and heartbeats live for 7 days from the last write.
//!
//! | key | type | content |
//! | --- | --- | --- |
//! | `plan:PLAN` | hash | planId, status, taskIds, maxConcurrency, createdAt, startedAt, definition, definitionHash, vars, owner |
//! | `task:TASK` | hash | taskId, tenantId, planId, status, pauseRequested, createdAt, startedAt, definition, definitionHash, owner (empty: nobody), fence |
//! | `index:tenant:TENANT` | string | the task that the tenant had last |
//! | `lock:tenant:TENANT` | string, lives for the lease | `plan:task:instance:fence` |
//! | `fence:tenant:TENANT` | string, lives for ever | a counter that outlives the lock |
//! | `ckpt:TASK` | string | the checkpoint, as JSON |
//! | `instance:INSTANCE` | string, lives for 30 seconds | the heartbeat of an instance |
//!
//! A hash and its TTL are written in one script, and only the fields that are given. Every script compares and changes one key; what it finds
//! there and does not know is left alone.
//!
//! # The server
//! Redis 6.2 or later (or Valkey), one server, or one with replicas and Sentinel; not a cluster. It must not evict keys that have a TTL
//! (`maxmemory-policy noeviction`), and should keep an append-only file: it is the truth for owners and locks.
//!
//! A user that may do no more than needed is made with
//! ```text
//! ACL SETUSER steadfast on >PASSWORD resetkeys ~executor:* resetchannels -@all +hello +select +ping +evalsha +script|load +get +mget +set +del +type +strlen +getrange +incr +pttl +pexpire +hget +hmget +hset +hdel +hgetall +scan
//! ```
//! Scripts run with the rights of that user. `scan` shows the names of all keys; without it, instances are not found by looking for them.

mod address;
mod checkpoint;
mod commons;
mod connect;
mod fault;
mod keys;
mod link;
mod read;
mod scripts;
mod settings;
mod write;

pub use commons::Redis;
pub use settings::{Secret, Settings, SettingsError};
