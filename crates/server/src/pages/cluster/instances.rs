//! The instances, those that have been there for longest first.

use super::{act, badge, lag};
use crate::pages::{deed, mark, words};
use crate::shapes::{Cluster, Instance};
use maud::{Markup, html};
use steadfast_kernel::Timestamp;

/// The most instances that are listed.
const LISTED_MAX: usize = 200;

pub(super) fn table(cluster: &Cluster, now: Timestamp) -> Markup {
    let others = cluster.instances.len().saturating_sub(LISTED_MAX) as u64;
    html! {
        table.runs.locks.instances {
            thead { tr {
                th scope="col" { "Instance" } th scope="col" { "State" } th scope="col" { "Address" } th scope="col" { "Version" } th.number scope="col" { "Shards" } th.number scope="col" { "Lag" }
                th scope="col" { "Started" } th scope="col" { "Last heard" } th scope="col" { "Drain it" }
            } }
            tbody { @for (place, instance) in cluster.instances.iter().take(LISTED_MAX).enumerate() { (line(cluster, place, instance, now)) } }
        }
        @if others > 0 { p.fine { "And " (words::count(others, "other")) "." } }
    }
}

fn line(cluster: &Cluster, place: usize, instance: &Instance, now: Timestamp) -> Markup {
    let heard_at = Timestamp::from_micros(now.as_micros() - instance.silent_seconds as i64 * 1_000_000);
    html! {
        tr data-key={ "instance " (instance.id) } data-state=(instance.state()) {
            th.id scope="row" {
                (badge(place))
                code title=(instance.id) { (cluster.short(&instance.id)) } @if instance.here { " " span.tag { "this one" } }
                span.machine { (instance.name) }
            }
            td.state { (mark::status(instance.state())) }
            td.workflow { (instance.address) }
            td data-name="Version" { (instance.version) }
            td.number data-name="Shards" { (instance.shards) }
            td.number data-name="Lag" { (lag(instance.lag_ms)) }
            td.when data-name="Started" { (words::relative(instance.started_at.0, now)) }
            td.when data-name="Last heard" { (words::relative(heard_at, now)) }
            td.breaks { @if let Some(deed) = act::offered(cluster, instance) { (deed::form("/cluster", &deed)) } }
        }
    }
}
