//! A loopback server that answers each request with the next of a list of prepared answers, and keeps what it was sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use run_guard::github::{Client, Hosts, Token};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(super) enum Does {
    /// Answers with a status, headers and a body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Promises a body and closes after half of it.
    Breaks,
    /// Closes without a word.
    Closes,
    /// Never answers.
    Hangs,
    /// Streams a body of so many bytes without a length.
    Floods(usize),
}

impl Does {
    /// An answer in JSON.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::Answer(status, vec![("content-type", "application/json".to_owned())], body.to_string())
    }

    /// The same answer with one more header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Answer(_, headers, _) = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

/// A request, as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl Sent {
    /// As a snapshot shows it: without what differs from run to run, and with the token's name for the token.
    pub(super) fn shown(&self) -> Value {
        let mut headers = self.headers.clone();
        headers.remove("host");
        headers.remove("content-length");
        for value in headers.values_mut() {
            *value = value.replace(TOKEN, "[token]").replace(env!("CARGO_PKG_VERSION"), "[version]");
        }
        json!({ "request": format!("{} {}", self.method, self.path), "headers": headers, "body": self.body })
    }
}

/// The token of every test here. Text that holds it has leaked it.
pub(super) const TOKEN: &str = "ghp_canary0000000000000000000000000000";

/// The time that every answer carries.
pub(super) const DATE: &str = "Mon, 30 Nov 2026 12:00:00 GMT";

/// Long enough for loopback, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `ask` with a client of a server that does these things in turn; gives what `ask` gave and what was sent.
pub(super) fn with_server<T>(does: Vec<Does>, ask: impl AsyncFnOnce(&Client) -> T) -> (T, Vec<Sent>) {
    with_server_and_patience(does, PATIENCE, ask)
}

/// The same with another time-out of the client.
pub(super) fn with_server_and_patience<T>(
    does: Vec<Does>,
    patience: Duration,
    ask: impl AsyncFnOnce(&Client) -> T,
) -> (T, Vec<Sent>) {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let server = tokio::spawn(serve(listener, does.into(), Arc::clone(&sent)));
        let given = ask(&client(&address, patience)).await;
        server.abort();
        let sent = sent.lock().unwrap().clone();
        (given, sent)
    })
}

pub(super) fn client(address: &str, patience: Duration) -> Client {
    let hosts = Hosts::new(Some(address), None, Some("https://github.com")).unwrap();
    let now = || "2026-11-30T00:00:00Z".parse().unwrap();
    Client::new(hosts, Token::new(TOKEN).unwrap(), patience, now).unwrap()
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn serve(listener: TcpListener, mut does: VecDeque<Does>, sent: Arc<Mutex<Vec<Sent>>>) {
    let mut hanging = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        let mut stream = BufReader::new(stream);
        let Some(request) = read(&mut stream).await else { continue };
        sent.lock().unwrap().push(request);
        match does.pop_front() {
            Some(Does::Hangs) => hanging.push(stream),
            Some(does) => write(stream.into_inner(), does).await,
            None => {}
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Sent> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        let before = headers.insert(name.to_ascii_lowercase(), value.to_owned());
        assert!(before.is_none(), "the header {name} is sent twice");
    }
    let length = headers.get("content-length").map_or(0, |v| v.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(Sent { method, path, headers, body })
}

async fn write(mut stream: TcpStream, does: Does) {
    let text = match does {
        Does::Answer(status, headers, body) => {
            let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let headers = headers.concat();
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\ndate: {DATE}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
        }
        Does::Breaks => format!("HTTP/1.1 200 OK\r\ndate: {DATE}\r\ncontent-length: 100\r\n\r\n{{\"id\":"),
        Does::Floods(bytes) => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await;
            for _ in 0..bytes / 65536 {
                if stream.write_all(&vec![b' '; 65536]).await.is_err() {
                    return;
                }
            }
            String::new()
        }
        Does::Closes | Does::Hangs => String::new(),
    };
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
