//! The embedded GitHub beside the real one: requests that were recorded against GitHub (`@octokit/fixtures`) are sent to the loopback
//! server, and the answers are compared: status, headers that a client reads, and every field that the real answer has, with its JSON type.
//! What errors say is compared word for word.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Deviation;
use super::exchange::Exchange;
use super::openapi::Description;
use super::recorded::OPENAPI;
use crate::tools::tool;

/// Where the recordings are, inside the tools folder.
const SCENARIOS: &str = "node_modules/@octokit/fixtures/scenarios/api.github.com";

/// Headers that clients read; where the real answer has one, ours has it too.
const HEADERS: [&str; 8] = [
    "content-type",
    "date",
    "link",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-resource",
    "x-ratelimit-used",
];

/// One recorded request with the real answer.
#[derive(Clone, Debug, Deserialize)]
struct Recorded {
    method: String,
    /// With the query.
    path: String,
    /// Empty text if there is none.
    body: Value,
    status: u16,
    response: Value,
    headers: Map<String, Value>,
}

impl Recorded {
    fn request_body(&self) -> Value {
        none_if_empty(&self.body)
    }

    fn answer(&self) -> Answered {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        Answered { status: self.status, headers, body: none_if_empty(&self.response) }
    }
}

/// The recordings write an empty text where there is no body.
fn none_if_empty(body: &Value) -> Value {
    if *body == json!("") { Value::Null } else { body.clone() }
}

/// An answer: the real one or our server's.
#[derive(Clone, Debug)]
struct Answered {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
}

