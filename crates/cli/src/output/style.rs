//! The few styles that there are, and what they mean.

use anstyle::{AnsiColor, Style};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();

/// That text in that style.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// How the status of a run, a step, a plan, a task, an instance or a check looks.
pub(crate) fn of_status(status: &str) -> Style {
    match status {
        "COMPLETED" | "UNDONE" | "ROLLED_BACK" | "LIVES" | "ok" => GOOD,
        "FAILED" | "IN_DOUBT" | "INTERRUPTED" | "ROLLBACK_FAILED" | "SILENT" | "fail" => BAD,
        "BACKOFF" | "PAUSED" | "CANCELLED" | "COMPENSATING" | "UNDOING" | "ROLLING_BACK" | "DRAINING" | "FREE" | "warn" => WARNING,
        "RUNNING" | "READY" => BUSY,
        "SKIPPED" | "PENDING" => FAINT,
        _ => PLAIN,
    }
}

/// One sign per status, for lists of steps and grids of stages.
pub(crate) fn sign(status: &str) -> &'static str {
    match status {
        "COMPLETED" => "✓",
        "FAILED" => "✗",
        "RUNNING" => "▸",
        "BACKOFF" => "↻",
        "SKIPPED" => "–",
        "UNDOING" | "UNDONE" => "↶",
        "IN_DOUBT" => "?",
        "WAITING" => "…",
        "PAUSED" => "‖",
        "INTERRUPTED" => "!",
        _ => "·",
    }
}
