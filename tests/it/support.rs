//! What tests share: the loopback GitHub, a plain HTTP client, and the binary with a clean environment.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use run_guard::sim::State;
use run_guard::sim::http::{Options, Server, serve};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;

/// Serves a state on a free loopback port. With `RUN_GUARD_RECORD` every exchange is kept for the contract pass.
pub(crate) async fn start_server(state: State) -> Server {
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    let record = std::env::var_os("RUN_GUARD_RECORD")
        .map(|folder| std::path::Path::new(&folder).join(format!("{}-{number}.jsonl", std::process::id())));
    listen(state, Options { record }).await
}

/// The same for requests that are wrong on purpose: the contract pass, which judges requests too, never sees them.
pub(crate) async fn start_server_unrecorded(state: State) -> Server {
    listen(state, Options::default()).await
}

async fn listen(state: State, options: Options) -> Server {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    serve(state, listener, options).unwrap()
}

/// An answer over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// The status.
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// `null` if there is none.
    pub(crate) body: Value,
}

/// Sends one request with no client of GitHub's in between. An address that starts with `/` is of `base`; a body of
/// `null` is none.
pub(crate) async fn ask(
    base: &str,
    token: Option<&str>,
    method: &str,
    address: &str,
    body: &Value,
) -> Result<Answered, reqwest::Error> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    ask_bytes(base, token, method, address, body).await
}

/// [`ask`] with a body that may be anything.
pub(crate) async fn ask_bytes(
    base: &str,
    token: Option<&str>,
    method: &str,
    address: &str,
    body: Vec<u8>,
) -> Result<Answered, reqwest::Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().user_agent("test").build()?;
    let address = if address.starts_with('/') { format!("{base}{address}") } else { address.to_owned() };
    let mut request = http.request(method.parse().unwrap(), address).body(body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = answer.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let body = answer.bytes().await?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Ok(Answered { status, headers, body })
}

/// The binary, with nothing of this machine's GitHub in its environment. `RUN_GUARD_BINARY` names another than the one
/// that was built with the tests, such as the one that is published.
pub(crate) fn run_guard() -> Command {
    let built = || env!("CARGO_BIN_EXE_run-guard").into();
    let mut command = Command::new(std::env::var_os("RUN_GUARD_BINARY").unwrap_or_else(built));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = ["GITHUB_", "RUNNER_", "ACTIONS_", "GH_", "RUN_GUARD_"].iter().any(|p| text.starts_with(p));
        if foreign || text.to_ascii_lowercase().ends_with("_proxy") {
            command.env_remove(&name);
        }
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// What a run of the binary left.
pub(crate) struct Ended {
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Ended {
    /// Runs it to its end.
    pub(crate) async fn of(mut command: Command) -> Self {
        let output = command.output().await.unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
