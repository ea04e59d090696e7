//! `/cluster`: the instances that share the store, who has which shard, and an instance drained or taken back.

mod act;
mod instances;
mod shards;

pub(super) use act::change;

use super::layout::{Page, Part};
use super::words;
use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::problem::Problem;
use crate::shapes::{Cluster, Instance};
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use std::time::Duration;

/// No journal says when a shard changes hands. The page follows what is said least often, and is drawn anew every few seconds because it moves.
const FEED: &str = "/v1/events?types=DEGRADED,RESTORED";

/// How many colours there are for instances. Those after them begin anew; their letters are their own.
const COLOURS: usize = 8;

pub(super) async fn page(State(app): State<Arc<App>>, _: Query<Nothing>) -> Result<Response, Problem> {
    let (cluster, now) = (app.cluster().await?, words::now());
    let content = html! {
        div.head data-moves { h1 { "Cluster" } p.lead { (lead(&cluster)) } }
        @if cluster.unheld > 0 { (unheld(&cluster)) }
        (instances::table(&cluster, now))
        (shards::section(&cluster))
    };
    Ok(Page { part: Part::Cluster, title: "Cluster".into(), follows: Some(FEED.into()), content }.respond(&app))
}

fn lead(cluster: &Cluster) -> String {
    let living = cluster.instances.iter().filter(|instance| instance.lives).count() as u64;
    let share = if living == 1 { "has" } else { "share" };
    format!(
        "{} {share} one store. Each works on the shards that it has, and any of them can be asked for everything.",
        words::count(living, "instance")
    )
}

fn unheld(cluster: &Cluster) -> Markup {
    let takers = cluster.instances.iter().any(Instance::takes_shards);
    html! {
        div.banner role="status" data-key="unheld" {
            strong { (words::count(cluster.unheld, "shard")) @if cluster.unheld == 1 { " has" } @else { " have" } " no holder." }
            @if takers {
                " What is in them waits until an instance takes them: within seconds, or " (cluster.lease_seconds) " s after one was lost."
            } @else {
                " What is in them waits, and no instance takes shards now: start one, or take one back that drains."
            }
        }
    }
}

/// How long something has been late.
fn lag(millis: u64) -> String {
    if millis == 0 { "–".into() } else { words::lasted(Duration::from_millis(millis)) }
}

/// What tells an instance from the others on this page: a letter and a colour, by its place.
fn badge(place: usize) -> Markup {
    html! { span class={ "badge " (colour(place)) } aria-hidden="true" { (letter(place)) } }
}

fn colour(place: usize) -> String {
    format!("holder-{}", place % COLOURS)
}

/// `A` to `Z`, `AA`, `AB` and so on.
fn letter(place: usize) -> String {
    let last = char::from(b'A' + (place % 26) as u8);
    let before = (place / 26).checked_sub(1).map(letter).unwrap_or_default();
    format!("{before}{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_on_after_z() {
        assert_eq!([0, 25, 26, 27, 52, 701, 702].map(letter), ["A", "Z", "AA", "AB", "BA", "ZZ", "AAA"]);
    }
}
