//! Marks of a status: a colour, a shape and a word, so that none of them is needed to tell.

use maud::{Markup, html};

/// The class of a status, by its public name.
pub(super) fn class(status: &str) -> &'static str {
    match status {
        "COMPLETED" | "LIVES" => "good",
        "FAILED" | "ROLLBACK_FAILED" | "SILENT" => "bad",
        "INTERRUPTED" | "IN_DOUBT" => "doubt",
        "RUNNING" => "busy",
        "WAITING" | "BACKOFF" | "READY" | "DRAINING" => "wait",
        "COMPENSATING" | "UNDOING" | "UNDONE" | "ROLLING_BACK" | "ROLLED_BACK" => "undo",
        "PAUSED" => "held",
        _ => "quiet", // CANCELLED, SKIPPED, PENDING, CREATED, HANDED_OVER
    }
}

/// The status with its mark.
pub(super) fn status(name: &str) -> Markup {
    html! { span class={ "status " (class(name)) } { (shape(name)) span { (word(name)) } } }
}

/// The status as people read it.
pub(super) fn word(name: &str) -> String {
    super::words::sentence(&name.to_ascii_lowercase().replace('_', " "))
}

/// The marks for [`small`] ones, once on a page that has many of them.
pub(super) fn symbols() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" {
            @for class in ["good", "bad", "doubt", "busy", "wait", "undo", "held", "quiet", "none"] {
                symbol id={ "mark-" (class) } viewBox="0 0 16 16" { path d=(path(class)) {} }
            }
        }
    }
}

/// Only the mark of a class, with a word for those who do not see it.
pub(super) fn small(class: &'static str, word: &str) -> Markup {
    html! { svg class={ "mark " (class) } role="img" aria-label=(word) { use href={ "#mark-" (class) } {} } }
}

fn shape(status: &str) -> Markup {
    html! { svg.mark viewBox="0 0 16 16" aria-hidden="true" { path d=(path(class(status))) {} } }
}

fn path(class: &str) -> &'static str {
    match class {
        "good" => "M3.5 8.5 6.5 11.5 12.5 5",
        "bad" => "M4.5 4.5l7 7M11.5 4.5l-7 7",
        "doubt" => "M8 3.5v5.5M8 11.8v.4",
        "busy" => "M8 3a5 5 0 1 1-5 5",
        "wait" => "M8 5v3.2l2 1.3M8 2.5a5.5 5.5 0 1 0 .01 0",
        "undo" => "M4 8.5a4 4 0 1 0 1.4-3M3.8 3.6v3h3",
        "held" => "M6 4.8v6.4M10 4.8v6.4",
        "none" => "M8 7.9v.2",
        _ => "M4.5 8h7",
    }
}
