//! GraphQL: what is answered, what is refused, and what a refusal nulls.

use serde_json::{Value, json};

use super::*;
use crate::support::{start_server, start_server_unrecorded};

async fn query(server: &Server, token: &str, text: &str, variables: Value) -> Value {
    let body = json!({"query": text, "variables": variables});
    let got = answer(server, token, "POST", "/graphql", &body).await;
    assert_eq!(got.status, 200, "{text}: {}", got.body);
    got.body
}

/// One query of REPO, given by what is asked of it, and the data of the repository.
type Case<'a> = (&'a str, Value);

#[tokio::test]
async fn what_is_asked_is_answered() {
    let mut state = github();
    for n in 0..4 {
        assert!(state.add_label(REPO, &format!("l{n}"), "words"));
    }
    state.label_item(REPO, 731, &["l0"], "claude[bot]");
    state.unlabel_item(REPO, 731, "l0", "mallory");
    let comment = comment_on(&state, REPO, 731);
    let server = start_server(state).await;
    let cases: Vec<Case<'_>> = vec![
        (
            "id databaseId nameWithOwner isPrivate isEmpty owner { __typename login } defaultBranchRef { name target { oid } }",
            json!({"databaseId": 42, "nameWithOwner": REPO, "isPrivate": false, "isEmpty": false, "owner": {"__typename": "Organization", "login": "acme"}, "defaultBranchRef": {"name": "main"}}),
        ),
        (
            "policy: object(expression: \"HEAD:.github/run-guard.yml\") { __typename ... on Blob { text isBinary isTruncated byteSize } }",
            json!({"policy": {"__typename": "Blob", "text": "max-runs-per-hour: 50", "isBinary": false, "byteSize": 21}}),
        ),
        (
            "a: object(expression: \"HEAD:no/such\") { __typename } b: object(expression: \"HEAD:.github\") { __typename } c: object(expression: \"HEAD\") { __typename }",
            json!({"a": null, "b": {"__typename": "Tree"}, "c": {"__typename": "Commit"}}),
        ),
        (
            "issueOrPullRequest(number: 731) { __typename ... on Issue { title closed state author { __typename login } labels(first: 100) { nodes { name } } } ... on PullRequest { isDraft } }",
            json!({"issueOrPullRequest": {"__typename": "Issue", "title": "Tokens in the log", "state": "OPEN", "author": {"__typename": "User", "login": "alice"}, "labels": {"nodes": [{"name": "security"}]}}}),
        ),
        (
            "issueOrPullRequest(number: 732) { ... on PullRequest { isDraft merged headRefOid comments(last: 50) { totalCount nodes { body author { __typename login } } } } }",
            json!({"issueOrPullRequest": {"isDraft": false, "headRefOid": "a".repeat(40), "comments": {"totalCount": 1, "nodes": [{"body": "done", "author": {"__typename": "Bot", "login": "claude"}}]}}}),
        ),
        (
            "issue(number: 731) { comments(last: 1) { nodes { fullDatabaseId editor { login } } } timelineItems(last: 30, itemTypes: [LABELED_EVENT, UNLABELED_EVENT]) { totalCount filteredCount nodes { __typename ... on LabeledEvent { label { name } actor { login } } ... on UnlabeledEvent { label { name } actor { login } } } } }",
            json!({"issue": {"comments": {"nodes": [{"fullDatabaseId": comment.to_string(), "editor": null}]}, "timelineItems": {"totalCount": 4, "filteredCount": 3, "nodes": [
                {"__typename": "LabeledEvent", "label": {"name": "security"}, "actor": {"login": "alice"}},
                {"__typename": "LabeledEvent", "label": {"name": "l0"}, "actor": {"login": "claude"}},
                {"__typename": "UnlabeledEvent", "label": {"name": "l0"}, "actor": {"login": "mallory"}}]}}}),
        ),
        (
            "a: label(name: \"security\") { name description } b: label(name: \"SECURITY\") { name }",
            json!({"a": {"name": "security", "description": null}, "b": null}),
        ),
        (
            "labels(first: 2, orderBy: {field: CREATED_AT, direction: DESC}) { totalCount nodes { name } pageInfo { hasNextPage hasPreviousPage } }",
            json!({"labels": {"totalCount": 5, "nodes": [{"name": "l3"}, {"name": "l2"}], "pageInfo": {"hasNextPage": true, "hasPreviousPage": false}}}),
        ),
        (
            "labels(last: 2, orderBy: {field: NAME, direction: ASC}) { nodes { name } pageInfo { hasNextPage hasPreviousPage } }",
            json!({"labels": {"nodes": [{"name": "l3"}, {"name": "security"}], "pageInfo": {"hasNextPage": false, "hasPreviousPage": true}}}),
        ),
        // Two selections of one field are one.
        (
            "issue(number: 731) { title } ... on Repository { issue(number: 731) { number } }",
            json!({"issue": {"title": "Tokens in the log", "number": 731}}),
        ),
    ];
    for (asked, holds) in cases {
        let text = format!(
            "query Q($owner: String!, $name: String!) {{ repository(owner: $owner, name: $name) {{ {asked} }} }}"
        );
        let got = query(&server, "job", &text, json!({"owner": "ACME", "name": "App"})).await;
        assert_eq!(got.get("errors"), None, "{asked}: {got}");
        assert!(has(&got["data"]["repository"], &holds), "{asked}: {holds:#} in {got:#}");
    }
}

