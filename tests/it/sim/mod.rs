//! The embedded GitHub over loopback HTTP, asked with no client of GitHub's in between; and its two faces held against each other.

mod faces;
mod graphql;
mod hostile;
mod rest;

use std::sync::atomic::{AtomicUsize, Ordering};

use run_guard::core::facts::Permission;
use run_guard::core::identity::ActorKind;
use run_guard::sim::http::Server;
use run_guard::sim::{ItemSpec, State, TokenSpec};
use serde_json::{Value, json};

use crate::support::{Answered, ask};

const REPO: &str = "acme/app";
/// A private repository.
const VAULT: &str = "acme/vault";
const RUN: u64 = 8_812_345;

/// The tokens by name: for which repository, and with which permissions.
const JOBS: [(&str, &str, &str); 8] = [
    ("job", REPO, "actions: read, checks: write, contents: read, issues: write, pull-requests: write"),
    ("reader", REPO, "contents: read"),
    ("vault-all", VAULT, "write-all"),
    ("vault-issues", VAULT, "issues: write"),
    ("vault-pulls", VAULT, "pull-requests: write"),
    ("vault-actions", VAULT, "actions: read"),
    ("vault-contents", VAULT, "contents: read"),
    ("vault-checks", VAULT, "contents: read, checks: read"),
];

/// Two repositories alike but that one is private, each with an issue, a pull request, a comment on each, and a run.
fn github() -> State {
    let mut state = State::new("2026-03-02T09:00:00Z".parse().unwrap());
    for (full, id) in [(REPO, 42), (VAULT, 43)] {
        state.add_repo(full, id);
        state.grant(full, "alice", Permission::Write);
        state.set_file(full, ".github/run-guard.yml", "max-runs-per-hour: 50");
        state.open_issue(full, ItemSpec::new("alice", "Tokens in the log").number(731).labels(&["security"]));
        state.open_issue(full, ItemSpec::new("alice", "Mask them").number(732).pull_request(&"a".repeat(40)));
        state.comment(full, 731, "mallory", "me too").unwrap();
        state.comment(full, 732, "claude[bot]", "done").unwrap();
        state.add_run(full, RUN, "issues", "alice");
    }
    state.make_private(VAULT);
    state.add_user("mallory", ActorKind::User);
    for (name, repo, grants) in JOBS {
        state.add_token(name, TokenSpec::built_in(repo, grants.parse().unwrap()));
    }
    for person in ["alice", "mallory"] {
        state.add_token(person, TokenSpec::personal(person, "write-all".parse().unwrap()));
    }
    state
}

/// The first comment on an item.
fn comment_on(state: &State, full: &str, number: u64) -> u64 {
    state.comments(full, number)[0].id
}

/// Asks a server, which must answer.
async fn answer(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Answered {
    ask(&server.base_url(), Some(token), method, path, body).await.unwrap()
}

/// Whether `actual` has everything of `expected`: of objects the fields that are named, of lists as many items.
fn has(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| actual.get(name).is_some_and(|there| has(there, value)))
        }
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, e)| has(a, e))
        }
        _ => actual == expected,
    }
}

#[test]
fn has_is_told_apart() {
    let actual = json!({"a": 1, "b": [{"c": 2, "d": null}]});
    assert!(has(&actual, &json!({"b": [{"c": 2}]})));
    for other in [json!({"a": 2}), json!({"e": null}), json!({"b": []}), json!({"b": [{"d": 0}]}), json!([])] {
        assert!(!has(&actual, &other), "{other}");
    }
}

/// Asks for every page of a list by its `next` links; the values of one field in order.
async fn walk(server: &Server, token: &str, first: &str, field: &str) -> Vec<Value> {
    static PAGES: AtomicUsize = AtomicUsize::new(0);
    let mut seen = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(address) = next {
        assert!(PAGES.fetch_add(1, Ordering::Relaxed) < 200, "the pages have no end");
        let page = answer(server, token, "GET", &address, &Value::Null).await;
        assert_eq!(page.status, 200, "{address}: {}", page.body);
        seen.extend(page.body.as_array().unwrap().iter().map(|row| row[field].clone()));
        next = link(&page, "next");
    }
    seen
}

/// The address of a relation in the header `link`.
fn link(page: &Answered, relation: &str) -> Option<String> {
    page.headers.get("link")?.split(", ").find_map(|part| {
        let (address, rel) = part.split_once("; ")?;
        (rel == format!("rel=\"{relation}\"")).then(|| address[1..address.len() - 1].to_owned())
    })
}
