//! The embedded GitHub behind loopback HTTP: the REST and GraphQL of github.com under `/`, and of Enterprise Server
//! under `/api/v3` and `/api/graphql`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::checks::{CheckRow, CheckWords, no_commit};
use super::error::{ApiError, Code};
use super::fault::{CallInfo, Op};
use super::graphql;
use super::json::{self, Addresses};
use super::record::{self, Exchange};
use super::state::{Answer, Session, State};
use super::world::{Item, RepoLabel, Repository};
use crate::ports::{NewCommit, ReactTo, RepoName};

/// The longest body of a request, in bytes.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// How to serve.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A file to which every exchange is added, one line of JSON each, without tokens.
    pub record: Option<PathBuf>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    /// The address, as `http://IP:PORT`: what `GITHUB_API_URL` is for github.com.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What `GITHUB_GRAPHQL_URL` is for github.com.
    pub fn graphql_url(&self) -> String {
        format!("http://{}/graphql", self.address)
    }

    /// What `GITHUB_API_URL` is for an Enterprise Server.
    pub fn enterprise_url(&self) -> String {
        format!("http://{}/api/v3", self.address)
    }

    /// What `GITHUB_GRAPHQL_URL` is for an Enterprise Server.
    pub fn enterprise_graphql_url(&self) -> String {
        format!("http://{}/api/graphql", self.address)
    }

    /// The state, to look at it or to change it between requests.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Serves until the listener fails.
    pub async fn run(mut self) -> io::Result<()> {
        (&mut self.task).await.map_err(io::Error::other)?
    }

    /// Takes no more connections.
    pub fn shutdown(&self) {
        self.task.abort();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// A request that panics cannot leave the state half changed, so a poisoned lock is still good.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listener for [`serve`]. With port 0 it takes a free one.
///
/// # Errors
///
/// If the address cannot be had.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves the state on a listener, in a task of the present runtime.
///
/// # Errors
///
/// If the listener does not know its address.
pub fn serve(state: State, listener: TcpListener, options: Options) -> io::Result<Server> {
    let address = listener.local_addr()?;
    let state = Arc::new(Mutex::new(state));
    let site = Arc::new(Site { state: Arc::clone(&state), base: format!("http://{address}"), options });
    let app = Router::new().fallback(move |ConnectInfo(line): ConnectInfo<Line>, request: Request| {
        let site = Arc::clone(&site);
        async move { site.answer(&line, request).await }
    });
    let service = app.into_make_service_with_connect_info::<Line>();
    let task = tokio::spawn(async move { axum::serve(Cuttable(listener), service).await });
    Ok(Server { address, state, task })
}

/// A listener whose connections can be cut, as a lost answer needs.
struct Cuttable(TcpListener);

/// A connection that ends without another byte once it is cut.
struct Stream {
    inner: TcpStream,
    cut: Arc<AtomicBool>,
}

/// The handle by which a request cuts its own connection.
#[derive(Clone)]
struct Line(Arc<AtomicBool>);

impl Listener for Cuttable {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        let (inner, address) = Listener::accept(&mut self.0).await;
        (Stream { inner, cut: Arc::default() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Cuttable>> for Line {
    fn connect_info(stream: IncomingStream<'_, Cuttable>) -> Self {
        Self(Arc::clone(&stream.io().cut))
    }
}

impl Stream {
    fn check(&self) -> io::Result<()> {
        if self.cut.load(Ordering::Relaxed) { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

struct Site {
    state: Arc<Mutex<State>>,
    base: String,
    options: Options,
}

/// An answer before it is written out.
struct Reply {
    status: u16,
    body: Value,
    link: Option<String>,
}

impl Reply {
    const fn new(status: u16, body: Value) -> Self {
        Self { status, body, link: None }
    }
}

/// A request in parts.
struct Ask<'a> {
    segments: Vec<String>,
    query: Vec<(String, String)>,
    body: Result<Value, ApiError>,
    /// What addresses of the API start with.
    api: String,
    token: Option<&'a str>,
}

/// Carries one request out.
type Action<'a> = Box<dyn FnOnce(&mut State, &Session) -> Result<Reply, ApiError> + 'a>;

impl Site {
    async fn answer(&self, line: &Line, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let sent: Result<Value, ApiError> = match to_bytes(body, MAX_BODY).await {
            Ok(body) if body.is_empty() => Ok(Value::Null),
            Ok(body) => serde_json::from_slice(&body).map_err(|_| ApiError::BadJson),
            Err(_) => Err(ApiError::BadJson),
        };
        let full_path = parts.uri.path();
        let (prefix, path) = match full_path.strip_prefix("/api/v3") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => ("/api/v3", rest),
            _ if full_path == "/api/graphql" => ("/api", "/graphql"),
            _ => ("", full_path),
        };
        let token = parts.headers.get(header::AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            ["bearer", "token"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then(|| token.trim())
        });
        let decode = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
        let ask = Ask {
            segments: path.split('/').skip(1).map(decode).collect(),
            query: query_of(parts.uri.query().unwrap_or_default()),
            body: sent.clone(),
            api: format!("{}{prefix}", self.base),
            token,
        };
        let (answer, headers, fault) = self.carry_out(&parts.method, &parts.headers, ask);
        let answered = answer.as_ref();
        if let Some(file) = &self.options.record {
            let exchange = Exchange {
                method: parts.method.to_string(),
                path: full_path.to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                request_headers: record::headers(&parts.headers),
                request_body: sent.unwrap_or_default(),
                status: answered.map_or(0, |reply| reply.status),
                response_headers: record::headers(&headers),
                response_body: answered.map(|reply| reply.body.clone()).unwrap_or_default(),
                fault,
            };
            if record::append(file, &exchange).is_err() {
                // Without its record the exchange must not pass unseen.
                line.0.store(true, Ordering::Relaxed);
            }
        }
        let Some(reply) = answer else {
            line.0.store(true, Ordering::Relaxed);
            return Response::new(Body::empty());
        };
        let body = if reply.body.is_null() { Body::empty() } else { Body::from(reply.body.to_string()) };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.headers_mut() = headers;
        response
    }

    /// The answer, if there is one, its headers, and whether a fault struck.
    fn carry_out(&self, method: &Method, sent: &HeaderMap, mut ask: Ask<'_>) -> (Option<Reply>, HeaderMap, bool) {
        let mut state = lock(&self.state);
        // Links between pages name a repository by its id.
        let by_id = match ask.segments.as_slice() {
            [first, id, ..] if first == "repositories" => {
                id.parse().ok().and_then(|id: u64| state.world().repositories.get(&id))
            }
            _ => None,
        };
        if let Some(repo) = by_id {
            let name = ["repos".to_owned(), repo.owner.clone(), repo.name.clone()];
            ask.segments.splice(..2, name);
        }
        let token = ask.token;
        let struck = state.struck();
        let method = match method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            "PUT" => "PUT",
            _ => "OTHER",
        };
        let path = format!("/{}", ask.segments.join("/"));
        let (op, action) = route(method, &ask);
        let answer = if sent.contains_key(header::USER_AGENT) {
            state.request(token, CallInfo { op, method, path }, None, action)
        } else {
            Answer::Answered(Err(ApiError::NoUserAgent))
        };
        let fault = state.struck() > struck;
        let (reply, limit) = match answer {
            Answer::Lost | Answer::Crashed => return (None, HeaderMap::new(), fault),
            Answer::Answered(Ok(reply)) => (reply, None),
            Answer::Answered(Err(error)) => {
                let body = match error {
                    ApiError::RateLimited { status: 200, .. } => json!({ "errors": [{
                        "type": "RATE_LIMIT", "code": "graphql_rate_limit", "message": error.message(),
                    }] }),
                    _ => json::error(&error),
                };
                let limit = match error {
                    ApiError::RateLimited { retry_after, reset, .. } => Some((retry_after, reset)),
                    _ => None,
                };
                (Reply::new(error.status(), body), limit)
            }
        };
        let headers = headers(&state, token, op, &reply, limit);
        (Some(reply), headers, fault)
    }
}

fn headers(
    state: &State,
    token: Option<&str>,
    op: Op,
    reply: &Reply,
    limit: Option<(Option<u64>, Option<DateTime<Utc>>)>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    set("date", state.now.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
    set("x-github-request-id", format!("{:08X}:{:04X}", state.calls().len(), reply.status));
    set("x-github-media-type", "github.v3; format=json".to_owned());
    if !reply.body.is_null() {
        set("content-type", "application/json; charset=utf-8".to_owned());
    }
    if let Some(link) = &reply.link {
        set("link", link.clone());
    }
    let rate = token.and_then(|token| state.rate(token, op));
    let limit_of_all = rate.map_or(60, |rate| rate.limit);
    let (mut remaining, mut reset) = rate.map_or((60, state.now), |rate| (rate.remaining(), rate.reset));
    if let Some((retry_after, used_up_until)) = limit {
        if let Some(seconds) = retry_after {
            set("retry-after", seconds.to_string());
        }
        if let Some(until) = used_up_until {
            (remaining, reset) = (0, until);
        }
    }
    set("x-ratelimit-limit", limit_of_all.to_string());
    set("x-ratelimit-remaining", remaining.to_string());
    set("x-ratelimit-used", limit_of_all.saturating_sub(remaining).to_string());
    set("x-ratelimit-reset", reset.timestamp().to_string());
    set("x-ratelimit-resource", if op.is_graphql() { "graphql" } else { "core" }.to_owned());
    headers
}

fn query_of(query: &str) -> Vec<(String, String)> {
    let decode =
        |part: &str| percent_encoding::percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect()
}

impl Ask<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The object in the body.
    fn object(&self) -> Result<&Value, ApiError> {
        let body = self.body.as_ref().map_err(Clone::clone)?;
        if body.is_object() { Ok(body) } else { Err(ApiError::BadJson) }
    }

    /// A text in the body, if it is there.
    fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.object()?.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                let message = format!("Invalid request.\n\nFor 'properties/{name}', {other} is not a string.");
                Err(ApiError::Unprocessable(message))
            }
        }
    }

    /// A text in the body that must be there.
    fn needed(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name)?
            .ok_or_else(|| ApiError::Unprocessable(format!("Invalid request.\n\n\"{name}\" wasn't supplied.")))
    }

    /// The names of labels in the body: a list, or a list under `labels`, of texts or of objects with a name.
    fn labels(&self) -> Result<Vec<String>, ApiError> {
        let body = self.body.as_ref().map_err(Clone::clone)?;
        let bad = || ApiError::Unprocessable("Invalid request.\n\nNo subschema in \"anyOf\" matched.".to_owned());
        let list = body.as_array().or_else(|| body.get("labels")?.as_array()).ok_or_else(bad)?;
        let name = |label: &Value| Some(label.as_str().or_else(|| label.get("name")?.as_str())?.to_owned());
        list.iter().map(|label| name(label).ok_or_else(bad)).collect()
    }

    /// One page of a list, with its links.
    fn page<T>(&self, repo: &Repository, rows: &[T], view: impl Fn(&T) -> Value) -> (Vec<Value>, Option<String>) {
        let number = |name: &str| self.param(name).and_then(|value| value.parse::<usize>().ok());
        let size = number("per_page").unwrap_or(30).clamp(1, 100);
        let page = number("page").unwrap_or(1).max(1);
        let last = rows.len().div_ceil(size).max(1);
        let shown = rows.iter().skip((page - 1).saturating_mul(size)).take(size).map(view).collect();
        let rest = self.segments.iter().skip(3).map(String::as_str).collect::<Vec<_>>().join("/");
        let mut others = String::new();
        for (key, value) in self.query.iter().filter(|(key, _)| key != "page") {
            // Names of parameters are plain words; encoding their underscore would only hide them.
            let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            let _ = write!(others, "{key}={value}&");
        }
        let link = |page: usize, rel: &str| {
            format!("<{}/repositories/{}/{rest}?{others}page={page}>; rel=\"{rel}\"", self.api, repo.id)
        };
        let mut links = Vec::new();
        if page > 1 {
            links.push(link((page - 1).min(last), "prev"));
        }
        if page < last {
            links.push(link(page + 1, "next"));
            links.push(link(last, "last"));
        }
        if page > 1 {
            links.push(link(1, "first"));
        }
        (shown, (!links.is_empty()).then(|| links.join(", ")))
    }

    fn list<T>(&self, repo: &Repository, rows: &[T], view: impl Fn(&T) -> Value) -> Reply {
        let (shown, link) = self.page(repo, rows, view);
        Reply { status: 200, body: shown.into(), link }
    }
}

