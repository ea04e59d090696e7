//! The paths of the API, one file per kind of thing. A path and its description in OpenAPI are registered together.

mod cluster;
mod feed;
mod keys;
mod letters;
mod locks;
mod messages;
mod openapi;
mod plans;
mod runs;
mod status;
mod tenants;
mod workers;
mod workflows;

pub use openapi::openapi;

use crate::app::App;
use crate::problem::Problem;
use axum::Router;
use bytes::Bytes;
use http::{Method, Uri};
use std::sync::Arc;
use steadfast_kernel::code;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Every path, with its description.
fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(status::healthz))
        .routes(routes!(status::readyz))
        .routes(routes!(status::metrics))
        .routes(routes!(openapi::document))
        .routes(routes!(workflows::list))
        .routes(routes!(workers::list))
        .routes(routes!(messages::show))
        .routes(routes!(cluster::show))
        .routes(routes!(cluster::drain))
        .routes(routes!(cluster::undrain))
        .routes(routes!(feed::follow))
        .routes(routes!(runs::start::start, runs::list::list))
        .routes(routes!(runs::show::show))
        .routes(routes!(runs::show::events))
        .routes(routes!(runs::result::result))
        .routes(routes!(runs::operate::pause))
        .routes(routes!(runs::operate::resume))
        .routes(routes!(runs::operate::cancel))
        .routes(routes!(runs::retry::retry))
        .routes(routes!(runs::operate::signal))
        .routes(routes!(runs::operate::replay))
        .routes(routes!(plans::create::create, plans::list::list))
        .routes(routes!(plans::show::show))
        .routes(routes!(plans::show::events))
        .routes(routes!(plans::operate::start))
        .routes(routes!(plans::operate::pause))
        .routes(routes!(plans::operate::resume))
        .routes(routes!(plans::operate::cancel))
        .routes(routes!(plans::operate::rollback))
        .routes(routes!(tenants::look::task))
        .routes(routes!(tenants::look::checkpoint))
        .routes(routes!(tenants::operate::retry))
        .routes(routes!(tenants::operate::pause))
        .routes(routes!(tenants::operate::resume))
        .routes(routes!(tenants::operate::cancel))
        .routes(routes!(tenants::operate::rollback))
        .routes(routes!(tenants::operate::hand_over))
        .routes(routes!(locks::list))
        .routes(routes!(locks::break_one))
        .routes(routes!(keys::look::list))
        .routes(routes!(keys::look::show, keys::change::put, keys::change::delete))
        .routes(routes!(keys::change::renew))
        .routes(routes!(keys::callbacks::list))
        .routes(routes!(letters::list))
        .routes(routes!(letters::show, letters::discard))
        .routes(routes!(letters::redrive))
        .routes(routes!(letters::redrive_many))
}

/// What answers requests.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let (router, document) = routes().split_for_parts();
    app.openapi.get_or_init(|| Bytes::from(openapi::text(openapi::complete(document))));
    router
        .merge(crate::pages::router())
        .fallback(no_such_path)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Arc::clone(app))
}

async fn no_such_path(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(code::NO_SUCH_PATH, format!("nothing is at {path}; /openapi.json lists what there is"))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(code::METHOD_NOT_ALLOWED, format!("{path} does not take {method}; the Allow header lists what it takes"))
}
