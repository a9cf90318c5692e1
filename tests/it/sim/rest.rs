//! REST: what each endpoint answers, to whom, in which pages, and what it refuses.

use chrono::TimeDelta;
use run_guard::sim::{Fault, ItemSpec, Op, Planned};
use serde_json::{Value, json};

use super::*;
use crate::support::{ask, start_server, start_server_unrecorded};

/// One request and what its answer holds.
type Case<'a> = (&'a str, String, Value, u16, Value);

#[tokio::test]
async fn every_endpoint_answers_in_the_form_of_github() {
    let state = github();
    let comment = comment_on(&state, REPO, 731);
    let server = start_server(state).await;
    let none = Value::Null;
    let at = |rest: &str| format!("/repos/{REPO}{rest}");
    let label = json!({"name": "rg:a:1", "color": "ededed", "description": "first", "default": false});
    let page = "https://github.com/acme/app/issues/731";
    let cases: Vec<Case<'_>> = vec![
        (
            "GET",
            at(""),
            none.clone(),
            200,
            json!({"id": 42, "full_name": REPO, "private": false, "owner": {"login": "acme", "type": "Organization"}}),
        ),
        ("GET", "/repos/ACME/App".to_owned(), none.clone(), 200, json!({"full_name": REPO})),
        ("GET", "/repositories/42/labels".to_owned(), none.clone(), 200, json!([{"name": "security"}])),
        ("GET", at("/labels"), none.clone(), 200, json!([{"name": "security", "description": null}])),
        (
            "POST",
            at("/labels"),
            json!({"name": "rg:a:1", "color": "ededed", "description": "first"}),
            201,
            label.clone(),
        ),
        ("GET", at("/labels/rg%3Aa%3A1"), none.clone(), 200, label),
        ("GET", at("/labels/RG%3AA%3A1"), none.clone(), 200, json!({"name": "rg:a:1"})),
        (
            "PATCH",
            at("/labels/rg%3Aa%3A1"),
            json!({"description": "done"}),
            200,
            json!({"name": "rg:a:1", "color": "ededed", "description": "done"}),
        ),
        (
            "PATCH",
            at("/labels/rg%3Aa%3A1"),
            json!({"new_name": "RG:a:2", "color": "ff0000"}),
            200,
            json!({"name": "RG:a:2", "color": "ff0000", "description": "done"}),
        ),
        ("GET", at("/labels/rg%3Aa%3A1"), none.clone(), 404, json!({"message": "Not Found", "status": "404"})),
        ("DELETE", at("/labels/rg%3Aa%3A2"), none.clone(), 204, none.clone()),
        ("DELETE", at("/labels/rg%3Aa%3A2"), none.clone(), 404, json!({"message": "Not Found"})),
        (
            "POST",
            at("/check-runs"),
            json!({"name": "run-guard a", "head_sha": "a".repeat(40), "external_id": "0123", "status": "in_progress",
                   "output": {"title": "in progress", "summary": "Claim 1.", "text": "claim 1"}}),
            201,
            json!({"name": "run-guard a", "status": "in_progress", "conclusion": null, "completed_at": null,
                   "external_id": "0123", "output": {"text": "claim 1"}, "app": {"slug": "github-actions"}}),
        ),
        (
            "GET",
            at(&format!("/commits/{}/check-runs?check_name=run-guard%20a&filter=all", "a".repeat(40))),
            none.clone(),
            200,
            json!({"total_count": 1, "check_runs": [{"name": "run-guard a", "external_id": "0123"}]}),
        ),
        (
            "GET",
            at(&format!("/commits/{}/check-runs?check_name=other", "a".repeat(40))),
            none.clone(),
            200,
            json!({"total_count": 0, "check_runs": []}),
        ),
        (
            "POST",
            at("/check-runs"),
            json!({"name": "run-guard a", "head_sha": "a".repeat(40), "status": "completed"}),
            422,
            json!({"message": "Validation Failed"}),
        ),
        (
            "POST",
            at("/check-runs"),
            json!({"name": "run-guard a", "head_sha": "f".repeat(40)}),
            422,
            json!({"message": format!("No commit found for SHA: {}", "f".repeat(40))}),
        ),
        ("PATCH", at("/check-runs/9"), json!({"status": "in_progress"}), 404, json!({"message": "Not Found"})),
        (
            "GET",
            at("/issues"),
            none.clone(),
            200,
            json!([{"number": 732, "pull_request": {"merged_at": null}, "draft": false}, {"number": 731, "state": "open"}]),
        ),
        ("GET", at("/issues?labels=SECURITY"), none.clone(), 200, json!([{"number": 731}])),
        ("GET", at("/issues?state=closed"), none.clone(), 200, json!([])),
        (
            "GET",
            at("/issues?state=all&sort=updated&direction=asc"),
            none.clone(),
            200,
            json!([{"number": 731}, {"number": 732}]),
        ),
        (
            "GET",
            at("/issues/731"),
            none.clone(),
            200,
            json!({"number": 731, "title": "Tokens in the log", "body": null, "html_url": page, "comments": 1, "user": {"login": "alice", "type": "User"}, "labels": [{"name": "security"}], "author_association": "COLLABORATOR"}),
        ),
        (
            "GET",
            at("/issues/732"),
            none.clone(),
            200,
            json!({"number": 732, "html_url": "https://github.com/acme/app/pull/732"}),
        ),
        ("GET", at("/issues/9"), none.clone(), 404, json!({"message": "Not Found"})),
        (
            "POST",
            at("/issues"),
            json!({"title": "New", "body": "text", "labels": ["bug", {"name": "security"}]}),
            201,
            json!({"number": 733, "body": "text", "labels": [{"name": "bug"}, {"name": "security"}], "user": {"login": "github-actions[bot]", "type": "Bot"}}),
        ),
        ("GET", at("/issues/731/labels"), none.clone(), 200, json!([{"name": "security"}])),
        (
            "POST",
            at("/issues/731/labels"),
            json!({"labels": ["run-guard:a:done", "Security"]}),
            200,
            json!([{"name": "security"}, {"name": "run-guard:a:done", "color": "ededed"}]),
        ),
        (
            "POST",
            at("/issues/731/labels"),
            json!({"labels": [{"name": "bug"}]}),
            200,
            json!([{"name": "security"}, {"name": "run-guard:a:done"}, {"name": "bug"}]),
        ),
        (
            "DELETE",
            at("/issues/731/labels/bug"),
            none.clone(),
            200,
            json!([{"name": "security"}, {"name": "run-guard:a:done"}]),
        ),
        ("DELETE", at("/issues/731/labels/bug"), none.clone(), 404, json!({"message": "Label does not exist"})),
        (
            "GET",
            at("/issues/731/comments"),
            none.clone(),
            200,
            json!([{"id": comment, "body": "me too", "user": {"login": "mallory"}, "author_association": "NONE", "html_url": format!("{page}#issuecomment-{comment}")}]),
        ),
        ("GET", at("/issues/731/comments?since=2026-03-02T09:00:01Z"), none.clone(), 200, json!([])),
        (
            "POST",
            at("/issues/731/comments"),
            json!({"body": "attached"}),
            201,
            json!({"body": "attached", "user": {"login": "github-actions[bot]"}}),
        ),
        ("POST", at("/issues/9/comments"), json!({"body": "attached"}), 404, json!({"message": "Not Found"})),
        (
            "GET",
            at(&format!("/issues/comments/{comment}")),
            none.clone(),
            200,
            json!({"id": comment, "body": "me too"}),
        ),
        (
            "PATCH",
            at(&format!("/issues/comments/{comment}")),
            json!({"body": "me as well"}),
            200,
            json!({"body": "me as well", "user": {"login": "mallory"}}),
        ),
        ("GET", at("/issues/comments/9"), none.clone(), 404, json!({"message": "Not Found"})),
        (
            "POST",
            at("/issues/731/reactions"),
            json!({"content": "confused"}),
            201,
            json!({"content": "confused", "user": {"login": "github-actions[bot]"}}),
        ),
        ("POST", at("/issues/731/reactions"), json!({"content": "confused"}), 200, json!({"content": "confused"})),
        ("GET", at("/issues/731/reactions"), none.clone(), 200, json!([{"content": "confused"}])),
        ("GET", at("/issues/731/reactions?content=heart"), none.clone(), 200, json!([])),
        (
            "POST",
            at(&format!("/issues/comments/{comment}/reactions")),
            json!({"content": "eyes"}),
            201,
            json!({"content": "eyes"}),
        ),
        ("GET", at(&format!("/issues/comments/{comment}/reactions")), none.clone(), 200, json!([{"content": "eyes"}])),
        (
            "GET",
            at("/issues/731"),
            none.clone(),
            200,
            json!({"comments": 2, "reactions": {"total_count": 1, "confused": 1, "+1": 0}}),
        ),
        (
            "GET",
            at("/collaborators/alice/permission"),
            none.clone(),
            200,
            json!({"permission": "write", "role_name": "write", "user": {"login": "alice"}}),
        ),
        (
            "GET",
            at("/collaborators/Mallory/permission"),
            none.clone(),
            200,
            json!({"permission": "read", "role_name": "read"}),
        ),
        (
            "GET",
            at("/collaborators/claude%5Bbot%5D/permission"),
            none.clone(),
            200,
            json!({"permission": "none", "user": {"type": "Bot"}}),
        ),
        ("GET", at("/collaborators/stranger/permission"), none.clone(), 404, json!({"message": "Not Found"})),
        (
            "GET",
            at("/actions/runs/8812345"),
            none.clone(),
            200,
            json!({"id": RUN, "run_attempt": 1, "status": "in_progress", "conclusion": null, "event": "issues", "triggering_actor": {"login": "alice"}, "html_url": "https://github.com/acme/app/actions/runs/8812345"}),
        ),
        ("GET", at("/actions/runs/9"), none.clone(), 404, json!({"message": "Not Found"})),
        ("GET", at("/actions/runs"), none.clone(), 200, json!({"total_count": 1, "workflow_runs": [{"id": RUN}]})),
        (
            "GET",
            at("/actions/runs?status=completed"),
            none.clone(),
            200,
            json!({"total_count": 0, "workflow_runs": []}),
        ),
        (
            "GET",
            at("/actions/runs?event=issues&status=in_progress&actor=alice"),
            none.clone(),
            200,
            json!({"total_count": 1}),
        ),
        ("GET", "/repos/acme/nothing".to_owned(), none.clone(), 404, json!({"message": "Not Found"})),
        (
            "GET",
            "/rate_limit".to_owned(),
            none.clone(),
            200,
            json!({"resources": {"core": {"limit": 1000}, "graphql": {"limit": 5000}}}),
        ),
        ("GET", "/user".to_owned(), none.clone(), 403, json!({"message": "Resource not accessible by integration"})),
    ];
    for (method, path, body, status, holds) in cases {
        let got = answer(&server, "job", method, &path, &body).await;
        assert_eq!(got.status, status, "{method} {path}: {}", got.body);
        assert!(has(&got.body, &holds), "{method} {path}: {:#} in {:#}", holds, got.body);
    }
    let me = answer(&server, "alice", "GET", "/user", &none).await;
    assert_eq!((me.status, &me.body["login"]), (200, &json!("alice")));
}

