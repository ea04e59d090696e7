//! `steadfast cluster …`.

mod drain;
mod find;

use crate::args::{ClusterCommand, ClusterShow, Common};
use crate::client::Client;
use crate::config::Config;
use crate::duration;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Cluster, Instance};
use steadfast_store::Backlog;

pub(crate) async fn run(common: &Common, command: ClusterCommand) -> Result<(), Error> {
    let client = Client::new(&Config::load(&common.given())?)?;
    match command {
        ClusterCommand::Show(args) => show(&client, common.json, &args).await,
        ClusterCommand::Drain(args) => drain::drain(&client, common.json, &args).await,
    }
}

async fn show(client: &Client, json: bool, args: &ClusterShow) -> Result<(), Error> {
    let answer = client.get("/v1/cluster", Vec::new()).await?;
    if json {
        output::data(answer.text);
        return Ok(());
    }
    let cluster = answer.read::<Cluster>()?;
    output::data(table(&cluster, time::now()).to_text());
    output::data(format_args!("\n{}; * is the one that answered", leases(&cluster)));
    if args.shards {
        output::data(format_args!("\n{}", shard_table(&cluster).to_text()));
    }
    Ok(())
}

fn table(cluster: &Cluster, now: Timestamp) -> Table {
    let columns = ["INSTANCE", "STATE", "MACHINE", "ADDRESS", "VERSION", "SHARDS", "LAG", "SINCE", "HEARD"];
    let mut table = Table::new(columns.map(Column::whole).into());
    for instance in &cluster.instances {
        let mark = if instance.here { " *" } else { "" };
        table.row(vec![
            Cell::styled(format!("{}{mark}", cluster.short(&instance.id)), style::BOLD),
            Cell::styled(instance.state(), style::of_status(instance.state())),
            output::plain(&instance.name).into(),
            output::plain(&instance.address).into(),
            output::plain(&instance.version).into(),
            instance.shards.to_string().into(),
            lag(instance.lag_ms).into(),
            time::relative(instance.started_at.0, now).into(),
            time::relative(heard_at(instance, now), now).into(),
        ]);
    }
    table
}

/// The leases, by shard. Of one that is over it is shown who had it last.
fn shard_table(cluster: &Cluster) -> Table {
    let mut table = Table::new(["SHARD", "STATE", "INSTANCE", "MOVES", "LAG", "MESSAGES"].map(Column::whole).into());
    for lease in &cluster.leases {
        let state = if lease.over { "FREE" } else { "HELD" };
        let holder = lease.instance.as_deref().map_or("-", |id| cluster.short(id));
        let mark = if lease.instance.as_ref() == Some(&cluster.instance) { " *" } else { "" };
        table.row(vec![
            lease.shard.to_string().into(),
            Cell::styled(state, style::of_status(state)),
            format!("{}{mark}", output::plain(holder)).into(),
            lease.epoch.to_string().into(),
            lag(lease.lag_ms).into(),
            waiting(lease.messages).into(),
        ]);
    }
    table
}

/// How long something has been late.
fn lag(millis: u64) -> String {
    if millis == 0 { "-".into() } else { duration::rough(Duration::from_millis(millis)) }
}

/// How many messages wait; servers count them up to a number.
fn waiting(messages: u64) -> String {
    match messages {
        0 => "-".into(),
        Backlog::COUNTED_MAX.. => format!("{messages}+"),
        some => some.to_string(),
    }
}

fn heard_at(instance: &Instance, now: Timestamp) -> Timestamp {
    Timestamp::from_micros(now.as_micros() - instance.silent_seconds as i64 * 1_000_000)
}

fn leases(cluster: &Cluster) -> String {
    match cluster.unheld {
        0 => format!("{} shards, all held", cluster.shards),
        unheld => format!("{} shards, {unheld} without a holder: what is in them waits until an instance takes them", cluster.shards),
    }
}

fn shards(number: u64) -> String {
    if number == 1 { "1 shard".into() } else { format!("{number} shards") }
}

/// A cluster of instances with these ids and addresses; the first one answers.
#[cfg(test)]
fn sample(instances: &[(&str, &str)]) -> Cluster {
    let instance = |(place, (id, address)): (usize, &(&str, &str))| {
        serde_json::json!({"id": id, "name": "m", "address": address, "version": "1", "startedAt": "2026-01-01T12:00:00Z", "silentSeconds": 1,
            "draining": false, "lives": true, "shards": 32, "lagMs": 0, "messages": 0, "here": place == 0})
    };
    let instances: Vec<_> = instances.iter().enumerate().map(instance).collect();
    let cluster = serde_json::json!({"instance": instances[0]["id"], "leaseSeconds": 10, "shards": 64, "instances": instances, "leases": [], "unheld": 0});
    serde_json::from_value(cluster).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_server::shapes::ShardLease;

    #[test]
    fn instances_are_listed_with_the_one_that_answered() {
        let mut cluster = sample(&[("aaaaaaaa1", "http://a:1"), ("bbbbbbbb1", "http://b:1")]);
        cluster.instances[1].draining = true;
        cluster.instances[1].lag_ms = 90_500;
        let now = time::parse("2026-01-01T12:02:00Z").unwrap();
        let text = anstream::adapter::strip_str(&table(&cluster, now).to_text()).to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["aaaaaaaa", "*", "LIVES", "m", "http://a:1", "1", "32", "-", "2", "min", "ago", "1", "s", "ago"]);
        assert_eq!(lines[2][..8], ["bbbbbbbb", "DRAINING", "m", "http://b:1", "1", "32", "90", "s"]);
        assert_eq!(leases(&cluster), "64 shards, all held");
        cluster.unheld = 3;
        assert!(leases(&cluster).starts_with("64 shards, 3 without a holder"));
    }

    #[test]
    fn every_shard_is_listed_with_who_has_it_or_had_it_last() {
        let mut cluster = sample(&[("aaaaaaaa1", "http://a:1"), ("bbbbbbbb1", "http://b:1")]);
        let lease = |shard, instance: Option<&str>, epoch, over| {
            let instance = instance.map(Into::into);
            ShardLease { shard, instance, epoch, over, lag_ms: 0, messages: 0 }
        };
        cluster.leases = vec![
            lease(0, Some("aaaaaaaa1"), 3, false),
            ShardLease { messages: 12, ..lease(1, Some("bbbbbbbb1"), 2, false) },
            ShardLease { lag_ms: 7_200_000, messages: 1_000, ..lease(2, Some("cccccccc1"), 7, true) },
            lease(3, None, 0, true),
        ];
        let text = anstream::adapter::strip_str(&shard_table(&cluster).to_text()).to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["SHARD", "STATE", "INSTANCE", "MOVES", "LAG", "MESSAGES"]);
        assert_eq!(lines[1], ["0", "HELD", "aaaaaaaa", "*", "3", "-", "-"], "the one that answered");
        assert_eq!(lines[2], ["1", "HELD", "bbbbbbbb", "2", "-", "12"]);
        assert_eq!(lines[3], ["2", "FREE", "cccccccc", "7", "2", "h", "1000+"]);
        assert_eq!(lines[4], ["3", "FREE", "-", "0", "-", "-"]);
    }
}
