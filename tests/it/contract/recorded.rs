//! The pass over every exchange that the test suite recorded. `./scripts/test` runs it after all other tests and names the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::exceptions::Exceptions;
use super::exchange::{Exchange, read_folder};
use super::graphql::GitHubSchema;
use super::openapi::Description;
use super::{Deviation, Finding};
use crate::tools::{left_out, tool};

/// What the suite must have exercised; without these the pass would say little.
const MUST_BE_SEEN: [&str; 12] = [
    "GET /repos/{owner}/{repo}/actions/runs/{run_id}",
    "GET /repos/{owner}/{repo}/collaborators/{username}/permission",
    "GET /repos/{owner}/{repo}/labels/{name}",
    "PATCH /repos/{owner}/{repo}/git/refs/{ref}",
    "PATCH /repos/{owner}/{repo}/labels/{name}",
    "POST /graphql",
    "POST /repos/{owner}/{repo}/git/commits",
    "POST /repos/{owner}/{repo}/git/refs",
    "POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
    "POST /repos/{owner}/{repo}/issues/{issue_number}/labels",
    "POST /repos/{owner}/{repo}/issues/{issue_number}/reactions",
    "POST /repos/{owner}/{repo}/labels",
];

/// Where the two descriptions are, inside the tools folder.
pub(super) const OPENAPI: &str = "node_modules/@octokit/openapi/generated/api.github.com.json";
pub(super) const SCHEMA: &str = "node_modules/@octokit/graphql-schema/schema.graphql";

/// What the pass found.
#[derive(Debug, Default)]
struct Report {
    judged: usize,
    faults: usize,
    endpoints: BTreeSet<String>,
    /// Deviations with the places where they were seen.
    deviations: BTreeMap<(String, Deviation), Vec<String>>,
    warnings: BTreeSet<(String, String)>,
}

impl Report {
    fn of(exchanges: &[(String, Exchange)], description: &Description, schema: &GitHubSchema) -> Self {
        let mut report = Self::default();
        for (at, exchange) in exchanges {
            if exchange.fault {
                report.faults += 1;
                continue;
            }
            report.judged += 1;
            let finding = if matches!(exchange.path.as_str(), "/graphql" | "/api/graphql") {
                schema.judge(exchange)
            } else {
                description.judge(exchange)
            };
            report.add(at, finding);
        }
        report
    }

    fn add(&mut self, at: &str, finding: Finding) {
        let Finding { endpoint, deviations, warnings } = finding;
        for deviation in deviations {
            self.deviations.entry((endpoint.clone(), deviation)).or_default().push(at.to_owned());
        }
        self.warnings.extend(warnings.into_iter().map(|warning| (endpoint.clone(), warning)));
        self.endpoints.insert(endpoint);
    }

    /// Everything for which the test run fails, one line each.
    fn failures(&self, exceptions: &Exceptions) -> Vec<String> {
        let mut failures = Vec::new();
        if self.judged == 0 {
            failures.push("no exchange was recorded".to_owned());
        }
        for wanted in MUST_BE_SEEN {
            if !self.endpoints.contains(wanted) {
                failures.push(format!("{wanted}: no test exercises it"));
            }
        }
        for ((endpoint, deviation), places) in &self.deviations {
            if !exceptions.beyond_descriptions.allows(endpoint, &deviation.field) {
                let first = places.first().map_or("", String::as_str);
                failures.push(format!("{endpoint}: {deviation} ({}x, first at {first})", places.len()));
            }
        }
        failures.extend(exceptions.beyond_descriptions.faults());
        failures
    }
}

#[test]
fn every_exchange_is_as_github_describes() {
    let Some(folder) = std::env::var_os("RUN_GUARD_EXCHANGES") else {
        return left_out("the exchanges that all tests recorded");
    };
    let (Some(openapi), Some(graphql)) = (tool(OPENAPI), tool(SCHEMA)) else { return };
    let exchanges = read_folder(Path::new(&folder)).unwrap();
    let report = Report::of(&exchanges, &Description::read(&openapi), &GitHubSchema::read(&graphql));
    println!("{} exchanges judged, {} injected faults left alone; endpoints:", report.judged, report.faults);
    report.endpoints.iter().for_each(|endpoint| println!("  {endpoint}"));
    report.warnings.iter().for_each(|(endpoint, warning)| println!("warning: {endpoint}: {warning}"));
    let failures = report.failures(&Exceptions::read());
    assert!(failures.is_empty(), "{} failure(s)\n{}", failures.len(), failures.join("\n"));
}

/// The judges are judged: each sample is one good exchange or one with a named fault.
mod judges {
    use std::cell::OnceCell;

    use serde_json::{Value, json};

    use super::*;

