//! Construction and transport: how a request is sent, and what every request has in common.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::header::{ACCEPT, DATE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::{BodyExt as _, Limited};
use octocrab::service::middleware::auth_header::AuthHeaderLayer;
use octocrab::service::middleware::extra_headers::ExtraHeadersLayer;
use octocrab::{AuthState, OctoBody, Octocrab, OctocrabBuilder};
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::errors::{Effect, Sent, http_date, root_of};
use super::hosts::Hosts;
use super::token::Token;
use crate::ports::PortError;

/// The largest answer that is read, in bytes. A page of 100 labels or comments stays far below.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many redirects of a read are followed. GitHub gives one for a repository that was renamed.
const MAX_REDIRECTS: usize = 3;

/// The client of one GitHub with one token. For one thread; must be made inside a tokio runtime.
///
/// It repeats nothing. A read that GitHub redirects within the same host is followed; the token never goes to
/// another host than the two that [`Hosts`] names.
pub struct Client {
    octocrab: Octocrab,
    hosts: Hosts,
    token: Token,
    now: fn() -> DateTime<Utc>,
    server_time: Cell<Option<DateTime<Utc>>>,
    trace: Option<fn(&str)>,
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no tokio runtime.
    #[error("a client can be made inside a tokio runtime alone")]
    NoRuntime,
    /// TLS or proxy settings that cannot be used, such as a file of certificates that cannot be read.
    #[error("the connection to GitHub cannot be set up: {0}")]
    Setup(String),
}

/// One request.
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Value>,
    pub(super) effect: Effect,
    /// Method and path, as errors name it.
    pub(super) name: String,
}

/// An answer with a status that is a success.
pub(super) struct Answer<'a> {
    pub(super) sent: Sent<'a>,
    pub(super) headers: HeaderMap,
    status: http::StatusCode,
    body: Vec<u8>,
}

impl Answer<'_> {
    /// The body, as JSON of the form that GitHub's API description promises.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, PortError> {
        serde_json::from_slice(&self.body).map_err(|e| self.sent.malformed(&e.to_string()))
    }
}

impl Client {
    /// How long one request may take from its first byte to its answer's last.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A client. `now` is asked only where GitHub has not yet told its own time.
    pub fn new(hosts: Hosts, token: Token, timeout: Duration, now: fn() -> DateTime<Utc>) -> Result<Self, ClientError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ClientError::NoRuntime);
        }
        let http = connection(&hosts, timeout)?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| ClientError::Setup("the token cannot stand in a header".to_owned()))?;
        authorization.set_sensitive(true);
        let send = tower::service_fn(move |request: http::Request<OctoBody>| {
            let http = http.clone();
            async move {
                let request = reqwest::Request::try_from(request.map(reqwest::Body::wrap))?;
                let response = http::Response::<reqwest::Body>::from(http.execute(request).await?);
                Ok::<_, reqwest::Error>(response.map(|body| Limited::new(body, MAX_ANSWER)))
            }
        });
        let headers = vec![
            (USER_AGENT, HeaderValue::from_static(concat!("run-guard/", env!("CARGO_PKG_VERSION")))),
            (ACCEPT, HeaderValue::from_static("application/vnd.github+json")),
        ];
        let (api, graphql) = (uri(hosts.api())?, uri(hosts.graphql())?);
        let Ok(octocrab) = OctocrabBuilder::new_empty()
            .with_service(send)
            .with_layer(&ExtraHeadersLayer::new(Arc::new(headers)))
            .with_layer(&AuthHeaderLayer::new(Some(authorization), api, graphql))
            .with_auth(AuthState::None)
            .build();
        Ok(Self { octocrab, hosts, token, now, server_time: Cell::new(None), trace: None })
    }

    /// Which GitHub it asks.
    pub const fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The newest `Date` header that was seen.
    pub(super) fn newest_date(&self) -> Option<DateTime<Utc>> {
        self.server_time.get()
    }

    /// Sends one request and gives its answer if that is a success.
    /// The same, telling each request and how it was answered, one line each. Neither bodies nor headers are told.
    #[must_use]
    pub const fn with_trace(mut self, trace: Option<fn(&str)>) -> Self {
        self.trace = trace;
        self
    }

    pub(super) async fn send(&self, ask: Ask) -> Result<Answer<'_>, PortError> {
        let name = ask.name.clone();
        let answer = self.exchange(ask).await;
        if let Some(trace) = self.trace {
            match &answer {
                Ok(answer) => trace(&format!("{name}: {}", answer.status)),
                Err(error) => trace(&format!("{name}: {error}")),
            }
        }
        answer
    }

    async fn exchange(&self, ask: Ask) -> Result<Answer<'_>, PortError> {
        let mut sent = Sent {
            request: ask.name,
            effect: ask.effect,
            token: &self.token,
            now: self.server_time.get().unwrap_or_else(self.now),
        };
        let may_redirect = ask.method == Method::GET && ask.effect == Effect::Read;
        let mut url = ask.url;
        for hop in 0.. {
            let request = http::Request::builder().method(ask.method.clone()).uri(url.as_str());
            let request = self
                .octocrab
                .build_request(request, ask.body.as_ref())
                .map_err(|e| sent.malformed(&format!("the request cannot be built: {e}")))?;
            let response = self.octocrab.send(request).await.map_err(|e| sent.failed(&e))?;
            if let Some(date) = response.headers().get(DATE).and_then(|v| http_date(v.to_str().ok()?)) {
                sent.now = date;
                self.server_time.set(self.server_time.get().max(Some(date)));
            }
            if response.status().is_redirection() && may_redirect && hop < MAX_REDIRECTS {
                let to = response.headers().get(LOCATION).and_then(|v| url.join(v.to_str().ok()?).ok());
                if let Some(to) = to.filter(|to| to.origin() == url.origin()) {
                    url = to;
                    continue;
                }
            }
            let response = octocrab::map_github_error(response).await.map_err(|e| sent.failed(&e))?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|e| sent.failed(&e))?.to_bytes().to_vec();
            return Ok(Answer { sent, headers: parts.headers, status: parts.status, body });
        }
        Err(sent.lost("too many redirects"))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("hosts", &self.hosts).field("token", &self.token).finish_non_exhaustive()
    }
}

/// The HTTP client: rustls with ring, the system's certificates (`SSL_CERT_FILE` and `SSL_CERT_DIR` included) and
/// proxies, no redirects, no retries.
fn connection(hosts: &Hosts, timeout: Duration) -> Result<reqwest::Client, ClientError> {
    // A provider that is installed already serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT.min(timeout))
        .timeout(timeout);
    if hosts.is_local() {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|e| ClientError::Setup(root_of(&e)))
}

fn uri(url: &Url) -> Result<Uri, ClientError> {
    url.as_str().parse().map_err(|e| ClientError::Setup(format!("{url} cannot be asked: {e}")))
}
