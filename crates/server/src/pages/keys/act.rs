//! What can be done about a key: commands to copy.

use super::show::Shown;
use crate::pages::run::{self, quoted};
use maud::{Markup, html};

pub(super) fn section(shown: &Shown) -> Markup {
    let acts = acts(shown);
    html! {
        section.card aria-labelledby="act" {
            h2 #act { "What can be done" }
            ul.acts { @for (text, what) in acts { li { p { (what) } (run::command(&text)) } } }
        }
    }
}

/// Commands, with what each of them does.
fn acts(shown: &Shown) -> Vec<(String, &'static str)> {
    let key = quoted(shown.key.as_str());
    let mut acts = Vec::new();
    for letter in &shown.letters {
        let letter = quoted(&letter.to_string());
        acts.push((format!("steadfast letter redrive {letter} --reason '…'"), "Tell of its end again, which nobody will do otherwise"));
        acts.push((format!("steadfast letter drop {letter} --reason '…'"), "Have nobody told of that end"));
    }
    match &shown.row {
        Some(row) => {
            let owner = row.held.owner.as_ref().map(|owner| format!(" --owner {}", quoted(owner))).unwrap_or_default();
            acts.push((format!("steadfast key renew {key} --ttl 30m{owner}"), "Have it live longer, counted from then"));
            let what = match row.held.directory {
                true => "Remove it, and the keys below it: nobody is told of that",
                false => "Remove it: nobody is told of that",
            };
            acts.push((format!("steadfast key delete {key}{owner}"), what));
        }
        None => acts.push((format!("steadfast key put {key} VALUE --ttl 30m"), "Put it again")),
    }
    acts
}
