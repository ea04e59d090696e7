//! The change feed over SSE. It is pulled: what a reader has not asked for is in the store and nowhere else, so a slow one only falls behind.
//!
//! Tested by `crates/cli/tests/it/cluster/feed.rs`.

use crate::app::App;
use crate::ask::{Query, nearest};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Change, Event};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use steadfast_kernel::{self as kernel, EntityId, KeyName, LetterId, PlanId, RunId, TenantId, check_prefix, code};
use steadfast_runtime::clock::{Clock, SystemClock};
use steadfast_runtime::{Error, Fed, Feed, Follow, Position};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use utoipa::IntoParams;

/// What to follow.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// The cursor after which to begin; from now on if it is left out. `0` is the very beginning.
    after: Option<String>,
    /// Only events of these types, separated by commas.
    #[param(example = "RUN_COMPLETED,RUN_FAILED")]
    types: Option<String>,
    /// Only what happens to things of that kind: run, plan, task, lock, key or letter.
    kind: Option<String>,
    /// Only what happens to the thing of that id; a run or task, unless `kind` says otherwise. That of a lock is its tenant.
    id: Option<String>,
    /// Only what is that tenant's.
    tenant: Option<String>,
    /// Only what happens to that plan and to its tasks.
    plan: Option<String>,
    /// Only what happens to keys whose names begin so, and to their dead letters.
    #[param(example = "session:")]
    prefix: Option<String>,
}

/// Everything that happens, as it happens: server-sent events whose data is `{kind, id, event}`. The order is that of the journal for each thing. The
/// `id` of an event is a cursor: a reader that comes back with it in `Last-Event-ID` (or `after`) misses nothing. A reader that does not read is
/// cut off. What happens to a task of a plan has the kind `task`, and types of its own where every run has them (`TASK_CREATED` for `RUN_STARTED`, …).
#[utoipa::path(get, path = "/v1/events", operation_id = "events_follow", tag = "events",
    params(Asked, ("Last-Event-ID" = Option<String>, Header, description = "The cursor of the last event that was seen; it goes before `after`.")),
    responses(
        (status = 200, description = "A stream without an end.", body = Change, content_type = "text/event-stream"),
        (status = 400, description = "A parameter or the cursor cannot be understood."),
    ))]
pub(super) async fn follow(State(app): State<Arc<App>>, headers: HeaderMap, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let after = place(&headers, asked.after.as_deref())?;
    let filter = Filter::new(asked)?;
    let too_many =
        |_| Problem::new(code::TOO_MANY_REQUESTS, "as many as may follow the feed already do (feed_readers_max); come back later");
    let permit = Arc::clone(&app.readers).try_acquire_owned().map_err(too_many)?;
    let follow = Follow { after, entity: filter.entity.clone() };
    let feed = app.engine.feed(follow).await?;
    if !feed.last().includes(feed.position()) {
        return Err(Problem::bad_request(
            "that cursor is beyond the end of this feed: it is of another server, or of a store that was restored; leave it out to begin now",
        ));
    }
    let hello = Bytes::from(format!("retry: 1000\nid: {}\n\n", cursor::encode(feed.position())));
    let reader = Reader { told: feed.position().clone(), feed, filter, app, hello: Some(hello), page: VecDeque::new(), _permit: permit };
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(reader.stream())).into_response())
}

/// Where to begin. What a browser sends by itself when it comes back goes before what its page asked for at first.
fn place(headers: &HeaderMap, after: Option<&str>) -> Result<Option<Position>, Problem> {
    let unreadable = |_| Problem::bad_request("Last-Event-ID is not a cursor that this feed has given");
    let last = headers.get("last-event-id").map(|last| last.to_str().map_err(unreadable)).transpose()?;
    match (last.filter(|last| !last.is_empty()), after) {
        (Some(last), _) => cursor::decode("Last-Event-ID", last).map(Some),
        (None, Some("0")) => Ok(Some(Position::default())),
        (None, Some(after)) => cursor::decode("after", after).map(Some),
        (None, None) => Ok(None),
    }
}

/// What a reader wants to hear of.
struct Filter {
    types: Vec<String>,
    kind: Option<String>,
    id: Option<String>,
    tenant: Option<String>,
    plan: Option<PlanId>,
    prefix: Option<String>,
    /// Where the engine itself can leave out the rest.
    entity: Option<EntityId>,
}

impl Filter {
    fn new(Asked { types, kind, id, tenant, plan, prefix, .. }: Asked) -> Result<Self, Problem> {
        let types: Vec<String> = types.iter().flat_map(|types| types.split(',')).map(str::to_string).collect();
        for kind in &types {
            known("types", kind, &Event::TYPES)?;
        }
        if let Some(kind) = &kind {
            known("kind", kind, &Change::KINDS)?;
        }
        if let Some(prefix) = &prefix {
            check_prefix(prefix)?;
        }
        let entity = match (kind.as_deref(), &id) {
            (None | Some("run" | "task"), Some(id)) => Some(EntityId::Run(RunId::new(id)?)),
            (Some("plan"), Some(id)) => Some(EntityId::Plan(PlanId::new(id)?)),
            (Some("lock"), Some(id)) => Some(EntityId::Lock(TenantId::new(id)?)),
            (Some("key"), Some(id)) => Some(EntityId::Key(KeyName::new(id)?)),
            (Some("letter"), Some(id)) => {
                let letter = LetterId::parse(id)
                    .ok_or_else(|| Problem::bad_request("the id of a dead letter is WORKFLOW.NUMBER or key:KEY.NUMBER"))?;
                Some(letter.home.entity())
            }
            _ => None,
        };
        let plan = plan.map(PlanId::new).transpose()?;
        Ok(Filter { types, kind, id, tenant, plan, prefix, entity })
    }