    thread_local! {
        static JUDGES: OnceCell<Option<(Description, GitHubSchema)>> = const { OnceCell::new() };
    }

    /// What the judges say of an exchange, as text; `None` if the descriptions are not installed.
    fn said(exchange: Value) -> Option<Vec<String>> {
        JUDGES.with(|judges| {
            let judges =
                judges.get_or_init(|| Some((Description::read(&tool(OPENAPI)?), GitHubSchema::read(&tool(SCHEMA)?))));
            let (description, schema) = judges.as_ref()?;
            let exchange = serde_json::from_value(exchange).expect("the sample is an exchange");
            let report = Report::of(&[("sample:1".to_owned(), exchange)], description, schema);
            let deviations = report.deviations.keys().map(|(_, deviation)| deviation.to_string());
            Some(deviations.chain(report.warnings.into_iter().map(|(_, warning)| warning)).collect())
        })
    }

    /// An exchange with some parts replaced: `replace` maps JSON pointers to new values, `null` in `remove` names what goes.
    fn with(mut exchange: Value, replace: &[(&str, Value)], remove: &[&str]) -> Value {
        for (pointer, value) in replace {
            let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
            exchange.pointer_mut(parent).expect("the parent is there")[name] = value.clone();
        }
        for pointer in remove {
            let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
            let parent = exchange.pointer_mut(parent).and_then(Value::as_object_mut).expect("the parent is an object");
            parent.remove(name).expect("it was there");
        }
        exchange
    }

    #[allow(clippy::needless_pass_by_value, reason = "the samples read better with values in place")]
    fn exchange(method: &str, path: &str, request: Value, status: u16, answer: Value) -> Value {
        json!({
            "method": method, "path": path, "query": "",
            "request_headers": { "user-agent": "run-guard" }, "request_body": request,
            "status": status, "response_headers": { "content-type": "application/json; charset=utf-8" },
            "response_body": answer, "fault": false,
        })
    }

    fn label_created() -> Value {
        let answer = json!({
            "id": 1, "node_id": "LA_1", "url": "https://api.github.com/repos/acme/app/labels/rg%3Ax", "name": "rg:x",
            "description": null, "color": "ededed", "default": false,
        });
        exchange("POST", "/repos/acme/app/labels", json!({ "name": "rg:x" }), 201, answer)
    }

