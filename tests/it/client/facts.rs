//! What the one facts query answers, whole and in part.

use run_guard::core::facts::{Comment, Fact, LabelEvent, RepositoryState, ResourceState};
use run_guard::core::identity::{Actor, ActorKind};
use run_guard::ports::{
    FactsQuery, FactsReply, GitHub as _, LabelPage, PolicyRead, PortError, Probe, Probed, WindowPage,
};
use serde_json::{Value, json};

use super::server::{Does, TOKEN, with_server};
use super::{label, repo, time, whole_query};

fn ask(query: &FactsQuery, body: &Value) -> Result<FactsReply, PortError> {
    with_server(vec![Does::json(200, body)], async |client| client.facts(query).await).0
}

/// A whole answer about an issue.
fn answer() -> Value {
    json!({ "data": {
        "viewer": { "login": "github-actions[bot]" },
        "repository": {
            "databaseId": 42,
            "nameWithOwner": "acme/app",
            "isEmpty": false,
            "defaultBranchRef": { "name": "main" },
            "policy": { "__typename": "Blob", "text": "tasks: {}\n", "isBinary": false, "isTruncated": false },
            "issueOrPullRequest": {
                "__typename": "Issue",
                "number": 731,
                "closed": false,
                "locked": false,
                "url": "https://github.com/acme/app/issues/731",
                "author": { "__typename": "User", "login": "mona", "databaseId": 2 },
                "labels": { "nodes": [{ "name": "bug" }, { "name": "agent" }] },
                "comments": { "totalCount": 60, "nodes": [
                    {
                        "fullDatabaseId": "2412345678",
                        "author": { "__typename": "Bot", "login": "claude", "databaseId": 209_825_114 },
                        "editor": { "login": "claude" },
                        "body": "done",
                        "createdAt": "2026-11-30T10:00:00Z",
                        "updatedAt": "2026-11-30T10:05:00Z",
                        "url": "https://github.com/acme/app/issues/731#issuecomment-2412345678",
                    },
                    {
                        "fullDatabaseId": "2412345677",
                        "author": null,
                        "editor": null,
                        "body": "",
                        "createdAt": "2026-11-30T09:00:00Z",
                        "updatedAt": "2026-11-30T09:00:00Z",
                        "url": "https://github.com/acme/app/issues/731#issuecomment-2412345677",
                    },
                ] },
                "timelineItems": { "nodes": [
                    {
                        "__typename": "LabeledEvent",
                        "id": "LE_1",
                        "createdAt": "2026-11-30T08:00:00Z",
                        "label": { "name": "agent" },
                        "actor": { "__typename": "User", "login": "mona", "databaseId": 2 },
                    },
                    {
                        "__typename": "UnlabeledEvent",
                        "id": "UE_1",
                        "createdAt": "2026-11-30T08:30:00Z",
                        "label": { "name": "agent" },
                        "actor": null,
                    },
                ] },
            },
            "c1": { "name": "rg:investigate:0123456789ab:1", "description": "words", "createdAt": "2026-11-30T08:00:00Z" },
            "c2": null,
            "window": {
                "nodes": [{ "name": "bug", "description": null, "createdAt": null }],
                "pageInfo": { "hasNextPage": false, "endCursor": "Mg" },
            },
        },
    } })
}

/// The answer with some places changed.
fn changed(changes: &[(&str, Value)], errors: Value) -> Value {
    let mut body = answer();
    for (pointer, value) in changes {
        *body.pointer_mut(&format!("/data{pointer}")).unwrap_or_else(|| panic!("no {pointer}")) = value.clone();
    }
    if errors != json!([]) {
        body["errors"] = errors;
    }
    body
}

fn denied(path: &Value) -> Value {
    json!([{ "type": "FORBIDDEN", "path": path, "message": format!("Resource not accessible, {TOKEN}") }])
}

/// GitHub's words, as they come out.
const WORDS: &str = "Resource not accessible, ***";

fn unknown<T>() -> Fact<T> {
    Fact::Unknown(WORDS.to_owned())
}