/// What a request asks, and how to do it.
fn route<'a>(method: &str, ask: &'a Ask<'a>) -> (Op, Action<'a>) {
    let segments: Vec<&str> = ask.segments.iter().map(String::as_str).collect();
    let unknown: (Op, Action<'a>) = (Op::Unknown, Box::new(|_, _| Err(ApiError::NotFound)));
    match (method, segments.as_slice()) {
        ("POST", ["graphql"]) => (
            ask.body.as_ref().map_or(Op::Graphql, graphql::op),
            Box::new(|state, session| {
                let body = ask.object()?;
                Ok(Reply::new(200, graphql::answer(state, session, ask.token.unwrap_or_default(), body)))
            }),
        ),
        ("GET", ["rate_limit"]) => (
            Op::RateLimit,
            Box::new(|state, _| {
                let rate = |op| ask.token.and_then(|token| state.rate(token, op)).ok_or(ApiError::BadCredentials);
                Ok(Reply::new(200, json::rates(rate(Op::RateLimit)?, rate(Op::Graphql)?)))
            }),
        ),
        ("GET", ["user"]) => (
            Op::GetUser,
            Box::new(|state, session| {
                if session.caller.kind != super::TokenKind::Personal {
                    return Err(session.caller.refused());
                }
                let web = state.web.clone();
                let user = state.view(session).user(&session.caller.login).ok_or(ApiError::NotFound)?;
                let addresses = Addresses { api: &ask.api, web: &web };
                Ok(Reply::new(200, addresses.own_user(user, DateTime::UNIX_EPOCH)))
            }),
        ),
        (_, ["repos", owner, name, rest @ ..]) => {
            let repo = RepoName { owner: (*owner).to_owned(), name: (*name).to_owned() };
            in_repository(method, repo, rest, ask).unwrap_or(unknown)
        }
        _ => unknown,
    }
}

fn in_repository<'a>(method: &str, repo: RepoName, rest: &[&str], ask: &'a Ask<'a>) -> Option<(Op, Action<'a>)> {
    let number = |text: &str| text.parse::<u64>().ok();
    Some(match (method, rest) {
        ("GET", []) => (
            Op::GetRepository,
            Box::new(move |state, session| {
                let found = state.view(session).visible(&session.caller, &repo)?;
                Ok(Reply::new(200, ask.at(state).full_repository(state.view(session), found)))
            }),
        ),
        ("GET", ["labels"]) => (
            Op::ListLabels,
            Box::new(move |state, session| {
                let found = state.view(session).with_labels(&session.caller, &repo)?;
                let mut labels: Vec<_> = found.labels.values().collect();
                labels.sort_by_key(|label| label.name.to_lowercase());
                Ok(ask.list(found, &labels, |label| ask.at(state).label(found, label)))
            }),
        ),
        ("POST", ["labels"]) => (
            Op::CreateLabel,
            Box::new(move |state, session| {
                let name = ask.text("name")?.ok_or_else(|| ApiError::field("Label", Code::MissingField, "name"))?;
                let label = state.create_label(session, &repo, name, ask.text("color")?, ask.text("description")?)?;
                ask.one_label(state, &repo, &label, 201)
            }),
        ),
        ("GET", ["labels", name]) => {
            let name = (*name).to_owned();
            (
                Op::GetLabel,
                Box::new(move |state, session| {
                    let world = state.view(session);
                    let label = world.label(&session.caller, &repo, &name)?;
                    let found = world.visible(&session.caller, &repo)?;
                    Ok(Reply::new(200, ask.at(state).label(found, label)))
                }),
            )
        }
        ("PATCH", ["labels", name]) => {
            let name = (*name).to_owned();
            (
                Op::UpdateLabel,
                Box::new(move |state, session| {
                    let (new, color) = (ask.text("new_name")?, ask.text("color")?);
                    let label = state.update_label(session, &repo, &name, new, color, ask.text("description")?)?;
                    ask.one_label(state, &repo, &label, 200)
                }),
            )
        }
        ("DELETE", ["labels", name]) => {
            let name = (*name).to_owned();
            (
                Op::DeleteLabel,
                Box::new(move |state, session| {
                    state.delete_label(session, &repo, &name)?;
                    Ok(Reply::new(204, Value::Null))
                }),
            )
        }
        ("GET", ["issues"]) => (Op::ListIssues, Box::new(move |state, session| ask.issues(state, session, &repo))),
        ("POST", ["issues"]) => (
            Op::CreateIssue,
            Box::new(move |state, session| {
                let title = ask.text("title")?.unwrap_or_default();
                let labels = if ask.object()?.get("labels").is_some() { ask.labels()? } else { Vec::new() };
                let body = ask.text("body")?.unwrap_or_default();
                let item = state.create_issue(session, &repo, title, body, &labels)?;
                let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
                Ok(Reply::new(201, ask.at(state).item(state.world(), found, &item)))
            }),
        ),
        ("GET", ["issues", "comments", id]) => {
            let id = number(id)?;
            (
                Op::GetComment,
                Box::new(move |state, session| {
                    let world = state.view(session);
                    let (found, row) = world.comment(&session.caller, &repo, id)?;
                    Ok(Reply::new(200, ask.at(state).comment(world, found, row)))
                }),
            )
        }
        ("PATCH", ["issues", "comments", id]) => {
            let id = number(id)?;
            (
                Op::UpdateComment,
                Box::new(move |state, session| {
                    let body = ask.text("body")?.unwrap_or_default();
                    let row = state.update_comment(session, &repo, id, body)?;
                    let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
                    Ok(Reply::new(200, ask.at(state).comment(state.world(), found, &row)))
                }),
            )
        }
        (_, ["issues", "comments", id, "reactions"]) => {
            let to = ReactTo::Comment(number(id)?);
            match method {
                "GET" => {
                    (Op::ListCommentReactions, Box::new(move |state, session| ask.reactions(state, session, &repo, to)))
                }
                "POST" => (Op::ReactComment, Box::new(move |state, session| ask.react(state, session, &repo, to))),
                _ => return None,
            }
        }
        (_, ["issues", n, "reactions"]) => {
            let to = ReactTo::Issue(number(n)?);
            match method {
                "GET" => {
                    (Op::ListIssueReactions, Box::new(move |state, session| ask.reactions(state, session, &repo, to)))
                }
                "POST" => (Op::ReactIssue, Box::new(move |state, session| ask.react(state, session, &repo, to))),
                _ => return None,
            }
        }
        ("GET", ["issues", n]) => {
            let n = number(n)?;
            (
                Op::GetIssue,
                Box::new(move |state, session| {
                    let world = state.view(session);
                    let (found, item) = world.item(&session.caller, &repo, n)?;
                    Ok(Reply::new(200, ask.at(state).item(world, found, item)))
                }),
            )
        }
        ("GET", ["issues", n, "labels"]) => {
            let n = number(n)?;
            (
                Op::ListItemLabels,
                Box::new(move |state, session| {
                    let (found, item) = state.view(session).item(&session.caller, &repo, n)?;
                    let labels: Vec<_> = found.labels_of(item).collect();
                    Ok(ask.list(found, &labels, |label| ask.at(state).label(found, label)))
                }),
            )
        }
        ("POST", ["issues", n, "labels"]) => {
            let n = number(n)?;
            (
                Op::AddLabels,
                Box::new(move |state, session| {
                    let labels = state.add_labels(session, &repo, n, &ask.labels()?)?;
                    ask.some_labels(state, &repo, &labels)
                }),
            )
        }
        ("DELETE", ["issues", n, "labels", name]) => {
            let (n, name) = (number(n)?, (*name).to_owned());
            (
                Op::RemoveLabel,
                Box::new(move |state, session| {
                    let labels = state.take_label_off(session, &repo, n, &name)?;
                    ask.some_labels(state, &repo, &labels)
                }),
            )
        }
        ("GET", ["issues", n, "comments"]) => {
            let n = number(n)?;
            (
                Op::ListComments,
                Box::new(move |state, session| {
                    let world = state.view(session);
                    let (found, item) = world.item(&session.caller, &repo, n)?;
                    let since = ask.param("since").and_then(|at| at.parse::<DateTime<Utc>>().ok());
                    let rows = found.comments_of(item);
                    let rows: Vec<_> = rows.filter(|row| since.is_none_or(|since| row.updated_at >= since)).collect();
                    Ok(ask.list(found, &rows, |row| ask.at(state).comment(world, found, row)))
                }),
            )
        }
        ("POST", ["issues", n, "comments"]) => {
            let n = number(n)?;
            (
                Op::CreateComment,
                Box::new(move |state, session| {
                    let body = ask.text("body")?.unwrap_or_default();
                    let row = state.create_comment(session, &repo, n, body)?;
                    let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
                    Ok(Reply::new(201, ask.at(state).comment(state.world(), found, &row)))
                }),
            )
        }
        ("POST", ["git", "commits"]) => (
            Op::CreateCommit,
            Box::new(move |state, session| {
                let commit = ask.commit(state)?;
                let row = state.create_commit(session, &repo, &commit)?;
                let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
                Ok(Reply::new(201, ask.at(state).commit(found, &row)))
            }),
        ),
        ("POST", ["git", "refs"]) => (
            Op::CreateRef,
            Box::new(move |state, session| {
                let (name, sha) = (ask.needed("ref")?, ask.needed("sha")?);
                state.create_ref(session, &repo, name, sha)?;
                ask.one_ref(state, &repo, name, 201)
            }),
        ),
        ("PATCH", ["git", "refs", name @ ..]) if !name.is_empty() => {
            let name = format!("refs/{}", name.join("/"));
            (
                Op::UpdateRef,
                Box::new(move |state, session| {
                    let force = ask.object()?.get("force").and_then(Value::as_bool).unwrap_or_default();
                    state.update_ref(session, &repo, &name, ask.needed("sha")?, force)?;
                    ask.one_ref(state, &repo, &name, 200)
                }),
            )
        }
        ("POST", ["check-runs"]) => (
            Op::CreateCheckRun,
            Box::new(move |state, session| {
                let (name, commit, words) = (ask.needed("name")?, ask.needed("head_sha")?, ask.check_words()?);
                let row = state.create_check_run(session, &repo, name, commit, words)?;
                ask.one_check(state, &repo, &row, 201)
            }),
        ),
        ("PATCH", ["check-runs", id]) => {
            let id = number(id)?;
            (
                Op::UpdateCheckRun,
                Box::new(move |state, session| {
                    let row = state.update_check_run(session, &repo, id, ask.check_words()?)?;
                    ask.one_check(state, &repo, &row, 200)
                }),
            )
        }
        ("GET", ["commits", commit, "check-runs"]) => {
            let commit = (*commit).to_owned();
            (Op::ListCheckRuns, Box::new(move |state, session| ask.checks(state, session, &repo, &commit)))
        }
        ("GET", ["collaborators", login, "permission"]) => {
            let login = (*login).to_owned();
            (
                Op::Permission,
                Box::new(move |state, session| {
                    let (user, permission) = state.view(session).permission(&session.caller, &repo, &login)?;
                    Ok(Reply::new(200, ask.at(state).permission(user, permission)))
                }),
            )
        }
        ("GET", ["actions", "runs"]) => (Op::ListRuns, Box::new(move |state, session| ask.runs(state, session, &repo))),
        ("GET", ["actions", "runs", id]) => {
            let id = number(id)?;
            (
                Op::GetRun,
                Box::new(move |state, session| {
                    let world = state.view(session);
                    let (found, run) = world.run(&session.caller, &repo, id)?;
                    Ok(Reply::new(200, ask.at(state).run(world, found, run)))
                }),
            )
        }
        _ => return None,
    })
}