/// The description's words say that a bare list will do, and its schema has none.
#[tokio::test]
async fn labels_may_be_sent_as_a_bare_list() {
    let server = start_server_unrecorded(github()).await;
    let got = answer(&server, "job", "POST", "/repos/acme/app/issues/731/labels", &json!(["bug"])).await;
    assert_eq!(got.status, 200, "{}", got.body);
    assert_eq!(server.state().item_labels(REPO, 731), ["security", "bug"]);
}

/// Who may do what: a row is a request, a column a token, a cell the status.
#[tokio::test]
async fn a_token_may_do_what_it_was_granted_and_no_more() {
    let columns = [
        "job",
        "reader",
        "alice",
        "mallory",
        "vault-all",
        "vault-issues",
        "vault-pulls",
        "vault-actions",
        "vault-contents",
    ];
    let text = json!({"body": "text"});
    let labels = json!({"labels": ["security"]});
    let react = json!({"content": "eyes"});
    let none = Value::Null;
    // Of the public repository everyone may read everything, a private one is not there for those whom it does not let in.
    let rows: [(&str, &str, &str, &Value, [u16; 9]); 20] = [
        (REPO, "GET", "", &none, [200; 9]),
        (REPO, "GET", "/labels", &none, [200; 9]),
        (REPO, "GET", "/issues/731", &none, [200; 9]),
        (REPO, "GET", "/issues/732/comments", &none, [200; 9]),
        (REPO, "GET", "/actions/runs/8812345", &none, [200; 9]),
        (REPO, "GET", "/collaborators/alice/permission", &none, [200, 200, 200, 200, 403, 403, 403, 403, 403]),
        (
            REPO,
            "PATCH",
            "/labels/security",
            &json!({"description": "x"}),
            [200, 403, 200, 403, 403, 403, 403, 403, 403],
        ),
        (REPO, "POST", "/issues/731/labels", &labels, [200, 403, 200, 403, 403, 403, 403, 403, 403]),
        (REPO, "POST", "/issues/732/labels", &labels, [200, 403, 200, 403, 403, 403, 403, 403, 403]),
        (REPO, "POST", "/issues/731/comments", &text, [201, 403, 201, 201, 403, 403, 403, 403, 403]),
        (VAULT, "GET", "", &none, [404, 404, 200, 404, 200, 200, 200, 200, 200]),
        (VAULT, "GET", "/labels/security", &none, [404, 404, 200, 404, 200, 200, 200, 403, 403]),
        (VAULT, "GET", "/issues/731", &none, [404, 404, 200, 404, 200, 200, 403, 403, 403]),
        (VAULT, "GET", "/issues/732", &none, [404, 404, 200, 404, 200, 403, 200, 403, 403]),
        (VAULT, "GET", "/actions/runs/8812345", &none, [404, 404, 200, 404, 200, 403, 403, 200, 403]),
        (VAULT, "GET", "/collaborators/alice/permission", &none, [404, 404, 200, 404, 200, 200, 200, 200, 200]),
        (
            VAULT,
            "PATCH",
            "/labels/security",
            &json!({"description": "x"}),
            [404, 404, 200, 404, 200, 200, 403, 403, 403],
        ),
        (VAULT, "POST", "/issues/731/labels", &labels, [404, 404, 200, 404, 200, 200, 403, 403, 403]),
        (VAULT, "POST", "/issues/732/comments", &text, [404, 404, 201, 404, 201, 403, 201, 403, 403]),
        (VAULT, "POST", "/issues/731/reactions", &react, [404, 404, 201, 404, 201, 200, 403, 403, 403]),
    ];
    let server = start_server(github()).await;
    for (repo, method, path, body, statuses) in rows {
        for (token, status) in columns.iter().zip(statuses) {
            let path = format!("/repos/{repo}{path}");
            let got = answer(&server, token, method, &path, body).await;
            assert_eq!(got.status, status, "{token}: {method} {path}: {}", got.body);
            let person = ["alice", "mallory"].contains(token);
            let words = match status {
                403 if person => "Resource not accessible by personal access token",
                403 => "Resource not accessible by integration",
                404 => "Not Found",
                _ => continue,
            };
            assert_eq!(got.body["message"], words, "{token}: {method} {path}");
        }
    }
    for (token, words) in [(None, "Requires authentication"), (Some("unknown"), "Bad credentials")] {
        let got = ask(&server.base_url(), token, "GET", "/repos/acme/app/labels", &Value::Null).await.unwrap();
        assert_eq!((got.status, &got.body["message"]), (401, &json!(words)));
    }
}

