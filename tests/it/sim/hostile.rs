//! Requests that no client of GitHub's sends: each has an answer, and the server goes on.

use serde_json::{Value, json};

use super::*;
use crate::support::{ask_bytes, start_server_unrecorded};

#[tokio::test]
async fn whatever_is_sent_is_answered() {
    let server = start_server_unrecorded(github()).await;
    let deep = |open: &str, close: &str, n: usize| format!("{}{}", open.repeat(n), close.repeat(n));
    let query = |text: &str| json!({"query": text}).to_string().into_bytes();
    let labels = "/repos/acme/app/labels";
    let cases: Vec<(&str, String, Vec<u8>, u16)> = vec![
        // Addresses.
        ("GET", "/".into(), vec![], 404),
        ("GET", "/api/v3".into(), vec![], 404),
        ("GET", "/api/v3repos/acme/app".into(), vec![], 404),
        ("GET", "/repos".into(), vec![], 404),
        ("GET", "/repos/acme".into(), vec![], 404),
        ("GET", "/repos//".into(), vec![], 404),
        ("GET", "/repos/acme/app/unknown".into(), vec![], 404),
        ("GET", "/repos/acme/app/labels/".into(), vec![], 404),
        ("GET", "/repos/acme/app/labels/%00%ff%2f".into(), vec![], 404),
        ("GET", format!("/repos/acme/app/labels/{}", "x".repeat(60_000)), vec![], 404),
        ("GET", "/repos/acme/app/issues/18446744073709551616".into(), vec![], 404),
        ("GET", "/repos/acme/app/issues/-1".into(), vec![], 404),
        ("GET", "/repos/acme/app/issues/18446744073709551615".into(), vec![], 404),
        ("GET", "/repos/acme/app/actions/runs/latest".into(), vec![], 404),
        ("GET", "/repositories/42".into(), vec![], 200),
        ("GET", "/repositories/99/labels".into(), vec![], 404),
        ("GET", "/repositories/x/labels".into(), vec![], 404),
        ("GET", format!("{labels}?page=18446744073709551615&per_page=100"), vec![], 200),
        ("GET", format!("{labels}?page=99999999999999999999&per_page=-3&&=&x"), vec![], 200),
        ("GET", format!("{labels}?page=2&q=%0d%0aset-cookie:%20a"), vec![], 200),
        // Methods.
        ("PUT", labels.into(), b"{}".to_vec(), 404),
        ("TRACE", labels.into(), vec![], 404),
        ("BREW", labels.into(), vec![], 404),
        ("GET", "/graphql".into(), vec![], 404),
        // Bodies.
        ("POST", labels.into(), vec![], 400),
        ("POST", labels.into(), b"{".to_vec(), 400),
        ("POST", labels.into(), b"\xff\xfe".to_vec(), 400),
        ("POST", labels.into(), b"[]".to_vec(), 400),
        ("POST", labels.into(), b"null".to_vec(), 400),
        ("POST", labels.into(), b"{}".to_vec(), 422),
        ("POST", labels.into(), br#"{"name": 7}"#.to_vec(), 422),
        ("POST", labels.into(), br#"{"name": null}"#.to_vec(), 422),
        ("POST", labels.into(), br#"{"name": "a", "color": {}}"#.to_vec(), 422),
        ("POST", labels.into(), deep("[", "]", 100_000).into_bytes(), 400),
        ("POST", labels.into(), json!({"name": "x".repeat(2 * 1024 * 1024)}).to_string().into_bytes(), 400),
        ("POST", "/repos/acme/app/issues/731/labels".into(), br#"{"labels": [7]}"#.to_vec(), 422),
        ("POST", "/repos/acme/app/issues/731/labels".into(), br#"{"labels": "a"}"#.to_vec(), 422),
        ("POST", "/repos/acme/app/issues/731/labels".into(), br#"{"labels": [""]}"#.to_vec(), 422),
        ("POST", "/repos/acme/app/issues".into(), br#"{"title": ""}"#.to_vec(), 422),
        ("POST", "/repos/acme/app/issues/731/reactions".into(), br#"{"content": "shrug"}"#.to_vec(), 422),
        // Queries.
        ("POST", "/graphql".into(), vec![], 400),
        ("POST", "/graphql".into(), b"{}".to_vec(), 200),
        ("POST", "/graphql".into(), br#"{"query": 7}"#.to_vec(), 200),
        ("POST", "/graphql".into(), query(""), 200),
        ("POST", "/graphql".into(), query("{"), 200),
        ("POST", "/graphql".into(), query("\u{0}\u{feff}{ viewer { login } }"), 200),
        ("POST", "/graphql".into(), query("mutation { a }"), 200),
        ("POST", "/graphql".into(), query("subscription { a }"), 200),
        ("POST", "/graphql".into(), query("query a { viewer { login } } query b { viewer { login } }"), 200),
        ("POST", "/graphql".into(), query("{ ...f } fragment f on Query { ...f }"), 200),
        (
            "POST",
            "/graphql".into(),
            query("{ ...a } fragment a on Query { ...b ...b } fragment b on Query { ...a ...a }"),
            200,
        ),
        ("POST", "/graphql".into(), query(&deep("{a", "}", 50_000)), 200),
        ("POST", "/graphql".into(), query(&format!("{{ a(b: {}) }}", deep("[", "]", 50_000))), 200),
        ("POST", "/graphql".into(), query(&format!("{{ {} }}", "viewer { login } ".repeat(20_000))), 200),
        ("POST", "/graphql".into(), query("{ a(b: 99999999999999999999999999999999) }"), 200),
        ("POST", "/graphql".into(), query("{ repository(owner: 1, name: [2]) { id } }"), 200),
        ("POST", "/graphql".into(), query("{ viewer }"), 200),
        ("POST", "/graphql".into(), query("{ viewer { login { a } } }"), 200),
    ];
    for (method, path, body, status) in cases {
        let got = ask_bytes(&server.base_url(), Some("job"), method, &path, body.clone()).await;
        let told = format!(
            "{method} {} {}",
            &path[..path.len().min(80)],
            String::from_utf8_lossy(&body[..body.len().min(80)])
        );
        let got = got.unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(got.status, status, "{told}: {}", got.body);
        if status >= 400 {
            assert!(got.body["message"].is_string(), "{told}: {}", got.body);
            assert_eq!(got.body["status"], status.to_string(), "{told}");
        }
    }
    let well = answer(&server, "job", "GET", "/repos/acme/app", &Value::Null).await;
    assert_eq!(well.status, 200);
    assert_eq!(server.state().labels(REPO).len(), 1, "none of it was carried out");
}
