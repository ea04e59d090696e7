//! The end of links that connects: a connection of its own for every link.

use super::codec::Raw;
use super::dial::dial;
use super::errors::{causes, failure, io_failure};
use super::link::{Ending, LINGER, Outgoing, Side, link};
use super::moving::{Coming, Going};
use super::watched::{Seen, Watched};
use super::{FRAME_BYTES, PATH, Settings};
use crate::wire::{Gone, Link, Pulse, Remote, Serving, Wire, tls, until};
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, InvalidHeaderValue, TE};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::borrow::Cow;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{EncodeBody, Streaming};

/// Connects to `http://host:port` and `https://host:port`.
#[derive(Clone, Debug, Default)]
pub struct Http2 {
    settings: Settings,
    /// Marked as sensitive, so that it is not shown.
    authorization: Option<HeaderValue>,
    tls: Option<tls::Client>,
}

impl Http2 {
    /// Connects with these settings.
    pub fn new(settings: Settings) -> Self {
        Http2 { settings, ..Http2::default() }
    }

    /// Shows that token to whoever it connects to.
    ///
    /// # Errors
    /// If the token has signs that a header cannot carry.
    pub fn token(mut self, token: &str) -> Result<Self, Failure> {
        let unfit = |_: InvalidHeaderValue| Failure::new(Code::InvalidArgument, "the token has signs that a header cannot carry");
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(unfit)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Connects to `https://` addresses with this.
    #[must_use]
    pub fn tls(mut self, tls: tls::Client) -> Self {
        self.tls = Some(tls);
        self
    }

    async fn open(self, address: String) -> Result<Link, Failure> {
        let target = Target::parse(&address)?;
        let cannot_connect = |error| io_failure(&address, &error);
        let stream = dial(target.host(), target.port).await.map_err(cannot_connect)?;
        stream.set_nodelay(true).map_err(cannot_connect)?;
        let mut remote = Remote { address: address.clone(), ..Remote::default() };
        if target.scheme == Scheme::HTTP {
            return self.link(stream, &target, remote).await;
        }
        let without =
            || Failure::permanent(format!("cannot connect to {address}: it is not said whom to trust; give the wire TLS settings"));
        let stream = self.tls.as_ref().ok_or_else(without)?.connect(target.host(), stream, &mut remote).await?;
        self.link(stream, &target, remote).await
    }

    /// Makes a link over a connection that is there.
    async fn link<T>(self, stream: T, target: &Target, remote: Remote) -> Result<Link, Failure>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (stream, seen) = Watched::new(stream);
        let lost = |error: hyper::Error| unlinked(&remote.address, &seen.lock(), &error);
        let (gone, serving) = Gone::when_unserved();
        let tasks = Tasks { over: CancellationToken::new(), serving };
        let (mut sender, connection) = self.http(tasks.clone()).handshake(TokioIo::new(stream)).await.map_err(lost)?;
        tasks.execute(connection);
        let max = self.settings.packet_bytes_max;
        let (outgoing, sent) = Outgoing::new(Side::Client, max);
        let ending = sent.ending();
        drop(tokio::spawn(cut_after(Arc::clone(&ending), sender.clone(), tasks.over)));
        let pulse = Pulse::default();
        let body = Going::new(EncodeBody::new_client(Raw, sent, None, None), pulse.clone());
        let request = self.request(target, Body::new(body))?;
        // Whoever stops waiting here drops `outgoing` and the answer, which ends the stream and with it the connection.
        let response = sender.send_request(request).await.map_err(lost)?;
        let (status, answer) = accepted(response).map_err(|refused| refusal(&remote.address, &refused))?;
        let packets = Streaming::new_response(Raw, Coming::new(answer, pulse.clone()), status, None, Some(max));
        Ok(Link { gone, ..link(outgoing, packets, ending, remote, pulse) })
    }

    fn http(&self, tasks: Tasks) -> Builder<Tasks> {
        let mut http = Builder::new(tasks);
        http.timer(TokioTimer::new())
            .initial_stream_window_size(self.settings.window_bytes)
            .initial_connection_window_size(self.settings.window_bytes)
            .max_frame_size(FRAME_BYTES)
            .keep_alive_interval(self.settings.ping_after)
            .keep_alive_timeout(self.settings.ping_timeout)
            .keep_alive_while_idle(true);
        http
    }

