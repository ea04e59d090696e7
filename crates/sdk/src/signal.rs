//! Signals, as they are sent to a run.

use crate::{Error, Run};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::future::IntoFuture;
use steadfast_kernel::{Origin, Payload};

/// A signal that is being put together. Await it.
#[must_use = "a signal is sent when this is awaited"]
pub struct SendSignal {
    run: Run,
    name: String,
    payload: Result<Payload, serde_json::Error>,
    origin: Origin,
}

impl SendSignal {
    pub(crate) fn new<T: Serialize + ?Sized>(run: Run, name: &str, payload: &T) -> Self {
        SendSignal { run, name: name.into(), payload: serde_json::to_vec(payload).map(Payload::json), origin: Origin::default() }
    }

    /// Who sends it; kept on record.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.origin.by = Some(who.into());
        self
    }

    /// Why; kept on record.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.origin.why = Some(why.into());
        self
    }

    /// What tells this signal from others: the same again is dropped, so that it can be sent until it is acknowledged.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.origin.command = Some(id.into());
        self
    }
}

impl IntoFuture for SendSignal {
    type Output = Result<bool, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let payload = self
                .payload
                .map_err(|source| Error::Unreadable { what: format!("the signal {}", self.name), source })?;
            Ok(self.run.engine.signal(&self.run.id, &self.name, payload, self.origin).await?)
        }
        .boxed()
    }
}
