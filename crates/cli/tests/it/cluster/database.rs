//! What the tables say.

use std::collections::BTreeMap;
use steadfast_test_servers::PostgresServer;

/// A database of its own.
pub(super) struct Database<'a> {
    pub(super) server: &'a PostgresServer,
    pub(super) name: String,
}

impl<'a> Database<'a> {
    pub(super) fn new(server: &'a PostgresServer) -> Self {
        Database { server, name: server.database() }
    }

    pub(super) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// The rows that some SQL gives.
    #[track_caller]
    pub(super) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let text = self.server.psql(&self.name, sql);
        text.lines().map(|line| line.split('|').map(Into::into).collect()).collect()
    }

    /// The one value that some SQL gives.
    #[track_caller]
    pub(super) fn value(&self, sql: &str) -> String {
        self.rows(sql).first().and_then(|row| row.first()).cloned().unwrap_or_default()
    }

    /// How many shards the servers have that live, by their address.
    pub(super) fn holders(&self) -> BTreeMap<String, usize> {
        let rows = self.rows(
            "SELECT i.address, count(*) FROM steadfast.leases l JOIN steadfast.instances i ON i.id = l.holder
            WHERE l.until > clock_timestamp() GROUP BY i.address",
        );
        rows.into_iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect()
    }

    /// The address of the server that has an entity.
    #[track_caller]
    pub(super) fn place(&self, entity: &str) -> String {
        self.value(&format!(
            "SELECT i.address FROM steadfast.workflow_events e JOIN steadfast.leases l ON l.shard = e.shard
            JOIN steadfast.instances i ON i.id = l.holder WHERE e.workflow_id = '{entity}' AND e.sequence = 1"
        ))
    }

    /// How often something has happened.
    pub(super) fn count(&self, event: &str) -> usize {
        let count = self.value(&format!("SELECT count(*) FROM steadfast.workflow_events WHERE event_type = '{event}'"));
        count.parse().unwrap()
    }
}
