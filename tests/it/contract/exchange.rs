//! One recorded HTTP exchange, as the loopback server writes it: a line of JSON in a file of the folder `RUN_GUARD_RECORD`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// A request and its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exchange {
    /// `GET`, `POST` and so on.
    pub(crate) method: String,
    /// The path as sent, percent-encoded, without the query.
    pub(crate) path: String,
    /// The query as sent, without `?`; empty if there is none.
    #[serde(default)]
    pub(crate) query: Option<String>,
    /// Header names in lower case.
    pub(crate) request_headers: BTreeMap<String, String>,
    /// `null` if there is none.
    pub(crate) request_body: Value,
    /// The HTTP status of the answer.
    pub(crate) status: u16,
    /// Header names in lower case.
    pub(crate) response_headers: BTreeMap<String, String>,
    /// `null` if there is none.
    pub(crate) response_body: Value,
    /// An injected fault or an answer that no GitHub would give: not judged.
    pub(crate) fault: bool,
}

/// Every exchange of a folder, each with the `FILE:LINE` where it stands.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<(String, Exchange)>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(|error| format!("{}: {error}", folder.display())))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    let mut exchanges = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        for (index, line) in text.lines().enumerate() {
            let at = format!("{}:{}", file.display(), index + 1);
            let exchange = serde_json::from_str(line).map_err(|error| format!("{at}: {error}"))?;
            exchanges.push((at, exchange));
        }
    }
    Ok(exchanges)
}
