//! Lists that come page by page, as one list.

use crate::client::Client;
use crate::error::Error;
use crate::output;
use serde::Serialize;
use serde_json::value::RawValue;
use steadfast_server::shapes::Page;

/// How many a list has if nobody says.
const USUAL: u32 = 50;
/// How many are asked for at once when all of them are wanted.
const PAGE: u32 = 500;
/// How often a search that does not find enough is gone on with, unless all of it is wanted: a server looks at 10,000 runs for an answer, so this is a million of them.
const PAGES_MAX: u32 = 100;

/// A list as it was asked for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Whole {
    /// To the letter.
    pub(crate) items: Vec<Box<RawValue>>,
    pub(crate) next_cursor: Option<String>,
}

/// Which part of a list.
pub(crate) struct Part {
    pub(crate) limit: Option<u32>,
    pub(crate) cursor: Option<String>,
    pub(crate) all: bool,
}

/// Reads a page, or all of them. An answer may have fewer than were asked for though there are more; then the next one is asked for the others.
pub(crate) async fn read(client: &Client, path: &str, filter: Vec<(&'static str, String)>, part: Part) -> Result<Whole, Error> {
    let mut whole = Whole { items: Vec::new(), next_cursor: part.cursor };
    let (wanted, mut pages) = (part.limit.unwrap_or(if part.all { PAGE } else { USUAL }), 0);
    loop {
        let mut query = filter.clone();
        let missing = if part.all { wanted } else { wanted.saturating_sub(u32::try_from(whole.items.len()).unwrap_or(u32::MAX)) };
        query.push(("limit", missing.to_string()));
        query.extend(whole.next_cursor.take().map(|cursor| ("cursor", cursor)));
        let page: Page<Box<RawValue>> = client.get(path, query).await?.read()?;
        whole.items.extend(page.items);
        whole.next_cursor = page.next_cursor;
        pages += 1;
        let is_full = !part.all && whole.items.len() >= wanted as usize;
        let Some(cursor) = whole.next_cursor.as_ref().filter(|_| !is_full) else { return Ok(whole) };
        if !part.all && pages >= PAGES_MAX {
            output::say(format_args!("the search stops here, before its end; go on with --cursor {cursor}, or --all"));
            return Ok(whole);
        }
    }
}

impl Whole {
    /// Each item as what it is expected to be.
    pub(crate) fn each<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let confused = |error| Error::failed("the server's answer cannot be understood", &error);
        self.items.iter().map(|item| serde_json::from_str(item.get()).map_err(confused)).collect()
    }

    /// Says how to see the rest, if there is more.
    pub(crate) fn hint_at_more(&self) {
        if let Some(cursor) = &self.next_cursor {
            output::hint(format_args!("\nthere are more: --all, or --cursor {cursor}"));
        }
    }

    /// One JSON document.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
