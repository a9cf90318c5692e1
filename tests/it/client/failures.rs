//! What becomes of each method when something goes wrong, and that no error ever holds the token.

use std::fmt::Write as _;
use std::time::Duration;

use run_guard::github::Client;
use run_guard::ports::{GitHub as _, Listing, PortError, Probe, ReactTo};
use serde_json::json;

use super::server::{DATE, Does, TOKEN, block_on, client, with_server, with_server_and_patience};
use super::{label, repo, time, whole_query};

/// Every method, by name; `true` for those that write.
const METHODS: &[(&str, bool)] = &[
    ("facts", false),
    ("window_page", false),
    ("probe", false),
    ("permission", false),
    ("run", false),
    ("label", false),
    ("create_label", true),
    ("describe_label", true),
    ("add_labels", true),
    ("remove_label", true),
    ("create_comment", true),
    ("react", true),
];

/// Calls a method and gives its result without the value, but in words.
async fn call(client: &Client, method: &str) -> Result<String, PortError> {
    let name = "rg:a:b:1".to_owned();
    match method {
        "facts" => client.facts(&whole_query()).await.map(|v| format!("{v:?}")),
        "window_page" => client.window_page(&repo(), Listing::Labels, Some("x")).await.map(|v| format!("{v:?}")),
        "probe" => client.probe(&repo(), &Probe::Labels(vec![name])).await.map(|v| format!("{v:?}")),
        "permission" => client.permission(&repo(), "mona").await.map(|v| format!("{v:?}")),
        "run" => client.run(&repo(), 5).await.map(|v| format!("{v:?}")),
        "label" => client.label(&repo(), &name).await.map(|v| format!("{v:?}")),
        "create_label" => {
            client.create_label(&repo(), &label(&name, "words"), "ededed").await.map(|v| format!("{v:?}"))
        }
        "describe_label" => client.describe_label(&repo(), &name, "words").await.map(|()| String::new()),
        "add_labels" => client.add_labels(&repo(), 731, &[name]).await.map(|()| String::new()),
        "remove_label" => client.remove_label(&repo(), 731, &name).await.map(|()| String::new()),
        "create_comment" => client.create_comment(&repo(), 731, "words").await.map(|v| v.to_string()),
        "react" => client.react(&repo(), ReactTo::Issue(731), "confused").await.map(|()| String::new()),
        other => panic!("no method {other}"),
    }
}

fn kind(result: &Result<String, PortError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(PortError::Exists { .. }) => "exists",
        Err(PortError::Denied { .. }) => "denied",
        Err(PortError::Missing { .. }) => "missing",
        Err(PortError::RateLimited { .. }) => "rate-limited",
        Err(PortError::Ambiguous { .. }) => "ambiguous",
        Err(PortError::Unreachable { .. }) => "unreachable",
        Err(PortError::Malformed { .. }) => "malformed",
    }
}

/// All that anyone can print of a result: `Display` and `Debug` of the error and of all that caused it.
fn all_text(result: &Result<String, PortError>) -> String {
    let mut text = format!("{result:?}");
    let mut next: Option<&dyn std::error::Error> = match result {
        Ok(_) => None,
        Err(error) => Some(error),
    };
    while let Some(error) = next {
        write!(text, "\n{error}\n{error:?}\n{error:#?}").unwrap();
        next = error.source();
    }
    text
}