#[test]
fn a_whole_answer_is_known_in_all_parts() {
    let mona = Actor { login: "mona".to_owned(), kind: ActorKind::User, id: Some(2) };
    let got = ask(&whole_query(), &answer()).unwrap();
    let mut claim = label("rg:investigate:0123456789ab:1", "words");
    claim.created_at = Some(time("2026-11-30T08:00:00Z"));
    let want = FactsReply {
        viewer: Fact::Known("github-actions[bot]".to_owned()),
        policy: PolicyRead::Text("tasks: {}\n".to_owned()),
        repository: Fact::Known(RepositoryState { id: 42, name_with_owner: "acme/app".to_owned() }),
        resource: Fact::Known(Some(ResourceState {
            is_pull_request: false,
            number: 731,
            open: true,
            merged: false,
            draft: false,
            locked: false,
            author: Some(mona.clone()),
            labels: vec!["bug".to_owned(), "agent".to_owned()],
            label_events: vec![
                LabelEvent {
                    id: "LE_1".to_owned(),
                    added: true,
                    label: "agent".to_owned(),
                    actor: Some(mona),
                    at: time("2026-11-30T08:00:00Z"),
                },
                LabelEvent {
                    id: "UE_1".to_owned(),
                    added: false,
                    label: "agent".to_owned(),
                    actor: None,
                    at: time("2026-11-30T08:30:00Z"),
                },
            ],
            comments: vec![
                Comment {
                    id: 2_412_345_677,
                    author: None,
                    editor: None,
                    body: String::new(),
                    created_at: time("2026-11-30T09:00:00Z"),
                    updated_at: time("2026-11-30T09:00:00Z"),
                    url: "https://github.com/acme/app/issues/731#issuecomment-2412345677".to_owned(),
                },
                Comment {
                    id: 2_412_345_678,
                    author: Some(Actor { login: "claude".to_owned(), kind: ActorKind::Bot, id: Some(209_825_114) }),
                    editor: Some("claude".to_owned()),
                    body: "done".to_owned(),
                    created_at: time("2026-11-30T10:00:00Z"),
                    updated_at: time("2026-11-30T10:05:00Z"),
                    url: "https://github.com/acme/app/issues/731#issuecomment-2412345678".to_owned(),
                },
            ],
            comment_total: 60,
            head_sha: None,
            url: "https://github.com/acme/app/issues/731".to_owned(),
        })),
        claims: Fact::Known(Probed::Labels([("rg:investigate:0123456789ab:1".to_owned(), claim)].into())),
        window: Fact::Known(WindowPage::Labels(LabelPage { labels: vec![label("bug", "")], next: None })),
        written: None,
    };
    assert_eq!(got, want);
}

#[test]
fn what_is_not_asked_is_unasked() {
    let query = FactsQuery { repo: repo(), number: None, claims: Probe::Nothing, window: None, written: None };
    let got = ask(&query, &answer()).unwrap();
    assert_eq!(got.resource, Fact::Unasked);
    assert_eq!(got.window, Fact::Unasked);
    assert_eq!(got.claims, Fact::Known(Probed::Nothing));
    assert!(got.repository.known().is_some());
}

#[test]
fn a_pull_request_has_its_own_fields() {
    let item = "/repository/issueOrPullRequest";
    let mut body = answer();
    let node = body.pointer_mut(&format!("/data{item}")).unwrap();
    node["__typename"] = json!("PullRequest");
    node["closed"] = json!(true);
    node["isDraft"] = json!(true);
    node["merged"] = json!(true);
    node["headRefOid"] = json!("0123456789012345678901234567890123456789");
    let got = ask(&whole_query(), &body).unwrap().resource;
    let Fact::Known(Some(state)) = got else { panic!("{got:?}") };
    assert!(state.is_pull_request && !state.open && state.merged && state.draft);
    assert_eq!(state.head_sha.unwrap().len(), 40);
    // One that lacks them is no answer.
    body.pointer_mut(&format!("/data{item}")).unwrap().as_object_mut().unwrap().remove("headRefOid");
    assert!(matches!(ask(&whole_query(), &body), Err(PortError::Malformed { .. })));
}

