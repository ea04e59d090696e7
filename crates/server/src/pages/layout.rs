//! What all pages have in common.

use super::{assets, shared};
use crate::app::App;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, html};
use steadfast_runtime::SharingHealth;

/// Nothing runs, loads or is sent anywhere but what is ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

/// Other sites are not told where somebody comes from. Our own are: without it a browser does not say, either, that a form is one of ours.
const REFERRER: &str = "same-origin";

/// A part of the console.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Runs,
    Plans,
    Keys,
    Messages,
    Letters,
    Workers,
    Workflows,
    Cluster,
    Elsewhere,
}

/// A page.
pub(super) struct Page {
    pub(super) part: Part,
    pub(super) title: String,
    /// The feed that says when the page is out of date, if any does.
    pub(super) follows: Option<String>,
    pub(super) content: Markup,
}

/// What every page says of instances beside this one.
#[derive(Default)]
pub(super) struct Beside<'a> {
    /// How it is with what they share through Redis, if they do.
    pub(super) sharing: Option<&'a SharingHealth>,
    /// They may share the store, so that there is a page about them.
    pub(super) shares_store: bool,
}

impl Page {
    pub(super) fn respond(self, app: &App) -> Response {
        let sharing = app.engine.sharing();
        self.respond_with(StatusCode::OK, &Beside { sharing: sharing.as_ref(), shares_store: app.engine.shares_store() })
    }

    pub(super) fn respond_with(self, status: StatusCode, beside: &Beside<'_>) -> Response {
        let mut response = Response::new(Body::from(self.render(beside).into_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static(REFERRER));
        response
    }

    fn render(self, &Beside { sharing, shares_store }: &Beside<'_>) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Steadfast" }
                    link rel="icon" type="image/svg+xml" href=(assets::address("icon.svg"));
                    link rel="stylesheet" href=(assets::address("console.css"));
                    script type="module" src=(assets::address("console.js")) {}
                }
                body data-follows=[&self.follows] {
                    a.skip href="#content" { "Skip to the content" }
                    (top(self.part, self.follows.is_some(), shares_store))
                    main #content tabindex="-1" {
                        @if let Some(health) = sharing { (shared::banner(health)) }
                        (self.content)
                        @if let Some(health) = sharing { (shared::foot(health)) }
                    }
                }
            }
        }
    }
}

fn top(part: Part, follows: bool, shares_store: bool) -> Markup {
    let link = |to: Part, address: &str, name: &str| {
        html! { a href=(address) aria-current=[(part == to).then_some("page")] { (name) } }
    };
    html! {
        header.top {
            a.brand href="/" {
                svg.logo viewBox="0 0 24 24" aria-hidden="true" {
                    path d="M12 2 3 6v6c0 5 3.8 8.6 9 10 5.2-1.4 9-5 9-10V6z" {}
                    path.tick d="m8 12 3 3 5.5-6" {}
                }
                "Steadfast"
            }
            nav aria-label="Console" {
                (link(Part::Runs, "/", "Runs"))
                (link(Part::Plans, "/plans", "Plans"))
                (link(Part::Keys, "/keys", "Keys"))
                (link(Part::Messages, "/messages", "Messages"))
                (link(Part::Letters, "/letters", "Dead letters"))
                (link(Part::Workers, "/workers", "Workers"))
                (link(Part::Workflows, "/workflows", "Workflows"))
                @if shares_store { (link(Part::Cluster, "/cluster", "Cluster")) }
            }
            @if follows {
                button #live type="button" data-state="connecting" hidden title="Pause or resume updates of this page" {
                    span.dot aria-hidden="true" {}
                    span.word role="status" { "connecting" }
                }
            }
        }
    }
}