#[tokio::test]
async fn lists_come_in_pages_that_link_to_each_other() {
    let mut state = github();
    for n in 0..119 {
        assert!(state.add_label(REPO, &format!("l{n:03}"), ""));
    }
    for number in 1..=11 {
        state.open_issue(REPO, ItemSpec::new("alice", "One of thirteen").number(number));
    }
    let server = start_server(state).await;
    // Query; how many are shown, and the pages that prev, next, last and first lead to.
    let cases = [
        ("", 30, [None, Some(2), Some(4), None]),
        ("?page=4", 30, [Some(3), None, None, Some(1)]),
        ("?per_page=100", 100, [None, Some(2), Some(2), None]),
        ("?per_page=100&page=2", 20, [Some(1), None, None, Some(1)]),
        ("?per_page=50&page=2", 50, [Some(1), Some(3), Some(3), Some(1)]),
        ("?per_page=1&page=120", 1, [Some(119), None, None, Some(1)]),
        ("?page=99", 0, [Some(4), None, None, Some(1)]),
    ];
    for (query, shown, pages) in cases {
        let page = answer(&server, "job", "GET", &format!("/repos/{REPO}/labels{query}"), &Value::Null).await;
        assert_eq!(page.body.as_array().unwrap().len(), shown, "{query}");
        for (relation, number) in ["prev", "next", "last", "first"].into_iter().zip(pages) {
            let to = link(&page, relation);
            let number = number.map(|n: usize| format!("page={n}"));
            let led = to.as_deref().and_then(|to| to.rsplit(['?', '&']).next()).map(str::to_owned);
            assert_eq!(led, number, "{query} {relation}");
            if let Some(to) = to {
                assert!(to.starts_with(&format!("{}/repositories/42/labels?", server.base_url())), "{to}");
            }
        }
    }
    // More than a hundred cannot be had at once, and nonsense is the default.
    for (query, shown) in [("?per_page=1000", 100), ("?per_page=0", 1), ("?per_page=x", 30), ("?page=0", 30)] {
        let state = server.state().clone();
        let server = start_server_unrecorded(state).await;
        let page = answer(&server, "job", "GET", &format!("/repos/{REPO}/labels{query}"), &Value::Null).await;
        assert_eq!((page.status, page.body.as_array().unwrap().len()), (200, shown), "{query}");
    }
    // Each is seen once, whatever the size of the pages.
    for size in [7, 30, 100] {
        let seen = walk(&server, "job", &format!("/repos/{REPO}/labels?per_page={size}"), "name").await;
        let mut names: Vec<_> = server.state().labels(REPO).iter().map(|l| json!(l.name)).collect();
        names.sort_by_key(|name| name.as_str().unwrap().to_owned());
        assert_eq!(seen, names, "{size}");
    }
    let thirteen = walk(&server, "job", &format!("/repos/{REPO}/issues?per_page=3"), "number").await;
    let newest_first: Vec<_> = [732, 731].into_iter().chain((1..=11).rev()).map(|n| json!(n)).collect();
    assert_eq!(thirteen, newest_first);
    // A list that ends with its first page has no links.
    let one = answer(&server, "job", "GET", &format!("/repos/{REPO}/issues/731/labels"), &Value::Null).await;
    assert_eq!(one.headers.get("link"), None);
}

