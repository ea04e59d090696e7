//! The memory inbox: against a model, with much in it, and in every order.

mod bounds;
mod interleavings;
mod model;

use tokio::time::Instant;

/// Some instant to begin with; tests add to it.
#[expect(clippy::disallowed_methods, reason = "some instant to begin with; time is added to it by hand")]
fn start() -> Instant {
    std::time::Instant::now().into()
}