#[test]
fn a_denied_part_is_unknown_and_the_rest_is_known() {
    let item = "/repository/issueOrPullRequest";
    let whole = ask(&whole_query(), &answer()).unwrap();
    let with = |change: &dyn Fn(&mut FactsReply)| {
        let mut want = whole.clone();
        change(&mut want);
        want
    };
    let unreadable = PolicyRead::Unreadable(WORDS.to_owned());
    let cases = [
        (changed(&[("/viewer", json!(null))], denied(&json!(["viewer"]))), with(&|w| w.viewer = unknown())),
        (
            // A connection that GraphQL promises takes its parent with it.
            changed(&[(item, json!(null))], denied(&json!(["repository", "issueOrPullRequest", "comments"]))),
            with(&|w| w.resource = unknown()),
        ),
        (
            changed(&[(item, json!(null))], denied(&json!(["repository", "issueOrPullRequest"]))),
            with(&|w| w.resource = unknown()),
        ),
        (
            changed(
                &[(&format!("{item}/comments/nodes/0/author"), json!(null))],
                denied(&json!(["repository", "issueOrPullRequest", "comments", "nodes", 0, "author"])),
            ),
            with(&|w| w.resource = unknown()),
        ),
        (
            // Denied is not missing, whatever else is missing.
            changed(
                &[(item, json!(null))],
                json!([
                    { "type": "NOT_FOUND", "path": ["repository", "c2"], "message": "none" },
                    { "type": "FORBIDDEN", "path": ["repository", "issueOrPullRequest", "labels"], "message": WORDS },
                ]),
            ),
            with(&|w| {
                w.resource = unknown();
                w.claims = Fact::Unknown("none".to_owned());
            }),
        ),
        (
            changed(
                &[(item, json!(null))],
                json!([{ "type": "NOT_FOUND", "path": ["repository", "issueOrPullRequest"],
                    "message": "Could not resolve to an issue or pull request with the number of 731." }]),
            ),
            with(&|w| w.resource = Fact::Known(None)),
        ),
        (
            // Null without a word is no promise that there is nothing.
            changed(&[(item, json!(null))], json!([])),
            with(&|w| w.resource = Fact::Unknown("GitHub did not say".to_owned())),
        ),
        (
            changed(&[("/repository/c1", json!(null))], denied(&json!(["repository", "c1"]))),
            with(&|w| w.claims = unknown()),
        ),
        (
            changed(&[("/repository/window", json!(null))], denied(&json!(["repository", "window"]))),
            with(&|w| w.window = unknown()),
        ),
        (
            changed(&[("/repository/policy", json!(null))], denied(&json!(["repository", "policy"]))),
            with(&|w| w.policy = unreadable.clone()),
        ),
        (
            changed(&[("/repository/databaseId", json!(null))], denied(&json!(["repository", "databaseId"]))),
            with(&|w| w.repository = unknown()),
        ),
        (
            changed(&[("/repository", json!(null))], denied(&json!(["repository"]))),
            with(&|w| {
                w.policy = unreadable.clone();
                w.repository = unknown();
                w.resource = unknown();
                w.claims = unknown();
                w.window = unknown();
            }),
        ),
    ];
    for (body, want) in cases {
        assert_eq!(ask(&whole_query(), &body).unwrap(), want, "{}", body["errors"]);
    }
}

#[test]
fn a_repository_that_is_not_there_makes_nothing_known() {
    let errors = json!([{ "type": "NOT_FOUND", "path": ["repository"],
        "message": "Could not resolve to a Repository with the name 'acme/app'." }]);
    let got = ask(&whole_query(), &changed(&[("/repository", json!(null))], errors)).unwrap();
    let words = "Could not resolve to a Repository with the name 'acme/app'.";
    assert_eq!(got.repository, Fact::Unknown(words.to_owned()));
    assert_eq!(got.resource, Fact::Unknown(words.to_owned()), "a missing repository says nothing about the issue");
    assert_eq!(got.policy, PolicyRead::Unreadable(words.to_owned()));
}

