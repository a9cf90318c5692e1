//! The embedded GitHub beside the real one: requests that were recorded against GitHub (`@octokit/fixtures`) are sent to the loopback
//! server, and the answers are compared: status, headers that a client reads, and every field that the real answer has, with its JSON type.
//! What errors say is compared word for word.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use run_guard::core::facts::Permission;
use run_guard::sim::{ItemSpec, Op, State, TokenSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Deviation;
use super::exceptions::Exceptions;
use super::exchange::Exchange;
use super::openapi::Description;
use super::recorded::OPENAPI;
use crate::support::{Answered, ask, start_server, start_server_unrecorded};
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

/// Whose recordings they are.
const OWNER: &str = "octokit-fixture-org";
/// Who recorded them.
const PERSON: &str = "octokit-fixture-user-a";
/// The repository's id in each of them.
const REPOSITORY_ID: u64 = 1000;

/// What was there before a scenario began.
fn before(scenario: &str, state: &mut State, full: &str) {
    let issues = match scenario {
        "labels" => {
            let names = ["bug", "documentation", "duplicate", "enhancement", "good first issue"];
            for name in names.into_iter().chain(["help wanted", "invalid", "question", "wontfix"]) {
                assert!(state.add_label(full, name, "What it is for"), "{name} is there already");
            }
            0
        }
        "git-refs" => {
            let (first, second) = (format!("{:040}", 1), format!("{:040}", 2));
            state.add_commit(full, &first, None, "first");
            state.add_commit(full, &second, None, "second");
            state.edit_repo(full, |repo| repo.commits.get_mut(&first).unwrap().parents.push(second));
            0
        }
        "paginate-issues" => 13,
        _ => 0,
    };
    for number in 1..=issues {
        assert_eq!(state.open_issue(full, ItemSpec::new(PERSON, "Issue").number(number)), number);
    }
}

/// The embedded GitHub as a scenario found the real one.
fn as_recorded(scenario: &str, name: &str) -> State {
    let full = format!("{OWNER}/{name}");
    let mut state = State::new("2026-03-02T09:00:00Z".parse().unwrap());
    state.add_repo(&full, REPOSITORY_ID);
    state.grant(&full, PERSON, Permission::Admin);
    state.add_token("person", TokenSpec::personal(PERSON, "write-all".parse().unwrap()));
    before(scenario, &mut state, &full);
    state
}

/// The repository that a scenario is about.
fn repository_of<'a>(scenario: &'a str, recorded: &'a [Recorded]) -> &'a str {
    let below = recorded.iter().find_map(|r| r.path.strip_prefix("/repos/")?.strip_prefix(OWNER)?.strip_prefix('/'));
    below.and_then(|rest| rest.split(['/', '?']).next()).unwrap_or(scenario)
}

/// Every recorded request is sent to the embedded GitHub, and what it serves is answered as the real one did.
#[tokio::test]
async fn the_embedded_github_answers_as_the_real_one_did() {
    let (Some(folder), Some(openapi)) = (tool(SCENARIOS), tool(OPENAPI)) else { return };
    let description = Description::read(&openapi);
    let exceptions = Exceptions::read();
    let mut failures = Vec::new();
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let scenario = entry.unwrap().file_name().into_string().unwrap();
        let all = recordings(&folder, &scenario);
        let server = start_server_unrecorded(as_recorded(&scenario, repository_of(&scenario, &all))).await;
        // The embedded GitHub renames no repository, so that nothing has moved.
        for recorded in all.iter().filter(|recorded| recorded.status != 301) {
            let path = recorded.path.split('?').next().unwrap_or_default();
            let method = recorded.method.to_uppercase();
            let (base, body) = (server.base_url(), recorded.request_body());
            let answered = ask(&base, Some("person"), &method, &recorded.path, &body).await.unwrap();
            if server.state().calls().last().is_none_or(|call| call.op == Op::Unknown) {
                continue;
            }
            let endpoint = description.endpoint(&method, path).expect("what is served is of the API");
            for difference in differences(recorded, &answered) {
                if !exceptions.unserved.allows(&endpoint, &difference.field) {
                    failures.push(format!("{scenario}: {endpoint}: {difference}"));
                }
            }
            *compared.entry(endpoint).or_default() += 1;
        }
    }
    failures.extend(exceptions.unserved.faults());
    println!("{} recorded answers compared", compared.values().sum::<usize>());
    assert!(failures.is_empty(), "{} failure(s)\n{}", failures.len(), failures.join("\n"));
    let expected = [
        "DELETE /repos/{owner}/{repo}/labels/{name}",
        "GET /repos/{owner}/{repo}",
        "GET /repos/{owner}/{repo}/issues",
        "GET /repos/{owner}/{repo}/labels",
        "GET /repos/{owner}/{repo}/labels/{name}",
        "PATCH /repos/{owner}/{repo}/git/refs/{ref}",
        "PATCH /repos/{owner}/{repo}/labels/{name}",
        "POST /repos/{owner}/{repo}/git/refs",
        "POST /repos/{owner}/{repo}/issues",
        "POST /repos/{owner}/{repo}/issues/{issue_number}/labels",
        "POST /repos/{owner}/{repo}/labels",
    ];
    assert_eq!(compared.keys().map(String::as_str).collect::<Vec<_>>(), expected);
}

/// `already_exists` decides who has won a claim, and GitHub recorded it for another kind of thing: the words of the
/// error are the same but for the kind, for a label of the same name and for one that differs in letter case alone.
#[tokio::test]
async fn a_taken_label_is_refused_in_the_words_of_the_real_conflict() {
    let Some(folder) = tool(SCENARIOS) else { return };
    let mut conflict = recordings(&folder, "release-assets-conflict")
        .into_iter()
        .find(|recorded| recorded.status == 422)
        .expect("the scenario has the conflict");
    conflict.response["errors"][0]["resource"] = json!("Label");
    // Of the upload host alone: its own request id in the body, and headers of its own.
    conflict.response.as_object_mut().expect("an error is an object").remove("request_id");
    conflict.headers.retain(|name, _| ["content-type", "date"].contains(&name.as_str()));
    let server = start_server(as_recorded("errors", "labels")).await;
    let labels = format!("/repos/{OWNER}/labels/labels");
    let create = async |name: &str| {
        ask(&server.base_url(), Some("person"), "POST", &labels, &json!({ "name": name })).await.unwrap()
    };
    assert_eq!(create("rg:a:1").await.status, 201);
    for name in ["rg:a:1", "RG:A:1"] {
        assert_eq!(differences(&conflict, &create(name).await), [], "{name}");
    }
}