#[test]
fn each_failure_has_its_kind_and_none_shows_the_token() {
    // Servers and proxies in between may repeat what they were sent.
    let echo = format!("you sent Authorization: Bearer {TOKEN}");
    let said = |status: u16| Does::json(status, &json!({ "message": echo, "errors": [{ "message": echo }] }));
    let html = |status: u16| Does::Answer(status, vec![], format!("<html>{echo}</html>"));
    let exists = json!({ "message": "Validation Failed", "errors": [{ "resource": "Label", "code": "already_exists", "field": "name" }] });
    // Failure, what reads make of it, what writes make of it.
    let cases = [
        ("401", said(401), "denied", "denied"),
        ("403", said(403), "denied", "denied"),
        ("403 with retry-after", said(403).with("retry-after", "5"), "rate-limited", "rate-limited"),
        ("403 used up", said(403).with("x-ratelimit-remaining", "0"), "rate-limited", "rate-limited"),
        ("429", said(429), "rate-limited", "rate-limited"),
        ("404", said(404), "missing", "missing"),
        ("410", said(410), "missing", "missing"),
        ("422", said(422), "denied", "denied"),
        ("422 already_exists", Does::json(422, &exists), "exists", "exists"),
        ("500", said(500), "unreachable", "ambiguous"),
        ("502 in HTML", html(502), "unreachable", "ambiguous"),
        ("403 in HTML", html(403), "denied", "denied"),
        ("307", said(307), "denied", "denied"),
        ("HTML", html(200), "malformed", "ok"),
        (
            "another form",
            Does::json(200, &json!({ "data": echo, "id": echo, "permission": echo, "name": [echo] })),
            "malformed",
            "ok",
        ),
        ("an empty answer", Does::Answer(200, vec![], String::new()), "malformed", "ok"),
        ("half an answer", Does::Breaks, "unreachable", "ambiguous"),
        ("no answer", Does::Closes, "unreachable", "ambiguous"),
    ];
    for (failure, does, read, write) in cases {
        let ((), sent) = with_server(vec![does; METHODS.len()], async |client| {
            for (method, writes) in METHODS {
                let result = call(client, method).await;
                let want = match (*method, failure) {
                    ("permission" | "label" | "remove_label", "404") | ("run", "404" | "410") => "ok",
                    // The only write whose answer is read.
                    ("create_comment", "HTML" | "another form" | "an empty answer") => "malformed",
                    _ if *writes => write,
                    _ => read,
                };
                assert_eq!(kind(&result), want, "{method} after {failure}: {result:?}");
                assert!(!all_text(&result).contains(TOKEN), "{method} after {failure}: {result:?}");
            }
        });
        assert_eq!(sent.len(), METHODS.len(), "after {failure} something was asked again");
    }
}

#[test]
fn a_time_out_leaves_a_write_open() {
    let does = vec![Does::Hangs; METHODS.len()];
    let ((), sent) = with_server_and_patience(does, Duration::from_millis(100), async |client| {
        for (method, writes) in METHODS {
            let result = call(client, method).await;
            assert_eq!(kind(&result), if *writes { "ambiguous" } else { "unreachable" }, "{method}: {result:?}");
            assert!(!all_text(&result).contains(TOKEN));
        }
    });
    assert!(sent.len() <= METHODS.len(), "something was asked again");
}

#[test]
fn without_a_connection_nothing_was_written() {
    block_on(async {
        // A port that was free a moment ago and listens no more.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = client(&address, Duration::from_secs(20));
        for (method, _) in METHODS {
            let result = call(&client, method).await;
            assert_eq!(kind(&result), "unreachable", "{method}: {result:?}");
            assert!(!all_text(&result).contains(TOKEN));
        }
    });
}

#[test]
fn an_endless_answer_is_cut_off() {
    for (method, want) in [("run", "malformed"), ("facts", "malformed"), ("create_comment", "ambiguous")] {
        let (result, _) = with_server(vec![Does::Floods(40 * 1024 * 1024)], async |client| call(client, method).await);
        assert_eq!(kind(&result), want, "{method}: {result:?}");
        assert!(result.unwrap_err().to_string().ends_with("the answer is too large"));
    }
}

