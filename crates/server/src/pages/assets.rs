//! What the pages load: embedded in the binary, under an address that has the hash of all of it, so that it can be kept for ever.

use crate::problem::Problem;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use rust_embed::Embed;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use steadfast_kernel::code;

#[derive(Embed)]
#[folder = "assets/"]
struct Files;

/// What tells these assets from those of another version.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut names: Vec<_> = Files::iter().collect();
    names.sort();
    let mut hash = Sha256::new();
    for file in names.iter().filter_map(|name| Files::get(name)) {
        hash.update(file.metadata.sha256_hash());
    }
    HEXLOWER.encode(&hash.finalize()[..6])
});

/// The address of an asset.
pub(super) fn address(name: &str) -> String {
    format!("{}{}/{name}", super::ASSETS, *VERSION)
}

/// An asset. A page of another version gets it as well, but may not keep it.
pub(super) async fn asset(Path((version, name)): Path<(String, String)>) -> Result<Response, Problem> {
    let file = Files::get(&name).ok_or_else(|| Problem::new(code::NO_SUCH_PATH, "there is no such asset; load the page again"))?;
    let kept = if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8".to_string(),
        _ => file.metadata.mimetype().to_string(),
    };
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, kept.to_string())], Body::from(file.data.into_owned())).into_response())
}
