//! Plans: `/plans` lists them, `/plans/{id}` shows one as a grid of tenants and stages, and `/locks` has the locks that tasks hold.

mod act;
mod bar;
mod elsewhere;
mod facts;
mod grid;
mod history;
mod list;
mod locks;
mod show;

pub(super) use grid::cell as stage;
pub(super) use list::page as list;
pub(super) use locks::{breaking, change as change_lock, page as locks};
pub(super) use show::{change, page as show};

use maud::{Markup, html};

/// What there is of plans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    Plans,
    Locks,
}

fn tabs(tab: Tab) -> Markup {
    let chip = |of: Tab, address: &str, name: &str| {
        html! { a.chip href=(address) aria-current=[(tab == of).then_some("true")] { (name) } }
    };
    html! {
        nav.chips aria-label="Plans" {
            (chip(Tab::Plans, "/plans", "Plans"))
            (chip(Tab::Locks, "/locks", "Locks"))
        }
    }
}

/// An address with what is asked for in its query.
fn link(page: &str, asked: &[(&str, Option<String>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in asked {
        value.as_ref().map(|value| query.append_pair(name, value));
    }
    let query = query.finish();
    if query.is_empty() { page.into() } else { format!("{page}?{query}") }
}

/// A link to a plan.
pub(super) fn plan(id: &str) -> Markup {
    html! { a href={ "/plans/" (id) } { (id) } }
}

/// A link to a tenant.
pub(super) fn tenant(id: &str) -> Markup {
    html! { a href={ "/tenants/" (id) } { (id) } }
}