#[test]
fn redirects_of_reads_stay_on_the_host() {
    let moved = |to: String| Does::json(301, &json!({ "message": "Moved Permanently" })).with("location", to);
    let found = Does::json(200, &json!({ "permission": "write" }));

    let to_path = moved("/repositories/42/collaborators/mona/permission".to_owned());
    let (result, sent) = with_server(vec![to_path, found.clone()], async |client| call(client, "permission").await);
    assert_eq!(result.unwrap(), "Write");
    assert_eq!(sent[1].path, "/repositories/42/collaborators/mona/permission");
    assert_eq!(sent[1].headers["authorization"], format!("Bearer {TOKEN}"));

    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let to = format!("http://{}/x", elsewhere.local_addr().unwrap());
    for (method, _) in METHODS {
        let (result, sent) = with_server(vec![moved(to.clone())], async |client| call(client, method).await);
        assert_eq!(kind(&result), "denied", "{method}: {result:?}");
        assert_eq!(sent.len(), 1);
    }
    assert!(elsewhere.accept().is_err(), "another host was asked");

    for (method, _) in
        METHODS.iter().filter(|(method, writes)| *writes || method.contains("labels") || *method == "facts")
    {
        let does = vec![moved("/x".to_owned()), found.clone()];
        let (result, sent) = with_server(does, async |client| call(client, method).await);
        assert_eq!(kind(&result), "denied", "{method}: {result:?}");
        assert_eq!(sent.len(), 1, "{method} was sent twice");
    }

    let here = vec![moved("/x".to_owned()); 10];
    let (result, sent) = with_server(here, async |client| call(client, "run").await);
    assert_eq!(kind(&result), "denied", "{result:?}");
    assert_eq!(sent.len(), 4, "redirects are bounded");
}

#[test]
fn graphql_rate_limits_and_refusals_come_with_a_200() {
    let limited = json!({ "data": null, "errors": [{ "type": "RATE_LIMITED", "message": "API rate limit exceeded for user ID 1." }] });
    let forbidden = json!({ "data": null, "errors": [{ "type": "FORBIDDEN", "message": "Resource not accessible by integration" }] });
    let failed = json!({ "data": null, "errors": [{ "message": "Something went wrong while executing your query. This may be the result of a timeout" }] });
    let wrong = json!({ "errors": [{ "path": ["query"], "extensions": { "code": "undefinedField" }, "message": "Field 'x' doesn't exist" }] });
    let cases = [
        (forbidden, "denied"),
        (failed, "unreachable"),
        (wrong, "malformed"),
        (json!({}), "malformed"),
        (json!({ "data": [] }), "malformed"),
    ];
    for method in ["facts", "window_page", "probe"] {
        let does = Does::json(200, &limited).with("x-ratelimit-remaining", "0").with("x-ratelimit-reset", "1796041800");
        let (result, _) = with_server(vec![does], async |client| call(client, method).await);
        let Err(PortError::RateLimited { retry_at, .. }) = result else { panic!("{method}: {result:?}") };
        assert_eq!(retry_at, time("2026-11-30T12:30:00Z"));
        for (body, want) in &cases {
            let (result, _) = with_server(vec![Does::json(200, body)], async |client| call(client, method).await);
            assert_eq!(kind(&result), *want, "{method} after {body}: {result:?}");
        }
    }
    for (kind_of, want) in [("NOT_FOUND", "missing"), ("FORBIDDEN", "denied")] {
        let body = json!({
            "data": { "repository": null },
            "errors": [{ "type": kind_of, "path": ["repository"], "message": format!("no, {TOKEN}") }],
        });
        for method in ["window_page", "probe"] {
            let (result, _) = with_server(vec![Does::json(200, &body)], async |client| call(client, method).await);
            assert_eq!(kind(&result), want, "{method}: {result:?}");
            assert!(!all_text(&result).contains(TOKEN));
        }
    }
}

#[test]
fn a_client_cannot_be_printed_with_its_token() {
    block_on(async {
        let client = client("http://127.0.0.1:1", Duration::from_secs(1));
        assert!(!format!("{client:?} {client:#?}").contains("canary"));
    });
}

#[test]
fn server_time_is_the_newest_date() {
    let old = Does::Answer(404, vec![("x-old", DATE.to_owned())], String::new());
    let ((), _) = with_server(vec![old], async |client| {
        assert_eq!(client.server_time(), None);
        call(client, "run").await.unwrap();
        assert_eq!(client.server_time(), Some(time("2026-11-30T12:00:00Z")));
    });
}
