//! How far a plan has come: a bar, and the same in words.

use crate::pages::mark;
use crate::shapes::Progress;
use maud::{Markup, html};

/// What there is of every status, in the order of the bar: first what is over.
pub(super) fn counts(progress: &Progress) -> Vec<(&'static str, u64)> {
    let all = [
        ("COMPLETED", progress.completed),
        ("ROLLED_BACK", progress.rolled_back),
        ("CANCELLED", progress.cancelled),
        ("HANDED_OVER", progress.handed_over),
        ("FAILED", progress.failed),
        ("ROLLBACK_FAILED", progress.rollback_failed),
        ("INTERRUPTED", progress.interrupted),
        ("RUNNING", progress.running),
        ("ROLLING_BACK", progress.rolling_back),
        ("WAITING", progress.waiting),
        ("PAUSED", progress.paused),
        ("PENDING", progress.pending),
    ];
    all.into_iter().filter(|(_, tasks)| *tasks > 0).collect()
}

/// The counts in words; those that are done come first, of how many.
pub(super) fn words(progress: &Progress) -> String {
    let others = counts(progress).into_iter().filter(|(status, _)| *status != "COMPLETED");
    let others = others.map(|(status, tasks)| format!("{tasks} {}", mark::word(status).to_lowercase()));
    let done = format!("{} of {} completed", progress.completed, progress.total);
    [done].into_iter().chain(others).collect::<Vec<_>>().join(" · ")
}

/// The bar. What it shows stands beside it in words, so it is hidden from those who cannot see it.
pub(super) fn bar(progress: &Progress) -> Markup {
    let total = progress.total.max(1) as f64;
    let mut at = 0;
    let parts = counts(progress).into_iter().filter(|(status, _)| *status != "PENDING").map(|(status, tasks)| {
        let (x, width) = (at as f64 / total * 100.0, tasks as f64 / total * 100.0);
        at += tasks;
        html! { rect class={ "part " (mark::class(status)) } x=(format!("{x:.2}")) width=(format!("{width:.2}")) height="8" {} }
    });
    html! { svg.progress viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" { @for part in parts { (part) } } }
}