#[tokio::test]
async fn variables_directives_fragments_and_names_are_understood() {
    let server = start_server(github()).await;
    let text = "query A($n: Int!, $with: Boolean = true) {
        viewer { login }
        repository(owner: \"acme\", name: \"app\") {
            first: issue(number: $n) { ...Short title @skip(if: $with) body @include(if: $with) }
            second: issueOrPullRequest(number: 732) { ... @include(if: $with) { __typename } }
        }
    }
    query B { rateLimit { limit remaining used cost resetAt } }
    fragment Short on Issue { number state }";
    let ask = async |operation: &str, variables: Value| {
        let body = json!({"query": text, "variables": variables, "operationName": operation});
        answer(&server, "job", "POST", "/graphql", &body).await.body
    };
    let first = |got: &Value| got["data"]["repository"]["first"].clone();
    let got = ask("A", json!({"n": 731})).await;
    assert_eq!(first(&got), json!({"number": 731, "state": "OPEN", "body": ""}));
    assert_eq!(got["data"]["repository"]["second"], json!({"__typename": "PullRequest"}));
    let got = ask("A", json!({"n": 731, "with": false})).await;
    assert_eq!(first(&got), json!({"number": 731, "state": "OPEN", "title": "Tokens in the log"}));
    let got = ask("B", Value::Null).await;
    let limits = json!({"limit": 5000, "remaining": 4997, "used": 3, "cost": 1, "resetAt": "2026-03-02T10:00:00Z"});
    assert_eq!(got["data"]["rateLimit"], limits);
}

