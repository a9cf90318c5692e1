//! Exchanges over HTTP as lines of JSON, so that they can be held against GitHub's own description.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

/// A request and its answer.
#[derive(Debug, Serialize)]
pub(super) struct Exchange {
    /// `GET`, `POST` and so on.
    pub(super) method: String,
    /// The path as sent, without the query.
    pub(super) path: String,
    /// The query as sent; empty if there is none.
    pub(super) query: String,
    /// Names in lower case. No token: see [`headers`].
    pub(super) request_headers: BTreeMap<String, String>,
    /// `null` if there is none or it is no JSON.
    pub(super) request_body: Value,
    /// The status; 0 if there was no answer.
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) response_headers: BTreeMap<String, String>,
    /// `null` if there is none.
    pub(super) response_body: Value,
    /// Whether a fault struck, so that the answer is none of GitHub's.
    pub(super) fault: bool,
}

/// Headers as text, with `[token]` in place of any credentials.
pub(super) fn headers(map: &HeaderMap) -> BTreeMap<String, String> {
    map.iter()
        .map(|(name, value)| {
            let value = if name == http::header::AUTHORIZATION {
                "[token]".to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name.as_str().to_owned(), value)
        })
        .collect()
}

/// Adds one line to a file, which is made if there is none.
pub(super) fn append(file: &Path, exchange: &Exchange) -> io::Result<()> {
    let mut line = serde_json::to_vec(exchange)?;
    line.push(b'\n');
    OpenOptions::new().create(true).append(true).open(file)?.write_all(&line)
}