    #[test]
    fn rest() {
        let permission = exchange(
            "GET",
            "/repos/acme/app/collaborators/alice/permission",
            Value::Null,
            200,
            json!({ "permission": "write", "role_name": "write", "user": null }),
        );
        let labels = with(
            exchange("GET", "/repos/acme/app/labels", Value::Null, 200, json!([])),
            &[("/query", json!("per_page=100&page=2"))],
            &[],
        );
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("good", label_created(), &[]),
            (
                "a null where null is allowed",
                with(label_created(), &[("/response_body/description", json!("x"))], &[]),
                &[],
            ),
            (
                "Enterprise prefix",
                with(label_created(), &[("/path", json!("/api/v3/repos/acme/app/labels"))], &[]),
                &[],
            ),
            ("repository by id", with(labels.clone(), &[("/path", json!("/repositories/42/labels"))], &[]), &[]),
            (
                "a ref with slashes",
                exchange(
                    "GET",
                    "/repos/acme/app/git/ref/run-guard/abc/1",
                    Value::Null,
                    404,
                    json!({ "message": "Not Found" }),
                ),
                &[],
            ),
            ("good permission", permission.clone(), &[]),
            ("good list", labels.clone(), &[]),
            (
                "wrong type",
                with(label_created(), &[("/response_body/id", json!("1"))], &[]),
                &["response body /id: \"1\" is not of type \"integer\""],
            ),
            (
                "wrong type in a list",
                with(
                    labels.clone(),
                    &[(
                        "/response_body",
                        json!([{ "id": 1, "node_id": "x", "url": "https://a/b", "name": 7, "description": null, "color": "x", "default": true }]),
                    )],
                    &[],
                ),
                &["response body /0/name: 7 is not of type \"string\""],
            ),
            (
                "missing field",
                with(label_created(), &[], &["/response_body/color"]),
                &["response body /color: is required and missing"],
            ),
            (
                "null where none is allowed",
                with(label_created(), &[("/response_body/name", Value::Null)], &[]),
                &["response body /name: null is not of type \"string\""],
            ),
            (
                "a field that GitHub does not have",
                with(label_created(), &[("/response_body/colour", json!("x"))], &[]),
                &["response body /colour: is not described"],
            ),
            (
                "no address",
                with(label_created(), &[("/response_body/url", json!("no address"))], &[]),
                &["response body /url: \"no address\" is not a \"uri\""],
            ),
            (
                "request without a name",
                with(label_created(), &[("/request_body", json!({ "color": "ededed", "descripton": "x" }))], &[]),
                &["request body /descripton: is not described", "request body /name: is required and missing"],
            ),
            (
                "no request body",
                with(label_created(), &[("/request_body", Value::Null)], &[]),
                &["request body: is required and missing"],
            ),
            (
                "unknown endpoint",
                with(label_created(), &[("/path", json!("/repos/acme/app/lables"))], &[]),
                &["request path: GitHub describes no such endpoint"],
            ),
            (
                "known endpoint, unknown method",
                with(label_created(), &[("/method", json!("PUT"))], &[]),
                &["request path: GitHub describes no such endpoint"],
            ),
            (
                "parameter of the wrong kind",
                exchange(
                    "GET",
                    "/repos/acme/app/actions/runs/latest",
                    Value::Null,
                    404,
                    json!({ "message": "Not Found" }),
                ),
                &["request path run_id: \"latest\" is not of type \"integer\"", "the description lists no status 404"],
            ),
            (
                "unknown query",
                with(labels.clone(), &[("/query", json!("perpage=100"))], &[]),
                &["request query perpage: is not described"],
            ),
            (
                "query of the wrong kind",
                with(labels, &[("/query", json!("per_page=many"))], &[]),
                &["request query per_page: \"many\" is not of type \"integer\""],
            ),
            (
                "no user agent",
                with(permission, &[("/request_headers", json!({}))], &[]),
                &["request header user-agent: is required and missing"],
            ),
            (
                "undocumented status, plain error",
                with(label_created(), &[("/status", json!(403)), ("/response_body", json!({ "message": "no" }))], &[]),
                &["the description lists no status 403"],
            ),
            (
                "undocumented status, no error of GitHub's",
                with(label_created(), &[("/status", json!(500)), ("/response_body", json!({ "message": 5 }))], &[]),
                &["response body /message: 5 is not of type \"string\"", "the description lists no status 500"],
            ),
            (
                "conflict without its code",
                with(
                    label_created(),
                    &[
                        ("/status", json!(422)),
                        (
                            "/response_body",
                            json!({ "message": "Validation Failed", "documentation_url": "https://a/b", "errors": [{ "resource": "Label" }] }),
                        ),
                    ],
                    &[],
                ),
                &["response body /errors/0/code: is required and missing"],
            ),
            (
                "an answer where there is none",
                exchange("DELETE", "/repos/acme/app/labels/bug", Value::Null, 204, json!({})),
                &["response body: is sent, and a 204 has none"],
            ),
            (
                "other kind of content",
                with(label_created(), &[("/response_headers/content-type", json!("text/html"))], &[]),
                &["response header content-type: is \"text/html\", and a 201 is application/json"],
            ),
        ];
        for (name, sample, expected) in cases {
            let Some(found) = said(sample) else { return };
            assert_eq!(found, expected, "{name}");
        }
    }

    const QUERY: &str = "query Facts($owner: String!, $number: Int!, $labels: Boolean = true) {
        viewer { login }
        repository(owner: $owner, name: \"app\") {
            policy: object(expression: \"HEAD:.github/run-guard.yml\") { __typename ... on Blob { text isTruncated } }
            issue(number: $number) { state author { login } createdAt labels(first: 2) @include(if: $labels) { nodes { name } } ...Urls }
        }
    }
    fragment Urls on Issue { url }";

    fn facts() -> Value {
        let data = json!({
            "viewer": { "login": "github-actions" },
            "repository": {
                "policy": { "__typename": "Blob", "text": "a: 1", "isTruncated": false },
                "issue": {
                    "state": "OPEN", "author": null, "createdAt": "2026-11-01T10:00:00Z", "labels": { "nodes": [{ "name": "bug" }] },
                    "url": "https://github.com/acme/app/issues/731",
                },
            },
        });
        let request = json!({ "query": QUERY, "variables": { "owner": "acme", "number": 731 } });
        exchange("POST", "/graphql", request, 200, json!({ "data": data }))
    }

    #[test]
    fn graphql() {
        let issue = "/response_body/data/repository/issue";
        let at = |name: &str| format!("{issue}/{name}");
        let replaced = |name: &str, value: Value| with(facts(), &[(&at(name), value)], &[]);
        let query =
            |from: &str, to: &str| with(facts(), &[("/request_body/query", json!(QUERY.replace(from, to)))], &[]);
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("good", facts(), &[]),
            ("an author", replaced("author", json!({ "login": "alice" })), &[]),
            ("no policy", with(facts(), &[("/response_body/data/repository/policy", Value::Null)], &[]), &[]),
            (
                "another kind of object",
                with(facts(), &[("/response_body/data/repository/policy", json!({ "__typename": "Tree" }))], &[]),
                &[],
            ),
            (
                "left out by a variable",
                with(facts(), &[("/request_body/variables/labels", json!(false))], &[&at("labels")]),
                &[],
            ),
            (
                "denied",
                with(
                    facts(),
                    &[(
                        "/response_body",
                        json!({
                            "data": { "viewer": { "login": "x" }, "repository": null },
                            "errors": [{ "type": "FORBIDDEN", "path": ["repository"], "locations": [{ "line": 1, "column": 1 }], "message": "Resource not accessible by integration" }],
                        }),
                    )],
                    &[],
                ),
                &[],
            ),
            (
                "null in a non-null field",
                replaced("createdAt", Value::Null),
                &["response body /data/repository/issue/createdAt: is null, and the schema says DateTime!"],
            ),
            (
                "no time",
                replaced("createdAt", json!("yesterday")),
                &["response body /data/repository/issue/createdAt: \"yesterday\" is no DateTime"],
            ),
            (
                "unknown enum value",
                replaced("state", json!("open")),
                &["response body /data/repository/issue/state: \"open\" is no IssueState"],
            ),
            (
                "an object where a list is",
                replaced("labels", json!({ "nodes": {} })),
                &["response body /data/repository/issue/labels/nodes: is {}, and the schema says [Label]"],
            ),
            (
                "more than was asked for",
                replaced("labels", json!({ "nodes": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] })),
                &["response body /data/repository/issue/labels/nodes: has 3 items, and 2 were asked for"],
            ),
            (
                "a field that was not asked for",
                replaced("title", json!("x")),
                &["response body /data/repository/issue/title: was not asked for of a Issue"],
            ),
            (
                "missing field",
                with(facts(), &[], &[&at("state")]),
                &["response body /data/repository/issue/state: was asked for and is missing"],
            ),
            (
                "missing field of a fragment",
                with(facts(), &[], &[&at("url")]),
                &["response body /data/repository/issue/url: was asked for and is missing"],
            ),
            (
                "another kind of object with a blob's fields",
                with(facts(), &[("/response_body/data/repository/policy/__typename", json!("Tree"))], &[]),
                &[
                    "response body /data/repository/policy/isTruncated: was not asked for of a Tree",
                    "response body /data/repository/policy/text: was not asked for of a Tree",
                ],
            ),
            (
                "no kind of object",
                with(facts(), &[("/response_body/data/repository/policy/__typename", json!("Issue"))], &[]),
                &["response body /data/repository/policy/__typename: Issue is no GitObject"],
            ),
            (
                "an actor without what was asked for",
                replaced("author", json!({})),
                &["response body /data/repository/issue/author/login: was asked for and is missing"],
            ),
            (
                "no data and no error",
                with(facts(), &[("/response_body", json!({}))], &[]),
                &["response body /data: is missing, and there is no error"],
            ),
            (
                "errors of another form",
                with(facts(), &[("/response_body/errors", json!([{ "kind": 7 }]))], &[]),
                &[
                    "response body /errors/0/kind: is no part of a GraphQL error of GitHub's",
                    "response body /errors/0/message: is no text",
                ],
            ),
            (
                "a variable of the wrong type",
                with(facts(), &[("/request_body/variables/number", json!("731"))], &[]),
                &["request body /variables: could not coerce variable number: \"731\" to type Int"],
            ),
            (
                "an undeclared variable",
                with(facts(), &[("/request_body/variables/repo", json!("app"))], &[]),
                &["request body /variables/repo: is not declared by the query"],
            ),
            (
                "no bound",
                query("labels(first: 2)", "labels"),
                &["request body /query repository issue labels: needs `first` or `last` from 1 to 100, and has None"],
            ),
            (
                "too high a bound",
                query("labels(first: 2)", "labels(first: 101)"),
                &[
                    "request body /query repository issue labels: needs `first` or `last` from 1 to 100, and has Some(101)",
                ],
            ),
            (
                "refused token",
                with(
                    facts(),
                    &[("/status", json!(401)), ("/response_body", json!({ "message": "Bad credentials" }))],
                    &[],
                ),
                &[],
            ),
        ];
        for (name, sample, expected) in cases {
            let Some(found) = said(sample) else { return };
            assert_eq!(found, expected, "{name}");
        }
        let Some(unknown) = said(query("viewer { login }", "viewer { loginn }")) else { return };
        assert!(
            unknown.contains(&"request body /query line 2: type `User` does not have a field `loginn`".to_owned()),
            "{unknown:?}"
        );
    }

    #[test]
    fn an_empty_recording_fails() {
        let failures = Report::default().failures(&Exceptions::read());
        assert_eq!(failures.first().map(String::as_str), Some("no exchange was recorded"));
        assert!(failures.contains(&"POST /graphql: no test exercises it".to_owned()), "{failures:?}");
    }
}
