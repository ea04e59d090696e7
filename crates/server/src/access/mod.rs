//! Who may reach the server: loopback only, or with a token; only under its own names; no pages of other sites.

mod cors;
mod hosts;
mod token;

pub(crate) use cors::{Cors, allow};
pub(crate) use hosts::Hosts;
pub(crate) use token::Token;

use crate::config::Config;
use crate::error::Error;
use crate::problem::Problem;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Method, Uri};
use std::net::SocketAddr;
use std::sync::Arc;
use steadfast_kernel::code;

/// What the holder of the token is called. There is one token, so that it may be changed without anybody becoming somebody else.
pub(crate) const PRINCIPAL: &str = "token";

/// The rules of one server.
pub(crate) struct Access {
    token: Option<Token>,
    hosts: Hosts,
    pub(crate) cors: Cors,
}

impl Access {
    /// The rules of a server that is to listen there.
    ///
    /// # Errors
    /// If others could reach it and there is no token, or the token is no good.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let token = config.token_file.as_deref().map(Token::read).transpose()?;
        if token.is_none() && !config.listen.ip().is_loopback() {
            return Err(Error::TokenNeeded { listen: config.listen });
        }
        Ok(Access { token, hosts: Hosts::new(config.listen, &config.allowed_hosts), cors: Cors::new(&config.cors_origins) })
    }

    /// What it listens on now: the port may only be known then.
    pub(crate) fn listens_on(&mut self, addr: SocketAddr) {
        self.hosts.listens_on(addr);
    }

    /// Refuses what is not meant for this server, and what a page of another site has sent.
    pub(crate) fn check_site(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let not_allowed = |detail: String| Err(Problem::new(code::HOST_NOT_ALLOWED, detail));
        let host = uri.authority().map(http::uri::Authority::as_str).or_else(|| headers.get(HOST)?.to_str().ok());
        if headers.get_all(HOST).iter().count() > 1 || headers.get_all(ORIGIN).iter().count() > 1 {
            return not_allowed("there is more than one Host or Origin header".into());
        }
        let Some(host) = host else { return not_allowed("the Host header is missing or cannot be read".into()) };
        if !self.hosts.allow(host) {
            let detail = format!("{} is not a name of this server; use localhost, or add it to allowed_hosts", shown(host));
            return not_allowed(detail);
        }
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        match headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) {
            Some(origin) if !hosts::is_same(origin, host) && !self.cors.allows(origin) => {
                let detail = format!("pages of {} may not change anything here; add it to cors_origins if they are to", shown(origin));
                not_allowed(detail)
            }
            None if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") => {
                not_allowed("pages of other sites may not change anything here".into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses those who do not have the token.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        if self.may_know(headers) {
            return Ok(());
        }
        let detail = "send the server's token: Authorization: Bearer TOKEN (on the command line --token-file or STEADFAST_TOKEN)";
        Err(Problem::new(code::UNAUTHORISED, detail))
    }

    /// Who somebody is that has come in: the one who has the token, if there is one.
    pub(crate) fn principal(&self) -> Option<Arc<str>> {
        self.token.as_ref().map(|_| PRINCIPAL.into())
    }

    /// Whether the caller has the token, if there is one.
    pub(crate) fn may_know(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let given = headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
        given.and_then(bearer).is_some_and(|given| token.is(given))
    }
}

/// The token in an `Authorization` header; the scheme is the same in either case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// What a client has sent, short enough for a sentence.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(100).collect::<String>())
}
