//! One page of a list.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One page of a list, and where the list goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Page)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// To be given as `cursor` for the next page; nothing if this is the last one. A page may have fewer items than were asked for, and go on all the same.
    pub next_cursor: Option<String>,
}
