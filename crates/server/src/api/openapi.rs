//! The OpenAPI document: what the handlers say of themselves, and what goes for all of them.

use crate::app::App;
use crate::problem::PROBLEM_JSON;
use crate::shapes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use std::sync::Arc;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, Content, Info, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

/// What can happen to any request, beside what its own path answers.
const COMMON: [(&str, &str); 4] = [
    ("401", "The token is missing or wrong."),
    ("403", "The host or site is not allowed."),
    ("429", "Too much at once; see Retry-After."),
    ("503", "The engine, the store, what instances share, or the time is over for now; see Retry-After."),
];

/// What can happen to any request with a body.
const WITH_BODY: [(&str, &str); 3] = [
    ("400", "The request cannot be understood."),
    ("413", "The body, or a payload in it, is too large."),
    ("415", "The body is not JSON."),
];

/// Paths that are answered without a token and however much is going on.
const ALWAYS: [&str; 2] = ["/healthz", "/readyz"];

/// Paths that ask nothing of the engine.
const BY_ITSELF: [&str; 5] = ["/metrics", "/openapi.json", "/v1/messages", "/v1/workers", "/v1/workflows"];

/// The OpenAPI document, as it is served.
pub fn openapi() -> String {
    text(complete(super::routes().split_for_parts().1))
}

pub(super) fn base() -> OpenApi {
    let mut info = Info::new("Steadfast", "1");
    info.description = Some(
        "Durable workflows over HTTP. Errors are problem documents (RFC 9457) with a stable code. Ids may have slashes, written as they are or as %2F; \
         the last part of a path is a verb if it is the name of one, so an id that ends like a verb is written with %2F."
            .into(),
    );
    OpenApiBuilder::new().info(info).build()
}

/// Adds what goes for all paths.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            if !ALWAYS.contains(&path.as_str()) {
                add(operation, if BY_ITSELF.contains(&path.as_str()) { &COMMON[..3] } else { &COMMON });
                operation.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new("token", [""; 0])]);
            } else {
                add(operation, &COMMON[1..2]);
            }
            if operation.request_body.is_some() {
                add(operation, &WITH_BODY);
            }
            problems_are_documents(operation);
        }
    }
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    components.schemas.insert("Problem".into(), shapes::Problem::schema());
    let mut others = Vec::new();
    <shapes::Problem as ToSchema>::schemas(&mut others);
    components.schemas.extend(others);
    document
}

fn add(operation: &mut Operation, statuses: &[(&str, &str)]) {
    for (status, description) in statuses {
        let response = || RefOr::T(ResponseBuilder::new().description(*description).build());
        operation.responses.responses.entry((*status).into()).or_insert_with(response);
    }
}

/// Every answer that is an error has the same shape.
fn problems_are_documents(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.starts_with(['4', '5'])
        {
            let content = Content::new(Some(Ref::from_schema_name("Problem")));
            response.content.insert(PROBLEM_JSON.into(), RefOr::T(content));
        }
    }
}

pub(super) fn text(document: OpenApi) -> String {
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "server_document", tag = "server",
    responses((status = 200, description = "OpenAPI 3.1.", body = serde_json::Value)))]
pub(super) async fn document(State(app): State<Arc<App>>) -> Response {
    let text = app.openapi.get().cloned().unwrap_or_default();
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
