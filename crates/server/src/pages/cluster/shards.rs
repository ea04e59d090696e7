//! Every shard, coloured by who has it.

use super::{badge, colour, lag, letter};
use crate::pages::words;
use crate::shapes::{Cluster, ShardLease};
use maud::{Markup, html};

/// The most shards that are drawn. What instances have of more is in their table all the same.
const DRAWN_MAX: usize = 1024;

pub(super) fn section(cluster: &Cluster) -> Markup {
    let others = cluster.leases.len().saturating_sub(DRAWN_MAX) as u64;
    html! {
        section.card aria-labelledby="shards" {
            h2 #shards { "Shards" }
            ul.legend {
                @for (place, instance) in cluster.instances.iter().enumerate().filter(|(_, instance)| instance.shards > 0) {
                    li { (badge(place)) code { (cluster.short(&instance.id)) } " has " (instance.shards) " of " (cluster.shards) }
                }
                @if cluster.unheld > 0 { li { span.badge.unheld aria-hidden="true" { "–" } (cluster.unheld) " without a holder" } }
            }
            ol.shards { @for lease in cluster.leases.iter().take(DRAWN_MAX) { (cell(cluster, lease)) } }
            @if others > 0 { p.fine { "And " (words::count(others, "other")) "." } }
        }
    }
}

fn cell(cluster: &Cluster, lease: &ShardLease) -> Markup {
    let holder = lease.instance.as_ref().filter(|_| !lease.over);
    let place = holder.and_then(|id| cluster.instances.iter().position(|instance| instance.id == *id));
    let who = match (holder, &lease.instance) {
        (Some(id), _) => format!("instance {id}"),
        (None, Some(id)) => format!("nobody; {id} had it last"),
        (None, None) => "nobody".into(),
    };
    let late = if lease.lag_ms > 0 { format!(" It is {} behind.", lag(lease.lag_ms)) } else { String::new() };
    let title = format!("Shard {}: {who}. It has changed hands {}.{late}", lease.shard, words::count(lease.epoch, "time"));
    html! {
        li class=(place.map_or_else(|| "unheld".into(), colour)) data-key={ "shard " (lease.shard) } data-holder=[holder] title=(title) {
            span.shard { (lease.shard) }
            strong { (place.map_or_else(|| "–".into(), letter)) }
        }
    }
}
