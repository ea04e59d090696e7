//! Workflow code with its types, and how the host sees it: bytes in, bytes out.

use crate::Ctx;
use crate::means::Means;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use steadfast_kernel::{Code, Failure, Payload};
use steadfast_runtime::host;

/// The code of a workflow. `#[workflow]` writes this.
pub trait Workflow: Send + Sync + 'static {
    /// The name under which it is registered. It is stored with every run.
    const NAME: &'static str;
    /// What it is given.
    type Input: DeserializeOwned + Send + 'static;
    /// What it returns.
    type Returned: WorkflowResult;

    /// Runs it.
    fn run(ctx: Ctx, input: Self::Input) -> impl Future<Output = Self::Returned> + Send + 'static;
}

/// What a workflow function returns: `Result<Output, Failure>`.
#[diagnostic::on_unimplemented(
    message = "a workflow returns `Result<Output, Failure>`, not `{Self}`",
    label = "`?` makes a `Failure` of any error"
)]
pub trait WorkflowResult {
    /// What it returns when all went well.
    type Output: Serialize;

    /// As it is.
    fn into_result(self) -> Result<Self::Output, Failure>;
}

impl<T: Serialize> WorkflowResult for Result<T, Failure> {
    type Output = T;

    fn into_result(self) -> Result<T, Failure> {
        self
    }
}

/// A workflow as the host sees it.
pub(crate) struct Hosted<W> {
    means: Means,
    code: PhantomData<fn() -> W>,
}

impl<W> Hosted<W> {
    pub(crate) fn new(means: Means) -> Self {
        Hosted { means, code: PhantomData }
    }
}

impl<W: Workflow> host::Code for Hosted<W> {
    fn begin(&self, context: host::Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        let means = self.means.clone();
        async move {
            let input: W::Input = decode(&input, "the input")?;
            encode(&W::run(Ctx::with(context, means), input).await.into_result()?, "the result")
        }
        .boxed()
    }
}

/// A value as JSON bytes.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T, what: &str) -> Result<Payload, Failure> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Ok(Payload::json(bytes)),
        Err(error) => Err(Failure::permanent(format!("{what} cannot be written as JSON: {error}")).code(Code::InvalidArgument)),
    }
}

/// JSON bytes as a value. The bytes are never part of the message.
pub(crate) fn decode<T: DeserializeOwned>(payload: &Payload, what: &str) -> Result<T, Failure> {
    serde_json::from_slice(&payload.bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Failure::poison(format!("{what} cannot be read as {}: line {line}, column {column}", std::any::type_name::<T>()))
    })
}
