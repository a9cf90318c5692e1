//! Markers: the hidden last line of what automation wrote, which says by which claim.

use serde_json::{Map, Value};

use super::claim::{Nonce, Outcome};
use super::key::Key;

const PREFIX: &str = "<!-- run-guard/v1 ";
const SUFFIX: &str = " -->";

/// The longest marker that is read, in bytes.
const MAX_MARKER_BYTES: usize = 4096;

/// GitHub's limit of a comment, in characters.
const MAX_COMMENT_CHARS: usize = 65_536;

/// What a marker says. That it is there proves nothing: see the loop gate for what makes it authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The piece of work.
    pub key: Key,
    /// The claim's number.
    pub claim: u32,
    /// The workflow run that wrote.
    pub source_run_id: u64,
    /// The owner's nonce.
    pub nonce: Nonce,
    /// How the claim ended, in what was stamped at the end.
    pub outcome: Option<Outcome>,
}

impl Marker {
    /// The one line. `--` cannot occur inside it, since a dash is written as an escape.
    pub fn encode(&self) -> String {
        let mut json = Map::new();
        json.insert("key".into(), Value::from(self.key.to_string()));
        json.insert("claim".into(), Value::from(self.claim));
        json.insert("source_run_id".into(), Value::from(self.source_run_id));
        json.insert("nonce".into(), Value::from(self.nonce.as_str()));
        if let Some(outcome) = self.outcome {
            json.insert("outcome".into(), Value::from(outcome.as_str()));
        }
        let json = Value::Object(json).to_string().replace("--", "\\u002d\\u002d");
        format!("{PREFIX}{json}{SUFFIX}")
    }

    /// A comment's text with the marker as its last line, cut where GitHub's limit of a comment leaves no room for both.
    pub fn append_to(&self, text: &str) -> String {
        let line = self.encode();
        let room = MAX_COMMENT_CHARS.saturating_sub(line.chars().count() + 2);
        let text = text.trim_end();
        let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
        format!("{}\n\n{line}", text.get(..end).unwrap_or(text))
    }

    /// The marker that is the last line of a text; white space may follow. A marker elsewhere is text.
    pub fn find(text: &str) -> Option<Self> {
        let line = text.trim_end().rsplit('\n').next()?.trim_end();
        if line.len() > MAX_MARKER_BYTES {
            return None;
        }
        let json = line.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        if json.contains("--") {
            return None;
        }
        let value: Value = serde_json::from_str(json).ok()?;
        let outcome = match value.get("outcome") {
            None => None,
            Some(word) => Some(Outcome::parse(word.as_str()?)?),
        };
        Some(Self {
            key: value.get("key")?.as_str()?.parse().ok()?,
            claim: u32::try_from(value.get("claim")?.as_u64()?).ok()?,
            source_run_id: value.get("source_run_id")?.as_u64()?,
            nonce: value.get("nonce")?.as_str()?.parse().ok()?,
            outcome,
        })
    }
}