#[test]
fn only_a_proven_absence_of_the_policy_counts_as_absence() {
    let policy = "/repository/policy";
    let branch = "/repository/defaultBranchRef";
    let empty = "/repository/isEmpty";
    let unreadable = |why: &str| PolicyRead::Unreadable(why.to_owned());
    let no_branch = || unreadable("GitHub did not show the default branch");
    let blob = |text: Value, binary: Value, truncated: bool| json!({ "__typename": "Blob", "text": text, "isBinary": binary, "isTruncated": truncated });
    let cases = [
        (changed(&[(policy, json!(null))], json!([])), PolicyRead::Absent),
        (changed(&[(policy, json!(null)), (branch, json!(null)), (empty, json!(true))], json!([])), PolicyRead::Absent),
        (changed(&[(policy, json!(null)), (branch, json!(null))], json!([])), no_branch()),
        (changed(&[(policy, json!(null)), (empty, json!(null))], json!([])), no_branch()),
        (
            changed(
                &[(policy, json!(null)), (branch, json!(null))],
                denied(&json!(["repository", "defaultBranchRef"])),
            ),
            unreadable(WORDS),
        ),
        (
            changed(&[(policy, json!({ "__typename": "Tree" }))], json!([])),
            unreadable(".github/run-guard.yml is no file on the default branch"),
        ),
        (
            changed(&[(policy, blob(json!("a: b"), json!(false), true))], json!([])),
            unreadable("GitHub cut the file off: it is too large"),
        ),
        (changed(&[(policy, blob(json!(null), json!(true), false))], json!([])), unreadable("the file is not text")),
        (
            changed(&[(policy, blob(json!(null), json!(null), false))], json!([])),
            unreadable("GitHub did not show the file's text"),
        ),
        (changed(&[(policy, blob(json!(""), json!(false), false))], json!([])), PolicyRead::Text(String::new())),
        (changed(&[(policy, blob(json!("a: b"), json!(null), false))], json!([])), PolicyRead::Text("a: b".to_owned())),
    ];
    for (body, want) in cases {
        assert_eq!(ask(&whole_query(), &body).unwrap().policy, want, "{}", body["data"]["repository"]);
    }
    for gone in ["policy", "defaultBranchRef", "isEmpty"] {
        let mut body = changed(&[(policy, json!(null))], json!([]));
        body["data"]["repository"].as_object_mut().unwrap().remove(gone);
        assert!(matches!(ask(&whole_query(), &body).unwrap().policy, PolicyRead::Unreadable(_)), "without {gone}");
    }
}

#[test]
fn another_form_than_promised_is_malformed() {
    let item = "/repository/issueOrPullRequest";
    let cases: &[(&str, Value)] = &[
        ("/viewer", json!("mona")),
        ("/viewer/login", json!(null)),
        ("/repository/databaseId", json!("42")),
        ("/repository/policy", json!([])),
        (item, json!({ "__typename": "Discussion" })),
        (&format!("{item}/labels"), json!(null)),
        (&format!("{item}/comments/nodes/0"), json!(null)),
        (&format!("{item}/comments/nodes/0/fullDatabaseId"), json!("many")),
        (&format!("{item}/comments/totalCount"), json!(-1)),
        (&format!("{item}/timelineItems/nodes/0/__typename"), json!("ClosedEvent")),
        ("/repository/c1", json!({ "name": null })),
        ("/repository/window/pageInfo", json!({ "hasNextPage": true, "endCursor": null })),
    ];
    for (pointer, value) in cases {
        let got = ask(&whole_query(), &changed(&[(pointer, value.clone())], json!([])));
        assert!(matches!(got, Err(PortError::Malformed { .. })), "{pointer} = {value}: {got:?}");
    }
}

#[test]
fn deep_json_is_refused_without_harm() {
    let deep = format!("{{\"data\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let does = vec![Does::Answer(200, vec![], deep)];
    let (got, _) = with_server(does, async |client| client.facts(&whole_query()).await);
    assert!(matches!(got, Err(PortError::Malformed { .. })), "{got:?}");
}