fn recordings(folder: &Path, scenario: &str) -> Vec<Recorded> {
    let file = folder.join(scenario).join("normalized-fixture.json");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Where our answer differs from the real one.
fn differences(recorded: &Recorded, answered: &Answered) -> Vec<Deviation> {
    let recorded = recorded.answer();
    let mut found = Vec::new();
    if recorded.status != answered.status {
        found.push(Deviation::new("status", format!("is {}, and GitHub's was {}", answered.status, recorded.status)));
    }
    for name in HEADERS {
        let Some(real) = recorded.headers.get(name) else { continue };
        let field = format!("header {name}");
        match answered.headers.get(name) {
            None => found.push(Deviation::new(field, format!("is missing, and GitHub's was {real:?}"))),
            Some(ours) if name == "content-type" && ours != real => {
                found.push(Deviation::new(field, format!("is {ours:?}, and GitHub's was {real:?}")));
            }
            Some(ours) if name == "link" && link_shape(ours) != link_shape(real) => {
                let what = format!("leads to {:?}, and GitHub's to {:?}", link_shape(ours), link_shape(real));
                found.push(Deviation::new(field, what));
            }
            Some(_) => {}
        }
    }
    if answered.headers.contains_key("link") && !recorded.headers.contains_key("link") {
        found.push(Deviation::new("header link", "is there, and GitHub sent none"));
    }
    compare(&recorded.body, &answered.body, "body ", recorded.status >= 400, &mut found);
    found
}

fn compare(real: &Value, ours: &Value, at: &str, words: bool, found: &mut Vec<Deviation>) {
    match (real, ours) {
        (Value::Object(real), Value::Object(ours)) => {
            for (name, real) in real {
                let at = format!("{at}/{name}");
                // The address of a manual page is no word of the error.
                let words = words && name != "documentation_url";
                match ours.get(name) {
                    Some(ours) => compare(real, ours, &at, words, found),
                    None => found.push(Deviation::new(at, "is missing")),
                }
            }
        }
        (Value::Array(real), Value::Array(ours)) => {
            if real.len() != ours.len() {
                found.push(Deviation::new(at, format!("has {} items, and GitHub's had {}", ours.len(), real.len())));
            }
            for (index, (real, ours)) in real.iter().zip(ours).enumerate() {
                compare(real, ours, &format!("{at}/{index}"), words, found);
            }
        }
        _ if kind(real) != kind(ours) => {
            found.push(Deviation::new(at, format!("is {}, and GitHub's was {}", kind(ours), kind(real))));
        }
        _ if words && real != ours => found.push(Deviation::new(at, format!("is {ours}, and GitHub's was {real}"))),
        _ => {}
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What a `Link` header says, without host and repository: relation, last part of the path, and query.
fn link_shape(header: &str) -> BTreeSet<(String, String, BTreeMap<String, String>)> {
    header
        .split(',')
        .filter_map(|part| {
            let (address, relation) = part.trim().split_once(';')?;
            let address = reqwest::Url::parse(address.trim().strip_prefix('<')?.strip_suffix('>')?).ok()?;
            let last = address.path_segments()?.next_back()?.to_owned();
            let query = address.query_pairs().into_owned().collect();
            Some((relation.trim().to_owned(), last, query))
        })
        .collect()
}

/// The comparison is itself compared: the real answer has no difference from itself, and each spoiled one has a named one.
#[test]
fn a_difference_is_found_and_named() {
    let Some(folder) = tool(SCENARIOS) else { return };
    let said = |recorded: &Recorded, answered: &Answered| -> Vec<String> {
        differences(recorded, answered).iter().map(ToString::to_string).collect()
    };
    for scenario in ["labels", "errors", "add-labels-to-issue", "paginate-issues", "lock-issue"] {
        for recorded in recordings(&folder, scenario) {
            assert_eq!(
                said(&recorded, &recorded.answer()),
                [""; 0],
                "{scenario} {} {}",
                recorded.method,
                recorded.path
            );
        }
    }

    let error = recordings(&folder, "errors").remove(0);
    let mut other = error.answer();
    other.status = 400;
    other.body["errors"][0]["code"] = json!("custom");
    other.headers.remove("x-ratelimit-reset");
    let expected = [
        "status: is 400, and GitHub's was 422",
        "header x-ratelimit-reset: is missing, and GitHub's was \"1507651200000\"",
        "body /errors/0/code: is \"custom\", and GitHub's was \"invalid\"",
    ];
    assert_eq!(said(&error, &other), expected);

    let page = recordings(&folder, "paginate-issues").remove(1);
    let mut other = page.answer();
    other.body[0]["id"] = json!("1");
    other.body[1].as_object_mut().unwrap().remove("user");
    let link = page.headers["link"].as_str().unwrap();
    other
        .headers
        .insert("link".to_owned(), link.replace("api.github.com/repositories/1000", "127.0.0.1:1/repos/acme/app"));
    let expected = ["body /0/id: is text, and GitHub's was a number", "body /1/user: is missing"];
    assert_eq!(said(&page, &other), expected);
    other.headers.insert("link".to_owned(), link.replace("page=3>", "page=4>"));
    let [first, ..] = &said(&page, &other)[..] else { panic!("a difference") };
    assert!(first.starts_with("header link: leads to"), "{first}");
}

/// The judges find nothing in GitHub's own answers, so what they find in ours is ours.
#[test]
fn the_real_answers_are_as_github_describes() {
    let (Some(folder), Some(openapi)) = (tool(SCENARIOS), tool(OPENAPI)) else { return };
    let description = Description::read(&openapi);
    let scenarios = [
        "add-and-remove-repository-collaborator",
        "add-labels-to-issue",
        "create-status",
        "errors",
        "labels",
        "lock-issue",
        "paginate-issues",
    ];
    for scenario in scenarios {
        for recorded in recordings(&folder, scenario) {
            let (path, query) = recorded.path.split_once('?').unwrap_or((&recorded.path, ""));
            let answer = recorded.answer();
            let exchange = Exchange {
                method: recorded.method.clone(),
                path: path.to_owned(),
                query: Some(query.to_owned()),
                // The recordings leave it out; GitHub answers nothing without.
                request_headers: BTreeMap::from([("user-agent".to_owned(), "octokit".to_owned())]),
                request_body: recorded.request_body(),
                status: answer.status,
                response_headers: answer.headers,
                response_body: answer.body,
                fault: false,
            };
            let finding = description.judge(&exchange);
            assert_eq!(finding.deviations, [], "{scenario}: {}", finding.endpoint);
        }
    }
}