impl Ask<'_> {
    fn at<'s>(&'s self, state: &'s State) -> Addresses<'s> {
        Addresses { api: &self.api, web: &state.web }
    }

    fn one_label(&self, state: &State, repo: &RepoName, label: &RepoLabel, status: u16) -> Result<Reply, ApiError> {
        let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
        Ok(Reply::new(status, self.at(state).label(found, label)))
    }

    fn one_ref(&self, state: &State, repo: &RepoName, name: &str, status: u16) -> Result<Reply, ApiError> {
        let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
        let oid = found.target(name).ok_or(ApiError::NotFound)?;
        Ok(Reply::new(status, self.at(state).git_ref(found, name, oid)))
    }

    fn one_check(&self, state: &State, repo: &RepoName, row: &CheckRow, status: u16) -> Result<Reply, ApiError> {
        let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
        Ok(Reply::new(status, self.at(state).check(state.world(), found, row)))
    }

    /// What the body says of a check run.
    fn check_words(&self) -> Result<CheckWords, ApiError> {
        let body = self.object()?;
        let text = |name: &str| self.text(name).map(|text| text.map(str::to_owned));
        let time = |name: &str| {
            let at = self.text(name)?.map(str::parse::<DateTime<Utc>>).transpose();
            at.map_err(|_| ApiError::Unprocessable(format!("Invalid request.\n\n{name} is not a date-time.")))
        };
        let output = |name: &str| body.get("output")?.get(name)?.as_str().map(str::to_owned);
        Ok(CheckWords {
            external_id: text("external_id")?,
            status: text("status")?,
            conclusion: text("conclusion")?,
            started_at: time("started_at")?,
            completed_at: time("completed_at")?,
            details_url: text("details_url")?,
            title: output("title"),
            summary: output("summary"),
            text: output("text"),
        })
    }

    fn checks(&self, state: &State, session: &Session, repo: &RepoName, commit: &str) -> Result<Reply, ApiError> {
        let world = state.view(session);
        let found = world.with_checks(&session.caller, repo)?;
        if !found.knows_commit(commit) {
            return Err(no_commit(commit));
        }
        let mut rows = state.listed_checks(found, commit);
        rows.retain(|row| self.param("check_name").is_none_or(|name| row.name == name));
        rows.reverse();
        if self.param("filter") != Some("all") {
            let mut seen = BTreeSet::new();
            rows.retain(|row| seen.insert((row.suite, row.name.clone())));
        }
        let total = rows.len();
        let (shown, link) = self.page(found, &rows, |row| self.at(state).check(world, found, row));
        Ok(Reply { status: 200, body: json!({ "total_count": total, "check_runs": shown }), link })
    }

    /// The commit that the body describes. What it leaves out is the caller's and of now.
    fn commit(&self, state: &State) -> Result<NewCommit, ApiError> {
        let body = self.object()?;
        let at = |who: &str| body.get(who)?.get("date")?.as_str()?.parse::<DateTime<Utc>>().ok();
        let parents = body.get("parents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(NewCommit {
            message: self.needed("message")?.to_owned(),
            tree: self.needed("tree")?.to_owned(),
            parent: parents.first().and_then(Value::as_str).map(str::to_owned),
            at: at("committer").or_else(|| at("author")).unwrap_or(state.now),
        })
    }

    fn some_labels(&self, state: &State, repo: &RepoName, labels: &[RepoLabel]) -> Result<Reply, ApiError> {
        let found = state.world().repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
        Ok(Reply::new(200, labels.iter().map(|label| self.at(state).label(found, label)).collect()))
    }

    fn issues(&self, state: &State, session: &Session, repo: &RepoName) -> Result<Reply, ApiError> {
        let world = state.view(session);
        let (found, mut items) = world.items(&session.caller, repo)?;
        let wanted = self.param("state").unwrap_or("open");
        let labels: Vec<_> = self.param("labels").unwrap_or_default().split(',').filter(|l| !l.is_empty()).collect();
        let since = self.param("since").and_then(|at| at.parse::<DateTime<Utc>>().ok());
        items.retain(|item: &&Item| {
            let carries = |label: &&str| found.labels_of(item).any(|l| l.name.eq_ignore_ascii_case(label));
            (wanted == "all" || item.open == (wanted == "open"))
                && labels.iter().all(carries)
                && since.is_none_or(|since| item.updated_at >= since)
        });
        if self.param("sort") == Some("updated") {
            items.sort_by_key(|item| std::cmp::Reverse((item.updated_at, item.number)));
        }
        if self.param("direction") == Some("asc") {
            items.reverse();
        }
        Ok(self.list(found, &items, |item| self.at(state).item(world, found, item)))
    }

    fn runs(&self, state: &State, session: &Session, repo: &RepoName) -> Result<Reply, ApiError> {
        let world = state.view(session);
        let (found, mut runs) = world.runs(&session.caller, repo)?;
        let is = |name: &str, value: &str| self.param(name).is_none_or(|wanted| wanted == value);
        runs.retain(|run| {
            let conclusion = run.conclusion.as_deref().unwrap_or_default();
            is("event", &run.event)
                && is("head_sha", &run.head_sha)
                && is("actor", run.actor.as_deref().unwrap_or_default())
                && (is("status", &run.status) || is("status", conclusion))
        });
        let (shown, link) = self.page(found, &runs, |run| self.at(state).run(world, found, run));
        Ok(Reply { status: 200, body: json!({ "total_count": runs.len(), "workflow_runs": shown }), link })
    }

    fn reactions(&self, state: &State, session: &Session, repo: &RepoName, to: ReactTo) -> Result<Reply, ApiError> {
        let world = state.view(session);
        let (found, reactions) = match to {
            ReactTo::Issue(number) => {
                world.item(&session.caller, repo, number).map(|(r, item)| (r, &item.reactions))?
            }
            ReactTo::Comment(id) => world.comment(&session.caller, repo, id).map(|(r, row)| (r, &row.reactions))?,
        };
        let content = self.param("content");
        let rows: Vec<_> = reactions.iter().filter(|r| content.is_none_or(|c| c == r.content)).collect();
        Ok(self.list(found, &rows, |reaction| self.at(state).reaction(world, reaction)))
    }

    fn react(&self, state: &mut State, session: &Session, repo: &RepoName, to: ReactTo) -> Result<Reply, ApiError> {
        let content = self.text("content")?.unwrap_or_default();
        let (reaction, new) = state.react(session, repo, to, content)?;
        Ok(Reply::new(if new { 201 } else { 200 }, self.at(state).reaction(state.world(), &reaction)))
    }
}
