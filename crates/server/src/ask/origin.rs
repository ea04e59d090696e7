//! Who asks for something, and what tells the request from others.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use http::request::Parts;
use steadfast_kernel::Origin;

/// The longest `Idempotency-Key`, and the longest reason, in bytes.
const KEY_MAX: usize = 256;
const REASON_MAX: usize = 4096;

/// What the headers say of who wants something.
pub(crate) struct Command {
    id: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Command {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut keys = parts.headers.get_all("idempotency-key").iter();
        let (key, another) = (keys.next(), keys.next());
        let wrong = || Problem::bad_request(format!("Idempotency-Key has to be one text of 1 to {KEY_MAX} visible characters"));
        let text = |key: &http::HeaderValue| key.to_str().ok().filter(|key| (1..=KEY_MAX).contains(&key.len())).map(str::to_string);
        match (key, another) {
            (None, _) => Ok(Command { id: None }),
            (Some(key), None) => text(key).map(|id| Command { id: Some(id) }).ok_or_else(wrong),
            (Some(_), Some(_)) => Err(wrong()),
        }
    }
}

impl Command {
    /// What is kept on record.
    pub(crate) fn because(self, reason: Option<String>) -> Result<Origin, Problem> {
        if reason.as_ref().is_some_and(|reason| reason.len() > REASON_MAX) {
            return Err(Problem::bad_request(format!("reason has more than {REASON_MAX} bytes; say it in fewer words")));
        }
        Ok(Origin { by: Some("api".into()), why: reason.filter(|reason| !reason.is_empty()), command: self.id })
    }
}
