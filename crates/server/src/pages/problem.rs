//! Errors as pages, for those who look at them in a browser.

use super::layout::{Beside, Page, Part};
use crate::shapes;
use axum::response::Response;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use maud::html;
use steadfast_kernel::code;

/// Who is to read an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Person,
    Program,
}

/// A person is one who takes HTML, of a path that is not the API's.
pub(crate) fn reader(path: &str, headers: &HeaderMap) -> Reader {
    let takes_html = || {
        headers
            .get_all(ACCEPT)
            .iter()
            .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")))
    };
    if !path.starts_with("/v1/") && takes_html() { Reader::Person } else { Reader::Program }
}

/// The page that says what is wrong.
pub(crate) fn problem(problem: &shapes::Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content = html! {
        article.problem {
            p.code { (problem.status) " · " (problem.code) }
            h1 { (problem.title) }
            p { (problem.detail) }
            @if let Some(next) = next(status, &problem.code) {
                p { (next) }
            }
            p { a.button href="/" { "All runs" } }
        }
    };
    Page { part: Part::Elsewhere, title: problem.title.clone(), follows: None, content }.respond_with(status, &Beside::default())
}

/// What a person can do about it who sits before a browser.
fn next(status: StatusCode, code: &str) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some(
            "This server asks for a token, which a browser does not send by itself. Use the command line with --token-file, or open the console of a \
             server that listens on this machine alone.",
        ),
        StatusCode::NOT_FOUND if code != code::NOT_SHARED => Some("What has ended is removed after a while; the list shows what there is."),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some("It may pass: load the page again in a moment."),
        _ => None,
    }
}