    fn request(&self, target: &Target, body: Body) -> Result<Request<Body>, Failure> {
        let uri = Uri::builder()
            .scheme(target.scheme.clone())
            .authority(target.authority.clone())
            .path_and_query(PATH);
        let unfit = |error: http::Error| Failure::new(Code::InvalidArgument, format!("not an address: {error}"));
        let mut request = Request::post(uri.build().map_err(unfit)?).body(body).map_err(unfit)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

impl Wire for Http2 {
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>> {
        Box::pin(self.clone().open(address.to_owned()))
    }
}

/// Where to connect.
struct Target {
    scheme: Scheme,
    authority: Authority,
    port: u16,
}

impl Target {
    fn parse(address: &str) -> Result<Self, Failure> {
        let unfit = |why: &str| {
            let address = without_user(address);
            Failure::new(Code::InvalidArgument, format!("{address} is not an address of the form http://host:port: {why}"))
        };
        let parts = address.parse::<Uri>().map_err(|error| unfit(&error.to_string()))?.into_parts();
        let scheme = parts.scheme.ok_or_else(|| unfit("it has no scheme"))?;
        let usual = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return Err(unfit("its scheme is neither http nor https")),
        };
        if parts.path_and_query.is_some_and(|path| path != "/") {
            return Err(unfit("it has a path"));
        }
        let authority = parts.authority.ok_or_else(|| unfit("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(unfit("it names a user"));
        }
        let port = authority.port_u16().unwrap_or(usual);
        Ok(Target { scheme, authority, port })
    }

    fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }
}

/// An address as people may see it: a user in it may have a password.
fn without_user(address: &str) -> Cow<'_, str> {
    let Some((before, host)) = address.rsplit_once('@') else { return address.into() };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://…@{host}").into(),
        None => format!("…@{host}").into(),
    }
}

/// Runs what belongs to one connection, until told otherwise.
#[derive(Clone)]
struct Tasks {
    over: CancellationToken,
    serving: Serving,
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let Tasks { over, serving } = self.clone();
        drop(tokio::spawn(async move {
            over.run_until_cancelled_owned(task).await;
            drop(serving); // once the task is dropped
        }));
    }
}

/// Cuts the connection with all that belongs to it once the link has been over for long enough.
async fn cut_after(ending: Arc<Ending>, sender: SendRequest<Body>, over: CancellationToken) {
    ending.ended_or_dropped().await;
    drop(sender); // The connection closes when its stream has come to its end.
    until(Some(Instant::now() + LINGER)).await;
    over.cancel();
}

/// Whether the other side has taken the link.
fn accepted(response: Response<Incoming>) -> Result<(StatusCode, Incoming), Status> {
    let (status, headers) = (response.status(), response.headers());
    match Status::from_header_map(headers) {
        Some(refused) if refused.code() != tonic::Code::Ok => return Err(refused),
        _ if status == StatusCode::OK => return Ok((status, response.into_body())),
        _ => {}
    }
    Err(refused(status))
}

/// What an answer other than a link means: what may pass, and what somebody has to mend.
fn refused(status: StatusCode) -> Status {
    let message = format!("it answers {status}");
    match status {
        StatusCode::UNAUTHORIZED => Status::unauthenticated(message),
        StatusCode::FORBIDDEN => Status::permission_denied(message),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Status::unimplemented(format!("{message}: no messages are taken there"))
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
            Status::unavailable(message)
        }
        _ if status.is_client_error() => Status::failed_precondition(message),
        _ => Status::unavailable(message),
    }
}

fn refusal(address: &str, refused: &Status) -> Failure {
    let mut failure = failure(refused);
    failure.message = format!("{address} refuses the link: {}", refused.message());
    failure
}

/// Why there is no link although there was a connection.
fn unlinked(address: &str, seen: &Seen, error: &hyper::Error) -> Failure {
    if let Some(speaks) = seen.speaks() {
        return Failure::permanent(format!("cannot connect to {address}: it speaks {speaks}"));
    }
    if let Some(error) = &seen.tls {
        return tls::refused(address, error);
    }
    causes(Failure::transient(format!("cannot connect to {address}: {error}")), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::Class;

    #[test]
    fn what_a_proxy_answers_passes_or_is_to_be_mended() {
        let transient = |status: &u16| refusal("x", &refused(StatusCode::from_u16(*status).unwrap())).class == Class::Transient;
        let passes: Vec<u16> = (400..600).filter(transient).collect();
        let expected: Vec<u16> = [408, 409, 425, 429].into_iter().chain(500..600).collect();
        assert_eq!(passes, expected);
    }
}