#[tokio::test]
async fn what_github_refuses_to_store_is_refused_in_its_words() {
    let server = start_server(github()).await;
    let labels = format!("/repos/{REPO}/labels");
    let comments = format!("/repos/{REPO}/issues/731/comments");
    let name = |n: usize| json!({"name": "é".repeat(n), "color": "ededed"});
    let told = |field: &str, message: &str| json!([{"resource": "Label", "code": "custom", "field": field, "message": message}]);
    let taken = json!([{"resource": "Label", "code": "already_exists", "field": "name"}]);
    let cases: Vec<(&str, &str, Value, u16, Value)> = vec![
        ("POST", &labels, name(50), 201, Value::Null),
        ("POST", &labels, name(51), 422, told("name", "name is too long (maximum is 50 characters)")),
        ("POST", &labels, json!({"name": "d", "description": "é".repeat(100)}), 201, Value::Null),
        (
            "POST",
            &labels,
            json!({"name": "e", "description": "é".repeat(101)}),
            422,
            told("description", "description is too long (maximum is 100 characters)"),
        ),
        (
            "POST",
            &labels,
            json!({"name": "e", "color": "#ededed"}),
            422,
            json!([{"resource": "Label", "code": "invalid", "field": "color"}]),
        ),
        (
            "POST",
            &labels,
            json!({"name": "  "}),
            422,
            json!([{"resource": "Label", "code": "missing_field", "field": "name"}]),
        ),
        ("POST", &labels, json!({"name": "security"}), 422, taken.clone()),
        ("POST", &labels, json!({"name": "SECURITY"}), 422, taken.clone()),
        ("PATCH", "/repos/acme/app/labels/d", json!({"new_name": "Security"}), 422, taken),
        (
            "PATCH",
            "/repos/acme/app/labels/d",
            json!({"description": "x".repeat(101)}),
            422,
            told("description", "description is too long (maximum is 100 characters)"),
        ),
        ("POST", &comments, json!({"body": "é".repeat(65_536)}), 201, Value::Null),
        (
            "POST",
            &comments,
            json!({"body": "é".repeat(65_537)}),
            422,
            json!([{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}]),
        ),
        (
            "POST",
            &comments,
            json!({"body": " "}),
            422,
            json!([{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body cannot be blank"}]),
        ),
    ];
    for (method, path, body, status, errors) in cases {
        let got = answer(&server, "job", method, path, &body).await;
        assert_eq!(got.status, status, "{method} {path}: {}", got.body);
        if status == 422 {
            assert_eq!(got.body["message"], "Validation Failed");
            assert_eq!(got.body["errors"], errors, "{method} {path}");
        }
    }
    // The hundred labels of an item, of which it has one already.
    let more: Vec<_> = (0..99).map(|n| format!("m{n}")).collect();
    let on = format!("/repos/{REPO}/issues/731/labels");
    let full = answer(&server, "job", "POST", &on, &json!({"labels": more})).await;
    assert_eq!((full.status, full.body.as_array().unwrap().len()), (200, 100));
    let over = answer(&server, "job", "POST", &on, &json!({"labels": ["one-more"]})).await;
    assert_eq!((over.status, &over.body["message"]), (422, &json!("Validation Failed")));
    assert!(server.state().label(REPO, "one-more").is_none(), "a refused write leaves nothing behind");
    // What an item carries already is no more.
    let same = answer(&server, "job", "POST", &on, &json!({"labels": ["M7"]})).await;
    assert_eq!((same.status, same.body.as_array().unwrap().len()), (200, 100));
}

#[tokio::test]
async fn what_is_gone_or_locked_says_so() {
    let mut state = github();
    state.edit_item(REPO, 731, |item| item.locked = true).unwrap();
    state.open_issue(REPO, ItemSpec::new("alice", "Gone").number(9));
    state.delete_issue(REPO, 9);
    state.delete_user("mallory");
    let server = start_server(state).await;
    let comments = format!("/repos/{REPO}/issues/731/comments");
    let gone = answer(&server, "job", "GET", "/repos/acme/app/issues/9", &Value::Null).await;
    assert_eq!((gone.status, &gone.body["message"]), (410, &json!("This issue was deleted")));
    // Those who may write may comment on what is locked.
    for token in ["job", "alice"] {
        assert_eq!(answer(&server, token, "POST", &comments, &json!({"body": "x"})).await.status, 201, "{token}");
    }
    let list = answer(&server, "job", "GET", &comments, &Value::Null).await;
    assert_eq!(list.body[0]["user"], Value::Null, "the account of its author is deleted");
}

#[tokio::test]
async fn limits_are_told_in_headers_and_hold() {
    let server = start_server(github()).await;
    let path = "/repos/acme/app/labels/security";
    let limits = |got: &Answered| {
        ["limit", "remaining", "used", "resource"].map(|name| got.headers[&format!("x-ratelimit-{name}")].clone())
    };
    for used in ["1", "2"] {
        let got = answer(&server, "job", "GET", path, &Value::Null).await;
        let left = if used == "1" { "999" } else { "998" };
        assert_eq!(limits(&got), ["1000", left, used, "core"]);
        assert_eq!(got.headers["x-ratelimit-reset"], "1772445600", "an hour after the first request");
        assert_eq!(got.headers["date"], "Mon, 02 Mar 2026 09:00:00 GMT");
    }
    // Asking for the limits costs nothing, and GraphQL is counted apart.
    answer(&server, "job", "GET", "/rate_limit", &Value::Null).await;
    let got = answer(&server, "job", "POST", "/graphql", &json!({"query": "{ viewer { login } }"})).await;
    assert_eq!(limits(&got), ["5000", "4999", "1", "graphql"]);
    assert_eq!(limits(&answer(&server, "job", "GET", path, &Value::Null).await), ["1000", "997", "3", "core"]);

    server.state().exhaust("job");
    let got = answer(&server, "job", "GET", path, &Value::Null).await;
    assert_eq!((got.status, limits(&got)), (403, ["1000", "0", "1000", "core"].map(str::to_owned)));
    assert_eq!(got.body["message"], "API rate limit exceeded for installation.");
    assert_eq!(got.headers.get("retry-after"), None);
    let got = answer(&server, "job", "POST", "/graphql", &json!({"query": "{ viewer { login } }"})).await;
    assert_eq!((got.status, &got.body["errors"][0]["type"]), (200, &json!("RATE_LIMIT")));
    // Another token has its own, and all is well an hour later.
    assert_eq!(answer(&server, "reader", "GET", path, &Value::Null).await.status, 200);
    server.state().now += TimeDelta::hours(1);
    assert_eq!(limits(&answer(&server, "job", "GET", path, &Value::Null).await), ["1000", "999", "1", "core"]);

    // The secondary limit is about what is created.
    server.state().content_per_minute = Some(1);
    let comment = json!({"body": "x"});
    let comments = "/repos/acme/app/issues/731/comments";
    assert_eq!(answer(&server, "job", "POST", comments, &comment).await.status, 201);
    let got = answer(&server, "job", "POST", comments, &comment).await;
    assert_eq!((got.status, got.headers["retry-after"].as_str()), (403, "60"));
    assert!(got.body["message"].as_str().unwrap().contains("secondary rate limit"), "{}", got.body);
    assert_eq!(answer(&server, "job", "GET", path, &Value::Null).await.status, 200);
    server.state().now += TimeDelta::minutes(1);
    assert_eq!(answer(&server, "job", "POST", comments, &comment).await.status, 201);
}

#[tokio::test]
async fn enterprise_servers_answer_under_their_prefixes() {
    let server = start_server(github()).await;
    let labels = answer(&server, "job", "GET", "/api/v3/repos/acme/app/labels?per_page=1", &Value::Null).await;
    assert_eq!(labels.body[0]["url"], format!("{}/repos/acme/app/labels/security", server.enterprise_url()));
    let more = answer(&server, "job", "GET", "/api/v3/repos/acme/app/issues?per_page=1", &Value::Null).await;
    let next = link(&more, "next").unwrap();
    assert!(next.starts_with(&format!("{}/repositories/42/issues?", server.enterprise_url())), "{next}");
    assert_eq!(answer(&server, "job", "GET", &next, &Value::Null).await.body[0]["number"], 731);
    let body = json!({"query": "{ viewer { login } }"});
    let viewer = answer(&server, "job", "POST", "/api/graphql", &body).await;
    assert_eq!(viewer.body["data"]["viewer"]["login"], "github-actions[bot]");
    assert_eq!(server.enterprise_graphql_url(), format!("{}/api/graphql", server.base_url()));
}

#[tokio::test]
async fn faults_strike_before_or_after_the_effect() {
    let create = json!({"name": "rg:a:1", "color": "ededed"});
    for effect in [false, true] {
        for fault in [Fault::Lost { effect }, Fault::Crash { effect }, Fault::Server { status: 502, effect }] {
            let server = start_server(github()).await;
            server.state().plan(Planned::next(Op::CreateLabel, fault.clone()));
            let got = ask(&server.base_url(), Some("job"), "POST", "/repos/acme/app/labels", &create).await;
            match (&fault, got) {
                (Fault::Server { .. }, Ok(got)) => assert_eq!(got.status, 502),
                (Fault::Lost { .. } | Fault::Crash { .. }, Err(_)) => {}
                (_, got) => panic!("{fault:?}: {got:?}"),
            }
            assert_eq!(server.state().label(REPO, "rg:a:1").is_some(), effect, "{fault:?}");
            // The next request is well.
            let again = answer(&server, "job", "POST", "/repos/acme/app/labels", &create).await;
            assert_eq!(again.status, if effect { 422 } else { 201 }, "{fault:?}");
        }
    }
    let server = start_server(github()).await;
    let reads = "/repos/acme/app/labels";
    let faults = [
        (Fault::Denied, 403, None, None),
        (Fault::RateLimited { status: 429, retry_after: Some(7), reset_in: None }, 429, Some("7"), None),
        (Fault::RateLimited { status: 403, retry_after: None, reset_in: Some(540) }, 403, None, Some("0")),
        (Fault::RateLimited { status: 403, retry_after: None, reset_in: None }, 403, None, None),
    ];
    for (fault, status, retry_after, remaining) in faults {
        server.state().plan(Planned::next(Op::ListLabels, fault.clone()));
        let got = answer(&server, "job", "GET", reads, &Value::Null).await;
        assert_eq!(got.status, status, "{fault:?}");
        assert_eq!(got.headers.get("retry-after").map(String::as_str), retry_after, "{fault:?}");
        if let Some(remaining) = remaining {
            assert_eq!(got.headers["x-ratelimit-remaining"], remaining);
        } else {
            assert_ne!(got.headers["x-ratelimit-remaining"], "0", "{fault:?}");
        }
    }
    // A read of the past sees no label that was just made.
    assert_eq!(answer(&server, "job", "POST", reads, &create).await.status, 201);
    server.state().plan(Planned::next(Op::GetLabel, Fault::Stale(1)));
    let one = "/repos/acme/app/labels/rg:a:1";
    assert_eq!(answer(&server, "job", "GET", one, &Value::Null).await.status, 404);
    assert_eq!(answer(&server, "job", "GET", one, &Value::Null).await.status, 200);
}