/// A page after another holds each label once, newest first, also when labels are made in between.
#[tokio::test]
async fn pages_of_labels_go_on_where_the_last_one_ended() {
    let mut state = github();
    for n in 0..250 {
        assert!(state.add_label(REPO, &format!("l{n:03}"), ""));
    }
    let server = start_server(state).await;
    let text = "query($after: String) { repository(owner: \"acme\", name: \"app\") {
        labels(first: 100, after: $after, orderBy: {field: CREATED_AT, direction: DESC}) { nodes { name } pageInfo { hasNextPage endCursor } } } }";
    let mut names = Vec::new();
    let mut after = Value::Null;
    for page in 0..3 {
        let got = query(&server, "job", text, json!({"after": after})).await;
        let labels = &got["data"]["repository"]["labels"];
        names.extend(labels["nodes"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap().to_owned()));
        assert_eq!(labels["pageInfo"]["hasNextPage"], page < 2);
        after = labels["pageInfo"]["endCursor"].clone();
        assert!(server.state().add_label(REPO, &format!("new{page}"), ""));
    }
    let mut expected: Vec<_> = (0..250).rev().map(|n| format!("l{n:03}")).collect();
    expected.push("security".to_owned());
    assert_eq!(names, expected);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_with_its_path() {
    let server = start_server(github()).await;
    let app = "repository(owner: \"acme\", name: \"app\")";
    let cases = [
        (
            "{ a: repository(owner: \"acme\", name: \"none\") { id } viewer { login } }".to_owned(),
            json!({"a": null, "viewer": {"login": "github-actions[bot]"}}),
            json!(["a"]),
            "Could not resolve to a Repository with the name 'acme/none'.",
        ),
        (
            format!("{{ repository(owner: \"acme\", name: \"vault\") {{ id }} a: {app} {{ id: databaseId }} }}"),
            json!({"repository": null, "a": {"id": 42}}),
            json!(["repository"]),
            "Could not resolve to a Repository with the name 'acme/vault'.",
        ),
        (
            format!("{{ {app} {{ i: issue(number: 732) {{ id }} name }} }}"),
            json!({"repository": {"i": null, "name": "app"}}),
            json!(["repository", "i"]),
            "Could not resolve to an Issue with the number of 732.",
        ),
        (
            format!("{{ {app} {{ pullRequest(number: 731) {{ id }} }} }}"),
            json!({"repository": {"pullRequest": null}}),
            json!(["repository", "pullRequest"]),
            "Could not resolve to a PullRequest with the number of 731.",
        ),
        (
            format!("{{ {app} {{ issueOrPullRequest(number: 9) {{ __typename }} }} }}"),
            json!({"repository": {"issueOrPullRequest": null}}),
            json!(["repository", "issueOrPullRequest"]),
            "Could not resolve to an issue or pull request with the number of 9.",
        ),
    ];
    for (text, data, path, message) in cases {
        let got = query(&server, "job", &text, Value::Null).await;
        assert_eq!(got["data"], data, "{text}");
        let errors = got["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 1, "{got}");
        assert_eq!((&errors[0]["type"], &errors[0]["path"]), (&json!("NOT_FOUND"), &path), "{got}");
        assert_eq!(errors[0]["message"], message);
        assert!(errors[0]["locations"][0]["line"].is_u64(), "{got}");
    }
}

/// A refusal nulls its field, or the nearest parent that can be null.
#[tokio::test]
async fn a_refused_field_nulls_what_holds_it() {
    let vault = "query { repository(owner: \"acme\", name: \"vault\") { databaseId
        policy: object(expression: \"HEAD:.github/run-guard.yml\") { __typename }
        issueOrPullRequest(number: 731) { __typename ... on Issue { title comments(last: 5) { nodes { body } } } }
        label(name: \"security\") { name } labels(first: 1) { nodes { name } } } }";
    // Token; which of the four parts it is refused.
    let cases = [
        ("vault-all", vec![]),
        ("vault-issues", vec!["policy"]),
        ("vault-pulls", vec!["policy", "issueOrPullRequest"]),
        ("vault-contents", vec!["issueOrPullRequest", "label", "labels"]),
        ("vault-actions", vec!["policy", "issueOrPullRequest", "label", "labels"]),
        ("alice", vec![]),
    ];
    let server = start_server(github()).await;
    for (token, refused) in cases {
        let got = query(&server, token, vault, Value::Null).await;
        let repository = &got["data"]["repository"];
        assert_eq!(repository["databaseId"], 43, "{token}: {got}");
        for part in ["policy", "issueOrPullRequest", "label", "labels"] {
            assert_eq!(repository[part].is_null(), refused.contains(&part), "{token} {part}: {got}");
        }
        let none = Vec::new();
        let errors = got["errors"].as_array().unwrap_or(&none);
        let paths: Vec<_> = errors.iter().map(|e| e["path"][1].as_str().unwrap()).collect();
        assert_eq!(paths, refused, "{token}: {got}");
        for error in errors {
            assert_eq!(error["type"], "FORBIDDEN");
            assert_eq!(error["message"], "Resource not accessible by integration");
        }
    }
    // A field that cannot be null takes its parent along, up to one that can, and an entry of a list alone.
    let issue = "query { repository(owner: \"acme\", name: \"app\") { name
        issue(number: 731) { title comments(last: 5) { totalCount nodes { body author { login } } } } } viewer { login } }";
    let whole = json!({"name": "app", "issue": {"title": "Tokens in the log", "comments": {"totalCount": 1, "nodes": [{"body": "me too", "author": {"login": "mallory"}}]}}});
    let cases = [
        (
            "IssueComment.author",
            "/issue/comments/nodes/0/author",
            json!(["repository", "issue", "comments", "nodes", 0, "author"]),
        ),
        (
            "IssueComment.body",
            "/issue/comments/nodes/0",
            json!(["repository", "issue", "comments", "nodes", 0, "body"]),
        ),
        ("IssueCommentConnection.nodes", "/issue/comments/nodes", json!(["repository", "issue", "comments", "nodes"])),
        ("IssueCommentConnection.totalCount", "/issue", json!(["repository", "issue", "comments", "totalCount"])),
        ("Issue.title", "/issue", json!(["repository", "issue", "title"])),
        ("Repository.name", "", json!(["repository", "name"])),
    ];
    for (field, nulled, path) in cases {
        server.state().denied_fields = [field.to_owned()].into();
        let got = query(&server, "job", issue, Value::Null).await;
        let mut expected = whole.clone();
        *expected.pointer_mut(nulled).unwrap() = Value::Null;
        assert_eq!(got["data"]["repository"], expected, "{field}");
        assert_eq!(got["data"]["viewer"]["login"], "github-actions[bot]", "{field}");
        assert_eq!(got["errors"][0]["path"], path, "{field}");
        assert_eq!(got["errors"].as_array().unwrap().len(), 1, "{field}");
    }
    // Nothing is left where a part of the root cannot be null.
    server.state().denied_fields = ["Query.viewer".to_owned()].into();
    assert_eq!(query(&server, "job", issue, Value::Null).await["data"], Value::Null);
}

/// A query that GitHub's schema does not allow gives errors and no data at all.
#[tokio::test]
async fn an_invalid_query_is_refused_as_a_whole() {
    let server = start_server_unrecorded(github()).await;
    let app = |asked: &str| {
        format!(
            "query($n: Int!) {{ repository(owner: \"acme\", name: \"app\") {{ {asked} issue(number: $n) {{ id }} }} }}"
        )
    };
    let n = json!({"n": 731});
    let cases = [
        (app("nme"), n.clone(), "Field 'nme' doesn't exist on type 'Repository'"),
        (app("l: labels(first: 1) { nodes { colour } }"), n.clone(), "Field 'colour' doesn't exist on type 'Label'"),
        ("{ viewr { login } }".to_owned(), Value::Null, "Field 'viewr' doesn't exist on type 'Query'"),
        ("{ viewer { ...F } }".to_owned(), Value::Null, "Fragment F was used, but not defined"),
        (app("name"), Value::Null, "Variable $n of type Int! was provided invalid value"),
        (app("name"), json!({"n": null}), "Variable $n of type Int! was provided invalid value"),
        (app("name"), json!({"n": "731"}), "Variable $n of type Int! was provided invalid value"),
        (app("name"), json!({"n": 2_147_483_648_u64}), "Variable $n of type Int! was provided invalid value"),
        ("{ viewer { login }".to_owned(), Value::Null, "Parse error"),
        (
            "mutation { addStar(input: {}) { clientMutationId } }".to_owned(),
            Value::Null,
            "Field 'addStar' doesn't exist on type 'Mutation'",
        ),
        (
            "query A { viewer { login } } query B { viewer { login } }".to_owned(),
            Value::Null,
            "An operation name is required",
        ),
    ];
    for (text, variables, words) in cases {
        let got = query(&server, "job", &text, variables).await;
        assert_eq!(got.get("data"), None, "{text}: {got}");
        let message = got["errors"][0]["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{text}: {got}");
    }
    let got = query(&server, "job", &app("nme"), n).await;
    let error = &got["errors"][0];
    assert_eq!(error["path"], json!(["query", "repository", "nme"]));
    assert_eq!(error["extensions"], json!({"code": "undefinedField", "typeName": "Repository", "fieldName": "nme"}));

    // A list needs a bound, and at most a hundred: the list alone is null.
    let bounds = [("labels", "MISSING_PAGINATION_BOUNDARIES"), ("labels(first: 101)", "EXCESSIVE_PAGINATION")];
    for (labels, kind) in bounds {
        let text = format!("{{ repository(owner: \"acme\", name: \"app\") {{ name {labels} {{ totalCount }} }} }}");
        let got = query(&server, "job", &text, Value::Null).await;
        assert_eq!(got["data"]["repository"], json!({"name": "app", "labels": null}), "{got}");
        assert_eq!(
            (&got["errors"][0]["type"], &got["errors"][0]["path"]),
            (&json!(kind), &json!(["repository", "labels"]))
        );
    }
}
