//! Every error as a problem document: the one place that maps codes to statuses.

use crate::pages::{self, Reader};
use crate::shapes;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;
use steadfast_kernel::{InvalidId, Refusal, code};
use steadfast_runtime as runtime;

/// The media type of problem documents.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request is not carried out. It becomes a document on its way out, where the path that was asked for is known.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: &'static str,
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
    dependencies: Option<Vec<shapes::Dependency>>,
    locked: Option<Vec<shapes::Locked>>,
}

/// The titles of the pages, from their index.
static TITLES: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let index = include_str!("../../../docs/errors/README.md");
    let row = |line: &'static str| {
        let (link, title) = line.strip_prefix("| [")?.split_once(" | ")?;
        Some((link.split_once(']')?.0, title.strip_suffix(" |")?))
    };
    index.lines().filter_map(row).collect()
});

/// When to come back after a refusal that may pass and does not say when.
const COME_BACK: Duration = Duration::from_secs(1);

impl Problem {
    pub(crate) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        let status = status(code);
        let retry_after = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE]
            .contains(&status)
            .then_some(COME_BACK);
        Problem { code, status, detail: detail.into(), retry_after, dependencies: None, locked: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(code::BAD_REQUEST, detail)
    }

    pub(crate) fn not_ready(dependencies: Vec<shapes::Dependency>) -> Self {
        let missing: Vec<&str> = dependencies.iter().filter(|one| !one.ready).map(|one| &*one.name).collect();
        let detail = format!("not ready: {}; see the dependencies", missing.join(", "));
        Problem { dependencies: Some(dependencies), ..Problem::new(code::NOT_READY, detail) }
    }

    /// The answer to somebody who asked for that path: a document, or a page for people.
    pub(crate) fn render(self, instance: &str, reader: Reader) -> Response {
        let document = shapes::Problem {
            kind: format!("docs/errors/{}", self.code),
            title: TITLES.get(self.code).copied().unwrap_or("Error").into(),
            status: self.status.as_u16(),
            detail: self.detail,
            instance: Some(instance.into()),
            code: self.code.into(),
            dependencies: self.dependencies,
            locked: self.locked,
        };
        let mut response = match reader {
            Reader::Person => pages::problem(&document),
            Reader::Program => written(&document),
        };
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(after) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(after.as_nanos().div_ceil(1_000_000_000).max(1) as u64));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

fn written(document: &shapes::Problem) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(document).unwrap_or_default()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    response
}

/// The status that belongs to a code.
fn status(code: &str) -> StatusCode {
    match code {
        code::INVALID_ID | code::INVALID_SETTING | code::INVALID_TTL | code::PAYLOAD_UNREADABLE | code::BAD_REQUEST => {
            StatusCode::BAD_REQUEST
        }
        code::UNAUTHORISED => StatusCode::UNAUTHORIZED,
        code::HOST_NOT_ALLOWED | code::KEY_OWNED => StatusCode::FORBIDDEN,
        code::UNKNOWN_WORKFLOW
        | code::UNKNOWN_PLAN
        | code::RUN_NOT_FOUND
        | code::PLAN_NOT_FOUND
        | code::TASK_NOT_FOUND
        | code::CHECKPOINT_NOT_FOUND
        | code::LOCK_NOT_FOUND
        | code::LETTER_NOT_FOUND
        | code::KEY_NOT_FOUND
        | code::INSTANCE_NOT_FOUND
        | code::NOT_SHARED
        | code::NO_SUCH_PATH => StatusCode::NOT_FOUND,
        code::METHOD_NOT_ALLOWED => StatusCode::METHOD_NOT_ALLOWED,
        code::RUN_EXISTS
        | code::RUN_ENDED
        | code::STALE
        | code::NOT_ASKED
        | code::WRONG_STATUS
        | code::KEY_CHANGED
        | code::PLAN_EXISTS
        | code::PLAN_STATUS
        | code::TENANTS_LOCKED
        | code::ELSEWHERE
        | code::SHARED_FOREIGN
        | code::LETTER_BUSY
        | code::NOT_DELIVERED
        | code::NO_REDELIVERY
        | code::DEFINITION_NOT_HERE => StatusCode::CONFLICT,
        code::PAYLOAD_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
        code::MEDIA_TYPE => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code::STEP_NOT_FOUND | code::INVALID_INPUT | code::INVALID_PLAN | code::CALLBACK_NOT_ALLOWED => StatusCode::UNPROCESSABLE_ENTITY,
        code::TOO_MANY_SIGNALS | code::TOO_MANY_ENDS | code::TOO_MANY_LETTERS | code::BUSY | code::TOO_MANY_REQUESTS => {
            StatusCode::TOO_MANY_REQUESTS
        }
        code::INTERNAL | code::JOURNAL_BROKEN => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE, // the store, the engine, a time that is over: all of them may pass
    }
}

impl From<runtime::Error> for Problem {
    fn from(error: runtime::Error) -> Self {
        let problem = Problem::new(error.code(), detail(&error));
        let locked = match &error {
            runtime::Error::Refused(Refusal::TenantsLocked { locked, .. }) => Some(locked.iter().map(Into::into).collect()),
            _ => None,
        };
        Problem { retry_after: error.retry_after().or(problem.retry_after), locked, ..problem }
    }
}

/// What the error says, with what to do where it does not say so itself.
fn detail(error: &runtime::Error) -> String {
    let what_to_do = match error {
        runtime::Error::Refused(Refusal::RunNotFound { .. }) => "; GET /v1/runs lists those that there are",
        runtime::Error::Refused(Refusal::Ended { .. }) => "; retry it to have it go on, or start another one",
        runtime::Error::Refused(Refusal::LetterNotFound { .. }) => "; GET /v1/letters lists those that there are",
        runtime::Error::Refused(Refusal::KeyNotFound { .. }) => "; GET /v1/keys lists those that there are",
        runtime::Error::Refused(Refusal::PlanNotFound { .. }) => "; GET /v1/plans lists those that there are",
        runtime::Error::Refused(Refusal::LockNotFound { .. }) => "; GET /v1/locks lists those that somebody has",
        runtime::Error::UnknownPlan { .. } => "; GET /v1/workflows tells more about them",
        runtime::Error::UnknownWorkflow { .. } => "; GET /v1/workflows tells more about them",
        runtime::Error::Store(_) => "; see to the store and start the server again",
        _ => "",
    };
    format!("{error}{what_to_do}")
}

impl From<InvalidId> for Problem {
    fn from(invalid: InvalidId) -> Self {
        Problem::new(code::INVALID_ID, invalid.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod snapshot;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_title() {
        for code in code::ALL {
            assert!(TITLES.contains_key(code), "{code}");
        }
    }

    #[test]
    fn what_may_pass_says_when_to_come_back() {
        let busy = Problem::new(code::BUSY, "").render("/", Reader::Program);
        assert_eq!((busy.status(), &busy.headers()[RETRY_AFTER]), (StatusCode::TOO_MANY_REQUESTS, &HeaderValue::from(1)));
        let wrong = Problem::new(code::RUN_EXISTS, "").render("/", Reader::Program);
        assert_eq!((wrong.status(), wrong.headers().get(RETRY_AFTER)), (StatusCode::CONFLICT, None));
    }
}