    /// What is said of it, if it is wanted.
    fn take(&self, fed: &Fed) -> Option<Change> {
        let wanted = self.types.is_empty() || self.types.iter().any(|kind| kind == Change::event_type(fed));
        if !wanted || self.tenant.as_deref().is_some_and(|asked| tenant(fed) != Some(asked)) {
            return None;
        }
        if self.plan.as_ref().is_some_and(|asked| plan(fed) != Some(asked)) {
            return None;
        }
        if self.prefix.as_ref().is_some_and(|prefix| !begins(&fed.entity, prefix)) {
            return None;
        }
        let change = Change::of(fed)?;
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        (fits(&self.kind, &change.kind) && fits(&self.id, &change.id)).then_some(change)
    }
}

/// Whose it is.
fn tenant(fed: &Fed) -> Option<&str> {
    match (&fed.entry.event, &fed.entity) {
        (kernel::Event::LetterAdded(letter), _) => letter.tenant.as_deref(),
        (_, EntityId::Lock(tenant)) => Some(tenant.as_str()),
        _ => fed.tenant.as_deref(),
    }
}

/// The plan that it is, or is a task of.
fn plan(fed: &Fed) -> Option<&PlanId> {
    match &fed.entity {
        EntityId::Plan(plan) => Some(plan),
        _ => fed.plan.as_ref(),
    }
}

/// Whether it is a key whose name begins so.
fn begins(entity: &EntityId, prefix: &str) -> bool {
    matches!(entity, EntityId::Key(key) if key.as_str().starts_with(prefix))
}

fn known(name: &str, value: &str, known: &[&str]) -> Result<(), Problem> {
    if known.contains(&value) {
        return Ok(());
    }
    let value: String = value.chars().take(100).collect();
    let meant = nearest(&value, known).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    Err(Problem::bad_request(format!("{name} has {value:?}; {meant}there are: {}", known.join(", "))))
}

/// About how much is sent at once.
const CHUNK: usize = 64 << 10;

/// One reader.
struct Reader {
    feed: Feed,
    filter: Filter,
    app: Arc<App>,
    /// The first word: where it begins.
    hello: Option<Bytes>,
    /// What was read and is still to be sent. It becomes text when the reader has room for it.
    page: VecDeque<Arc<Fed>>,
    /// The place that the reader knows of.
    told: Position,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// What the reader is sent. A task of its own fetches it, a piece ahead, so that a reader that takes nothing gives its place up whatever its connection does.
    fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let (pieces, taken) = mpsc::channel(1);
        tokio::spawn(self.fetch(pieces));
        stream::unfold(taken, |mut taken| async move { taken.recv().await.map(|piece| (Ok(piece), taken)) })
    }

    /// Fetches until the stream ends, the reader is gone, or it has taken nothing for too long. It can come back.
    async fn fetch(mut self, pieces: mpsc::Sender<Bytes>) {
        loop {
            let piece = tokio::select! {
                biased;
                () = pieces.closed() => return,
                piece = self.next() => piece,
            };
            let Some(piece) = piece else { return };
            match tokio::time::timeout(self.app.config.stall_time, pieces.send(piece)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// What is sent next; nothing at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        let mut quiet = SystemClock.sleep(self.app.config.feed_keep_alive);
        loop {
            if let Some(bytes) = self.hello.take().or_else(|| self.write()) {
                return Some(bytes);
            }
            tokio::select! {
                biased;
                () = self.app.closing.cancelled() => return None,
                () = &mut quiet => return Some(self.still_here()), // also while much happens that it does not want to hear of
                next = self.feed.next() => match next {
                    Ok(page) => self.page.extend(page),
                    Err(Error::Unavailable { retry_after, .. }) => SystemClock.sleep(retry_after).await,
                    Err(_) => return None,
                },
            }
        }
    }

    /// A piece of what was read; nothing if the reader wants to hear of none of it.
    fn write(&mut self) -> Option<Bytes> {
        let mut text = Vec::new();
        while text.len() < CHUNK {
            let Some(fed) = self.page.pop_front() else { break };
            let Some(change) = self.filter.take(&fed) else { continue };
            self.told.advance(fed.place);
            text.extend_from_slice(b"id: ");
            text.extend_from_slice(cursor::encode(&self.told).as_bytes());
            text.extend_from_slice(b"\ndata: ");
            if serde_json::to_writer(&mut text, &change).is_ok() {
                text.extend_from_slice(b"\n\n");
            }
        }
        (!text.is_empty()).then(|| text.into())
    }

    /// Nothing has happened that the reader wants to hear of; it need not read all of that again when it comes back.
    fn still_here(&mut self) -> Bytes {
        let position = self.feed.position();
        if *position == self.told {
            return Bytes::from_static(b": still here\n\n");
        }
        self.told = position.clone();
        Bytes::from(format!(": still here\nid: {}\n\n", cursor::encode(&self.told)))
    }
}
