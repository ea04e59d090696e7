//! What every page says of what is shared with other instances: a banner while that cannot be used, and a line at the end.

use super::words;
use maud::{Markup, html};
use steadfast_runtime::{SharingHealth, SharingState};

/// Says what goes on and what does not, while Redis is away.
pub(super) fn banner(health: &SharingHealth) -> Markup {
    match &health.state {
        SharingState::Up => html! {},
        SharingState::Starting if health.mirror_only => html! {}, // nothing follows from that
        SharingState::Away { since, why, .. } if health.mirror_only => html! {
            div.banner role="status" data-key="banner" {
                strong { "Redis is away." }
                " It was lost " (words::relative(*since, words::now())) ": " span.message { (why) } ". "
                "Only what it mirrors is behind, and is brought up to date later: everything goes on."
            }
        },
        SharingState::Starting => html! {
            div.banner role="status" data-key="banner" {
                strong { "Redis was not reached yet." }
                " What this instance has is shown. No stage and no lock of a plan begins before it was reached; workflows and keys go on."
            }
        },
        SharingState::Away { since, why, refuses } => html! {
            div.banner role="status" data-key="banner" {
                strong { "Redis is away." }
                " It was lost " (words::relative(*since, words::now())) ": " span.message { (why) } ". "
                @match refuses {
                    None => { "No other instance was seen, so that plans go on here; what changes is brought up to date there later." }
                    Some(refuses) => {
                        "No stage and no lock of a plan begins (" (refuses) "); stages that are under way come to their end, and workflows and keys go on."
                    }
                }
                " Plans and tasks of other instances cannot be seen."
            }
        },
    }
}

/// Who this instance is, and how it gets on with Redis.
pub(super) fn foot(health: &SharingHealth) -> Markup {
    let how = match &health.state {
        SharingState::Up => "Redis is up",
        SharingState::Starting if health.mirror_only => "Redis is brought up to date",
        SharingState::Starting => "Redis was not reached yet",
        SharingState::Away { .. } => "Redis is away",
    };
    let (what, behind) = if health.mirror_only { ("Mirrored as instance ", "it does") } else { ("Instance ", "others do") };
    html! {
        p.fine.shared data-key="shared" {
            (what) code { (health.instance) } " · " (how)
            @if health.pending > 0 { " · " (behind) " not know the latest of " (words::count(health.pending as u64, "plan or task")) }
            @if let Some((other, at)) = &health.seen { " · saw instance " code { (other) } " " (words::relative(*at, words::now())) }
        }
    }
}
