//! What can be done about a run: commands to copy.

use super::{Shown, failed};
use crate::shapes::Step;
use maud::{Markup, html};
use steadfast_kernel::{Status, Wait};
use steadfast_runtime::RunView;

/// A command that can be copied.
pub(in crate::pages) fn command(text: &str) -> Markup {
    html! { div.command { code { (text) } button type="button" data-copy hidden { "Copy" } } }
}

pub(super) fn section(shown: &Shown) -> Markup {
    html! {
        section.card aria-labelledby="act" {
            h2 #act { "What can be done" }
            @if let Some(task) = &shown.view.task {
                p { "It is a task of a plan: it is retried, paused, called off and rolled back on " a href={ "/tenants/" (task.options.tenant) } { "the page of its tenant" } "." }
            }
            ul.acts { @for (text, what) in acts(shown) { li { p { (what) } (command(&text)) } } }
        }
    }
}

/// Answers to what it asks people, as commands, with what each of them does.
pub(in crate::pages) fn asked(view: &RunView) -> Vec<(String, &'static str)> {
    let (id, mut acts) = (&view.id, Vec::new());
    for wait in &view.waits {
        match wait {
            Wait::Approval { name, .. } => {
                let text =
                    |yes: bool| format!("steadfast run signal {id} {} --payload '{{\"approved\":{yes}}}' --reason '…'", quoted(name));
                acts.push((text(true), "Approve it"));
                acts.push((text(false), "Decline it"));
            }
            Wait::Signal { name, .. } if name.starts_with("undo:") => {
                let text = |word: &str| format!("steadfast run signal {id} {} --payload '\"{word}\"' --reason '…'", quoted(name));
                acts.push((text("retry"), "Try the undo that failed again"));
                acts.push((text("skip"), "Go on without it: somebody has seen to it"));
            }
            Wait::Signal { name, .. } => {
                acts.push((format!("steadfast run signal {id} {} --payload 'null'", quoted(name)), "Tell it what it waits for"));
            }
            _ => {}
        }
    }
    acts
}

/// Commands, with what each of them does.
fn acts(shown: &Shown) -> Vec<(String, &'static str)> {
    let (view, id) = (&shown.view, &shown.view.id);
    let mut acts = asked(view);
    if view.task.is_some() {
        return acts; // the page of its tenant has the rest
    }
    let retry = |what: &str| format!("steadfast run retry {id} {what}--reason '…'");
    let own = match view.status {
        Status::Completed => vec![(retry("--from-start "), "Do all of it again, from the start")],
        Status::Failed | Status::Cancelled | Status::Interrupted => {
            let mut own = vec![
                (retry(""), "Have it go on: what was done is kept, what failed is done again"),
                (format!("steadfast run retry {id} --dry-run"), "See what that would do again"),
            ];
            let done_by_hand = |step: &&Step| !step.tries.is_empty();
            own.extend(failed(&shown.steps).filter(done_by_hand).map(|step| {
                let output = quoted(&format!("{}=JSON", step.name));
                (
                    format!("steadfast run retry {id} --output {output} --reason '…'"),
                    "Go on with an output for the step that failed, done by hand",
                )
            }));
            own
        }
        Status::Paused => vec![(format!("steadfast run resume {id} --reason '…'"), "Have it go on")],
        _ => vec![(format!("steadfast run pause {id} --reason '…'"), "Have it begin nothing new; what is in flight ends")],
    };
    acts.extend(own);
    if !view.status.is_final() {
        acts.push((format!("steadfast run cancel {id} --reason '…'"), "Call it off: what it did is undone"));
    }
    acts
}

/// A word of a command line, whatever is in it.
pub(in crate::pages) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/#:".contains(c);
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with(['-', '#']) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_line_stay_words() {
        for (word, seen) in [("ok", "ok"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$(rm)", "'$(rm)'"), ("", "''"), ("--now", "'--now'")]
        {
            assert_eq!(quoted(word), seen);
        }
    }
}
